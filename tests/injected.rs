//! `gnntop train --inject`: what goes wrong on purpose is found, in the steps that were named.
#![cfg(feature = "workloads")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod sessions;

use serde_json::Value;
use sessions::Sessions;

/// Trains a tiny PNA for 140 steps into `a.gnntop` and gives its report.
fn trained(sessions: &Sessions, injections: &[&str]) -> Value {
    let size = ["--graphs", "200", "--batch-size", "32", "--layers", "2", "--hidden", "8", "--validation", "0"];
    let run = ["--epochs", "20", "--workers", "0", "--record", "a.gnntop"];
    let injections = injections.iter().flat_map(|words| ["--inject", words]);
    let ran = sessions.run(["train", "pna"].into_iter().chain(size).chain(run).chain(injections));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = sessions.run(["report", "a.gnntop", "--json"]);
    assert_eq!(report.code, Some(0), "{report:?}");
    serde_json::from_str(&report.out).unwrap()
}

fn finding<'a>(report: &'a Value, kind: &str) -> &'a Value {
    let found = report["findings"]["found"].as_array().unwrap();
    found.iter().find(|finding| finding["kind"] == kind).unwrap_or_else(|| panic!("no {kind} in {found:#?}"))
}

fn phase_mean_ms(report: &Value, name: &str) -> f64 {
    let phases = report["phases"].as_array().unwrap();
    let phase = phases.iter().find(|phase| phase["name"] == name).unwrap();
    phase["mean_ns"].as_f64().unwrap() / 1e6
}

#[test]
fn a_stall_is_named_in_the_steps_that_it_befalls() {
    let sessions = Sessions::new();
    let report = trained(&sessions, &["stall:130ms@every=20,mark=gc"]);
    let stall = finding(&report, "stall");
    assert!(stall["summary"].as_str().unwrap().contains("\"gc\" costs 1"), "{stall:#?}");
    let places = stall["places"].as_array().unwrap().iter();
    let sentences: Vec<&str> = places.map(|place| place["sentence"].as_str().unwrap()).collect();
    assert_eq!(sentences.len(), 7, "{sentences:?}");
    for (sentence, step) in sentences.iter().zip((20..).step_by(20)) {
        assert!(sentence.starts_with(&format!("\"gc\" in step {step} costs")), "{sentence}");
    }
    let text = sessions.run(["report", "a.gnntop"]);
    assert!(text.out.contains("\"gc\" costs"), "{text:?}");
}

#[test]
fn several_causes_do_what_they_say() {
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

#[test]
fn a_wrong_cause_is_told_with_the_right_ones() {
    let sessions = Sessions::new();
    let ran = sessions.run(["train", "pna", "--inject", "stal:1ms"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("no cause is called \"stal\"; there is: stall, faults"), "{ran:?}");
    let help = sessions.run(["train", "pna", "--help"]);
    assert!(help.out.contains("stall:130ms@every=40") && help.out.contains("slow-loader:TIME"), "{help:?}");
}
