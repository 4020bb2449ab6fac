//! Data-bound: the loop waits for its next batch, or its thread makes the batch itself.

mod batch_parts;
mod first_epoch;
mod input;
mod sampled;
mod workers;

use gnntop_wire::phase::{DATA_WAIT, GATHER, SAMPLE, TRANSFER};
use gnntop_wire::{Origin, Quantity};

use super::unnamed_validation;
use crate::findings::claim::Claim;
use crate::findings::epoch_starts;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::hardware;
use crate::findings::number::Number;
use crate::findings::repeated_work;
use crate::findings::sampled_places::SampledPlaces;
use crate::findings::stated_numbers::StatedNumbers;

use batch_parts::BatchTimes;
use input::{Input, InputPart};
use workers::LoaderWorkers;

/// A smaller share of the wall time is not a finding.
const WORTH_REPORTING: f64 = 0.15;
/// A queue that is empty this often is filled too slowly...
const EMPTY: f64 = 0.25;
/// ...and one that is empty less often than this is not the cause.
const READY: f64 = 0.05;
/// Workers that make batches for a smaller share of the time are not what the loop waits for.
const BUSY: f64 = 0.3;
/// If the median wait is below this part of the mean, few steps wait most.
const UNEVEN: f64 = 0.5;
/// If no smaller share of the cores is busy, none is free.
const NO_CORE_FREE: f64 = 0.9;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let Some(input) = Input::find(evidence) else {
        let reason = "the program has no phase \"data wait\", or another in which it gets its batches";
        return CheckOutcome::NotEnough(reason.to_owned());
    };
    if input.share() < WORTH_REPORTING {
        return CheckOutcome::Nothing;
    }
    let finding = Finding::for_run(FindingKind::DataBound, Confidence::Medium, Some(input.share()), |facts| {
        summary(evidence, &input, facts)
    })
    .with_claim(Claim::Phases(input.slots()));
    let finding = repeated_work::describe(evidence.store, DATA_WAIT, finding);
    let at_starts = at_epoch_starts(evidence, &input);
    let finding = first_epoch::describe(evidence, &input, uneven_steps(evidence, &input, at_starts, finding));
    let mut finding = sampled::describe(evidence, place(evidence, &input, at_starts, finding));
    // The first advice is what to try first.
    finding.advice.truncate(1);
    let first = finding.advice.first_mut().filter(|advice| !advice.contains("--stacks"));
    if let Some(advice) = first.filter(|_| are_lines_unknown(evidence, &input)) {
        advice.push_str("; gnntop run --stacks 20 names the lines");
    }
    finding.into()
}

/// Whether stacks would name the lines in which it gets its batches, and were not taken.
fn are_lines_unknown(evidence: &StepEvidence<'_>, input: &Input) -> bool {
    let phase = input.named().map(|part| part.text).max_by_key(|text| *text == DATA_WAIT);
    phase.is_some_and(|phase| SampledPlaces::in_phase(evidence.store, phase).are_off)
}

/// Share of the time in which the loop gets its batches, if that is worth a finding.
pub(super) fn share(evidence: &StepEvidence<'_>) -> Option<f64> {
    Input::find(evidence).map(|input| input.share()).filter(|share| *share >= WORTH_REPORTING)
}

fn summary(evidence: &StepEvidence<'_>, input: &Input, facts: &mut StatedNumbers) -> String {
    let mean_ns = evidence.timed.iter().map(|row| input.row_ns(row)).sum::<f64>() / evidence.rows.len() as f64;
    let (share, each) = (facts.share(Number::OfTime, input.share()), facts.time(Number::Each, mean_ns));
    if input.named().all(|part| part.text == DATA_WAIT) {
        return format!("the loop waits for data {share} of the time, {each} a step on average");
    }
    let part = |part: &InputPart| {
        let share = facts.about(part.text, |facts| facts.share(Number::OfTime, part.share));
        format!("{share} in {}", part.text)
    };
    let parts = input.named().map(part).collect::<Vec<String>>().join(", ");
    format!("the loop takes {share} of the time to get its batches, {each} a step on average: {parts}")
}

