//! Contention: the training thread wants the CPU and does not get it, because other programs or threads of the program
//! have it, or the host has taken it.
//!
//! If the system counts how long the thread waited, that is the cost, however often it is preempted. Otherwise the evidence is how often the CPU was
//! taken from it, together with the machine's CPU pressure.

use std::collections::BTreeMap;
use std::ops::Range;

use gnntop_wire::{Quantity, TrackRole};

use super::check::too_few_steps;
use super::thread_count::ThreadCount;
use crate::figures::FigureUnit;
use crate::findings::claim::{Claim, StepCost};
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, Severity};
use crate::findings::hardware;
use crate::findings::number::Number;
use crate::findings::robust::median;
use crate::findings::stated_numbers::{StatedNumber, StatedNumbers};

/// Steal is reported from this share of a core's time.
const STEAL: f64 = 0.05;
/// Pressure is reported if some process waits for a CPU this share of the time.
const PRESSURE: f64 = 0.25;
/// Preemptions of the training thread are reported from this many a second.
const PREEMPTIONS_PER_S: f64 = 10.0;
/// The same without pressure information, when only preemptions count.
const PREEMPTIONS_PER_S_ALONE: f64 = 200.0;
/// Waits are reported if the thread waits for a CPU this share of the time.
const WAITS: f64 = 0.05;
/// A process with this share of the used CPU time is alone.
const OWN_SHARE: f64 = 0.8;
/// Number of steps that others are compared with.
const ENOUGH: usize = 10;
/// An undisturbed step is preempted this many times less often than most.
const FAR_LESS: f64 = 4.0;
/// The limit of the control group is the cause from this share of its periods on.
const THROTTLED: f64 = 0.05;
/// The evidence is strong where some process waits for a CPU this share of the time...
const STRONG_PRESSURE: f64 = 0.5;
/// ...and other processes have this share of the used CPU time.
const STRONG_OTHERS: f64 = 0.5;
/// What to do about threads of the program's own.
const FEWER_THREADS: &str = "use fewer threads (OMP_NUM_THREADS, torch.set_num_threads): they compete for cores";
/// Other processes that are named.
const RIVALS_NAMED: usize = 3;

/// What to do where nothing says who has the CPU: `top` shows only what runs now.
fn advice_for_unknown_rivals(evidence: &StepEvidence<'_>) -> &'static str {
    match evidence.store.is_over() {
        true => "run it again while nothing else uses the machine (top shows what does)",
        false => "see what else runs on the machine (top)",
    }
}

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let Some(span) = evidence.span_ns() else { return too_few_steps(evidence) };
    let rate = |quantity: Quantity| hardware::rate_per_s(evidence.store, quantity, &span);
    let steal = rate(Quantity::MachineCpuSteal);
    let signs = Signs {
        waits: hardware::waiting_share(evidence.store, &span),
        pressure: rate(Quantity::PressureCpuSome).map(|ns| ns / 1e9),
        preemptions_per_s: preemptions_per_s(evidence),
    };
    if steal.is_none() && signs == Signs::default() {
        let reason = "CPU waits, context switches, steal and CPU pressure are not recorded";
        return CheckOutcome::NotEnough(reason.to_owned());
    }
    let found = [stolen(evidence, steal), contended(evidence, &span, &signs)];
    found.into_iter().flatten().collect::<Vec<Finding>>().into()
}

/// The recorded evidence of contention.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Signs {
    /// Share of the time in which the main thread was ready to run and had no CPU.
    waits: Option<f64>,
    /// Share of the time in which something on the machine waited for a CPU.
    pressure: Option<f64>,
    /// How often a second the CPU was taken from the training thread.
    preemptions_per_s: Option<f64>,
}

/// Share of the time in which the main thread was ready to run and had no CPU, if that is measured and large
/// enough; else 0. Everything that the thread did took that much longer.
pub(super) fn waits(evidence: &StepEvidence<'_>) -> f64 {
    let share = evidence.span_ns().and_then(|span| hardware::waiting_share(evidence.store, &span));
    share.filter(|share| *share >= WAITS).unwrap_or(0.0)
}

/// How often the CPU was taken from the training thread.
fn preemptions_per_s(evidence: &StepEvidence<'_>) -> Option<f64> {
    let taken = evidence.rows.iter().filter_map(|row| Some((row.usage()?.involuntary_switches, row.period_ns())));
    let (times, ns) = taken.fold((0u64, 0u64), |sum, row| (sum.0.saturating_add(row.0), sum.1.saturating_add(row.1)));
    (ns > 0).then(|| times as f64 * 1e9 / ns as f64)
}

