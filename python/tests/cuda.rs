//! Time on a GPU by its own clock, with a stand-in for CUDA's driver (`fakes/cuda.c`): what it did is in the recording, and
//! whatever it answers, or does not, the training goes on. Skipped, and said, without a C compiler.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, missing_docs)]
#![cfg(target_os = "linux")]

mod compiled;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use gnntop_wire::{Definition, DeviceSpan, Event, Item, NameId, StreamReader};

/// Steps that the training makes, of three phases each.
const STEPS: usize = 60;

/// A phase on the device by its own account.
#[derive(Debug)]
struct Truth {
    name: String,
    step: u64,
    begin_ns: u64,
    end_ns: u64,
}

/// What is in the recording.
struct Recorded {
    names: HashMap<NameId, String>,
    events: Vec<Event>,
}

impl Recorded {
    fn device_spans(&self) -> Vec<DeviceSpan> {
        let span = |event: &Event| if let Event::DeviceSpan(span) = event { Some(*span) } else { None };
        self.events.iter().filter_map(span).filter(|span| span.name != NameId::NONE).collect()
    }

    fn steps(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, Event::Step(_))).count()
    }

    fn host_spans(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, Event::Span(_))).count()
    }

    fn marks(&self) -> Vec<&str> {
        let name =
            |event: &Event| if let Event::Mark(mark) = event { Some(self.names[&mark.name].as_str()) } else { None };
        self.events.iter().filter_map(name).collect()
    }
}

fn driver(dir: &Path, options: &[&str]) -> Option<PathBuf> {
    let all = [&["-shared", "-fPIC", "-pthread", "-Wl,-soname,libcuda.so.1"], options].concat();
    compiled::program(dir, "cuda.c", &all)
}

/// Runs a case; `None` without a compiler. The training makes all its steps, and writes nothing to stderr.
fn run(case: &str, options: &[&str]) -> Option<(Recorded, Vec<Truth>)> {
    let dir = tempfile::tempdir().unwrap();
    let driver = driver(dir.path(), options)?;
    let include = format!("-I{}/include", env!("CARGO_MANIFEST_DIR"));
    let program = compiled::program(dir.path(), "training.c", &[&include, "-ldl"])?;
    let sessions = dir.path().join("sessions");
    let mut run = Command::new(program);
    run.arg(compiled::library()).arg(driver).arg(case).env("GNNTOP_DIR", &sessions).env_remove("GNNTOP");
    let output = run.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{case}: {output:?}");
    let recorded = read_recording(&sessions);
    assert_eq!((recorded.steps(), recorded.host_spans()), (STEPS, 3 * STEPS));
    Some((recorded, parse_truth(&String::from_utf8_lossy(&output.stdout))))
}

fn parse_truth(lines: &str) -> Vec<Truth> {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| fields[at].parse().unwrap();
        Truth { name: fields[0].to_owned(), step: number(1), begin_ns: number(2), end_ns: number(3) }
    };
    lines.lines().map(line).collect()
}

fn read_recording(sessions: &Path) -> Recorded {
    let session = std::fs::read_dir(sessions).unwrap().next().unwrap().unwrap().path();
    let mut segments: Vec<PathBuf> = std::fs::read_dir(session).unwrap().map(|entry| entry.unwrap().path()).collect();
    segments.sort();
    let mut recorded = Recorded { names: HashMap::new(), events: Vec::new() };
    let mut reader = StreamReader::new();
    for segment in segments.iter().filter(|path| path.file_name().is_some_and(|name| name != "lock")) {
        reader.fill(&std::fs::read(segment).unwrap());
        while let Some(item) = reader.next() {
            match item {
                Item::Definitions(all) => all.into_iter().for_each(|definition| {
                    if let Definition::Name { id, text, .. } = definition {
                        recorded.names.insert(id, text);
                    }
                }),
                Item::Block(_, block) => recorded.events.extend(block),
                _ => {}
            }
        }
    }
    recorded
}

/// Each span is one of the device's phases, in order, and lies where the device did it, within the error that it states.
fn assert_true(recorded: &Recorded, spans: &[DeviceSpan], truth: &[Truth]) {
    // The driver gives milliseconds in 32 bits.
    const SLACK_NS: u64 = 2_000;
    // The device's clock is laid over ours, and ours runs beside `CLOCK_MONOTONIC` at a rate that is measured in a few
    // milliseconds at the start: on a busy machine 50 millionths off, over half a second. A span's error says nothing of that.
    const OUR_CLOCK_NS: u64 = 25_000;
    for span in spans {
        let name = &recorded.names[&span.name];
        let of_span = |truth: &&Truth| truth.step == span.step.0 && truth.name == *name;
        let truth = truth.iter().find(of_span).unwrap_or_else(|| panic!("{name} of step {}", span.step.0));
        for (found, was) in [(span.start_ns, truth.begin_ns), (span.end_ns, truth.end_ns)] {
            let apart = found.abs_diff(was);
            assert!(apart <= span.error_ns + SLACK_NS + OUR_CLOCK_NS, "{apart} ns off: {span:?} {truth:?}");
        }
        let (took, was) = (span.end_ns - span.start_ns, truth.end_ns - truth.begin_ns);
        assert!(took.abs_diff(was) <= SLACK_NS, "took {took} ns: {truth:?}");
    }
}

#[test]
fn device_spans_match_the_device_clock() {
    let Some((recorded, truth)) = run("healthy", &[]) else { return };
    let spans = recorded.device_spans();
    assert_eq!(spans.len(), 3 * STEPS);
    assert_true(&recorded, &spans, &truth);
    assert!(recorded.marks().is_empty());
}

#[test]
fn unresponsive_device_blocks_no_thread() {
    let Some((recorded, _)) = run("never", &[]) else { return };
    assert!(recorded.device_spans().is_empty());
    assert_eq!(recorded.marks(), ["not reached by the device at the end"]);
}

#[test]
fn failing_device_is_disabled_with_reason() {
    let Some((recorded, truth)) = run("breaks", &[]) else { return };
    let spans = recorded.device_spans();
    assert!(!spans.is_empty() && spans.len() < 3 * STEPS, "{}", spans.len());
    assert_true(&recorded, &spans, &truth);
    assert_eq!(recorded.marks(), ["device time ends: CUDA error 700"]);
}

#[test]
fn graph_capture_is_not_timed_and_continues() {
    let Some((recorded, truth)) = run("captures", &[]) else { return };
    let spans = recorded.device_spans();
    assert_eq!(spans.len(), 3 * (STEPS - 10));
    assert_true(&recorded, &spans, &truth);
    assert!(recorded.marks().is_empty());
}

#[test]
fn incomplete_driver_or_missing_context_is_not_used() {
    for (case, options) in [("old", &["-DWITHOUT_ELAPSED_TIME"][..]), ("alone", &[])] {
        let Some((recorded, _)) = run(case, options) else { return };
        assert!(recorded.device_spans().is_empty() && recorded.marks().is_empty());
    }
}
