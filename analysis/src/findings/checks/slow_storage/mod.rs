//! Slow storage: what the program and its loader workers read, and where it comes from: the network, a disk in small
//! pieces, a disk again in every epoch, or a disk in the first epoch only.

mod file_waits;

use std::ops::Range;

use gnntop_wire::{Quantity, TrackRole};

use super::data_bound;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, Severity};
use crate::findings::hardware;
use crate::findings::number::Number;
use crate::findings::robust::median;
use crate::findings::stated_numbers::StatedNumbers;
use file_waits::FileWaits;

/// A program that reads less in an epoch, or in a second, does not wait for it.
const LEAST_PER_EPOCH: f64 = 50e6;
const LEAST_PER_S: f64 = 2e6;
/// Reads are small up to this mean, in bytes...
const SMALL: f64 = 32768.0;
/// ...and many from this number in a step.
const MANY: f64 = 20.0;
/// What comes from somewhere is mostly from there from this share on.
const MOSTLY: f64 = 0.5;
/// Later epochs find their data in memory if they read at most this share of the first one's from disks.
const CACHED: f64 = 0.2;
/// The first epoch's steps are slower by this share.
const SLOWER: f64 = 0.1;
/// Something waits for a disk from this share of the time.
const PRESSURE: f64 = 0.1;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let Some((span, reads)) = evidence.span_ns().and_then(|span| Some((span.clone(), Reads::find(evidence, &span)?)))
    else {
        return CheckOutcome::NotEnough("what the program reads from disks is not recorded".to_owned());
    };
    let epochs = Epochs::find(evidence);
    let cold = epochs.as_ref().and_then(|epochs| cold_cache(evidence, epochs));
    if data_bound::share(evidence).is_none() {
        return cold.map_or(CheckOutcome::Nothing, CheckOutcome::from);
    }
    let files = FileWaits::find(evidence, &span);
    let slow = [
        files.network().map(network_files),
        network(evidence, &span, &reads),
        every_epoch(epochs.as_ref()),
        small_reads(evidence, &span, &reads),
    ];
    let slow = slow.into_iter().flatten().next().or_else(|| busy_disk(evidence, &span, &reads));
    let slow = slow.map(|finding| reads.describe(finding));
    slow.or(cold).map(|finding| files.describe(finding)).map_or(CheckOutcome::Nothing, CheckOutcome::from)
}

/// What is read in a second: by the loader's workers if there are any, else by the program.
struct Reads {
    bytes: f64,
    calls: Option<f64>,
    /// What comes from disks, of both.
    disk_bytes: f64,
    are_workers: bool,
}

impl Reads {
    fn find(evidence: &StepEvidence<'_>, span: &Range<u64>) -> Option<Self> {
        let rate = |quantity: Quantity| hardware::rate_per_s(evidence.store, quantity, span);
        let own = (rate(Quantity::ProcessIoRchar)?, rate(Quantity::ProcessIoReadCalls));
        let workers = (rate(Quantity::ChildrenIoRchar), rate(Quantity::ChildrenIoReadCalls));
        let are_workers = evidence.store.tracks().iter().any(|track| track.role == TrackRole::Loader);
        let (bytes, calls) = match workers.0.filter(|_| are_workers) {
            Some(bytes) => (bytes, workers.1),
            None => own,
        };
        Some(Self { bytes, calls, disk_bytes: disk_rate(evidence, span)?, are_workers })
    }

    /// Adds how much is read, by whom, in which pieces.
    fn describe(&self, finding: Finding) -> Finding {
        let who = if self.are_workers { "the loader's workers read" } else { "the program reads" };
        finding.with_evidence_from(|facts| {
            let (bytes, disk) =
                (facts.bytes(Number::ReadPerS, self.bytes), facts.bytes(Number::FromDisksPerS, self.disk_bytes));
            let size = self
                .calls
                .filter(|calls| *calls > 0.0)
                .map(|calls| format!(", {} a call", facts.bytes(Number::ReadSize, self.bytes / calls)));
            format!("{who} {bytes} a second{}; {disk} a second come from disks", size.unwrap_or_default())
        })
    }
}

/// Bytes that the program and its children read from disks in a second.
fn disk_rate(evidence: &StepEvidence<'_>, span: &Range<u64>) -> Option<f64> {
    let rate = |quantity: Quantity| hardware::rate_per_s(evidence.store, quantity, span);
    Some(rate(Quantity::ProcessIoReadBytes)? + rate(Quantity::ChildrenIoReadBytes).unwrap_or(0.0))
}

fn slow(certainty: Confidence, summary: impl FnOnce(&mut StatedNumbers) -> String, advice: &str) -> Finding {
    let finding = Finding::for_run(FindingKind::SlowStorage, certainty, None, summary);
    Finding { severity: Severity::Minor, ..finding }.with_advice(advice)
}

/// The stacks that wait for a file wait for one on this file system, which is over a network.
fn network_files(filesystem: &str) -> Finding {
    slow(
        Confidence::High,
        |_| format!("the data are read over the network, from {filesystem}, and the loop waits for them"),
        "copy the data to a local disk first, or read larger pieces ahead with more workers",
    )
}