fn stolen(evidence: &StepEvidence<'_>, steal_ns_per_s: Option<f64>) -> Option<Finding> {
    let cores = evidence.store.hardware().cores().len().max(1) as f64;
    let share = steal_ns_per_s? / 1e9 / cores;
    if share < STEAL {
        return None;
    }
    let finding = Finding::for_run(FindingKind::Contention, Confidence::High, Some(share), |facts| {
        format!("the hypervisor gave {} of CPU time to other guests (steal)", facts.share(Number::OfTime, share))
    });
    Some(
        finding
            .with_claim(Claim::Everywhere(share))
            .with_evidence("steal in /proc/stat")
            .with_advice("run on a machine whose cores are not shared"),
    )
}

fn contended(evidence: &StepEvidence<'_>, span: &Range<u64>, signs: &Signs) -> Option<Finding> {
    let quiet = QuietSteps::find(evidence);
    let finding = match signs.waits.filter(|share| *share >= WAITS) {
        Some(share) => waiting(evidence, share, signs),
        None => find_preemptions(evidence, signs, quiet.as_ref())?,
    };
    let finding = add_rivals(evidence, span, finding);
    let finding = finding.with_evidence_lines(|facts| quiet.as_ref().map(|quiet| quiet.describe(facts)));
    let claim = match signs.waits.filter(|share| *share >= WAITS) {
        Some(share) => Some(Claim::Everywhere(share)),
        None => quiet.map(|quiet| Claim::Steps(quiet.costs(evidence))),
    };
    let severity = if is_strong(&finding, signs) { Severity::Major } else { finding.severity };
    Some(Finding { claim, severity, ..finding })
}

/// Whether a finding of unknown cost is no small matter: most of the time something waits for a CPU, and others have most of them.
fn is_strong(finding: &Finding, signs: &Signs) -> bool {
    let cores = finding.fact(Number::OtherCores).zip(finding.fact(Number::BusyCores));
    finding.share.is_none()
        && signs.pressure.is_some_and(|share| share >= STRONG_PRESSURE)
        && cores.is_some_and(|(others, all)| others >= STRONG_OTHERS * all)
}

/// The wait itself is measured.
fn waiting(evidence: &StepEvidence<'_>, share: f64, signs: &Signs) -> Finding {
    let thread = if is_main_thread(evidence) { "the training thread" } else { "the program's main thread" };
    let mut finding = Finding::for_run(FindingKind::Contention, Confidence::High, Some(share), |facts| {
        format!("{thread} is ready to run but waits for a CPU {} of the time", facts.share(Number::OfTime, share))
    });
    if let Some(taken) = signs.preemptions_per_s {
        finding =
            finding.with_evidence_from(|facts| format!("it is preempted {} times a second", preempted(facts, taken)));
    }
    finding.with_evidence_lines(|facts| {
        let share = signs.pressure.map(|share| facts.share(Number::Pressure, share));
        share.map(|share| format!("some process on the machine waits for a CPU {share} of the time"))
    })
}

fn preempted(facts: &mut StatedNumbers, per_s: f64) -> StatedNumber {
    facts.note(Number::PreemptionsPerS, per_s.round(), FigureUnit::Count)
}

/// Whether the training thread is the one whose waits are counted, or that is unknown.
pub(super) fn is_main_thread(evidence: &StepEvidence<'_>) -> bool {
    let thread = evidence.store.training_track().map_or(0, |track| track.thread_id);
    let process = evidence.store.session().info().map_or(0, |info| u64::from(info.pid));
    thread == 0 || process == 0 || thread == process
}

/// The CPU is taken away often, and something waits for one.
fn find_preemptions(evidence: &StepEvidence<'_>, signs: &Signs, quiet: Option<&QuietSteps>) -> Option<Finding> {
    let taken = signs.preemptions_per_s?;
    let least = if signs.pressure.is_some() { PREEMPTIONS_PER_S } else { PREEMPTIONS_PER_S_ALONE };
    let share = quiet.map(|quiet| evidence.share(quiet.costs(evidence).iter().map(|cost| cost.ns).sum()));
    // Where its wait is measured and short, the thread gets its CPU back at once: that costs at most the wait.
    let is_harmless = signs.waits.is_some() && is_main_thread(evidence);
    if taken < least || signs.pressure.is_some_and(|share| share < PRESSURE) || is_harmless {
        return None;
    }
    let confidence = if signs.pressure.is_some() { Confidence::High } else { Confidence::Medium };
    let finding = Finding::for_run(FindingKind::Contention, confidence, share, |facts| {
        format!("the training thread is preempted {} times a second", preempted(facts, taken))
    });
    Some(finding.with_evidence_lines(|facts| {
        let share = signs.pressure.map(|share| facts.share(Number::Pressure, share));
        share.map(|share| format!("some process waits for a CPU {share} of the time"))
    }))
}

