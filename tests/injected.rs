//! `gnntop train --inject`: what goes wrong on purpose is found, in the steps that were named.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod sessions;

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use sessions::{Ran, Sessions};

/// Trainings run one at a time: what one does to the times of another is no injected cause.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn train(sessions: &Sessions, words: &[&str]) -> Ran {
    let _alone = alone();
    sessions.run([&["train"][..], words].concat())
}

/// Trains a tiny PNA for 140 steps into `a.gnntop` and gives its report.
fn trained(sessions: &Sessions, injections: &[&str]) -> Value {
    let size = ["--graphs", "200", "--batch-size", "32", "--layers", "2", "--hidden", "8", "--validation", "0"];
    let run = ["--epochs", "20", "--workers", "0", "--record", "a.gnntop"];
    let injections = injections.iter().flat_map(|words| ["--inject", words]);
    let words: Vec<&str> = ["pna"].into_iter().chain(size).chain(run).chain(injections).collect();
    let ran = train(sessions, &words);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = sessions.run(["report", "a.gnntop", "--json"]);
    assert_eq!(report.code, Some(0), "{report:?}");
    serde_json::from_str(&report.out).unwrap()
}

fn found<'a>(report: &'a Value, kind: &str) -> Option<&'a Value> {
    report["findings"]["found"].as_array().unwrap().iter().find(|finding| finding["kind"] == kind)
}

fn finding<'a>(report: &'a Value, kind: &str) -> &'a Value {
    found(report, kind).unwrap_or_else(|| panic!("no {kind} in {:#}", report["findings"]["found"]))
}

fn phase_mean_ms(report: &Value, name: &str) -> f64 {
    let phases = report["phases"].as_array().unwrap();
    let phase = phases.iter().find(|phase| phase["name"] == name).unwrap();
    phase["mean_ns"].as_f64().unwrap() / 1e6
}

#[test]
fn injected_stall_is_found_in_its_steps() {
    let sessions = Sessions::new();
    let report = trained(&sessions, &["stall:130ms@every=20,mark=gc"]);
    let stall = finding(&report, "stall");
    assert!(stall["summary"].as_str().unwrap().contains("\"gc\" costs 1"), "{stall:#?}");
    let places = stall["places"].as_array().unwrap().iter();
    let sentences: Vec<&str> = places.map(|place| place["sentence"].as_str().unwrap()).collect();
    // What else slows the machine may hide one of the seven.
    assert!((5..=7).contains(&sentences.len()), "{sentences:?}");
    let befallen = (20..150).step_by(20).map(|step| format!("\"gc\" in step {step} costs")).collect::<Vec<_>>();
    for sentence in sentences {
        assert!(befallen.iter().any(|befallen| sentence.starts_with(befallen)), "{sentence}");
    }
    let text = sessions.run(["report", "a.gnntop"]);
    assert!(text.out.contains("\"gc\" costs"), "{text:?}");
}

#[test]
fn several_injections_have_their_effects() {
    let sessions = Sessions::new();
    let report = trained(
        &sessions,
        &["denormals:50000@every=2", "slow-loader:5ms", "stall:3ms@in=optimizer,mark=none", "leak:64KiB"],
    );
    let counters = report["counters"].as_array().unwrap();
    let denormals = counters.iter().find(|counter| counter["name"] == "denormals").unwrap();
    assert_eq!(denormals["mean"].as_f64(), Some(25_000.0), "{denormals:#?}");
    finding(&report, "denormals");
    // What sleeps takes at least so long.
    assert!(phase_mean_ms(&report, "assemble") >= 5.0 && phase_mean_ms(&report, "optimizer") >= 3.0);
    assert!(report["session"]["command"].as_str().unwrap().contains("--inject leak:64KiB"));
}

/// Trains a small GraphSAGE on two ranks and gives the report of the run.
fn trained_on_two_ranks(sessions: &Sessions, injection: &str) -> Value {
    let size = ["--nodes", "600", "--edges", "6000", "--batch-size", "16", "--fanouts", "4,4", "--hidden", "8"];
    let run = ["--ranks", "2", "--epochs", "3", "--record", "a.gnntop", "--inject", injection];
    let ran = train(sessions, &[&["sage"][..], &size, &run].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains(&format!("injected: {injection}")), "{ran:?}");
    let report = sessions.run(["report", "a.gnntop", "--json"]);
    assert_eq!(report.code, Some(0), "{report:?}");
    serde_json::from_str(&report.out).unwrap()
}

#[test]
fn one_rank_of_two_is_made_slow_and_is_the_straggler() {
    let sessions = Sessions::new();
    let report = trained_on_two_ranks(&sessions, "stall:60ms@rank=1,in=backward");
    let straggler = finding(&report, "straggler")["summary"].as_str().unwrap();
    assert!(straggler.starts_with("rank 1 is a straggler") && straggler.contains("longer in backward"), "{straggler}");
    assert_eq!(report["run"]["ranks"][1]["slowest_share"], 1.0);
}

#[test]
fn one_rank_of_two_is_starved_by_its_loader() {
    let sessions = Sessions::new();
    let report = trained_on_two_ranks(&sessions, "slow-loader:80ms@rank=1");
    let starved = finding(&report, "starved-rank")["summary"].as_str().unwrap();
    assert!(starved.starts_with("the loader starves rank 1: it waits"), "{starved}");
}

