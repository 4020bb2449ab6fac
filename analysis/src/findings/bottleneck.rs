//! What bounds a run and how even its steps are: the part of the verdict that is not a finding.
//!
//! Rules, over the steps looked at without the warm-up, at least three:
//! - *bound*: the phase (or the gap) with the largest share of the wall time. If the warm-up would change a share, the
//!   verdict says that it is left out;
//! - p99 and p50 of the period: nearest rank over the full batches, of the most common kind;
//! - with too few steps: the shares, warm-up included, and what else a few steps show.

use gnntop_wire::phase::DATA_WAIT;

use super::evidence::{StepEvidence, on_device};
use super::few_steps;
use super::robust::{median, quantile};
use crate::figures::{counted, duration, percent};
use crate::store::{PhaseSlot, StepRow, Store};

/// With fewer full batches there is no verdict yet.
const ENOUGH_STEPS: usize = 10;
/// With fewer full batches a p99 is only a maximum.
const ENOUGH_FOR_P99: usize = 100;
/// A smaller share of data wait or gap is not reported.
const WORTH_REPORTING: f64 = 0.05;
/// If the p99 is fewer times as long as the median, steps are even, and nothing is said of it.
const UNEVEN: f64 = 1.5;
/// If shares differ by no more than this, those of all steps are given, as in tables.
const ABOUT_THE_SAME: f64 = 0.005;
/// A larger share is called `mostly`.
const MOSTLY: f64 = 0.5;

/// What bounds a range of steps and how even they are; a [`super::Judgement`] writes it out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Steps of the session so far.
    pub steps: u64,
    /// Whether there are enough steps for more than the shares.
    pub is_settled: bool,
    /// The phase with the largest share of the wall time, and its share (0 to 1).
    pub bound: Option<(String, f64)>,
    /// The median period in nanoseconds, if no phases are known and so there are no shares.
    pub bare_ns: Option<f64>,
    /// Number of first steps that the shares leave out, if these change them.
    pub left_out: u64,
    /// Whether the shares are by the device's clock: those of a host that only hands work over mean nothing.
    pub is_on_device: bool,
    /// Share of data wait, if it is a phase and not the largest one.
    pub data_wait_share: Option<f64>,
    /// Share of time outside every phase, if it is not the largest one.
    pub gap_share: Option<f64>,
    /// p99 of the full batches' periods as a multiple of their median; `None` if there are too few.
    pub p99_over_p50: Option<f64>,
    /// The steps that it is of, if not of all.
    pub p99_of: Option<&'static str>,
    /// What steps too few for findings show besides their shares.
    pub few: Vec<String>,
    /// What is open now and for how many nanoseconds, while no step has ended.
    pub open: Option<(String, u64)>,
}

impl Verdict {
    pub(super) fn from_evidence(evidence: &StepEvidence<'_>) -> Self {
        let store = evidence.store;
        let is_full = |row: &usize| !evidence.shape.is_partial[*row];
        let full: Vec<usize> = (0..evidence.rows.len()).filter(is_full).collect();
        let mut verdict = Self { steps: store.steps().total(), ..Self::default() };
        let all: Vec<StepRow<'_>> = evidence.warm_up.iter().chain(&evidence.rows).copied().collect();
        if store.phases().len() < 2 {
            verdict.bare_ns = median(&mut all.iter().map(|row| row.period_ns() as f64).collect::<Vec<f64>>());
        }
        if full.len() < ENOUGH_STEPS {
            verdict.open = verdict.open_phase(store);
            verdict.find_shares(store, &all);
            verdict.few = few_steps::describe(store, &all);
            return verdict;
        }
        verdict.is_settled = true;
        verdict.find_shares(store, &evidence.rows);
        let mut of_all = Self::default();
        of_all.find_shares(store, &all);
        if of_all.is_close_to(&verdict) {
            of_all.is_settled = true;
            verdict = Self { steps: verdict.steps, bare_ns: verdict.bare_ns, ..of_all };
        } else {
            verdict.left_out = evidence.warm_up.len() as u64;
        }
        let mut periods: Vec<f64> = full
            .iter()
            .filter(|row| evidence.kinds.is_commonest(**row))
            .map(|row| evidence.timed[*row].period_ns() as f64)
            .collect();
        if periods.len() >= ENOUGH_FOR_P99 {
            let p50_ns = median(&mut periods).unwrap_or(1.0).max(1.0);
            verdict.p99_over_p50 = quantile(&mut periods, 0.99).map(|p99| p99 / p50_ns);
            let are_left_out = evidence.rows.len() - periods.len();
            verdict.p99_of = match (are_left_out, full.len() < evidence.rows.len()) {
                (0, _) => None,
                (_, true) => Some("full batches"),
                (_, false) => Some("the commonest kind"),
            };
        }
        verdict
    }

