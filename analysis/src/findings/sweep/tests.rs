//! Runs compared for their scaling.

use super::*;
use crate::findings::Number;
use crate::findings::finding::FindingKind;
use crate::ranks::fixture::run;
use gnntop_fixtures::pipeline::PipelineRun;
use gnntop_fixtures::uneven::{RankStepPlan, UnevenRun};
use gnntop_fixtures::{MS, TrainingRun};

fn configuration(name: &str, stages: usize, micro_batches: Option<usize>, step_s: f64) -> Configuration {
    let run = run(&[TrainingRun::default().bytes()]);
    let mut found = Configuration::from_run(name, &run).unwrap();
    (found.stages, found.micro_batches, found.step_ns, found.work) = (stages, micro_batches, step_s * 1e9, None);
    found.factors.insert("ranks", stages.to_string());
    found
}

#[test]
fn speed_up_above_ideal_reports_missing_control() {
    let found = scaling(&configuration("seq", 1, None, 37.44), &configuration("two", 2, Some(5), 19.02)).unwrap();
    assert!((found.speed_up.unwrap() - 1.968).abs() < 0.001 && (found.ideal - 5.0 / 3.0).abs() < 1e-9);
    let above = found.findings.iter().find(|finding| finding.kind == FindingKind::AboveIdeal).unwrap();
    let said = "a speed-up of 1.97 is more than the 1.67 that 2 stages with 5 micro-batches can give";
    assert!(above.summary.starts_with(said), "{}", above.summary);
    assert_eq!(
        (above.fact_of("seq", Number::Step), above.fact_of("two", Number::Step)),
        (Some(37.44e9), Some(19.02e9))
    );
    assert!(above.advice[0].starts_with("the control is missing"), "{above:#?}");
    let control = scaling(&configuration("seq", 1, Some(5), 31.0), &configuration("two", 2, Some(5), 19.02)).unwrap();
    assert!(control.findings.iter().all(|finding| finding.kind != FindingKind::AboveIdeal), "{control:#?}");
}

#[test]
fn timing_finds_slow_stage_with_equal_work() {
    // 6/2/2/2 blocks of 1 s a batch: W = 12 s, a micro-batch of five takes stage 0 1.2 s and a step 7.2 s.
    let found = scaling(&configuration("seq", 1, None, 12.0), &configuration("four", 4, Some(5), 7.2)).unwrap();
    let slow = found.findings.iter().find(|finding| finding.kind == FindingKind::Imbalance).unwrap();
    assert!(
        slow.summary.starts_with("the slowest stage takes about 2.0 x its even share: 4 stages"),
        "{}",
        slow.summary
    );
    assert!((slow.share.unwrap() - (1.0 - 4.8 / 7.2)).abs() < 1e-9);
    assert_eq!(slow.fact(Number::Step), Some(7.2e9));
    let even = scaling(&configuration("seq", 1, None, 12.0), &configuration("four", 4, Some(5), 4.8)).unwrap();
    assert!(even.findings.is_empty(), "{even:#?}");
}

#[test]
fn confounded_names_two_changed_factors() {
    let workers = |n: usize, mut of: Configuration| {
        of.factors.insert("loader threads", n.to_string());
        of
    };
    let one = |n| workers(n, configuration("one", 1, None, 4.0));
    let two = |n| workers(n, configuration("two", 2, None, 2.0));
    let finding = confounded(&[one(8), two(1)]).unwrap();
    assert!(finding.summary.starts_with("loader threads and ranks were changed at once"), "{}", finding.summary);
    assert_eq!(finding.evidence[1], "two: loader threads 1, ranks 2");
    assert_eq!(confounded(&[one(8), two(8)]), None);
    assert_eq!(confounded(&[one(8), two(1), two(8), one(1)]), None, "the missing runs are there");
}

#[test]
fn scaling_counts_work_over_all_copies() {
    let of = |name, planned: &UnevenRun| Configuration::from_run(name, &run(&planned.sessions())).unwrap();
    let one = of("one", &UnevenRun { ranks: 1, ..UnevenRun::default() });
    let four = of("four", &UnevenRun::default());
    let found = scaling(&one, &four).unwrap();
    assert!((3.9..4.1).contains(&found.speed_up.unwrap()) && found.ideal == 4.0, "{found:#?}");
    assert_eq!(scaling(&one, &one), None);
    let slow: fn(u32, u64) -> RankStepPlan = |_, _| RankStepPlan::with_phase("forward", 50 * MS);
    let slower = of("slower", &UnevenRun { work: slow, ..UnevenRun::default() });
    assert!(scaling(&one, &slower).unwrap().speed_up < Some(2.5));
}