#[test]
fn skipped_collective_or_missing_rank_ends_training_with_one_line() {
    let sessions = Sessions::new();
    let size = ["--nodes", "600", "--edges", "6000", "--batch-size", "16", "--fanouts", "4,4", "--hidden", "8"];
    let train = |injection: &str, recording: &str| {
        let run = ["sage", "--ranks", "2", "--record", recording, "--inject", injection];
        let ran = train(&sessions, &[&run[..], &size].concat());
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let told: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("gnntop: ")).collect();
        assert_eq!(told.len(), 1, "{ran:?}");
        told[0].to_owned()
    };
    let said = train("skip-all-reduce@at=8,rank=1", "a.gnntop");
    let words = "the ranks are out of step: rank 0 calls barrier, rank 1 broadcast of 1 values";
    assert_eq!(said.matches(words).count(), 1, "told once: {said}");
    let report = sessions.run(["report", "a.gnntop", "--json"]);
    assert!(!report.err.contains("damaged"), "{report:?}");
    let report: Value = serde_json::from_str(&report.out).unwrap();
    for rank in report["run"]["ranks"].as_array().unwrap() {
        assert!(rank["steps"].as_u64() >= Some(7) && rank["state"] == "ended", "what was published is whole: {rank:#}");
    }
    let said = train("stall:1ms@rank=2", "b.gnntop");
    assert!(
        said.contains("--inject stall:1ms@rank=2 names a rank that does not exist: there are ranks 0 to 1"),
        "{said}"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_rank_out_of_memory_is_named_in_one_line_and_what_was_published_is_whole() {
    use sessions::{limit_memory, spawn, wait_until};
    let (sessions, _alone) = (Sessions::new(), alone());
    let size = ["--nodes", "600", "--edges", "6000", "--batch-size", "16", "--fanouts", "4,4", "--hidden", "8"];
    let leak = ["--inject", "leak:64MiB@rank=1,from=40,every=4"];
    let run = ["train", "sage", "--ranks", "2", "--epochs", "1000000"];
    let child = spawn(&mut sessions.gnntop([&run[..], &leak, &size].concat()));
    let ranks = || {
        let report = sessions.run(["report", "sage", "--json"]);
        let report: Option<Value> = serde_json::from_str(&report.out).ok();
        report.and_then(|report| report["run"]["ranks"].as_array().cloned()).unwrap_or_default()
    };
    let steps = || ranks().iter().filter_map(|rank| rank["steps"].as_u64()).collect::<Vec<u64>>();
    wait_until(|| steps().len() == 2 && steps().iter().all(|steps| *steps >= 20));
    let before = steps();
    limit_memory(child.id(), 512 << 20);
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let told: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("gnntop: ")).collect();
    assert_eq!(told.len(), 1, "{ran:?}");
    assert!(told[0].starts_with("gnntop: rank 1 is out of memory: the system refuses "), "{ran:?}");
    let report = sessions.run(["report", "sage"]);
    assert!(report.code == Some(0) && !report.err.contains("damaged"), "{report:?}");
    assert!(ranks().iter().zip(before).all(|(rank, before)| rank["steps"].as_u64() >= Some(before)), "{report:?}");
}

/// The commands of docs/findings.md that make something go wrong, with the finding that stands beside each.
fn documented() -> Vec<(Vec<String>, String)> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/findings.md")).unwrap();
    let lines = page.lines().filter(|line| line.starts_with("gnntop run ") && line.contains("--inject"));
    let parsed = lines.map(|line| {
        let (command, comment) = line.split_once('#').unwrap();
        let words = command.split_whitespace().skip(2).map(str::to_owned).collect();
        (words, comment.split(':').next().unwrap().trim().to_owned())
    });
    parsed.collect()
}

/// The report of a documented command, on less work than there: what is injected grows and shrinks with it.
fn documented_report(words: &[String]) -> Value {
    let sessions = Sessions::new();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let size: &[&str] = match words[0] {
        "sage" => {
            &["--nodes", "2000", "--edges", "40000", "--batch-size", "128", "--fanouts", "10,10", "--hidden", "64"]
        }
        _ => &["--graphs", "2000", "--batch-size", "64", "--layers", "4", "--hidden", "32", "--validation", "0"],
    };
    let run = ["--epochs", "100", "--steps", "100", "--record", "a.gnntop"];
    let ran = train(&sessions, &[&words[..], size, &run].concat());
    assert_eq!(ran.code, Some(0), "{words:?}: {ran:?}");
    let report = sessions.run(["report", "a.gnntop", "--json"]);
    serde_json::from_str(&report.out).unwrap()
}

#[test]
fn every_documented_injection_has_its_documented_effect() {
    let documented = documented();
    assert_eq!(documented.len(), 7, "{documented:?}");
    // Those that hang never end: `hangs.rs` looks at them while they do.
    for (words, kind) in documented.iter().filter(|(_, kind)| kind != "hang") {
        // On a machine with more work than cores every step may be as slow as those that were made slow.
        let mut reports = std::iter::repeat_with(|| documented_report(words)).take(3);
        assert!(reports.any(|report| found(&report, kind).is_some()), "{words:?}: three times no {kind}");
    }
}

#[test]
fn unknown_injection_is_refused_with_known_ones() {
    let sessions = Sessions::new();
    let ran = sessions.run(["train", "pna", "--inject", "stal:1ms"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("there is no cause \"stal\"; use one of stall, faults"), "{ran:?}");
    let help = sessions.run(["train", "pna", "--help"]);
    assert!(help.out.contains("stall:130ms@every=40") && help.out.contains("slow-loader:6x"), "{help:?}");
}