/// Adds what has the CPU meanwhile, if that is recorded, and what to do about it: the limit of the control group, the
/// program's own threads, its loader workers, or other programs.
fn add_rivals(evidence: &StepEvidence<'_>, span: &Range<u64>, finding: Finding) -> Finding {
    if let Some(share) = throttled_share(evidence, span).filter(|share| *share >= THROTTLED) {
        return throttled(evidence, share, finding);
    }
    let cores = |quantity: Quantity| hardware::rate_per_s(evidence.store, quantity, span).map(|ns| ns / 1e9);
    let Some((own, all)) = cores(Quantity::ProcessCpuTime).zip(cores(Quantity::MachineCpuBusy)) else {
        return finding.with_advice(advice_for_unknown_rivals(evidence));
    };
    let others = (all - own).max(0.0);
    let finding = finding.with_evidence_from(|facts| {
        let (own, all) = (facts.number(Number::Cores, own), facts.number(Number::BusyCores, all));
        let others = facts.number(Number::OtherCores, others);
        format!("this process uses {own:.2} of {all:.2} busy cores, other processes {others:.2}")
    });
    if own > OWN_SHARE * all {
        return add_threads(evidence, span, finding);
    }
    let rivals = rivals(evidence, span);
    if let Some(count) = own_crowd(evidence, own, others) {
        let finding = finding.with_evidence_from(|facts| {
            let cores = ThreadCount::cores_in_words(facts.number(Number::MayUseCores, count.cores));
            format!("it computes with {} threads on {cores}", facts.count(Number::Threads, count.threads))
        });
        return name_rivals(&rivals, finding).with_advice(FEWER_THREADS);
    }
    let workers = evidence.store.tracks().iter().filter(|track| track.role == TrackRole::Loader).count();
    if workers > 0 && rivals.iter().map(|(_, cores)| cores).sum::<f64>() < others / 2.0 {
        return finding
            .with_evidence_from(|facts| {
                let noun = if workers == 1 { "worker" } else { "workers" };
                let threads = evidence.store.session().compute_threads();
                let beside = threads.map(|threads| {
                    let plural = if threads == 1 { "" } else { "s" };
                    format!(", beside {} thread{plural} of its own", facts.count(Number::Threads, threads))
                });
                let workers = facts.count(Number::Loaders, workers as u64);
                format!("it has {workers} loader {noun}, which count as other processes{}", beside.unwrap_or_default())
            })
            .with_advice(
                "use fewer loader workers (num_workers), or fewer threads in each: they take the CPU from the training",
            );
    }
    if rivals.is_empty() {
        return finding.with_advice(advice_for_unknown_rivals(evidence));
    }
    name_rivals(&rivals, finding).with_advice(match evidence.store.is_over() {
        true => "run it again without the other process",
        false => "end or move the other process",
    })
}

/// The threads that the program computes with, if these are more than its cores and it uses more of the CPU than all other
/// programs: a thread waits for those that run, and most of them are its own.
fn own_crowd(evidence: &StepEvidence<'_>, own: f64, others: f64) -> Option<ThreadCount> {
    ThreadCount::find(evidence).filter(|count| count.are_many() && own >= others)
}

/// Whether the thread waits for a CPU because the program has more threads than cores.
pub(super) fn is_by_own_threads(evidence: &StepEvidence<'_>) -> bool {
    let Some(span) = evidence.span_ns().filter(|_| waits(evidence) > 0.0) else { return false };
    let cores = |quantity: Quantity| hardware::rate_per_s(evidence.store, quantity, &span).map(|ns| ns / 1e9);
    let used = cores(Quantity::ProcessCpuTime).zip(cores(Quantity::MachineCpuBusy));
    let is_throttled = throttled_share(evidence, &span).is_some_and(|share| share >= THROTTLED);
    !is_throttled && used.is_some_and(|(own, all)| own_crowd(evidence, own, (all - own).max(0.0)).is_some())
}

fn name_rivals(rivals: &[(String, f64)], finding: Finding) -> Finding {
    finding.with_evidence_lines(|facts| {
        let named = rivals.iter().map(|(text, cores)| {
            let cores = facts.about(text, |facts| facts.number(Number::Cores, *cores));
            format!("{text}, {cores:.2} cores")
        });
        (!rivals.is_empty()).then(|| named.collect::<Vec<String>>().join("; "))
    })
}

/// Share of its periods in which the kernel stopped the control group because it had used what it may.
pub(super) fn throttled_share(evidence: &StepEvidence<'_>, span: &Range<u64>) -> Option<f64> {
    let rate = |quantity: Quantity| hardware::rate_per_s(evidence.store, quantity, span);
    let (periods, throttled) = (rate(Quantity::AllottedCpuPeriods)?, rate(Quantity::AllottedCpuThrottledPeriods)?);
    (periods > 0.0).then(|| (throttled / periods).min(1.0))
}

