//! Findings over ranks on runs with known causes: the cause is found with its rank and phase, and is gone without it.

use gnntop_wire::Place;

use super::*;
use crate::findings::{Finding, FindingKind, Number};
use crate::ranks::Run;
use crate::ranks::fixture::run;
use gnntop_fixtures::pipeline::PipelineRun;
use gnntop_fixtures::uneven::{RankStepPlan, UnevenRun};
use gnntop_fixtures::{MS, START_NS};

fn findings(run: &Run) -> Findings {
    rank_findings(&run.ranks())
}

fn rank_findings_of(planned: &UnevenRun) -> Findings {
    findings(&run(&planned.sessions()))
}

/// The only finding.
fn only(findings: Findings) -> Finding {
    assert_eq!(findings.found.len(), 1, "{:#?}", findings.found);
    findings.found.into_iter().next().unwrap()
}

#[test]
fn even_run_and_pipeline_have_no_findings() {
    assert_eq!(rank_findings_of(&UnevenRun::default()).found, []);
    assert_eq!(findings(&run(&PipelineRun::default().sessions())).found, []);
    assert_eq!(findings(&Run::default()), Findings::default());
}

#[test]
fn straggler_names_phase_and_cost() {
    let slow: fn(u32, u64) -> RankStepPlan =
        |rank, _| if rank == 2 { RankStepPlan::with_phase("backward", 30 * MS) } else { RankStepPlan::usual() };
    let finding = only(rank_findings_of(&UnevenRun { work: slow, ..UnevenRun::default() }));
    assert_eq!((finding.kind, finding.confidence.as_str()), (FindingKind::Straggler, "certain"));
    assert!(finding.summary.starts_with("rank 2 is a straggler: its own work takes 1.3"), "{}", finding.summary);
    assert_eq!((finding.fact(Number::Rank), finding.fact(Number::OftenSlow)), (Some(2.0), Some(1.0)));
    assert!(finding.fact_of("backward", Number::More) > Some(9e6) && finding.share.unwrap() > 0.2, "{finding:#?}");
    assert!(finding.evidence.iter().any(|line| line.contains("its batches are as large")), "{finding:#?}");
    assert!(finding.fact(Number::OthersWait) > Some(9e6), "{finding:#?}");
    assert!(finding.advice[0].starts_with("see what rank 2 does in backward"), "{finding:#?}");
}

#[test]
fn straggler_whose_whole_step_is_slow_is_asked_about_its_machine() {
    let slow: fn(u32, u64) -> RankStepPlan = |rank, _| {
        let mut step = RankStepPlan::usual();
        step.phases.iter_mut().for_each(|phase| phase.1 = if rank == 2 { phase.1 * 3 / 2 } else { phase.1 });
        step
    };
    let finding = only(rank_findings_of(&UnevenRun { work: slow, ..UnevenRun::default() }));
    assert_eq!(
        (finding.kind, finding.advice[0].as_str()),
        (FindingKind::Straggler, "see what else runs on CPU on bench")
    );
}

#[test]
fn rank_with_more_work_is_not_slow() {
    let own: fn(u32, u64) -> RankStepPlan = |rank, _| RankStepPlan {
        seeds: if rank == 0 { 700 } else { 449 },
        ..RankStepPlan::with_phase("backward", if rank == 0 { 28 * MS } else { 18 * MS })
    };
    let finding = only(rank_findings_of(&UnevenRun { work: own, ..UnevenRun::default() }));
    assert_eq!(finding.kind, FindingKind::Straggler);
    assert_eq!(finding.fact(Number::BatchRatio), Some(700.0 / 449.0));
}

#[test]
fn rank_with_as_many_seeds_and_more_edges_has_larger_batches() {
    let dense: fn(u32, u64) -> RankStepPlan = |rank, _| RankStepPlan {
        edges: Some(if rank == 0 { 9000 } else { 6000 }),
        ..RankStepPlan::with_phase("backward", if rank == 0 { 30 * MS } else { 20 * MS })
    };
    let finding = only(rank_findings_of(&UnevenRun { work: dense, ..UnevenRun::default() }));
    assert_eq!((finding.kind, finding.fact(Number::BatchRatio)), (FindingKind::Straggler, Some(1.5)));
    assert!(
        finding.evidence.iter().any(|line| line == "its batches have 1.50 x the edges of other ranks'"),
        "{finding:#?}"
    );
}

