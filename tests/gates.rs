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
fn comparison_names_the_slower_phase() {
    let sessions = recordings();
    let ran = sessions.run(["compare", "a.gnntop", "b.gnntop", "--percentiles", "50"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let line = |start: &str| ran.out.lines().find(|line| line.starts_with(start)).unwrap().to_owned();
    assert!(line("B does 0.8").contains("graphs/s (95 %"), "{}", ran.out);
    assert!(line("both ran the same").contains("batches of 256 graphs"), "{}", ran.out);
    assert!(line("backward").contains("slower") && line("period").contains("slower"), "{}", ran.out);
    assert!(line("forward").contains("no evidence"), "{}", ran.out);
    let back = sessions.run(["compare", "b.gnntop", "a.gnntop", "--percentiles", "50", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&back.out).unwrap();
    let lines = json["lines"].as_array().unwrap();
    let period = lines.iter().find(|line| line["name"] == "period").unwrap();
    assert_eq!([&period["numbers"][0]["verdict"], &json["work"]["verdict"]], ["faster", "faster"]);
    let short = sessions.run(["compare", "a.gnntop", "short.gnntop"]);
    assert!(short.out.contains("too few steps") && !short.out.contains("slower"), "{}", short.out);
}

#[test]
fn several_runs_a_side_are_compared_as_runs() {
    let sessions = recordings();
    for (name, ms) in [("a1", 20), ("a2", 21), ("b1", 30), ("b2", 31)] {
        sessions.file(&format!("{name}.gnntop"), &run(ms));
    }
    let sides = ["compare", "b1.gnntop", "b2.gnntop", "--against", "a1.gnntop", "a2.gnntop"];
    let ran = sessions.run(sides);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.starts_with("A 1 a1.gnntop (400 steps)\nA 2 a2.gnntop"), "{}", ran.out);
    assert!(ran.out.contains("B 2 b2.gnntop") && ran.out.contains("intervals are over runs"), "{}", ran.out);
    assert!(ran.out.contains("\nB does 0.7"), "{}", ran.out);
    let refused = |arguments: &[&str], words: &str| {
        let ran = sessions.run([&["compare"], arguments].concat());
        assert!(ran.code == Some(2) && ran.err.contains(words), "{ran:?}");
    };
    refused(&["a1.gnntop"], "another recording");
    refused(&["a1.gnntop", "a2.gnntop", "b1.gnntop"], "after --against");
    refused(&["a1.gnntop", "a2.gnntop", "--against", "b1.gnntop"], "at least two");
}

#[test]
fn a_check_has_a_line_for_each_rule_and_the_worst_decides() {
    let sessions = recordings();
    let check = |arguments: &[&str]| sessions.run([&["check", "a.gnntop"], arguments].concat());
    let kept = check(&["--max", "backward.p99=25ms", "--min", "steps.per_s=10", "--max", "data_wait.p50=5ms"]);
    assert_eq!((kept.code, kept.out.lines().count()), (Some(0), 3), "{kept:?}");
    let broken = check(&["--max", "backward.p90=15ms", "--max", "gap.share=50%", "--max", "all-reduce.p50=1s"]);
    assert_eq!((broken.code, broken.out.lines().count()), (Some(3), 3), "{broken:?}");
    assert!(broken.out.starts_with("broken  max backward.p90=15ms: 2"), "{}", broken.out);
    assert!(broken.out.lines().next().unwrap().contains(" ms (of 400 steps; 95 %: 2"), "{}", broken.out);
    assert_eq!(check(&["--max", "backward.p99.99=1s"]).code, Some(4));
    let energy = check(&["--cpu-watts", "50", "--max", "energy.total=1mJ"]);
    assert!(energy.out.contains("; bounds: ") && !energy.out.contains("95 %"), "{energy:?}");
    assert_eq!(check(&["--max", "backward=1s"]).code, Some(2));
    let wrong = check(&["--max", "foward.p99=12ms"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("did you mean forward?"), "{wrong:?}");
    let nothing = check(&[]);
    assert!(nothing.code == Some(2) && nothing.err.contains("nothing to check"), "{nothing:?}");
}

#[test]
fn check_list_prints_figures_with_values() {
    let sessions = recordings();
    let listed = sessions.run(["check", "a.gnntop", "--list"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let line = |figure: &str| {
        let is_of = |line: &&str| line.split_whitespace().next() == Some(figure);
        listed.out.lines().find(is_of).unwrap_or_else(|| panic!("{figure} is not in\n{}", listed.out)).to_owned()
    };
    assert!(line("forward.p50").contains("10.0 ms") && line("forward.p50").ends_with("400 steps"), "{}", listed.out);
    assert!(line("steps.count").contains(" 400 ") && line("gap.share").contains(" %"), "{}", listed.out);
    let both = sessions.run(["check", "a.gnntop", "--list", "--max", "step.p50=1s"]);
    assert_eq!(both.code, Some(2), "{both:?}");
}

#[test]
fn rules_are_read_from_a_file() {
    let sessions = recordings();
    sessions.file("gate.txt", b"# the gate\nmax backward.p50=25ms  # roomy\n\nmin steps.per_s=1000\n");
    let ran = sessions.run(["check", "a.gnntop", "--rules", "gate.txt"]);
    assert_eq!((ran.code, ran.out.lines().count()), (Some(3), 2), "{ran:?}");
    sessions.file("wrong.txt", b"max backward.p50=25ms\nfaster!\n");
    let wrong = sessions.run(["check", "a.gnntop", "--rules", "wrong.txt"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("wrong.txt, line 2: write each line"), "{wrong:?}");
    sessions.file("empty.txt", b"# nothing yet\n");
    assert_eq!(sessions.run(["check", "a.gnntop", "--rules", "empty.txt"]).code, Some(2));
}

#[test]
fn a_baseline_is_a_rule() {
    let sessions = recordings();
    let against = |file: &str, baseline: &str| sessions.run(["check", file, "--baseline", baseline]);
    assert_eq!(against("b.gnntop", "a.gnntop").code, Some(3));
    assert_eq!(against("a.gnntop", "b.gnntop").code, Some(0));
    for file in ["a.gnntop", "short.gnntop"] {
        assert_eq!(against(file, file).code, Some(0), "a file against itself: {file}");
    }
    let short = against("short.gnntop", "a.gnntop");
    assert!(short.code == Some(4) && short.out.contains("unclear"), "{short:?}");
    assert_eq!(sessions.run(["check", "b.gnntop", "--baseline", "a.gnntop", "--slower", "30%"]).code, Some(0));
}

/// Steps of two kinds, twice as long as those of the baseline: the interval of the median is wide, the worsening clear.
#[test]
fn a_clear_worsening_fails_however_uneven_the_steps_are() {
    let sessions = Sessions::new();
    let uneven = |ms: u64| {
        let slow = |step: &u64| (step / 7).is_multiple_of(2);
        let spikes = (1..=60).filter(slow).map(|step| (step, "forward", ms * MS)).collect();
        TrainingRun { steps: 60, phases: vec![("forward", ms * MS)], spikes, ..TrainingRun::default() }.bytes()
    };
    sessions.file("a.gnntop", &uneven(10));
    sessions.file("b.gnntop", &uneven(21));
    let ran = sessions.run(["check", "b.gnntop", "--baseline", "a.gnntop"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
}
