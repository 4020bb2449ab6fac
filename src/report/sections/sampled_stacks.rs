//! Where in the program its time goes, by phase: stacks taken at a fixed rate over the whole run.

use std::collections::BTreeMap;

use serde::Serialize;

use super::stacks::places_table;
use crate::report::document::Block;
use crate::report::pictures::flames;
use gnntop_analysis::catalogue::Catalogue;
use gnntop_analysis::figures::{count, percent};
use gnntop_analysis::store::{StackTree, Store};
use gnntop_wire::Fact;

/// Most places and stacks that are listed, the most frequent first.
const MOST: usize = 500;
/// Frames with a smaller share are left out of the tree for people...
const LEAST_SHARE: f64 = 0.02;
/// ...and so are lines beyond these.
const LINES_MOST: usize = 60;

/// Why stacks could not be read, if the program says so.
fn why_none(store: &Store) -> Option<String> {
    store.session().facts().values().find_map(|fact| match fact {
        Fact::NoStacks { why } => Some(why.clone()),
        _ => None,
    })
}

/// Stacks taken at a fixed rate. A count estimates time: a share of the run's wall time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SampledStacks {
    /// How many were taken.
    pub taken: u64,
    /// How many of them are known here by their place. Fewer where only a part of the session could be read.
    pub known: u64,
    /// How many could not be read.
    pub unread: u64,
    /// Why none could be read, if so.
    pub why_none: Option<String>,
    /// How many are taken a second.
    pub a_second: u64,
    /// Processor time that taking them took, as a share of one core.
    pub cost_share: Option<f64>,
    /// Phases, with how many stacks were taken in each; the most frequent first.
    pub phases: Vec<(String, u64)>,
    /// Places in the program, the innermost frame of its own files and the one under which it was called, with how many stacks were
    /// there; the most frequent first.
    pub places: Vec<(String, u64)>,
    /// Different stacks, each with its phase, frames from the innermost on, and how many are like it; the most frequent first.
    pub stacks: Vec<(String, Vec<String>, u64)>,
    /// The tree for people.
    #[serde(skip)]
    pub tree: Vec<String>,
}

impl SampledStacks {
    /// What the store holds; `None` without any.
    pub(in crate::report) fn new(figures: &Catalogue<'_>) -> Option<Self> {
        let store = figures.store();
        let sampled = store.sampled();
        if sampled.is_empty() {
            return None;
        }
        let (mut phases, mut places) = (BTreeMap::new(), BTreeMap::new());
        let mut stacks = Vec::new();
        for (names, times) in sampled.stacks() {
            let Some((phase, frames)) = names.split_last() else { continue };
            let phase = store.name(*phase).to_owned();
            *phases.entry(phase.clone()).or_default() += times;
            let place = store.frames_place(frames);
            place.into_iter().for_each(|place| *places.entry(place).or_default() += times);
            stacks.push((phase, frames.iter().map(|frame| store.name(*frame).to_owned()).collect(), times));
        }
        stacks.sort_by_key(|(_, _, times)| std::cmp::Reverse(*times));
        stacks.truncate(MOST);
        let lines = StackTree::from_sampled(sampled).lines_by_phase(LEAST_SHARE);
        let line = |(depth, share, frame): (usize, f64, _)| {
            format!("{:>6}  {}{}", percent(share), "  ".repeat(depth), store.name(frame))
        };
        Some(Self {
            taken: figures.value("sampled_stacks.count").unwrap_or(0.0) as u64,
            known: sampled.located(),
            unread: sampled.unread(),
            why_none: why_none(store).filter(|_| sampled.total() == 0),
            a_second: sampled.per_second(),
            cost_share: figures.value("sampled_stacks.share"),
            phases: most_frequent(phases),
            places: most_frequent(places),
            stacks,
            tree: lines.into_iter().take(LINES_MOST).map(line).collect(),
        })
    }

    /// How many, how often, and at what cost.
    fn describe(&self) -> String {
        let mut text = format!("{} taken, {} a second", count(self.taken), self.a_second);
        text.extend(self.cost_share.map(|share| format!(", for {} of a core", percent(share))));
        if self.unread > 0 {
            text += &format!("; {} could not be read", count(self.unread));
        }
        text.extend(self.why_none.iter().map(|why| format!("; {why}")));
        if self.known < self.taken {
            text += &format!("; shares are of the {} whose place is known here", count(self.known));
        }
        text
    }
}

fn most_frequent(counts: BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = counts.into_iter().collect();
    all.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    all.truncate(MOST);
    all
}

/// The section, its phases in the colours that they have among these names; nothing without sampled stacks.
pub(in crate::report) fn blocks<'a>(
    sampled: Option<&SampledStacks>,
    phases: impl IntoIterator<Item = &'a str>,
) -> Vec<Block> {
    let Some(sampled) = sampled else { return Vec::new() };
    vec![
        Block::heading("Where in your code"),
        Block::Picture { html: flames::flame_graph(&sampled.stacks, phases), lines: sampled.tree.clone() },
        places_table(&sampled.places, sampled.known),
        Block::Paragraph(format!("Stacks: {}.", sampled.describe())),
    ]
}