#[test]
fn configuration_has_stages_and_micro_batches() {
    let found = Configuration::from_run("pipe", &run(&PipelineRun::default().sessions())).unwrap();
    assert_eq!((found.stages, found.copies, found.micro_batches), (4, 1, Some(5)));
    assert_eq!(found.factors.get("schedule").map(String::as_str), Some("GPipe"));
}

fn split(blocks: &[usize], of: Configuration) -> Configuration {
    Configuration { split: Some(blocks.to_vec()), ..of }
}

#[test]
fn scaling_is_independent_of_order() {
    // As published: two stages of 19.02 s, four of 28.12 s, five micro-batches each.
    let (two, four) = (configuration("two", 2, Some(5), 19.02), configuration("four", 4, Some(5), 28.12));
    for (first, second) in [(&two, &four), (&four, &two)] {
        let found = scaling(first, second).unwrap();
        let slow = found.findings.iter().find(|finding| finding.kind == FindingKind::Imbalance).unwrap();
        assert!(
            slow.summary.contains("4 stages with 5 micro-batches are 0.68 x as fast as 2 stages"),
            "{}",
            slow.summary
        );
        assert!(slow.evidence.contains(&"if the stages of two are even".to_owned()), "{slow:#?}");
        assert!(!found.findings.iter().any(|finding| finding.kind == FindingKind::AboveIdeal), "{found:#?}");
    }
    let even = scaling(&two, &configuration("four", 4, Some(5), 12.68)).unwrap();
    assert!(even.findings.is_empty(), "{even:#?}");
}

#[test]
fn known_split_limits_speed_up() {
    let one = split(&[8], configuration("seq", 1, None, 37.44));
    let four = split(&[6, 2, 2, 2], configuration("four", 4, Some(5), 28.12));
    let found = scaling(&one, &four).unwrap();
    assert!((found.as_split.unwrap() - 8.0 / 7.2).abs() < 1e-9 && (found.ideal - 2.5).abs() < 1e-9);
    let slow = found.findings.iter().find(|finding| finding.kind == FindingKind::Imbalance).unwrap();
    assert_eq!(slow.summary, "stage 0 has 6 of 12 blocks, the others wait for it: 6/2/2/2 in four");
    assert!(found.notes.contains(&"seq computes 8 blocks and four 12: they are not the same model".to_owned()));
    let even = scaling(&one, &split(&[2; 4], configuration("even", 4, Some(5), 28.12))).unwrap();
    assert!(even.findings.iter().all(|finding| finding.confidence != crate::findings::Confidence::High), "{even:#?}");
}

#[test]
fn scaling_names_control_run_or_its_absence() {
    let two = configuration("two", 2, Some(5), 19.0);
    let notes = |first: &Configuration| scaling(first, &two).unwrap().notes;
    assert_eq!(
        notes(&configuration("seq", 1, Some(5), 31.0)),
        ["seq is the control: one stage with the same 5 micro-batches"]
    );
    assert!(
        notes(&configuration("seq", 1, None, 31.0))[0].starts_with("the control is missing: one stage with the same 5")
    );
    let untold = scaling(&configuration("seq", 1, None, 31.0), &configuration("two", 2, None, 19.0)).unwrap();
    assert!(untold.notes[0].starts_with("the micro-batches of two are not recorded"), "{untold:#?}");
}

#[test]
fn fewer_micro_batches_cannot_be_faster_by_the_schedule() {
    let found = scaling(&configuration("ten", 2, Some(10), 25.69), &configuration("five", 2, Some(5), 19.02)).unwrap();
    assert!(
        found.ideal < 1.0 && found.findings.iter().any(|finding| finding.kind == FindingKind::AboveIdeal),
        "{found:#?}"
    );
}

#[test]
fn unknown_batch_sizes_give_no_speed_up() {
    let copies = Configuration { copies: 2, ..configuration("copies", 2, Some(5), 19.0) };
    let found = scaling(&configuration("seq", 1, None, 37.0), &copies).unwrap();
    assert_eq!(found.speed_up, None);
    assert!(found.notes.iter().any(|note| note.starts_with("the speed-up is unknown")), "{found:#?}");
}
