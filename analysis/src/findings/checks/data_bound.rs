//! Data-bound: the loop waits for its next batch.

use gnntop_wire::TrackRole;
use gnntop_wire::phase::DATA_WAIT;

use crate::findings::claim::Claim;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::hardware;
use crate::findings::number::Number;
use crate::store::PhaseSlot;

/// A smaller share of the wall time is not a finding.
const WORTH_REPORTING: f64 = 0.15;
/// A queue that is empty this often is filled too slowly...
const EMPTY: f64 = 0.25;
/// ...and one that is empty less often than this is not the cause.
const READY: f64 = 0.05;
/// If the median wait is below this part of the mean, few steps wait most.
const UNEVEN: f64 = 0.5;
/// A machine with a smaller share of idle cores has none to spare.
const NO_CORE_FREE: f64 = 0.9;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let Some(phase) = evidence.store.phase(DATA_WAIT) else {
        return CheckOutcome::NotEnough(format!("the program has no phase \"{DATA_WAIT}\""));
    };
    let share = evidence.share(evidence.phase_total_ns(phase.slot));
    if share < WORTH_REPORTING {
        return CheckOutcome::Nothing;
    }
    let at_epochs: f64 = (0..evidence.rows.len())
        .filter(|row| evidence.begins_epoch(*row))
        .map(|row| evidence.rows[row].phase_ns(phase.slot) as f64)
        .sum();
    let at_epochs = evidence.share(at_epochs) / share;
    let mean_ns = evidence.phase_total_ns(phase.slot) / evidence.rows.len() as f64;
    let mut finding = Finding::for_run(FindingKind::DataBound, Confidence::Medium, Some(share), |facts| {
        let (share, each) = (facts.share(Number::OfTime, share), facts.time(Number::Each, mean_ns));
        format!("the loop waits for data {share} of the time, {each} a step on average")
    })
    .with_claim(Claim::Phase(phase.slot));
    if let Some((usual_ns, tenth)) = few_wait(evidence, phase.slot, mean_ns) {
        finding = finding.with_evidence_from(|facts| {
            let (usual, tenth) = (facts.time(Number::Usual, usual_ns), facts.share(Number::SlowestTenth, tenth));
            format!("half of the steps wait at most {usual}; the slowest tenth accounts for {tenth} of the waiting")
        });
    }
    if at_epochs > 0.5 {
        finding = finding
            .with_evidence_from(|facts| {
                let share = facts.share(Number::FirstBatches, at_epochs);
                format!("{share} of the waiting is for the first batch of an epoch")
            })
            .with_advice("keep the loader's workers from one epoch to the next");
    }
    let mut finding = cause(evidence, finding);
    // The first advice is what to try first.
    finding.advice.truncate(1);
    finding.into()
}

/// Where few steps do most of the waiting: the median wait, and the part of the slowest tenth.
fn few_wait(evidence: &StepEvidence<'_>, slot: PhaseSlot, mean_ns: f64) -> Option<(f64, f64)> {
    let usual_ns = evidence.median(|row| Some(row.phase_ns(slot) as f64))?;
    if usual_ns > UNEVEN * mean_ns {
        return None;
    }
    let mut waits: Vec<f64> = evidence.rows.iter().map(|row| row.phase_ns(slot) as f64).collect();
    waits.sort_unstable_by(|a, b| b.total_cmp(a));
    let all: f64 = waits.iter().sum();
    let tenth: f64 = waits[..waits.len().div_ceil(10)].iter().sum();
    Some((usual_ns, tenth / all))
}

/// Adds evidence from queues, workers and cores.
fn cause(evidence: &StepEvidence<'_>, mut finding: Finding) -> Finding {
    let workers = evidence.store.tracks().iter().filter(|track| track.role == TrackRole::Loader).count();
    let queue = emptiest_queue(evidence);
    if let Some((name, empty)) = &queue {
        finding = finding.with_evidence_from(|facts| {
            format!("\"{name}\" is empty in {} of its readings", facts.share(Number::QueueEmpty, *empty))
        });
    }
    finding = match workers {
        0 => finding.with_evidence("no loader thread publishes"),
        n => finding.with_evidence_from(|facts| {
            let loaders = facts.count(Number::Loaders, n as u64);
            format!("{loaders} loader thread{}", if n == 1 { "" } else { "s" })
        }),
    };
    match queue {
        Some((_, empty)) if empty <= READY => finding
            .with_advice("batches are ready while the loop waits: look at how it fetches one (copies, pinning, locks)"),
        Some((_, empty)) if empty >= EMPTY => {
            finding.confidence = Confidence::High;
            make_more(evidence, finding.with_evidence("the loader is slower than the loop"))
        }
        None if workers == 0 => make_more(
            evidence,
            finding
                .with_evidence("the training thread probably makes the batches")
                .with_advice("prepare batches ahead in worker threads or processes"),
        ),
        _ => make_more(evidence, finding),
    }
}

/// Adds whether there are idle cores that could make more batches.
fn make_more(evidence: &StepEvidence<'_>, finding: Finding) -> Finding {
    let Some(busy) = evidence.span_ns().and_then(|span| hardware::machine_busy(evidence.store, &span)) else {
        return finding.with_advice("use more loader workers");
    };
    let finding = finding
        .with_evidence_from(|facts| format!("the machine's cores are {} busy", facts.share(Number::MachineBusy, busy)));
    finding.with_advice(match busy >= NO_CORE_FREE {
        true => "make batches cheaper: no core is free for more workers",
        false => "use more loader workers: cores are free",
    })
}

/// The queue counter that is 0 most often, with how often that is.
fn emptiest_queue(evidence: &StepEvidence<'_>) -> Option<(String, f64)> {
    let span = evidence.span_ns()?;
    let emptiness = |counter: &crate::store::CounterSeries| {
        let name = evidence.store.name(counter.name);
        let speaks = ["queue", "ready", "prefetch"].iter().any(|word| name.to_lowercase().contains(word));
        let values = counter.series.points().filter(|point| span.contains(&point.t_ns())).filter_map(|p| p.value());
        let (empty, all) = values.fold((0u64, 0u64), |(empty, all), v| (empty + u64::from(v <= 0.0), all + 1));
        (speaks && all >= 10).then(|| (name.to_owned(), empty as f64 / all as f64))
    };
    evidence.store.counters().iter().filter_map(emptiness).max_by(|a, b| a.1.total_cmp(&b.1))
}