#[test]
fn ranks_that_are_slow_in_turns_are_no_stragglers() {
    let turns: fn(u32, u64) -> RankStepPlan = |rank, step| {
        if u64::from(rank) == step % 4 { RankStepPlan::with_phase("backward", 30 * MS) } else { RankStepPlan::usual() }
    };
    assert_eq!(rank_findings_of(&UnevenRun { work: turns, ..UnevenRun::default() }).found, []);
}

#[test]
fn a_rank_that_its_loader_starves_is_not_called_a_straggler() {
    let starved: fn(u32, u64) -> RankStepPlan =
        |rank, _| if rank == 1 { RankStepPlan::with_phase("data wait", 12 * MS) } else { RankStepPlan::usual() };
    let finding = only(rank_findings_of(&UnevenRun { work: starved, ..UnevenRun::default() }));
    assert_eq!(finding.kind, FindingKind::StarvedRank);
    assert!(finding.summary.starts_with("the loader starves rank 1: it waits 1"), "{}", finding.summary);
}

#[test]
fn a_rank_that_makes_its_batches_slowly_is_starved_too() {
    let samples: fn(u32, u64) -> RankStepPlan = |rank, _| {
        let ns = if rank == 1 { 8 * MS } else { 2 * MS };
        let mut step = RankStepPlan::usual();
        step.phases.splice(1..1, [("sample", ns), ("gather", ns - MS)]);
        step
    };
    let finding = only(rank_findings_of(&UnevenRun { work: samples, ..UnevenRun::default() }));
    assert_eq!(finding.kind, FindingKind::StarvedRank);
    assert!(finding.summary.starts_with("rank 1 takes 1") && finding.summary.contains(" longer in "), "{finding:#?}");
    assert!(
        finding.fact_of("sample", Number::More).or(finding.fact_of("gather", Number::More)) > Some(5e6),
        "{finding:#?}"
    );
}

#[test]
fn duplicated_data_is_found_by_counting() {
    let finding = only(rank_findings_of(&UnevenRun { training_set: Some(512 * 20), ..UnevenRun::default() }));
    assert_eq!((finding.kind, finding.share), (FindingKind::WorkNotConserved, Some(0.75)));
    assert!(finding.summary.starts_with("each of 4 copies goes through the whole training set"), "{}", finding.summary);
    let twice = only(rank_findings_of(&UnevenRun { training_set: Some(2 * 512 * 20), ..UnevenRun::default() }));
    assert!(twice.summary.contains("an epoch covers 2.00 x the training set"), "{}", twice.summary);
    let half = only(rank_findings_of(&UnevenRun { training_set: Some(8 * 512 * 20), ..UnevenRun::default() }));
    assert!(half.summary.contains("0.50 x the training set: the rest is never used"), "{}", half.summary);
    assert_eq!(half.share, None);
    let cut_short = UnevenRun { steps: 10, ..UnevenRun::default() };
    assert_eq!(rank_findings_of(&cut_short).found, [], "a run that ends in its first epoch has left nothing out");
    let padded = UnevenRun { training_set: Some(4 * 512 * 20 - 1500), ..UnevenRun::default() };
    assert_eq!(rank_findings_of(&padded).found, [], "a batch of padding on each rank is no more work");
}

#[test]
fn ranks_with_their_own_part_of_the_data_conserve_work() {
    let judged = |data: [Option<f64>; 2]| {
        let planned = UnevenRun { ranks: 2, training_set: Some(512 * 20), ..UnevenRun::default() };
        let streams = planned.builders().into_iter().zip(data).map(|((mut stream, track, t_ns), data)| {
            data.into_iter().for_each(|data| stream.valued_mark(track, "training data", START_NS, data));
            stream.anchor(t_ns);
            stream.end(t_ns);
            stream.bytes()
        });
        let found = findings(&run(&streams.collect::<Vec<_>>())).found;
        found.first().map(|it| (it.kind, it.confidence.as_str()))
    };
    let certain = Some((FindingKind::WorkNotConserved, "certain"));
    assert_eq!(judged([Some(7.0), Some(7.0)]), certain);
    assert_eq!(judged([Some(7.0), Some(8.0)]), None);
    assert_eq!(judged([None, None]), certain, "a program that says how large the whole set is");
}