fn throttled(evidence: &StepEvidence<'_>, share: f64, finding: Finding) -> Finding {
    let quota =
        evidence.store.signals().find(Quantity::AllottedCpuQuota).and_then(|signal| signal.series.last()?.value());
    finding
        .with_evidence_from(|facts| {
            let share = facts.share(Number::ThrottledPeriods, share);
            let limit = quota.map_or_else(String::new, |millipercent| {
                format!(" of {:.2} cores", facts.number(Number::QuotaCores, millipercent as f64 / 1e5))
            });
            format!("its control group reaches its CPU limit{limit} in {share} of the periods, and is stopped until the next")
        })
        .with_advice("raise the CPU limit of the container or job, or use fewer threads and loader workers")
}

/// The process itself has more threads that want to run than cores.
fn add_threads(evidence: &StepEvidence<'_>, span: &Range<u64>, finding: Finding) -> Finding {
    let cores = evidence.store.hardware().cores().len() as u64;
    let threads = evidence.store.signals().find(Quantity::ProcessThreads);
    let threads = threads.and_then(|signal| hardware::held_mean(signal, span)).map_or(0, |mean| mean.round() as u64);
    let is_crowded = cores > 0 && threads > cores;
    let finding = finding.with_evidence_lines(|facts| {
        is_crowded.then(|| {
            let (threads, cores) = (facts.count(Number::Threads, threads), facts.count(Number::MachineCores, cores));
            format!("it has {threads} threads on {cores} cores")
        })
    });
    finding.with_advice(FEWER_THREADS)
}

/// The other processes that took most of the CPU, such as `other process: make (pid 7)`, with the cores that each uses.
/// Looked up only from time to time, while others take a lot.
fn rivals(evidence: &StepEvidence<'_>, span: &Range<u64>) -> Vec<(String, f64)> {
    let mut by_text: BTreeMap<String, (f64, u32)> = BTreeMap::new();
    for seen in evidence.store.rivals().within(span.clone()) {
        if seen.cores > 0.0 && seen.cores.is_finite() {
            let (sum, times) = by_text.entry(seen.describe(evidence.store.name(seen.name))).or_default();
            (*sum, *times) = (*sum + seen.cores, *times + 1);
        }
    }
    let mut most: Vec<(String, f64, f64)> =
        by_text.into_iter().map(|(text, (sum, times))| (text, sum, sum / f64::from(times))).collect();
    most.sort_by(|a, b| b.1.total_cmp(&a.1));
    most.into_iter().take(RIVALS_NAMED).map(|(text, _, cores)| (text, cores)).collect()
}

/// The undisturbed steps, to which all are compared.
struct QuietSteps {
    /// Their median time inside.
    inside_ns: f64,
    /// Most times that the CPU was taken from one of them.
    preemptions: u64,
}

impl QuietSteps {
    /// The steps that keep their CPU or, if these are few, those from which it is taken far less often than from most;
    /// `None` if these are few, too.
    fn find(evidence: &StepEvidence<'_>) -> Option<Self> {
        let taken = |row: usize| Some(evidence.rows[row].usage()?.involuntary_switches);
        let full = || (0..evidence.rows.len()).filter(|row| !evidence.shape.is_partial[*row]);
        let mut all: Vec<f64> = full().filter_map(|row| Some(taken(row)? as f64)).collect();
        let far_less = (median(&mut all)? / FAR_LESS) as u64;
        [0, far_less].into_iter().find_map(|most| {
            let quiet = full().filter(|row| taken(*row).is_some_and(|times| times <= most));
            let mut times: Vec<f64> = quiet.map(|row| evidence.inside_ns[row]).collect();
            let inside_ns = if times.len() >= ENOUGH { median(&mut times) } else { None };
            inside_ns.map(|inside_ns| Self { inside_ns, preemptions: most })
        })
    }

    /// How much longer the steps take from which the CPU is taken more often.
    fn costs(&self, evidence: &StepEvidence<'_>) -> Vec<StepCost> {
        let is_taken =
            |row: usize| evidence.rows[row].usage().is_some_and(|usage| usage.involuntary_switches > self.preemptions);
        let disturbed = (0..evidence.rows.len()).filter(|row| !evidence.shape.is_partial[*row] && is_taken(*row));
        disturbed.map(|row| evidence.cost_beyond(row, self.inside_ns)).collect()
    }

    fn describe(&self, facts: &mut StatedNumbers) -> String {
        let (time, taken) =
            (facts.time(Number::Otherwise, self.inside_ns), facts.count(Number::Preemptions, self.preemptions));
        match self.preemptions {
            0 => format!("steps that are not preempted take {time}"),
            1 => format!("steps that are preempted at most 1 time take {time}"),
            _ => format!("steps that are preempted at most {taken} times take {time}"),
        }
    }
}
