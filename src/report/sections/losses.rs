//! What was lost on the way from the program to the report, and what was not measured, in words.

use std::collections::BTreeMap;

use super::hardware;
use super::memory::Memory;
use crate::report::document::Block;
use gnntop_analysis::catalogue::Catalogue;
use gnntop_analysis::store::{Losses, Phase};
use gnntop_wire::{Fact, FactKey};

/// The section on what was lost.
pub(in crate::report) fn blocks(losses: &Losses, facts: &BTreeMap<FactKey, Fact>) -> Vec<Block> {
    let mut all = describe(losses);
    let not_recorded = facts.iter().filter(|(_, fact)| matches!(fact, Fact::NotRecorded { .. }));
    all.extend(not_recorded.map(|(key, fact)| format!("{}: {}", key.title(), fact.text())));
    vec![Block::heading("Lost"), list(all)]
}

/// The section on what was not measured, one sentence each.
pub(in crate::report) fn not_measured(sentences: &[String]) -> Vec<Block> {
    vec![Block::heading("Not measured"), list(sentences.to_vec())]
}

fn list(lines: Vec<String>) -> Block {
    Block::List(if lines.is_empty() { vec!["nothing".to_owned()] } else { lines })
}

/// What was lost, one sentence each.
fn describe(losses: &Losses) -> Vec<String> {
    let lost = losses.counts().into_iter().filter(|loss| loss.value > 0);
    let mut all: Vec<String> =
        lost.map(|loss| format!("{}: {}", loss.what, loss.unit.format(loss.value as f64))).collect();
    all.extend(losses.newer_format.map(|major| format!("parts in the newer format {major}: update gnntop")));
    all.extend(losses.damages.first().map(|damage| format!("first damage at byte: {}", damage.offset)));
    all
}

/// What a reader might miss, with the reason.
pub(in crate::report) fn unmeasured(figures: &Catalogue<'_>, memory: &Memory) -> Vec<String> {
    let (store, statistics) = (figures.store(), figures.statistics());
    let mut all = Vec::new();
    let mut say = |is_missing: bool, text: &str| {
        if is_missing {
            all.push(text.to_owned());
        }
    };
    let has_steps = statistics.steps() > 0;
    say(!has_steps, "steps: none were published");
    say(has_steps && store.phases().iter().all(Phase::is_gap), "phases: the program has none");
    let mut sizes = ["graphs.total", "nodes.total", "edges.total", "seeds.total"].into_iter();
    say(has_steps && sizes.all(|size| figures.value(size).is_none()), "batch sizes: the program does not report them");
    say(has_steps && store.loss().is_none(), "loss: the program neither reports nor logs it");
    say(memory.phases.is_empty(), "memory by phase: the program does not count its allocations");
    all.extend(hardware::not_measured(store));
    all
}
