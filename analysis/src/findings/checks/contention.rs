//! Contention: the training thread wants the CPU and does not get it, because others on the machine or in the
//! program itself have it, or the host has taken it.

use std::ops::Range;

use super::check::{Check, too_few_steps};
use crate::figures::{count, duration, percent};
use crate::findings::evidence::Evidence;
use crate::findings::finding::{Confidence, Finding, Kind, Outcome};
use crate::findings::robust::median;
use crate::findings::signals;

/// Share of a core's time that the host takes from which on it is said.
const STEAL: f64 = 0.05;
/// Share of the time in which something waits for a CPU from which on it is said.
const PRESSURE: f64 = 0.25;
/// Times a second that the CPU is taken from the training thread from which on it is said.
const TAKEN_PER_S: f64 = 10.0;
/// Kernels without pressure information tell only by what was taken: then it must be so many times a second.
const TAKEN_PER_S_ALONE: f64 = 200.0;
/// Steps that others are compared with.
const ENOUGH: usize = 10;
/// The CPU is taken so many times less often from a step that counts as hardly disturbed than from most.
const FAR_LESS: f64 = 4.0;

/// The check.
pub(super) struct Contention;

impl Check for Contention {
    fn kind(&self) -> Kind {
        Kind::Contention
    }

    fn look(&self, evidence: &Evidence<'_>) -> Outcome {
        if !evidence.has_steps() {
            return too_few_steps(evidence);
        }
        let Some(span) = evidence.span_ns() else { return too_few_steps(evidence) };
        let rate = |name: &str| signals::rate_per_s(evidence.store, name, &span);
        let (steal, pressure) = (rate("machine.cpu.steal"), rate("machine.pressure.cpu.some"));
        let taken = taken_per_s(evidence);
        if steal.is_none() && pressure.is_none() && taken.is_none() {
            return Outcome::NotEnough("neither context switches, steal nor CPU pressure are recorded".to_owned());
        }
        let found = [stolen(evidence, steal), contended(evidence, &span, pressure.map(|ns| ns / 1e9), taken)];
        found.into_iter().flatten().collect::<Vec<Finding>>().into()
    }
}

/// How often the CPU was taken from the training thread.
fn taken_per_s(evidence: &Evidence<'_>) -> Option<f64> {
    let taken = evidence.rows.iter().filter_map(|row| Some((row.usage()?.involuntary_switches, row.period_ns())));
    let (times, ns) = taken.fold((0u64, 0u64), |sum, row| (sum.0.saturating_add(row.0), sum.1.saturating_add(row.1)));
    (ns > 0).then(|| times as f64 * 1e9 / ns as f64)
}

fn stolen(evidence: &Evidence<'_>, steal_ns_per_s: Option<f64>) -> Option<Finding> {
    let cores = evidence.store.hardware().cores().len().max(1) as f64;
    let share = steal_ns_per_s? / 1e9 / cores;
    if share < STEAL {
        return None;
    }
    let summary = format!("the host takes {} of the machine's CPU time for others", percent(share));
    let finding = Finding::of_run(Kind::Contention, Confidence::High, Some(share), summary);
    Some(
        finding
            .because("steal in /proc/stat")
            .advise("run on a machine whose cores are not shared, or at another time"),
    )
}

fn contended(evidence: &Evidence<'_>, span: &Range<u64>, pressure: Option<f64>, taken: Option<f64>) -> Option<Finding> {
    let taken = taken?;
    let least = if pressure.is_some() { TAKEN_PER_S } else { TAKEN_PER_S_ALONE };
    if taken < least || pressure.is_some_and(|share| share < PRESSURE) {
        return None;
    }
    let quiet = Quiet::of(evidence);
    let share = quiet.as_ref().map(|quiet| evidence.share(quiet.cost_ns(evidence)));
    let summary = format!("the CPU is taken from the training thread {} times a second", count(taken.round() as u64));
    let confidence = if pressure.is_some() { Confidence::High } else { Confidence::Medium };
    let mut finding = Finding::of_run(Kind::Contention, confidence, share, summary);
    if let Some(share) = pressure {
        finding = finding.because(format!("something waits for a CPU {} of the time", percent(share)));
    }
    let own = signals::rate_per_s(evidence.store, "process.cpu_time", span).map(|ns| ns / 1e9);
    let all = signals::rate_per_s(evidence.store, "machine.cpu.busy", span).map(|ns| ns / 1e9);
    if let Some((own, all)) = own.zip(all) {
        finding = finding.because(format!("this process uses {own:.2} of the {all:.2} cores that are at work"));
        finding = if own > 0.8 * all {
            finding.advise("use fewer threads: they take the CPU from each other")
        } else {
            finding.advise("see what else runs on the machine, or bind the training to cores of its own")
        };
    }
    Some(match quiet {
        Some(quiet) => finding.because(quiet.in_words()),
        None => finding,
    })
}

/// The steps that others hardly disturb, to which all are compared.
struct Quiet {
    /// Median time inside of them.
    inside_ns: f64,
    /// Times that the CPU is taken from them, at most.
    taken: u64,
}

impl Quiet {
    /// The steps that keep their CPU or, where there are few, those from which it is taken far less often than from most;
    /// `None` where these are few too.
    fn of(evidence: &Evidence<'_>) -> Option<Self> {
        let taken = |row: usize| Some(evidence.rows[row].usage()?.involuntary_switches);
        let full = || (0..evidence.rows.len()).filter(|row| !evidence.shape.is_partial[*row]);
        let mut all: Vec<f64> = full().filter_map(|row| Some(taken(row)? as f64)).collect();
        let far_less = (median(&mut all)? / FAR_LESS) as u64;
        [0, far_less].into_iter().find_map(|most| {
            let quiet = full().filter(|row| taken(*row).is_some_and(|times| times <= most));
            let mut times: Vec<f64> = quiet.map(|row| evidence.inside_ns[row]).collect();
            let inside_ns = if times.len() >= ENOUGH { median(&mut times) } else { None };
            inside_ns.map(|inside_ns| Self { inside_ns, taken: most })
        })
    }

    /// What steps take more than these.
    fn cost_ns(&self, evidence: &Evidence<'_>) -> f64 {
        let full = (0..evidence.rows.len()).filter(|row| !evidence.shape.is_partial[*row]);
        full.map(|row| (evidence.inside_ns[row] - self.inside_ns).max(0.0)).sum()
    }

    fn in_words(&self) -> String {
        let time = duration(self.inside_ns as u64);
        match self.taken {
            0 => format!("a step that keeps its CPU takes {time}"),
            taken => format!("a step from which it is taken at most {} times takes {time}", count(taken)),
        }
    }
}