/// Adds whether few steps do most of the waiting, such as the first of epochs.
fn uneven_steps(evidence: &StepEvidence<'_>, input: &Input, at_starts: Option<f64>, finding: Finding) -> Finding {
    let mut waits: Vec<f64> = evidence.timed.iter().map(|row| input.row_ns(row)).collect();
    let all: f64 = waits.iter().sum();
    waits.sort_unstable_by(|a, b| b.total_cmp(a));
    let tenth = waits[..waits.len().div_ceil(10)].iter().sum::<f64>() / all;
    let usual_ns = evidence.timed_median(|row| Some(input.row_ns(row))).unwrap_or(0.0);
    let is_even = usual_ns > UNEVEN * all / evidence.rows.len() as f64;
    let finding = finding.with_evidence_lines(|facts| {
        (!is_even).then(|| {
            let (usual, tenth) = (facts.time(Number::Usual, usual_ns), facts.share(Number::SlowestTenth, tenth));
            format!("half of the steps wait at most {usual}; the slowest tenth accounts for {tenth} of the waiting")
        })
    });
    let Some(share) = at_starts else { return finding };
    let finding = finding.with_evidence_from(|facts| {
        let share = facts.share(Number::FirstBatches, share);
        format!("{share} of the waiting is for the first batch of an epoch")
    });
    let workers = LoaderWorkers::find(evidence).count as u64;
    if evidence.store.session().loader_workers().unwrap_or(workers) > 0 {
        return finding.with_advice(epoch_starts::advice_on_workers(evidence));
    }
    finding.with_advice(epoch_starts::advice(SampledPlaces::in_phase(evidence.store, DATA_WAIT).line()))
}

/// The share of the waiting that is for the first batches of epochs, if it is most of it and not for those of a validation.
fn at_epoch_starts(evidence: &StepEvidence<'_>, input: &Input) -> Option<f64> {
    let share = epoch_starts::share(evidence, |row| input.row_ns(&evidence.timed[row]))?;
    let first = (0..evidence.rows.len()).filter(|row| evidence.begins_epoch(*row));
    (!unnamed_validation::is_in(evidence, first)).then_some(share)
}

/// Adds where batches are made, what holds them up, and what to try.
fn place(evidence: &StepEvidence<'_>, input: &Input, at_starts: Option<f64>, finding: Finding) -> Finding {
    let workers = LoaderWorkers::find(evidence);
    match (input.own(), BatchTimes::in_waits(evidence)) {
        (Some(part), _) => on_training_thread(evidence, part, &workers, finding),
        (None, Some(times)) => {
            // What comes before an epoch's first batch is no part of making one.
            let times = Some(times).filter(|_| at_starts.is_none());
            in_waits(evidence, times, &workers, finding)
        }
        (None, None) => by_loader(evidence, &workers, finding),
    }
}

/// The training thread makes its batches itself.
fn on_training_thread(
    evidence: &StepEvidence<'_>,
    part: &InputPart,
    workers: &LoaderWorkers,
    finding: Finding,
) -> Finding {
    let (is_free, finding) = cores(evidence, workers, describe_count(evidence, workers, finding));
    let has_gpu = !evidence.store.hardware().gpus().is_empty() || evidence.store.device().is_some();
    // A copy may wait for the device instead, and its time would not show it.
    let confidence = if part.text == TRANSFER { Confidence::Medium } else { Confidence::High };
    let finding = Finding { confidence, ..finding }
        .with_evidence(format!("{} is on the training thread, which computes nothing meanwhile", part.text));
    let places = SampledPlaces::in_phase(evidence.store, part.text);
    lines(&places, part.text, finding).with_advice(advice(part.text, workers.count, is_free, has_gpu))
}

/// What to try first where the training thread makes its batches: by what takes the most time, how many workers the loader
/// has, and whether a core is free for more of them.
fn advice(part: &str, workers: usize, is_core_free: Option<bool>, has_gpu: bool) -> &'static str {
    match (part, workers, is_core_free) {
        (TRANSFER, ..) => "pin the batches' memory (pin_memory=True) and copy them without waiting (non_blocking=True)",
        (GATHER, ..) if has_gpu => {
            "keep the features on the GPU, or gather them in the loader's workers (PyG: filter_per_worker=True)"
        }
        (GATHER, 1.., _) => "gather in the loader's workers too (PyG: filter_per_worker=True)",
        (GATHER, 0, Some(false)) => {
            "gather less: fewer neighbours, smaller features (float16), kept in one contiguous tensor"
        }
        (SAMPLE, _, Some(false)) => "sample fewer neighbours or hops: no core is free for loader workers",
        (_, 0, Some(true)) => "let loader workers make batches ahead (num_workers): cores are free",
        (_, 0, None) => "let loader workers make batches ahead (num_workers)",
        (_, _, Some(false)) => "make batches cheaper: no core is free for loader workers",
        _ => "move this into the loader's workers, which make batches ahead",
    }
}

