//! `gnntop prove` with a tiny program in the place of a training.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use crate::sessions::{Ran, Sessions};
use gnntop_probe::{Session, TrackRole, phase, span, step};

/// Publishes steps that take `$PROVE_MS`, with a loss that `$PROVE_LOSS` is added to.
#[test]
#[ignore = "is the program that is started"]
fn a_tiny_training() {
    let number = |name: &str| std::env::var(name).map_or(0, |text| text.parse().unwrap());
    let session = Session::builder("tiny").start();
    let _track = session.track("main", TrackRole::Training);
    for at in 0..40u32 {
        let mut step = step(0);
        let _forward = span(&phase::FORWARD);
        sleep(Duration::from_millis(number("PROVE_MS")));
        step.loss(1.0 / f64::from(at + 1) + number("PROVE_LOSS") as f64);
    }
}

fn prove(sessions: &Sessions, set: &str, more: &[&str]) -> Ran {
    let this = std::env::current_exe().unwrap().display().to_string();
    let program = ["--", &this, "--exact", "prove::a_tiny_training", "--ignored", "--nocapture"];
    sessions.run([&["prove", "--pairs", "6", "--set", set], more, &program].concat())
}

#[test]
fn prove_names_a_faster_program_and_its_equal_losses() {
    let sessions = Sessions::new();
    let ran = prove(&sessions, "PROVE_MS=12,1", &["-o", "proof.md", "--keep", "runs"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.starts_with("faster: the candidate does ") && ran.out.contains("6 pairs"), "{ran:?}");
    assert!(ran.out.contains("losses: equal to the last bit"), "{ran:?}");
    assert!(ran.err.contains("pair 1 of 6 at most, baseline"), "{ran:?}");
    let card = fs::read_to_string(sessions.path().join("proof.md")).unwrap();
    assert!(card.contains("| pair | baseline: `PROVE_MS=12` | candidate: `PROVE_MS=1` | ratio |"), "{card}");
    assert_eq!(fs::read_dir(sessions.path().join("runs")).unwrap().count(), 12);
}

#[test]
fn prove_names_a_slower_program_as_json() {
    let sessions = Sessions::new();
    let ran = prove(&sessions, "PROVE_MS=1,12", &["--json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let result: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&result["verdict"], &result["losses"]), (&"slower".into(), &"equal".into()));
    assert_eq!(result["pairs"].as_array().unwrap().len(), 6);
}

#[test]
fn prove_refuses_to_call_a_tie_a_win() {
    let sessions = Sessions::new();
    let is_tie = || {
        let ran = prove(&sessions, "PROVE_NOTHING=1,2", &["--within", "100%"]);
        let undecided = ran.out.starts_with("not enough evidence") && ran.code == Some(4);
        undecided || ran.out.starts_with("no difference greater than 100 %") && ran.code == Some(3)
    };
    // Of six pairs all fall on one side by chance once in 32 times, more often on a busy machine.
    assert!((0..3).any(|_| is_tie()));
}

#[test]
fn prove_says_that_losses_differ() {
    let sessions = Sessions::new();
    let ran = prove(&sessions, "PROVE_LOSS=0,1", &["--within", "100%"]);
    assert!(ran.out.contains("losses: DIFFERENT from step 1 on, 1 and 2"), "{ran:?}");
}

#[test]
fn prove_says_what_is_missing() {
    let sessions = Sessions::new();
    let refused = |arguments: &[&str], code: i32, words: &str| {
        let ran = sessions.run([&["prove"], arguments].concat());
        assert!(ran.code == Some(code) && ran.err.contains(words), "{arguments:?}: {ran:?}");
    };
    refused(&["--set", "a=1", "--", "true"], 2, "two values, such as num-workers=0,4, not `a=1`");
    refused(&["--baseline", "true"], 2, "--candidate");
    refused(&["--pairs", "7", "--baseline", "true", "--candidate", "true"], 2, "give 6, 12 or 24");
    refused(&["--baseline", "exit 5", "--candidate", "true"], 1, "the baseline ended with exit code 5");
    refused(&["--baseline", "true", "--candidate", "true"], 1, "the baseline published nothing");
}
