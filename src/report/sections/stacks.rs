//! Where the program was while a phase took too long: the stacks merged, with the share of each place.

use serde::Serialize;

use crate::report::document::Block;
use gnntop_analysis::figures::{count, counted, percent};
use gnntop_analysis::store::{StackTree, Store};

/// Most stacks listed one by one: the most frequent.
const MOST: usize = 50;
/// Places with a smaller share are left out of the tree for people...
const LEAST_SHARE: f64 = 0.05;
/// ...and so are lines beyond these.
const LINES_MOST: usize = 40;
/// Most places in a table.
const PLACES: usize = 12;

/// Stacks taken while a phase of the training thread took twice its p99, and 50 ms at least.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stacks {
    /// How many are kept.
    pub taken: u64,
    /// Places in the program, the innermost frame of its own files and the one under which it was called, with how many stacks
    /// were there; the most frequent first.
    pub places: Vec<(String, u64)>,
    /// Different stacks, frames from the innermost on, with how many are like it; the most frequent first.
    pub stacks: Vec<(Vec<String>, u64)>,
    /// The tree for people.
    #[serde(skip)]
    pub tree: Vec<String>,
}

impl Stacks {
    /// What the store holds; `None` without any.
    pub(in crate::report) fn new(store: &Store) -> Option<Self> {
        let all = store.stacks();
        let taken = all.iter().len() as u64;
        if taken == 0 {
            return None;
        }
        let mut places = store.stack_places(all.iter());
        places.truncate(MOST);
        let mut stacks: Vec<(Vec<String>, u64)> = Vec::new();
        for stack in all.iter() {
            let frames: Vec<String> = stack.frames.iter().map(|frame| store.name(*frame).to_owned()).collect();
            match stacks.iter_mut().find(|(known, _)| *known == frames) {
                Some((_, times)) => *times += 1,
                None => stacks.push((frames, 1)),
            }
        }
        stacks.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        stacks.truncate(MOST);
        let lines = StackTree::from_stacks(all.iter()).lines(LEAST_SHARE);
        let line = |(depth, share, frame): (usize, f64, _)| {
            format!("{:>6}  {}{}", percent(share), "  ".repeat(depth), store.name(frame))
        };
        let tree = lines.into_iter().take(LINES_MOST).map(line).collect();
        Some(Self { taken, places, stacks, tree })
    }
}

/// The section; nothing if no stack was taken.
pub(in crate::report) fn blocks(stacks: Option<&Stacks>) -> Vec<Block> {
    let Some(stacks) = stacks else { return Vec::new() };
    let taken = counted(stacks.taken, "stack", "stacks");
    vec![
        Block::heading("Where it took too long"),
        Block::Picture { html: String::new(), lines: stacks.tree.clone() },
        places_table(&stacks.places, stacks.taken),
        Block::Paragraph(format!("{taken} taken while a phase took too long: twice its p99, and at least 50 ms.")),
    ]
}

/// Places in the program with their share of the stacks.
pub(super) fn places_table(places: &[(String, u64)], stacks: u64) -> Block {
    let head = ["place", "stacks", "share"].map(str::to_owned).to_vec();
    let row = |(place, times): &(String, u64)| {
        vec![place.clone(), count(*times), percent(*times as f64 / stacks.max(1) as f64)]
    };
    Block::table(std::iter::once(head).chain(places.iter().take(PLACES).map(row)).collect())
}
