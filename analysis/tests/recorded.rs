//! What findings say of the recordings that ship (`recordings/demo`, `recordings/labelled`): nothing that contradicts what made them, or
//! another finding.

use std::path::Path;

use gnntop_analysis::findings::{Finding, FindingKind, Judgement, Number, judge_run};

use crate::labelled::score::read_run;

/// The judgement of a recording, as a screen shows it, with the steps of one rank.
fn judged(name: &str, rank: u32) -> Judgement {
    let mut run = read_run(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../recordings").join(name));
    run.select(rank);
    judge_run(&run)
}

#[track_caller]
fn found(judgement: &Judgement, kind: FindingKind) -> &Finding {
    let found = &judgement.findings.found;
    found.iter().find(|finding| finding.kind == kind).unwrap_or_else(|| panic!("no {kind:?} in {found:#?}"))
}

/// Its rank 1 sleeps in `augment`, after it has its batch and before its forward pass: inside the step, outside every phase.
#[test]
fn straggler_and_gap_say_the_same_place() {
    let judgement = judged("demo/straggler.gnntop", 1);
    let straggler = found(&judgement, FindingKind::Straggler);
    assert!(straggler.summary.ends_with(" ms longer outside every phase"), "{straggler:#?}");
    assert!(
        straggler.advice[0].starts_with("see what rank 1 does in its steps, outside every phase"),
        "{straggler:#?}"
    );
    let gap = found(&judgement, FindingKind::Gap);
    assert!(gap.advice[0].contains("the rest of the step"), "{gap:#?}");
    // That span has a backward pass and an all-reduce in it, and nothing else.
    assert!(!gap.summary.contains("backward and all-reduce"), "{gap:#?}");
}

/// Every third step computes with denormal numbers; another program has the machine's other core.
#[test]
fn denormals_and_contention_share_the_time_that_steps_take_longer() {
    let judgement = judged("labelled/denormals.gnntop", 0);
    let share = |kind| found(&judgement, kind).share.unwrap();
    let (denormals, contention) = (share(FindingKind::Denormals), share(FindingKind::Contention));
    assert!(denormals > 0.2 && denormals + contention < 0.3, "{denormals} {contention}");
    let said = judgement.to_string();
    assert!(said.starts_with("denormal numbers (23 %)") && !said.contains("in all phases"), "{said}");
}

/// What takes memory grows by the figures of the memory view, which looks at the same readings.
#[test]
fn growth_of_memory_is_the_same_in_finding_and_view() {
    let run = read_run(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../recordings/demo/leak.gnntop"));
    let judgement = judge_run(&run);
    let leak = found(&judgement, FindingKind::MemoryGrowth);
    let slope = run.store().memory_growth().unwrap().bytes_per_step.slope;
    assert_eq!(leak.fact(Number::BytesPerStep), Some(slope));
    assert_eq!(leak.fact(Number::Left), run.store().free_memory_lasts_ns(slope));
    assert!(leak.summary.contains("in the first eighth of the time to"), "{leak:#?}");
}

/// Their optimizer takes 4 ms a step, and 7.5 ms from some step on, while no other program uses the machine.
#[test]
fn slow_down_that_lasts_is_named_beside_a_leak_and_collections() {
    for (name, since) in [("demo/leak.gnntop", "(step 642)"), ("demo/gc.gnntop", "(step 652)")] {
        let judgement = judged(name, 0);
        let slower = found(&judgement, FindingKind::SlowerSince);
        assert!(
            slower.summary.contains(since) && slower.evidence[0].starts_with("most of it in optimizer"),
            "{slower:#?}"
        );
        assert!(slower.fact(Number::Slower).unwrap() > 0.4, "{slower:#?}");
    }
}

/// A spike is timed without the validation in its step: its period, which other places show, is named as well.
#[test]
fn times_of_a_step_and_of_its_period_are_told_apart() {
    let judgement = judged("labelled/gpu-lightning.gnntop", 0);
    let spikes = found(&judgement, FindingKind::Spike);
    assert!(spikes.summary.contains("step 158 took 271 ms of its period of 288 ms"), "{spikes:#?}");
    let waits = found(&judgement, FindingKind::HostSync);
    assert!(waits.evidence[0].starts_with("1,244 longer ones, "), "of 3.0 a step: {waits:#?}");
    assert!(waits.evidence[1].contains("the most that they can cost"), "{waits:#?}");
    assert_eq!(judgement.findings.without_first, 3);
}

/// Each third has its usual step to look at, and what bounds a run is listed with what to try, though it is no usual phase.
#[test]
fn places_and_advice_say_what_the_summary_does_not() {
    let judgement = judged("labelled/drift.gnntop", 0);
    let sentences: Vec<&str> =
        found(&judgement, FindingKind::Drift).places.iter().map(|place| place.sentence.as_str()).collect();
    assert!(sentences[0].ends_with(" ms, as is usual in the first third"), "{sentences:?}");
    assert!(sentences[1].ends_with(" ms, as is usual in the last third"), "{sentences:?}");
    let bound = found(&judgement, FindingKind::Bound);
    assert!(bound.evidence[0].ends_with("it waits, and where is not recorded"), "{bound:#?}");
    let judgement = judged("demo/gc.gnntop", 0);
    assert!(found(&judgement, FindingKind::Stall).advice[0].starts_with("collect garbage between epochs"));
    let judgement = judged("demo/loader.gnntop", 0);
    let waits = found(&judgement, FindingKind::DataBound);
    assert!(waits.advice[0].ends_with("; gnntop run --stacks 20 names the lines"), "{waits:#?}");
    assert!(!waits.evidence.iter().any(|line| line.contains("--stacks")), "it is no evidence: {waits:#?}");
}

/// Their programs have no step in their last 10.3 s and 9.25 s, and end by themselves.
#[test]
fn time_after_the_last_step_is_said_and_no_hang() {
    for (name, time) in [("labelled/gpu-reads.gnntop", "10.3 s"), ("corpus/small-files.gnntop", "9.25 s")] {
        let judgement = judged(name, 0);
        let second = judgement.parts().swap_remove(1);
        assert_eq!((second.text, second.findings), (format!("after the last step: {time}"), 0), "{judgement}");
        assert!(!judgement.findings.found.iter().any(|finding| finding.kind == FindingKind::Hang));
    }
    assert_eq!(judged("labelled/gap.gnntop", 0).after_last_ns, None, "6 ms are not worth a word");
    assert_eq!(judged("demo/hang.gnntop", 0).after_last_ns, None, "that is a hang");
}

/// What the memory view shows of the same readings is no reason for knowing nothing.
#[test]
fn growth_of_memory_is_unknown_only_where_the_view_shows_none() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recordings");
    for name in ["demo/hang", "labelled/gpu-reads", "labelled/contention", "corpus/small-files", "corpus/locked"] {
        let run = read_run(&folder.join(format!("{name}.gnntop")));
        let judgement = judge_run(&run);
        let unknown = judgement.findings.not_enough.iter().find(|one| one.kind == FindingKind::MemoryGrowth);
        let is_steady = run.store().memory_growth().is_some_and(|growth| !growth.bytes_per_step.grows());
        assert_eq!(unknown.is_none(), is_steady, "{name}: {unknown:?}");
        assert!(unknown.is_none_or(|one| one.reason.starts_with("too short for a trend: ")), "{name}: {unknown:?}");
    }
}

/// Other programs have two thirds of the CPU, and something waits for one all the time; how long this one waits is not recorded.
#[test]
fn contention_of_unmeasured_cost_leads_and_advises_for_a_run_that_is_over() {
    let judgement = judged("labelled/contention.gnntop", 0);
    let first = &judgement.findings.found[0];
    assert_eq!((first.kind, first.share), (FindingKind::Contention, None), "{first:#?}");
    assert!(first.advice[0].starts_with("run it again while nothing else"), "{first:#?}");
    assert!(judgement.to_string().starts_with("CPU contention; forward-bound (86 %)"), "{judgement}");
    let bound = found(&judgement, FindingKind::Bound);
    assert!(bound.advice[0].starts_with("see to the CPU contention first"), "{bound:#?}");
}

/// Its collections are its phase "gc", the stalls at their marks and the spikes of their steps: one fault.
#[test]
fn one_fault_is_named_once_with_one_advice() {
    let judgement = judged("demo/gc.gnntop", 0);
    let said = judgement.to_string();
    assert!(said.starts_with("gc-bound (58 %); slower than before") && said.matches("58 %").count() == 1, "{said}");
    assert!(!judgement.findings.found.iter().any(|finding| finding.kind == FindingKind::Bound), "the stall says it");
    assert_eq!(found(&judgement, FindingKind::Spike).advice, ["see to stalls at events first"]);
}

/// The run lasts 40 s, and is over.
#[test]
fn evidence_names_no_signal_by_its_id_and_no_time_that_was_not() {
    let judgement = judged("demo/leak.gnntop", 0);
    let slower = &found(&judgement, FindingKind::SlowerSince).evidence;
    let memory = slower.iter().find(|line| line.starts_with("the process's resident memory is ")).unwrap();
    assert!(!memory.contains("minute") && memory.contains(" s after that than in the "), "{memory}");
    let left = found(&judgement, FindingKind::MemoryGrowth).evidence.iter().find(|line| line.contains("another"));
    assert!(left.unwrap().starts_with("at that rate the machine's free memory would have lasted"), "{left:?}");
}