/// Most of it comes over the network. Ranks that exchange gradients use it too, so a run of several says nothing.
fn network(evidence: &StepEvidence<'_>, span: &Range<u64>, reads: &Reads) -> Option<Finding> {
    let is_alone = evidence.store.session().info().is_none_or(|info| info.place.is_none());
    let received = hardware::rate_per_s(evidence.store, Quantity::MachineNetworkReceivedBytes, span)?;
    let is_remote = received >= MOSTLY * reads.bytes && reads.disk_bytes < CACHED * reads.bytes;
    (is_alone && reads.bytes >= LEAST_PER_S && is_remote).then(|| {
        slow(
            Confidence::Medium,
            |facts| {
                let received = facts.bytes(Number::ReceivedPerS, received);
                format!(
                    "the data are read over the network: the machine receives {received} a second while the loop waits"
                )
            },
            "copy the data to a local disk first, or read larger pieces ahead with more workers",
        )
    })
}

/// Each epoch reads from disks what the one before had read.
fn every_epoch(epochs: Option<&Epochs>) -> Option<Finding> {
    let epochs = epochs.filter(|epochs| epochs.count >= 3)?;
    (epochs.first >= LEAST_PER_EPOCH && epochs.later >= MOSTLY * epochs.first).then(|| {
        slow(
            Confidence::Medium,
            |facts| {
                let later = facts.bytes(Number::FromDisksPerEpoch, epochs.later);
                format!("every epoch reads {later} from disks again: memory does not hold the data set")
            },
            "make the data smaller (compress, another type), use more memory, or read them in the order in which they are stored",
        )
    })
}

/// Many small pieces from a disk.
fn small_reads(evidence: &StepEvidence<'_>, span: &Range<u64>, reads: &Reads) -> Option<Finding> {
    let calls = reads.calls.filter(|calls| *calls > 0.0)?;
    let (size, steps) = (reads.bytes / calls, evidence.rows.len() as f64 * 1e9 / (span.end - span.start) as f64);
    let is_from_disk = reads.disk_bytes >= MOSTLY * reads.bytes || waits(evidence, span) >= PRESSURE;
    (size <= SMALL && calls >= MANY * steps && is_from_disk).then(|| {
        slow(
            Confidence::Medium,
            |facts| {
                let (size, calls) =
                    (facts.bytes(Number::ReadSize, size), facts.count(Number::ReadsPerStep, (calls / steps) as u64));
                format!("the data are read from a disk in small pieces: {calls} reads a step, of {size} on average")
            },
            "store the data in few large files, and read many samples at once",
        )
    })
}

/// Something waits for a disk, and the program reads from it.
fn busy_disk(evidence: &StepEvidence<'_>, span: &Range<u64>, reads: &Reads) -> Option<Finding> {
    let pressure = waits(evidence, span);
    (pressure >= PRESSURE && reads.disk_bytes >= LEAST_PER_S).then(|| {
        slow(
            Confidence::Low,
            |facts| {
                let share = facts.share(Number::Pressure, pressure);
                format!("some process waits for a disk {share} of the time, and the program reads its data from one")
            },
            "copy the data to a faster disk or to memory, or store them compressed",
        )
    })
}

/// Share of the time in which something on the machine waits for a disk.
fn waits(evidence: &StepEvidence<'_>, span: &Range<u64>) -> f64 {
    hardware::rate_per_s(evidence.store, Quantity::PressureIoSome, span).map_or(0.0, |ns| ns / 1e9)
}

/// What the first epoch reads from disks, and what a later one does.
struct Epochs {
    count: u64,
    first: f64,
    later: f64,
    /// How much slower the steps of the first epoch are, as a share of the time of later ones.
    slower: f64,
}

impl Epochs {
    /// `None` without a first epoch and a later one.
    fn find(evidence: &StepEvidence<'_>) -> Option<Self> {
        let rows = &evidence.rows;
        let epoch = rows.first()?.epoch();
        let begin = rows.iter().position(|row| row.epoch() != epoch)?;
        if evidence.warm_up.is_empty() || evidence.warm_up.last()?.epoch() != epoch {
            return None;
        }
        let (early, late) = rows.split_at(begin);
        let span = |rows: &[crate::store::StepRow<'_>]| Some(rows.first()?.period_start_ns()..rows.last()?.end_ns());
        let bytes = |span: Range<u64>| Some(disk_rate(evidence, &span)? * (span.end - span.start) as f64 / 1e9);
        let count = 1 + late.chunk_by(|a, b| a.epoch() == b.epoch()).count() as u64;
        // An epoch at the end may be unfinished, so later ones are measured by their steps.
        let later = bytes(span(late)?)? / late.len() as f64 * early.len() as f64;
        let usual = |rows: &[crate::store::StepRow<'_>]| {
            median(&mut rows.iter().map(|row| row.period_ns() as f64).collect::<Vec<f64>>())
        };
        let slower = usual(early)? / usual(late)?.max(1.0) - 1.0;
        Some(Self { count, first: bytes(span(early)?)?, later, slower })
    }
}

/// The first epoch reads from disks what later ones find in memory.
fn cold_cache(evidence: &StepEvidence<'_>, epochs: &Epochs) -> Option<Finding> {
    let is_cold = epochs.first >= LEAST_PER_EPOCH && epochs.later <= CACHED * epochs.first && epochs.slower >= SLOWER;
    is_cold.then(|| {
        let finding = Finding::for_run(FindingKind::SlowStorage, Confidence::Medium, None, |facts| {
            let (first, slower) = (facts.bytes(Number::FromDisksPerEpoch, epochs.first), facts.share(Number::Slower, epochs.slower));
            format!("the first epoch reads {first} from disks and its steps take {slower} longer; later ones find the data in memory")
        });
        let place = evidence.rows.iter().take_while(|row| row.epoch() == evidence.rows[0].epoch()).count();
        let place = evidence.places(0..place, finding.summary.clone());
        finding.with_places(vec![place], 1).with_advice("compare runs without their first epoch, or read the data once before")
    })
}
