//! What bounds a run and how even its steps are: the part of the line that is no finding.
//!
//! Rules, all of them over the steps that are looked at, without those that warm up, at least three:
//! - *bound*: the phase (or the gap) with the largest share of the wall time;
//! - p99 against p50: nearest rank over the full batches.

use gnntop_wire::phase::DATA_WAIT;

use super::evidence::Evidence;
use super::robust::{median, quantile};
use crate::figures::percent;
use crate::store::{PhaseSlot, StepRow, Store};

/// Full batches below which there is no verdict yet.
const ENOUGH_STEPS: usize = 10;
/// Full batches below which a p99 is only a maximum.
const ENOUGH_FOR_P99: usize = 100;
/// Data wait or gap below this share is not worth a word.
const WORTH_SAYING: f64 = 0.01;

/// What bounds a range of steps and how even they are; a [`super::Judgement`] writes it out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Steps of the session so far.
    pub steps: u64,
    /// Whether there are enough steps for the rest; if not, it is empty.
    pub is_settled: bool,
    /// The phase with the largest share of the wall time, and its share (0 to 1).
    pub bound: Option<(String, f64)>,
    /// Whether the shares are the device's, by its own clock: of a host that only hands work over they say nothing.
    pub is_on_device: bool,
    /// Share of waiting for data, where it is a phase and not the largest one.
    pub data_wait_share: Option<f64>,
    /// Share of time outside every phase, where it is not the largest one.
    pub gap_share: Option<f64>,
    /// p99 of the full batches' periods as a multiple of their median; `None` for too few of them.
    pub p99_over_p50: Option<f64>,
    /// What is open now and since how long in nanoseconds, while no step has ended.
    pub open: Option<(String, u64)>,
}

impl Verdict {
    pub(super) fn of_evidence(evidence: &Evidence<'_>) -> Self {
        let store = evidence.store;
        let is_full = |row: &usize| !evidence.shape.is_partial[*row];
        let full = (0..evidence.rows.len()).filter(is_full);
        let mut periods: Vec<f64> = full.map(|row| evidence.rows[row].period_ns() as f64).collect();
        let mut verdict = Self { steps: store.steps().total(), ..Self::default() };
        let Some(median_ns) = median(&mut periods).filter(|_| periods.len() >= ENOUGH_STEPS) else {
            verdict.open = verdict.open_phase(store);
            return verdict;
        };
        verdict.is_settled = true;
        match rows_on_device(store, &evidence.rows) {
            Some(rows) => {
                verdict.is_on_device = true;
                verdict.find_shares(store, &rows);
            }
            None => verdict.find_shares(store, &evidence.rows),
        }
        if periods.len() >= ENOUGH_FOR_P99 {
            verdict.p99_over_p50 = quantile(&mut periods, 0.99).map(|p99| p99 / median_ns.max(1.0));
        }
        verdict
    }

    fn open_phase(&self, store: &Store) -> Option<(String, u64)> {
        let (_, open) = store.open_spans().next().filter(|_| self.steps == 0)?;
        Some((store.name(open.name).to_owned(), open.t_ns.saturating_sub(open.since_ns)))
    }

