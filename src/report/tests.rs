//! Reports as a whole.

use serde_json::Value;

use super::{Options, Report};
use crate::store::fixture::{MS, TrainingRun, each_item};
use crate::store::{Limits, Store};

fn store(bytes: &[u8], limits: Limits) -> Store {
    let mut store = Store::with_limits(limits);
    each_item(bytes, |item| store.apply(item));
    store
}

fn report(run: &TrainingRun, options: &Options) -> Report {
    Report::of(&store(&run.bytes(), Limits::default()), options)
}

fn json(report: &Report) -> Value {
    serde_json::from_str(&report.to_json().unwrap()).unwrap()
}

#[test]
fn the_text_says_everything_in_80_columns() {
    let run = TrainingRun { spikes: vec![(30, "backward", 84 * MS)], ..TrainingRun::default() };
    let text = report(&run, &Options::default()).to_text();
    for part in [
        "pna on bench, process 4711; ended",
        "pna --batch-size 256",
        "from 2026-01-02 03:04:05 UTC\n100 steps, 4 epochs; loss 1 to 0.010\n",
        "outside steps: 100 ms before the first step, 1.00 ms after the last\n",
        "backward-bound (56 %)",
        "gap 2.5 %; 1 spike (worst 3.1 x median);\n4 partial batches",
        "findings\n ! spikes (certain): step 30 took 123 ms",
        "\ndata wait    100  3.90 ms  4.00 ms ",
        "per second   25.",
        "process CPU      1.50 cores mean",
        "GPU              none: libnvidia-ml.so.1 not found",
        "lost: nothing",
        "memory by phase: the program does not count its allocations",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let phases = text.lines().skip_while(|line| !line.starts_with("phase")).take_while(|line| !line.is_empty());
    let phases: Vec<&str> = phases.collect();
    assert_eq!(
        phases[0].split_whitespace().collect::<Vec<_>>(),
        ["phase", "count", "mean", "p50", "p90", "p99", "max", "total", "share"]
    );
    assert!(phases[5].starts_with("gap") && phases[6].starts_with("step"), "{text}");
}

#[test]
fn json_has_units_in_its_names_and_null_for_what_is_absent() {
    let options = Options { percentiles: vec![50.0, 99.9], ..Options::default() };
    let json = json(&report(&TrainingRun::default(), &options));
    assert_eq!(json["schema_version"], 1);
    assert_eq!(json["session"]["state"], "ended");
    let backward = &json["phases"][2];
    assert_eq!(backward["name"], "backward");
    assert_eq!(backward["max_ns"], 22 * MS);
    assert!(backward["p99_9_ns"].is_u64() && backward["p50_ns"].is_u64() && backward["p90_ns"].is_null());
    assert_eq!(json["throughput"]["seeds_per_s"], Value::Null);
    assert!((json["hardware"]["process_cpu"]["mean_cores"].as_f64().unwrap() - 1.5).abs() < 1e-6);
    assert_eq!(json["hardware"]["machine_memory_used"]["mean_bytes"], Value::Null);
    assert_eq!(json["hardware"]["machine_memory_used"]["reason"], "not published");
    assert_eq!(json["hardware"]["no_gpu_reason"], "libnvidia-ml.so.1 not found");
    assert_eq!(json["losses"]["dropped_events"], 0);
}

#[test]
fn phases_and_gap_add_up_to_the_step() {
    let json = json(&report(&TrainingRun::default(), &Options::default()));
    let totals: Vec<u64> =
        json["phases"].as_array().unwrap().iter().map(|line| line["total_ns"].as_u64().unwrap()).collect();
    let (step, phases) = totals.split_last().unwrap();
    assert_eq!(phases.iter().sum::<u64>(), *step);
    assert_eq!(json["steps"]["tiled_ns"], *step);
}

#[test]
fn skipped_steps_are_not_in_the_numbers() {
    let run =
        TrainingRun { spikes: vec![(1, "forward", 900 * MS), (5, "forward", 700 * MS)], ..TrainingRun::default() };
    let options = Options { skip_steps: 5, ..Options::default() };
    let (all, skipped) = (report(&run, &Options::default()), report(&run, &options));
    let forward = |report: &Report| report.phases[1].durations.max_ns.unwrap();
    assert_eq!((forward(&all), forward(&skipped)), (910 * MS, 10 * MS));
    assert_eq!((skipped.steps.total, skipped.steps.reported, skipped.steps.skipped), (100, 95, 5));
    assert_eq!(skipped.steps.reason, None);
    assert!(skipped.to_text().contains("numbers without the first 5"));
}

#[test]
fn a_report_that_lacks_rows_says_so() {
    let run = TrainingRun { steps: 10_000, has_hardware: false, ..TrainingRun::default() };
    let store = store(&run.bytes(), Limits { step_rows: 10, ..Limits::default() });
    let options = Options { skip_steps: 5, ..Options::default() };
    let steps = Report::of(&store, &options).steps;
    assert!(steps.reported < 9_995 && steps.reason.unwrap().contains("only the newest"));
    assert_eq!(Report::of(&store, &Options::default()).steps.reported, 10_000);
}

#[test]
fn an_empty_store_makes_a_report_too() {
    let report = Report::of(&Store::new(), &Options::default());
    let text = report.to_text();
    assert!(text.contains("no steps yet") && text.contains("steps: the program published none"), "{text}");
    assert_eq!(json(&report)["phases"], Value::Array(Vec::new()));
}

#[test]
fn a_loss_that_is_not_a_number_becomes_null() {
    use gnntop_wire::{Event, Step, StepId, TrackRole};
    let mut stream = crate::store::fixture::StreamBuilder::new("nan");
    let track = stream.track(TrackRole::Training, "main");
    let step = Step { step: StepId(1), start_ns: 9, end_ns: 12, loss: Some(f64::NAN), ..Step::default() };
    stream.event(track, Event::Step(step));
    let report = Report::of(&store(&stream.bytes(), Limits::default()), &Options::default());
    assert!(report.to_text().contains("loss NaN to NaN"));
    assert_eq!(json(&report)["steps"]["last_loss"], Value::Null);
}
