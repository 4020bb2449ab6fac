//! What a step spent its time in besides its phases, such as operators: its spans by name, those that take most first.

use std::cmp::Reverse;
use std::collections::HashMap;

use gnntop_wire::NameId;

use crate::ui::scene::Scene;
use crate::ui::sheet::clip;
use gnntop_analysis::figures::duration;
use gnntop_analysis::store::StepRow;

/// Names on a line, and columns of each.
const NAMES: usize = 3;
const NAME: u16 = 24;
/// Lines of a step, and of one whose operators were traced.
const LINES: usize = 1;
const TRACED_LINES: usize = 4;
/// Spans that are added up, so that drawing stays quick.
const MOST_SPANS: usize = 50_000;

/// Number of spans of a name, and their time in nanoseconds.
type Sums = HashMap<NameId, (u64, u64)>;

/// Names with the time that their spans take together, in words; empty if no span of the step is kept.
pub fn lines(scene: &Scene<'_>, row: &StepRow<'_>) -> Vec<String> {
    let mut sums: Vec<(NameId, (u64, u64))> = match scene.store.steps().slow().get(row.ordinal()) {
        // A slow step keeps its spans when its tracks no longer have them.
        Some(slow) => {
            let mut sums = Sums::new();
            slow.spans().iter().for_each(|span| add(&mut sums, span.name, span.end_ns.saturating_sub(span.start_ns)));
            sums
        }
        None => sum_tracks(scene, row),
    }
    .into_iter()
    .filter(|(name, _)| scene.store.phase(scene.store.name(*name)).is_none())
    .collect();
    sums.sort_by_key(|(name, (_, ns))| (Reverse(*ns), name.0));
    let short = |name: NameId| clip(scene.store.name(name), NAME, scene.theme);
    let words: Vec<String> = sums.iter().map(|(name, sum)| describe(&short(*name), *sum)).collect();
    let lines = if row.is_traced() { TRACED_LINES } else { LINES };
    words.chunks(NAMES).take(lines).map(|words| words.join(", ")).collect()
}

/// Sums over the tracks that still have every span of the step.
fn sum_tracks(scene: &Scene<'_>, row: &StepRow<'_>) -> Sums {
    let (mut sums, mut seen) = (Sums::new(), 0);
    let lanes = scene.store.tracks().iter().filter_map(|track| track.lane());
    for lane in lanes.filter(|lane| lane.full_from_ns() <= row.period_start_ns()) {
        lane.each_box(row.period_start_ns()..row.end_ns(), |span, _| {
            seen += 1;
            // A longer one reaches into other steps.
            if seen <= MOST_SPANS && span.start_ns >= row.period_start_ns() && span.end_ns <= row.end_ns() {
                add(&mut sums, span.name, span.end_ns - span.start_ns);
            }
        });
    }
    sums
}

fn add(sums: &mut Sums, name: NameId, ns: u64) {
    let (spans, total_ns) = sums.entry(name).or_default();
    *spans += 1;
    *total_ns = total_ns.saturating_add(ns);
}

fn describe(name: &str, (spans, ns): (u64, u64)) -> String {
    let times = if spans > 1 { format!(" in {spans}") } else { String::new() };
    format!("{name} {}{times}", duration(ns))
}