/// The loop's waits are for batches that the training thread makes itself, whose parts take so long, if that is known.
fn in_waits(
    evidence: &StepEvidence<'_>,
    times: Option<BatchTimes>,
    workers: &LoaderWorkers,
    finding: Finding,
) -> Finding {
    let longer = times.map(|times| times.longer());
    let places = SampledPlaces::in_phase(evidence.store, DATA_WAIT);
    let finding = describe_count(evidence, workers, finding).with_evidence_from(|facts| {
        let taken = longer.map(|(part, share)| {
            let share = facts.about(&part.to_string(), |facts| facts.share(Number::OfWait, share));
            format!(": {} takes {share} of the wait", part.work())
        });
        format!("the training thread makes the batches{}", taken.unwrap_or_default())
    });
    let (is_free, finding) = cores(evidence, workers, lines(&places, DATA_WAIT, finding));
    let cheaper = cheaper(&longer.map_or("batches".to_owned(), |(part, _)| part.to_string()), places.line());
    Finding { confidence: Confidence::High, ..finding }.with_advice(match is_free {
        Some(false) => format!("{cheaper}: no core is free for loader workers"),
        Some(true) => format!("{cheaper}, or let loader workers make batches ahead (num_workers): cores are free"),
        None => format!("{cheaper}, or let loader workers make batches ahead (num_workers)"),
    })
}

/// What to make cheaper, and where that is, if known.
fn cheaper(part: &str, line: Option<&str>) -> String {
    let line = line.map(|line| format!(", above all {line}")).unwrap_or_default();
    format!("make {part} cheaper{line}")
}

/// The loop waits: adds evidence from queues, workers and cores.
fn by_loader(evidence: &StepEvidence<'_>, workers: &LoaderWorkers, mut finding: Finding) -> Finding {
    let queue = emptiest_queue(evidence);
    if let Some((name, empty)) = &queue {
        finding = finding.with_evidence_from(|facts| {
            format!("\"{name}\" is empty in {} of its readings", facts.share(Number::QueueEmpty, *empty))
        });
    }
    let places = SampledPlaces::in_phase(evidence.store, DATA_WAIT);
    finding = lines(&places, DATA_WAIT, workers.describe(describe_count(evidence, workers, finding)));
    match queue {
        Some((_, empty)) if empty <= READY && workers.are_uneven() => finding
            .with_evidence("batches are ready while the loop waits, but not the next one in order")
            .with_advice("give each worker as much to do, or take batches in any order (DataLoader(in_order=False))"),
        Some((_, empty)) if empty <= READY => finding
            .with_advice("batches are ready while the loop waits: look at how it fetches one (copies, pinning, locks)"),
        Some((_, empty)) if empty >= EMPTY => {
            finding.confidence = Confidence::High;
            make_more(evidence, workers, places.line(), finding.with_evidence("the loader is slower than the loop"))
        }
        None if workers.count == 0 => without_workers(evidence, workers, places.line(), finding),
        _ => make_more(evidence, workers, places.line(), finding),
    }
}

/// No worker is seen: adds whether the training thread makes the batches, which is certain where the loader's settings say so, and
/// said of no file that cannot hold workers.
fn without_workers(
    evidence: &StepEvidence<'_>,
    workers: &LoaderWorkers,
    line: Option<&str>,
    finding: Finding,
) -> Finding {
    let finding = match evidence.store.session().loader_workers() {
        Some(0) => {
            Finding { confidence: Confidence::High, ..finding }.with_evidence("the training thread makes its batches")
        }
        None if !is_imported(evidence) => finding.with_evidence("the training thread probably makes the batches"),
        _ => return make_more(evidence, workers, line, finding),
    };
    let (is_free, finding) = cores(evidence, workers, finding);
    finding.with_advice(match is_free {
        Some(false) => format!("{}: no core is free for loader workers", cheaper("batches", line)),
        _ => "prepare batches ahead in worker threads or processes (num_workers)".to_owned(),
    })
}

