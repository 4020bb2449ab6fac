//! `gnntop compare --from`: a part of one run beside what was before it, and the same part of two runs.

use gnntop_analysis::store::Store;
use gnntop_fixtures::{MS, TrainingRun, each_item};

use crate::sessions::Sessions;

/// Steps of each half; in the second one the backward phase takes 5 ms more.
const HALF: u64 = 400;

fn run() -> Vec<u8> {
    let later_ns = |step| if step > HALF { 5 * MS } else { 0 };
    let spikes = (1..=2 * HALF).map(|step| (step, "backward", later_ns(step) + step * 7919 % 2000 * 1000));
    TrainingRun { steps: 2 * HALF, spikes: spikes.collect(), has_hardware: false, ..TrainingRun::default() }.bytes()
}

fn store() -> Store {
    let mut store = Store::default();
    each_item(&run(), |item| store.apply(item));
    store
}

/// When the second half begins.
fn middle_ns(store: &Store) -> u64 {
    store.steps().row(HALF).unwrap().period_start_ns()
}

/// B's work over A's, in full batches.
fn ratio(store: &Store) -> f64 {
    let mean_ns = |ordinals: std::ops::Range<u64>| {
        let full = store.steps().rows(ordinals).filter(|row| row.batch().graphs == Some(256));
        let periods: Vec<u64> = full.map(|row| row.period_ns()).collect();
        periods.iter().sum::<u64>() as f64 / periods.len() as f64
    };
    mean_ns(0..HALF) / mean_ns(HALF..2 * HALF)
}

fn sessions() -> Sessions {
    let sessions = Sessions::new();
    sessions.file("run.gnntop", &run());
    sessions
}

#[test]
fn part_from_a_step_is_compared_with_part_before() {
    let sessions = sessions();
    let ran = sessions.run(["compare", "run.gnntop", "--from", "step 401", "--percentiles", "50"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let head = "A run.gnntop before step 401 (400 steps)\nB run.gnntop from step 401 (400 steps)\n\nB does 0.";
    assert!(ran.out.starts_with(head), "{}", ran.out);
    let said: f64 = ran.out.split("B does ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((said - ratio(&store())).abs() < 0.01, "{said}, not {}", ratio(&store()));
    let line = |start: &str| ran.out.lines().find(|line| line.starts_with(start)).unwrap();
    assert!(line("backward").contains("slower") && line("period").contains("slower"), "{}", ran.out);
    assert!(line("forward").contains("no evidence"), "{}", ran.out);
    let short = sessions.run(["compare", "run.gnntop", "--from", "step:401", "--until", "#601", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&short.out).unwrap();
    assert_eq!([&json["sides"][0]["steps"], &json["sides"][1]["steps"]], [400, 200]);
    assert_eq!(json["work"]["verdict"], "slower");
}

#[test]
fn the_clock_and_the_time_since_the_start_name_the_same_part() {
    let (sessions, store) = (sessions(), store());
    let since_ms = (middle_ns(&store) - store.first_ns().unwrap()) / MS;
    let wall_ms = store.session().wall_ns(middle_ns(&store)).unwrap() / MS;
    let clock = format!("03:04:{:02}.{:03}", wall_ms / 1000 % 60, wall_ms % 1000);
    let date = format!("2026-01-02 {clock}");
    for (from, words) in
        [(&format!("{since_ms}ms"), "before 1"), (&clock, "before 2026-01-02 03:04"), (&date, "before 2026-")]
    {
        let ran = sessions.run(["compare", "run.gnntop", "--from", from]);
        assert_eq!(ran.code, Some(0), "{from}: {ran:?}");
        // The step that went on at that millisecond may be in neither.
        let steps = |side: &str| {
            let line = ran.out.lines().find(|line| line.starts_with(side)).unwrap();
            line.split(" (").nth(1).unwrap().split(' ').next().unwrap().parse::<u64>().unwrap()
        };
        assert!(steps("A run.gnntop").abs_diff(HALF) <= 1 && steps("B run.gnntop").abs_diff(HALF) <= 1, "{}", ran.out);
        assert!(ran.out.starts_with("A run.gnntop ") && ran.out.contains(words), "{from}: {}", ran.out);
        assert!(ran.out.contains("\nB does 0.8"), "{from}: {}", ran.out);
    }
}

#[test]
fn same_part_of_two_runs_is_compared() {
    let sessions = sessions();
    sessions.file("again.gnntop", &run());
    let ran = sessions.run(["compare", "run.gnntop", "again.gnntop", "--from", "step 101", "--until", "step 201"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let head =
        "A run.gnntop from step 101 to step 201 (100 steps)\nB again.gnntop from step 101 to step 201 (100 steps)\n";
    assert!(ran.out.starts_with(head), "{}", ran.out);
    assert!(ran.out.contains("no evidence that A or B is faster"), "{}", ran.out);
}

#[test]
fn parts_of_a_live_session_are_compared() {
    let sessions = Sessions::new();
    let _live = sessions.live("pna-4711", &run());
    let ran = sessions.run(["compare", "pna-4711", "--from", "step 401"]);
    assert!(ran.code == Some(0) && ran.out.starts_with("A pna-4711 before step 401 (400 steps)\n"), "{ran:?}");
}

#[test]
fn invalid_part_is_refused_with_covered_range() {
    let sessions = sessions();
    let refused = |arguments: &[&str], words: &[&str]| {
        let ran = sessions.run([&["compare", "run.gnntop"], arguments].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
        assert!(words.iter().all(|words| ran.err.contains(words)), "{ran:?}");
    };
    let covers = "run.gnntop covers 2026-01-02 03:04:05 UTC to 2026-01-02 03:04:3";
    refused(&["--from", "step 9000"], &["--from is outside the run", covers, "steps 1 to 800"]);
    refused(&["--from", "2h"], &["--from is outside the run", covers]);
    refused(&["--from", "2026-01-01 12:00"], &["--from is outside the run", covers]);
    refused(&["--from", "10s", "--until", "5s"], &["--from must be before --until", covers]);
    refused(&["--from", "10s", "--until", "10.001s"], &["no step ended from 10s in to 10s in", covers]);
    refused(&["--from", "0"], &["no step ended before 0s in", covers]);
    refused(&["--until", "10s"], &["give --from"]);
    refused(&["--from", "soon"], &["step 12000"]);
    let piped = sessions.run(["compare", "-", "--from", "10s"]);
    assert!(piped.code == Some(2) && piped.err.contains("save it to a file first"), "{piped:?}");
}