#[test]
fn uncountable_work_is_not_enough() {
    let reason = |planned: &UnevenRun| {
        let found = rank_findings_of(planned);
        found.not_enough.into_iter().find(|not| not.kind == FindingKind::WorkNotConserved).map(|not| not.reason)
    };
    let unsaid = UnevenRun { training_set: None, ..UnevenRun::default() };
    assert_eq!(reason(&unsaid).as_deref(), Some("no rank reports the size of the training set"));
    let short = UnevenRun { skips: Some((0, 15)), ..UnevenRun::default() };
    assert_eq!(reason(&short).as_deref(), Some("no epoch is complete on all ranks yet"));
}

#[test]
fn communication_is_wait_of_last_rank() {
    let finding = only(rank_findings_of(&UnevenRun { reduce_ns: 20 * MS, ..UnevenRun::default() }));
    assert_eq!(finding.kind, FindingKind::CommunicationBound);
    assert_eq!(finding.fact(Number::Usual), Some(20e6));
    let slow_hands = PipelineRun { hand_over_ns: 20 * MS, ..PipelineRun::default() };
    let finding = only(findings(&run(&slow_hands.sessions())));
    assert_eq!((finding.fact(Number::Step), finding.fact(Number::Needed)), (Some(168e6), Some(48e6)));
    assert!(finding.share.unwrap() > 0.7);
}

#[test]
fn more_threads_than_cores_are_oversubscribed() {
    let place: fn(&mut Place) = |place| (place.threads, place.host_cores) = (2, 2);
    let finding = only(rank_findings_of(&UnevenRun { place, ..UnevenRun::default() }));
    assert_eq!((finding.kind, finding.share), (FindingKind::Oversubscribed, None));
    assert_eq!(finding.summary, "4 ranks of 2 threads on bench share 2 cores: oversubscribed");
}

#[test]
fn unequal_stages_6222_suggest_better_split() {
    let unequal = PipelineRun { blocks: vec![6, 2, 2, 2], steps: 20, ..PipelineRun::default() };
    let finding = only(findings(&run(&unequal.sessions())));
    assert_eq!((finding.kind, finding.confidence.as_str()), (FindingKind::Imbalance, "certain"));
    assert!(finding.summary.starts_with("stage 0 takes 3.0 x as long as the other stages"), "{}", finding.summary);
    assert_eq!((finding.fact(Number::Step), finding.fact(Number::Balanced)), (Some(108e6), Some(72e6)));
    assert_eq!(finding.fact_of("stage 0", Number::MicroBatch), Some(18e6));
    assert!(finding.evidence.iter().any(|line| line == "12 blocks are split 6/2/2/2"), "{finding:#?}");
    assert!(finding.advice[0].starts_with("split them 3/3/3/3: 1.50 x as fast"), "{finding:#?}");
    let untold = PipelineRun { reports_blocks: false, ..unequal };
    assert_eq!(only(findings(&run(&untold.sessions()))).confidence.as_str(), "likely");
}

#[test]
fn hang_is_the_first_finding() {
    let planned = UnevenRun::default();
    let streams = planned.builders().into_iter().zip(0..).map(|((mut stream, track, t_ns), rank)| {
        stream.open_span(track, 61, if rank == 3 { "forward" } else { "wait" }, t_ns, t_ns + 5000 * MS);
        stream.anchor(t_ns + 5000 * MS);
        stream.bytes()
    });
    let found = findings(&run(&streams.collect::<Vec<_>>())).found;
    assert_eq!(found[0].kind, FindingKind::Hang);
    assert!(found[0].summary.contains("rank 3 has been in forward for 5.00 s"), "{}", found[0].summary);
    assert_eq!(found[0].fact_of("rank 3", Number::Lasting), Some(5e9));
    assert_eq!(found[0].evidence.len(), 3);
}
