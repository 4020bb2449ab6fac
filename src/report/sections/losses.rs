//! What was lost on the way from the program to the report, and what was not measured, in words.

use std::collections::BTreeMap;

use super::hardware;
use super::memory::Memory;
use crate::report::document::Block;
use gnntop_analysis::figures::{count, duration};
use gnntop_analysis::store::{Losses, Phase, StepStatistics, Store};
use gnntop_wire::NOT_RECORDED;

/// The section on what was lost.
pub(in crate::report) fn blocks(losses: &Losses, facts: &BTreeMap<String, String>) -> Vec<Block> {
    let mut all = describe(losses);
    let not_recorded = facts.iter().filter(|(key, _)| key.starts_with(NOT_RECORDED));
    all.extend(not_recorded.map(|(key, text)| format!("{key}: {text}")));
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
    let counts = [
        (losses.dropped_events, "events dropped by the program because a ring was full"),
        (losses.missed_events, "events published and not read"),
        (losses.lost_segments, "segments deleted before they could be read"),
        (losses.missing_steps, "missing steps"),
        (losses.damage_count, "damaged places"),
        (losses.damage_bytes, "bytes in damaged places"),
        (losses.broken_blocks, "truncated blocks"),
        (losses.foreign_segments, "segments of other sessions, skipped"),
        (losses.unknown_frames, "frames of an unknown kind, skipped"),
        (losses.repeated_blocks, "duplicate blocks"),
        (losses.backward_times, "events out of order in time"),
        (losses.implausible_times, "events with times far in the future"),
        (losses.steps_elsewhere, "steps on tracks other than the training track"),
        (losses.names_not_kept, "names dropped because the table is full"),
        (losses.tracks_not_kept, "tracks dropped because the table is full"),
        (losses.signals_not_kept, "signals dropped because the table is full"),
        (losses.events_not_kept, "events dropped because a table is full, or a name or signal is unknown"),
    ];
    let mut all: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{what}: {}", count(*n))).collect();
    if losses.untiled_ns > 0 {
        all.push(format!("time around missing steps: {}", duration(losses.untiled_ns)));
    }
    all.extend(losses.newer_format.map(|major| format!("parts in the newer format {major}: update gnntop")));
    all.extend(losses.damages.first().map(|damage| format!("first damage at byte: {}", damage.offset)));
    all
}

/// What a reader might miss, with the reason.
pub(in crate::report) fn unmeasured(store: &Store, statistics: &StepStatistics, memory: &Memory) -> Vec<String> {
    let mut all = Vec::new();
    let mut say = |is_missing: bool, text: &str| {
        if is_missing {
            all.push(text.to_owned());
        }
    };
    let has_steps = statistics.steps() > 0;
    say(!has_steps, "steps: none were published");
    say(has_steps && store.phases().iter().all(Phase::is_gap), "phases: the program has none");
    let batch = statistics.batch();
    let sizes = [batch.graphs, batch.nodes, batch.edges, batch.seeds];
    say(has_steps && sizes.iter().all(|total| total.period_ns == 0), "batch sizes: the program does not report them");
    say(has_steps && statistics.last_loss().is_none(), "loss: the program does not report it");
    say(memory.phases.is_empty(), "memory by phase: the program does not count its allocations");
    all.extend(hardware::not_measured(store));
    all
}