    /// Whether the shares equal those of another verdict, or nearly.
    fn is_close_to(&self, other: &Self) -> bool {
        let near = |a: Option<f64>, b: Option<f64>| (a.unwrap_or(0.0) - b.unwrap_or(0.0)).abs() <= ABOUT_THE_SAME;
        let share = |verdict: &Self| verdict.bound.as_ref().map(|(_, share)| *share);
        let bound = |verdict: &Self| verdict.bound.as_ref().map(|(text, _)| text.clone());
        bound(self) == bound(other)
            && near(share(self), share(other))
            && near(self.data_wait_share, other.data_wait_share)
            && near(self.gap_share, other.gap_share)
    }

    fn open_phase(&self, store: &Store) -> Option<(String, u64)> {
        let (_, open) = store.open_spans().next().filter(|_| self.steps == 0)?;
        Some((store.name(open.name).to_owned(), open.t_ns.saturating_sub(open.since_ns)))
    }

    /// Of these steps, or of the same steps by the device's clock if that shows more.
    fn find_shares(&mut self, store: &Store, rows: &[StepRow<'_>]) {
        let on_device = on_device(store, &mut rows.to_vec());
        self.is_on_device = on_device.is_some();
        if store.phases().len() > 1 {
            self.share_out(store, on_device.as_deref().unwrap_or(rows));
        }
    }

    fn share_out(&mut self, store: &Store, rows: &[StepRow<'_>]) {
        let tiled: u64 = rows.iter().map(StepRow::period_ns).fold(0, u64::saturating_add);
        let share = |slot: PhaseSlot| {
            let ns: u64 = rows.iter().map(|row| row.phase_ns(slot)).fold(0, u64::saturating_add);
            ns as f64 / tiled.max(1) as f64
        };
        let shares: Vec<(&str, f64)> = store.phases().iter().map(|phase| (&*phase.text, share(phase.slot))).collect();
        let largest = shares.iter().enumerate().max_by(|a, b| a.1.1.total_cmp(&b.1.1));
        let Some((bound, (text, largest))) = largest else { return };
        self.bound = Some(((*text).to_owned(), *largest));
        let other = |n: usize| (n != bound && shares[n].1 >= WORTH_REPORTING).then(|| shares[n].1);
        self.data_wait_share = shares.iter().position(|(text, _)| *text == DATA_WAIT).and_then(other);
        self.gap_share = other(shares.len() - 1);
    }

    /// What can be said of too few steps: shares, the longest spans, idle GPUs, and what they cannot show.
    pub(super) fn unsettled(&self) -> Vec<String> {
        match (self.steps, &self.open) {
            (0, Some((phase, ns))) => vec![format!("no steps yet; in {phase} for {}", duration(*ns))],
            (0, None) => vec!["no steps yet".to_owned()],
            (steps, _) => {
                let mut parts = vec![counted(steps, "step", "steps")];
                parts.extend(self.bound_words());
                parts.extend(self.other_shares(false, false));
                parts.extend(self.few.iter().cloned());
                parts.push("too few for findings, such as spikes, drift or warm-up".to_owned());
                parts
            }
        }
    }

    /// States that the shares are not of all steps, if that matters.
    pub(super) fn without(&self) -> Option<String> {
        let first = counted(self.left_out, "step", "steps");
        (self.left_out > 0).then(|| format!("shares without the first {first}"))
    }

    /// What bounds the steps; without phases, how long they are. `None` if neither is known.
    pub(super) fn bound_words(&self) -> Option<String> {
        if let Some(ns) = self.bare_ns {
            return Some(format!("a step every {}, without phases", duration(ns as u64)));
        }
        let place = if self.is_on_device { " on the device" } else { "" };
        self.bound.as_ref().map(|(text, share)| bound_text(text, *share) + place)
    }

    /// The shares of data wait and gap that are large enough, unless findings name them.
    pub(super) fn other_shares(&self, is_wait_named: bool, is_gap_named: bool) -> Vec<String> {
        let data_wait = self.data_wait_share.filter(|_| !is_wait_named).map(|share| ("data wait", share));
        let gap = self.gap_share.filter(|_| !is_gap_named).map(|share| ("gap", share));
        let shares = data_wait.into_iter().chain(gap).filter(|_| self.bare_ns.is_none());
        shares.map(|(name, share)| format!("{name} {}", percent(share))).collect()
    }

    /// How even the steps are, if they are not.
    pub(super) fn spread(&self) -> Option<String> {
        let of = self.p99_of.map(|of| format!(" of {of}")).unwrap_or_default();
        let ratio = self.p99_over_p50.filter(|ratio| *ratio >= UNEVEN)?;
        Some(format!("period p99 {ratio:.1} x p50{of}"))
    }
}

fn bound_text(phase: &str, share: f64) -> String {
    let (is_most, share) = (share > MOSTLY, percent(share));
    match phase {
        DATA_WAIT => format!("data-bound ({share})"),
        crate::store::GAP if is_most => format!("mostly outside every phase ({share})"),
        crate::store::GAP => format!("{share} outside every phase"),
        _ => format!("{phase}-bound ({share})"),
    }
}

#[cfg(test)]
mod tests {
    use crate::findings::Judgement;
    use crate::store::Store;
    use gnntop_fixtures::{MS, START_NS, StreamBuilder, TrainingRun, each_item};
    use gnntop_wire::TrackRole;

    fn verdict(bytes: &[u8]) -> String {
        let mut store = Store::new();
        each_item(bytes, |item| store.apply(item));
        Judgement::for_steps(&store, 0..u64::MAX).to_string()
    }

    #[test]
    fn verdict_of_even_run_names_bound() {
        let run = TrainingRun { steps: 200, epoch_steps: 1000, ..TrainingRun::default() };
        assert_eq!(verdict(&run.bytes()), "backward-bound (55 %); data wait 10 %", "noise is left out");
    }

    #[test]
    fn verdict_names_each_bound() {
        let phases = vec![("data wait", 30 * MS), ("forward", 10 * MS)];
        let run = TrainingRun { phases, steps: 20, ..TrainingRun::default() };
        assert_eq!(verdict(&run.bytes()), "data-bound (73 %)");
        let run = TrainingRun { phases: Vec::new(), steps: 20, ..TrainingRun::default() };
        assert_eq!(verdict(&run.bytes()), "a step every 1.00 ms, without phases; gap 100 %");
        let run = TrainingRun { gap_ns: 25 * MS, steps: 20, ..TrainingRun::default() };
        assert_eq!(
            verdict(&run.bytes()),
            "39 % outside every phase; data wait 6.2 %; shares without the first 3 steps",
            "not most"
        );
        let run = TrainingRun { gap_ns: 60 * MS, steps: 20, ..TrainingRun::default() };
        assert_eq!(verdict(&run.bytes()), "mostly outside every phase (61 %); shares without the first 3 steps");
    }

    #[test]
    fn verdict_says_when_steps_are_few() {
        let steps = |steps| verdict(&TrainingRun { steps, ..TrainingRun::default() }.bytes());
        assert_eq!(steps(0), "no steps yet");
        let shares = [(
            1,
            "1 step; backward-bound (56 %); data wait 10 %; longest: backward 22.0 ms in step 1, layer 0 5.00 ms",
        )];
        let more = [(7, "7 steps; backward-bound (55 %); data wait 10 %; longest: backward ")];
        for (n, begin) in shares.into_iter().chain(more) {
            let said = steps(n);
            assert!(said.starts_with(begin), "{said}");
            assert!(said.ends_with("; too few for findings, such as spikes, drift or warm-up"), "{said}");
        }
        assert!(steps(13).starts_with("backward-bound"));
    }

    #[test]
    fn before_the_first_step_the_open_phase_is_named() {
        let mut stream = StreamBuilder::new("test");
        let main = stream.track(TrackRole::Training, "main");
        stream.open(main, 1, "data wait", START_NS, START_NS + 12_000 * MS);
        assert_eq!(verdict(&stream.bytes()), "no steps yet; in data wait for 12.0 s");
    }
}