/// Adds the lines of the program in which batches are made, by the stacks that were sampled in this phase.
fn lines(places: &SampledPlaces, phase: &str, finding: Finding) -> Finding {
    finding.with_evidence_lines(|facts| places.lines(facts, phase))
}

/// Whether what is missing may have been missing in a file.
fn is_imported(evidence: &StepEvidence<'_>) -> bool {
    evidence.store.session().info().is_some_and(|info| matches!(info.origin, Origin::Table | Origin::Trace))
}

fn describe_count(evidence: &StepEvidence<'_>, workers: &LoaderWorkers, finding: Finding) -> Finding {
    match (workers.count, evidence.store.session().loader_workers()) {
        (0, Some(0)) => finding.with_evidence("the loader has no workers (num_workers=0)"),
        (0, _) if is_imported(evidence) => finding,
        (0, _) => finding.with_evidence("no loader worker is seen"),
        (n, _) => finding.with_evidence_from(|facts| {
            let loaders = facts.count(Number::Loaders, n as u64);
            format!("{loaders} loader thread{}", if n == 1 { "" } else { "s" })
        }),
    }
}

/// Adds what to do about the loader: more workers if these are busy and cores are free.
fn make_more(evidence: &StepEvidence<'_>, workers: &LoaderWorkers, line: Option<&str>, finding: Finding) -> Finding {
    let (is_free, finding) = cores(evidence, workers, finding);
    if workers.are_uneven() {
        return finding
            .with_advice("give each worker as much to do: the others wait for the slow one, or for slow batches");
    }
    if let Some(busy) = workers.busy_share().filter(|busy| *busy < BUSY) {
        return finding
            .with_evidence_from(|facts| {
                format!("the workers make batches {} of the time", facts.share(Number::WorkersBusy, busy))
            })
            .with_advice("look at how batches get to the loop (their size, pinning): more workers would be idle, too");
    }
    finding.with_advice(match is_free {
        Some(false) => format!("{}: no core is free for more workers", cheaper(&workers.part(), line)),
        Some(true) => "use more loader workers: cores are free".to_owned(),
        None => "use more loader workers".to_owned(),
    })
}

/// Adds how busy the cores are; with it, whether one is free, if that is recorded.
fn cores(evidence: &StepEvidence<'_>, workers: &LoaderWorkers, finding: Finding) -> (Option<bool>, Finding) {
    let Some(span) = evidence.span_ns() else { return (None, finding) };
    let Some(busy) = hardware::machine_busy(evidence.store, &span) else { return (None, finding) };
    let cores = evidence.store.hardware().cores().len() as f64;
    let may_use = hardware::allotted_cores(evidence.store).filter(|allotted| *allotted < cores);
    let own = hardware::rate_per_s(evidence.store, Quantity::ProcessCpuTime, &span).map(|ns| ns / 1e9);
    let finding = finding
        .with_evidence_from(|facts| format!("the machine's cores are {} busy", facts.share(Number::MachineBusy, busy)));
    if let Some(used) = own.filter(|own| is_waiting(evidence, own + workers.busy, finding.share)) {
        let words = "making batches is mostly waiting, which workers do side by side";
        return (
            None,
            finding.with_evidence_from(|facts| {
                format!("the program uses {:.2} cores: {words}", facts.number(Number::Cores, used))
            }),
        );
    }
    let own = own.unwrap_or(0.0);
    let Some(may_use) = may_use else { return (Some(busy < NO_CORE_FREE), finding) };
    // Workers are processes of their own, and are at work while they make a batch.
    let used = own + workers.busy;
    let finding = finding.with_evidence_from(|facts| {
        let (may_use, used) = (facts.number(Number::MayUseCores, may_use), facts.number(Number::Cores, used));
        format!("the program may use {may_use:.1} of them and uses about {used:.1}")
    });
    (Some(busy < NO_CORE_FREE && used < NO_CORE_FREE * may_use), finding)
}

/// Whether making batches takes this share of the time and hardly any of a core, though it could have one: it waits for a disk, a
/// network or a lock.
fn is_waiting(evidence: &StepEvidence<'_>, used: f64, share: Option<f64>) -> bool {
    let starved = |span| hardware::rate_per_s(evidence.store, Quantity::MainThreadCpuWait, &span);
    let Some(starved_ns) = evidence.span_ns().and_then(starved) else { return false };
    share.is_some_and(|share| share >= 0.5 && used + starved_ns / 1e9 <= 0.25 * share)
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
