//! What a few steps show, such as those of a short trace: how idle a GPU was, and the longest phase and span.

use std::collections::HashMap;
use std::ops::Range;

use gnntop_wire::Quantity;

use super::hardware::{held_mean, idle_share};
use crate::figures::{duration, percent};
use crate::store::{StepRow, Store};

/// A span that is not a phase is named from this share of its step.
const WORTH_REPORTING: f64 = 0.05;

/// What these steps show besides the shares of their phases.
pub(super) fn describe(store: &Store, rows: &[StepRow<'_>]) -> Vec<String> {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Vec::new() };
    let mut parts = idle(store, &(first.period_start_ns()..last.end_ns()));
    parts.extend(longest(store, rows));
    parts
}

/// How idle GPUs were, by their kernels or else by their readings; for an import without either, that it is not known.
fn idle(store: &Store, span: &Range<u64>) -> Vec<String> {
    if let Some(idle) = idle_share(store, span.clone()) {
        return vec![format!("no kernel on the GPU {} of the time", percent(idle.share))];
    }
    let of_gpu = |gpu: u32| {
        let busy = held_mean(store.signals().find(Quantity::GpuUtil.with_instance(gpu))?, span)? / 1e5;
        Some(format!("GPU {gpu} idle {} by its readings", percent(1.0 - busy.clamp(0.0, 1.0))))
    };
    let by_readings: Vec<String> = store.hardware().gpus().into_iter().filter_map(of_gpu).collect();
    let is_import = store.session().info().is_some_and(|info| info.origin.is_import());
    match by_readings.is_empty() && is_import {
        true => vec!["GPU idle time is not recorded".to_owned()],
        false => by_readings,
    }
}

/// A span in a step, with its share of the step.
struct LongestSpan<'a> {
    name: &'a str,
    is_phase: bool,
    ns: u64,
    row: &'a StepRow<'a>,
}

impl LongestSpan<'_> {
    fn share(&self) -> f64 {
        self.ns as f64 / self.row.period_ns().max(1) as f64
    }
}

/// The longest phase, and the longest span of any track that is not a phase.
fn longest(store: &Store, rows: &[StepRow<'_>]) -> Option<String> {
    let all = longest_by_name(store, rows);
    let phase = all.iter().filter(|span| span.is_phase).max_by_key(|span| span.ns);
    let other = all.iter().filter(|span| !span.is_phase).max_by_key(|span| span.ns);
    let named: Vec<String> = phase
        .into_iter()
        .chain(other.filter(|span| span.share() >= WORTH_REPORTING))
        .map(|span| format!("{} {} in step {}", span.name, duration(span.ns), span.row.step().0))
        .collect();
    (!named.is_empty()).then(|| format!("longest: {}", named.join(", ")))
}

/// The longest span of each name that is inside one step and is not all of it, ordered by name.
fn longest_by_name<'a>(store: &'a Store, rows: &'a [StepRow<'a>]) -> Vec<LongestSpan<'a>> {
    let mut longest: HashMap<(&str, bool), LongestSpan<'a>> = HashMap::new();
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Vec::new() };
    for lane in store.tracks().iter().filter_map(|track| track.lane()) {
        lane.each_box(first.period_start_ns()..last.end_ns(), |span, _| {
            let ns = span.end_ns.saturating_sub(span.start_ns);
            let holds = |row: &&StepRow<'_>| (row.period_start_ns()..row.end_ns()).contains(&span.start_ns);
            let Some(row) = rows.iter().find(holds).filter(|row| ns < row.period_ns()) else { return };
            let (name, is_phase) = (store.name(span.name), store.phase_text(span.name).is_some());
            let kept = longest.entry((name, is_phase)).or_insert(LongestSpan { name, is_phase, ns, row });
            // The newest come first, so of equally long ones this is the earliest.
            if ns >= kept.ns {
                (kept.ns, kept.row) = (ns, row);
            }
        });
    }
    let mut all: Vec<LongestSpan<'_>> = longest.into_values().collect();
    all.sort_by_key(|span| (span.name, span.is_phase));
    all
}

#[cfg(test)]
mod tests {
    use crate::findings::judge_newest;
    use crate::store::Store;
    use gnntop_fixtures::{MS, TrainingRun, each_item};

    fn verdict(run: &TrainingRun) -> String {
        let mut store = Store::new();
        each_item(&run.bytes(), |item| store.apply(item));
        judge_newest(&store).to_string()
    }

    #[test]
    fn few_steps_report_shares_and_longest_phase() {
        let run = TrainingRun { steps: 3, spikes: vec![(2, "forward", 70 * MS)], ..TrainingRun::default() };
        let said = verdict(&TrainingRun { has_hardware: false, ..run });
        assert!(said.contains("; longest: forward ") && said.contains(" in step 2;"), "{said}");
        assert!(said.ends_with("too few for findings, such as spikes, drift or warm-up"), "{said}");
    }
}