    fn find_shares(&mut self, store: &Store, rows: &[StepRow<'_>]) {
        let tiled: u64 = rows.iter().map(StepRow::period_ns).fold(0, u64::saturating_add);
        let share = |slot: PhaseSlot| {
            let ns: u64 = rows.iter().map(|row| row.phase_ns(slot)).fold(0, u64::saturating_add);
            ns as f64 / tiled.max(1) as f64
        };
        let shares: Vec<(&str, f64)> = store.phases().iter().map(|phase| (&*phase.text, share(phase.slot))).collect();
        let largest = shares.iter().enumerate().max_by(|a, b| a.1.1.total_cmp(&b.1.1));
        let Some((bound, (text, largest))) = largest else { return };
        self.bound = Some(((*text).to_owned(), *largest));
        let other = |n: usize| (n != bound && shares[n].1 >= WORTH_SAYING).then(|| shares[n].1);
        self.data_wait_share = shares.iter().position(|(text, _)| *text == DATA_WAIT).and_then(other);
        self.gap_share = other(shares.len() - 1);
    }

    /// What there is to say of too few steps.
    pub(super) fn unsettled(&self) -> String {
        match (self.steps, &self.open) {
            (0, Some((phase, ns))) => format!("no steps yet; in {phase} for {}", crate::figures::duration(*ns)),
            (0, None) => "no steps yet".to_owned(),
            (1, _) => "warming up: 1 step".to_owned(),
            (steps, _) => format!("warming up: {steps} steps"),
        }
    }

    /// What bounds the steps, and the shares of waiting and of the gap where they are worth a word.
    pub(super) fn shares(&self) -> Vec<String> {
        let place = if self.is_on_device { " on the device" } else { "" };
        let bound = self.bound.as_ref().map(|(text, share)| bound_text(text, *share) + place);
        let data_wait = self.data_wait_share.map(|share| format!("data wait {}", percent(share)));
        let gap = self.gap_share.map(|share| format!("gap {}", percent(share)));
        [bound, data_wait, gap].into_iter().flatten().collect()
    }

    /// How even the steps are.
    pub(super) fn spread(&self) -> Option<String> {
        self.p99_over_p50.map(|ratio| format!("p99 {ratio:.1} x p50"))
    }

    /// Whether [`Verdict::shares`] has that of waiting for data.
    pub(super) fn tells_data_wait(&self) -> bool {
        self.data_wait_share.is_some() || self.bound.as_ref().is_some_and(|(text, _)| text == DATA_WAIT)
    }

    /// Whether [`Verdict::shares`] has that of the gap.
    pub(super) fn tells_gap(&self) -> bool {
        self.gap_share.is_some() || self.bound.as_ref().is_some_and(|(text, _)| text == crate::store::GAP)
    }
}

/// The same steps by the device's clock, where it tells of most of them and the host's does not.
fn rows_on_device<'a>(store: &'a Store, rows: &[StepRow<'_>]) -> Option<Vec<StepRow<'a>>> {
    let device = store.device().filter(|device| !device.is_synchronised())?;
    let (first, last) = (rows.first()?.step(), rows.last()?.step());
    let there: Vec<StepRow<'a>> = device.rows(first, last).collect();
    (there.len() * 2 > rows.len()).then_some(there)
}

fn bound_text(phase: &str, share: f64) -> String {
    let share = percent(share);
    match phase {
        DATA_WAIT => format!("data-bound ({share})"),
        crate::store::GAP => format!("mostly outside every phase ({share})"),
        _ => format!("{phase}-bound ({share})"),
    }
}

/// A number with its word.
pub(super) fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use crate::findings::Judgement;
    use crate::store::Store;
    use gnntop_fixtures::{MS, START_NS, StreamBuilder, TrainingRun, each_item};
    use gnntop_wire::TrackRole;

    fn of(bytes: &[u8]) -> String {
        let mut store = Store::new();
        each_item(bytes, |item| store.apply(item));
        Judgement::of(&store, 0..u64::MAX).to_string()
    }

    #[test]
    fn an_even_run_is_told_by_its_bound() {
        let run = TrainingRun { steps: 200, epoch_steps: 1000, ..TrainingRun::default() };
        assert_eq!(of(&run.bytes()), "backward-bound (55 %); data wait 10 %; gap 2.5 %; p99 1.0 x p50");
    }

    #[test]
    fn other_bounds_have_their_words() {
        let phases = vec![("data wait", 30 * MS), ("forward", 10 * MS)];
        let run = TrainingRun { phases, steps: 20, ..TrainingRun::default() };
        assert_eq!(of(&run.bytes()), "data-bound (73 %); gap 2.4 %");
        let run = TrainingRun { phases: Vec::new(), steps: 20, ..TrainingRun::default() };
        assert_eq!(of(&run.bytes()), "mostly outside every phase (100 %)");
    }

    #[test]
    fn thin_evidence_is_said_to_be_thin() {
        let steps = |steps| of(&TrainingRun { steps, ..TrainingRun::default() }.bytes());
        assert_eq!(steps(0), "no steps yet");
        assert_eq!(steps(1), "warming up: 1 step");
        assert_eq!(steps(7), "warming up: 7 steps");
        assert!(steps(13).starts_with("backward-bound"));
    }

    #[test]
    fn before_the_first_step_the_open_phase_is_named() {
        let mut stream = StreamBuilder::new("test");
        let main = stream.track(TrackRole::Training, "main");
        stream.open(main, 1, "data wait", START_NS, START_NS + 12_000 * MS);
        assert_eq!(of(&stream.bytes()), "no steps yet; in data wait for 12.0 s");
    }
}
