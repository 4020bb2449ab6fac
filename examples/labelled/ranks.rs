//! The causes between ranks. Their runs are generated, event by event: what ranks do to each other is known to the
//! nanosecond, and does not depend on what else the machine did.

use gnntop_wire::{Place, TrackRole};

use gnntop_fixtures::pipeline::PipelineRun;
use gnntop_fixtures::uneven::{RankStepPlan, UnevenRun};
use gnntop_fixtures::{MS, SECOND};

/// A run of several ranks whose cause is known.
pub struct RunCause {
    pub name: &'static str,
    /// Ids of the findings that must be reported.
    pub expect: &'static [&'static str],
    /// Ids of findings that are also true.
    pub also: &'static [&'static str],
    /// The recording that it is compared with, by name.
    pub against: Option<&'static str>,
    /// The streams of its ranks, one after the other.
    pub make: fn() -> Vec<Vec<u8>>,
}

const fn cause(name: &'static str, expect: &'static [&'static str], make: fn() -> Vec<Vec<u8>>) -> RunCause {
    RunCause { name, expect, also: &[], against: None, make }
}

/// The run of one rank with which others are compared.
const ONE: &str = "clean-ranks-1";

const fn compared(name: &'static str, expect: &'static [&'static str], make: fn() -> Vec<Vec<u8>>) -> RunCause {
    RunCause { against: Some(ONE), ..cause(name, expect, make) }
}

pub static ALL: [RunCause; 18] = [
    cause(ONE, &[], || ranks(1).sessions()),
    compared("clean-ranks-2", &[], || ranks(2).sessions()),
    compared("clean-ranks-4", &[], || ranks(4).sessions()),
    cause("clean-stages-4", &[], || stages().sessions()),
    cause("ranks-straggler", &["straggler"], || {
        let slow: Own =
            |rank, _| if rank == 2 { RankStepPlan::with_phase("backward", 28 * MS) } else { RankStepPlan::usual() };
        UnevenRun { work: slow, ..ranks(4) }.sessions()
    }),
    cause("ranks-straggler-batches", &["straggler"], || {
        let large: Own = |rank, _| match rank {
            1 => RankStepPlan { seeds: 768, ..RankStepPlan::with_phase("backward", 30 * MS) },
            _ => RankStepPlan::usual(),
        };
        UnevenRun { work: large, training_set: Some((512 + 768) * 20), ..ranks(2) }.sessions()
    }),
    RunCause {
        also: &["data-bound"],
        ..cause("ranks-starved", &["starved-rank"], || {
            let starved: Own = |rank, _| {
                if rank == 1 { RankStepPlan::with_phase("data wait", 12 * MS) } else { RankStepPlan::usual() }
            };
            UnevenRun { work: starved, ..ranks(4) }.sessions()
        })
    },
    cause("ranks-not-conserved", &["work-not-conserved"], || {
        UnevenRun { training_set: Some(512 * 20), ..ranks(2) }.sessions()
    }),
    cause("ranks-not-seen", &["work-not-conserved"], || {
        UnevenRun { training_set: Some(4 * 512 * 20), ..ranks(2) }.sessions()
    }),
    cause("ranks-communication", &["communication-bound"], || UnevenRun { reduce_ns: 20 * MS, ..ranks(4) }.sessions()),
    cause("ranks-oversubscribed", &["oversubscribed"], || {
        let place: fn(&mut Place) = |place| (place.threads, place.host_cores) = (2, 2);
        UnevenRun { place, ..ranks(4) }.sessions()
    }),
    cause("ranks-hang-skipped", &["hang"], || hung_ranks(|rank| if rank == 2 { "backward" } else { "wait" }, false)),
    cause("ranks-hang-loader", &["hang"], || hung_ranks(|rank| if rank == 1 { "data wait" } else { "wait" }, true)),
    cause("stages-unbalanced", &["imbalance"], || PipelineRun { blocks: vec![6, 2, 2, 2], ..stages() }.sessions()),
    cause("stages-unbalanced-2", &["imbalance"], || {
        PipelineRun { blocks: vec![3, 5], schedule: "1f1b", ..stages() }.sessions()
    }),
    cause("stages-communication", &["communication-bound"], || {
        PipelineRun { hand_over_ns: 20 * MS, ..stages() }.sessions()
    }),
    compared("ranks-above-ideal", &["above-ideal"], || {
        let quick: Own =
            |_, _| RankStepPlan { phases: vec![("data wait", MS), ("forward", 8 * MS)], ..RankStepPlan::usual() };
        UnevenRun { work: quick, ..ranks(2) }.sessions()
    }),
    compared("ranks-confounded", &["confounded"], || {
        let larger: Own = |_, _| RankStepPlan {
            phases: vec![("data wait", 2 * MS), ("forward", 20 * MS), ("backward", 40 * MS)],
            seeds: 1024,
            edges: None,
            tokens: None,
        };
        UnevenRun { work: larger, training_set: Some(2 * 1024 * 20), ..ranks(2) }.sessions()
    }),
];

type Own = fn(u32, u64) -> RankStepPlan;

/// Ranks that all do the same work, and together the whole set in each epoch.
fn ranks(ranks: u32) -> UnevenRun {
    let reduce_ns = if ranks == 1 { 0 } else { 2 * MS };
    UnevenRun { ranks, reduce_ns, training_set: Some(u64::from(ranks) * 512 * 20), ..UnevenRun::default() }
}

/// Four equal stages.
fn stages() -> PipelineRun {
    PipelineRun { waits_for_step_end: true, ..PipelineRun::default() }
}

/// Four ranks that stop after their last step and are killed four seconds later: what stays open on each, and whether
/// the loader of rank 1 is in the middle of a batch.
fn hung_ranks(left: fn(u32) -> &'static str, has_loader: bool) -> Vec<Vec<u8>> {
    let planned = ranks(4);
    let streams = planned.builders().into_iter().zip(0..).map(|((mut stream, track, t_ns), rank)| {
        let now_ns = t_ns + 4 * SECOND;
        if has_loader {
            let loader = stream.track(TrackRole::Loader, "loader 0");
            stream.span(loader, planned.steps, "sample", t_ns - MS, t_ns);
            if rank == 1 {
                stream.open_span(loader, planned.steps + 2, "sample", t_ns, now_ns);
            }
        }
        stream.open_span(track, planned.steps + 1, left(rank), t_ns + MS, now_ns);
        stream.anchor(now_ns);
        stream.bytes()
    });
    streams.collect()
}
