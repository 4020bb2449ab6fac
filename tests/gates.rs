//! `gnntop compare` and `gnntop check`: what they say, and with which exit code.

use crate::sessions::Sessions;
use gnntop_fixtures::{MS, TrainingRun};

/// Steps whose backward phase takes this long, a little more or less.
fn run(backward_ms: u64) -> Vec<u8> {
    let spikes = (1..=400).map(|step| (step, "backward", step * 7919 % 2000 * 1000)).collect();
    let phases = vec![("data wait", 4 * MS), ("forward", 10 * MS), ("backward", backward_ms * MS)];
    TrainingRun { steps: 400, phases, spikes, has_hardware: false, ..TrainingRun::default() }.bytes()
}

fn recordings() -> Sessions {
    let sessions = Sessions::new();
    sessions.file("a.gnntop", &run(20));
    sessions.file("b.gnntop", &run(25));
    sessions.file("short.gnntop", &TrainingRun { steps: 6, ..TrainingRun::default() }.bytes());
    sessions
}

#[test]
fn a_comparison_says_which_phase_is_slower_and_which_is_not() {
    let sessions = recordings();
    let ran = sessions.run(["compare", "a.gnntop", "b.gnntop", "--percentiles", "50"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let line = |name: &str| ran.out.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(line("backward").contains("slower") && line("step").contains("slower"), "{}", ran.out);
    assert!(line("forward").contains("no evidence"), "{}", ran.out);
    let back = sessions.run(["compare", "b.gnntop", "a.gnntop", "--percentiles", "50", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&back.out).unwrap();
    let step = json.as_array().unwrap().iter().find(|compared| compared["name"] == "step").unwrap();
    assert_eq!(step["verdict"], "faster");
    let short = sessions.run(["compare", "a.gnntop", "short.gnntop"]);
    assert!(short.out.contains("too few steps") && !short.out.contains("slower"), "{}", short.out);
}

#[test]
fn a_check_has_a_line_for_each_rule_and_the_worst_decides() {
    let sessions = recordings();
    let check = |arguments: &[&str]| sessions.run([&["check", "a.gnntop"], arguments].concat());
    let kept = check(&["--max", "backward.p99=25ms", "--min", "steps.per_s=10"]);
    assert_eq!((kept.code, kept.out.lines().count()), (Some(0), 2), "{kept:?}");
    let broken = check(&["--max", "backward.p99=15ms", "--max", "gap.share=50%", "--max", "nowhere.p50=1s"]);
    assert_eq!((broken.code, broken.out.lines().count()), (Some(3), 3), "{broken:?}");
    assert!(broken.out.starts_with("broken  max backward.p99=15ms: 2"), "{}", broken.out);
    assert_eq!(check(&["--max", "backward.p99.99=1s"]).code, Some(4));
    assert_eq!(check(&["--max", "backward=1s"]).code, Some(2));
    check(&[]).refused("nothing to check");
}

#[test]
fn rules_come_from_a_file_too() {
    let sessions = recordings();
    sessions.file("gate.txt", b"# the gate\nmax backward.p50=25ms  # roomy\n\nmin steps.per_s=1000\n");
    let ran = sessions.run(["check", "a.gnntop", "--rules", "gate.txt"]);
    assert_eq!((ran.code, ran.out.lines().count()), (Some(3), 2), "{ran:?}");
    sessions.file("wrong.txt", b"max backward.p50=25ms\nfaster!\n");
    sessions.run(["check", "a.gnntop", "--rules", "wrong.txt"]).refused("wrong.txt, line 2: a line is max RULE");
}

#[test]
fn a_baseline_is_a_rule() {
    let sessions = recordings();
    let against = |file: &str, baseline: &str| sessions.run(["check", file, "--baseline", baseline]);
    assert_eq!(against("b.gnntop", "a.gnntop").code, Some(3));
    assert_eq!(against("a.gnntop", "b.gnntop").code, Some(0));
    assert_eq!(against("a.gnntop", "a.gnntop").code, Some(0));
    let short = against("short.gnntop", "a.gnntop");
    assert!(short.code == Some(4) && short.out.contains("unclear"), "{short:?}");
    assert_eq!(sessions.run(["check", "b.gnntop", "--baseline", "a.gnntop", "--slower", "30%"]).code, Some(0));
}
