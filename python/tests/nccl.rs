//! The plugin for NCCL, driven by a stand-in for NCCL (`fakes/nccl.c`): what it reports is in the recording, and no misuse
//! breaks the plugin. Skipped, and said, without a C compiler.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, missing_docs)]
#![cfg(target_os = "linux")]

mod compiled;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gnntop_analysis::source::Recording;
use gnntop_analysis::store::{Store, Track};
use gnntop_wire::TrackRole;

/// What NCCL did by its own account.
struct ReportedSpan {
    name: String,
    bytes: f64,
    begin_ns: u64,
    end_ns: u64,
}

fn fake_nccl(dir: &Path) -> Option<PathBuf> {
    compiled::program(dir, "nccl.c", &["-pthread", "-ldl"])
}

fn run(program: &Path, version: u32, sessions: &Path, off: bool) -> Output {
    let mut run = Command::new(program);
    run.arg(compiled::library()).arg(version.to_string()).env("GNNTOP_DIR", sessions).env_remove("GNNTOP");
    if off {
        run.env("GNNTOP", "0");
    }
    let output = run.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "version {version}: {output:?}");
    output
}

fn parse_reported(output: &Output) -> Vec<ReportedSpan> {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| fields[at].parse::<u64>().unwrap();
        ReportedSpan { name: fields[0].to_owned(), bytes: number(1) as f64, begin_ns: number(2), end_ns: number(3) }
    };
    String::from_utf8_lossy(&output.stdout).lines().map(line).collect()
}

fn store_of(sessions: &Path) -> Store {
    let session = std::fs::read_dir(sessions).unwrap().next().unwrap().unwrap().path();
    let mut store = Store::new();
    Recording::open(&session).unwrap().read_all(&mut store);
    store
}

fn track<'a>(store: &'a Store, name: &str) -> &'a Track {
    store.tracks().iter().find(|track| track.text == name).unwrap_or_else(|| panic!("{name}: {:?}", store.tracks()))
}

/// The spans of a track, oldest first.
fn spans(store: &Store, track: &Track) -> Vec<(String, u64, u64)> {
    let mut all = Vec::new();
    let lane = track.lane().unwrap();
    lane.each_box(0..u64::MAX, |span, _| all.push((store.name(span.name).to_owned(), span.start_ns, span.end_ns)));
    all.reverse();
    all
}

fn gnntops_name(nccls: &str) -> &str {
    match nccls {
        "AllReduce" => "all-reduce",
        "AllGather" => "all-gather",
        "ReduceScatter" => "reduce-scatter",
        "Broadcast" => "broadcast",
        "Send" => "send",
        "Recv" => "receive",
        _ => "other collective",
    }
}

fn shows_what_nccl_did(version: u32, track_name: &str, where_to: &str) {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = fake_nccl(dir.path()) else { return };
    let sessions = dir.path().join("sessions");
    let told = parse_reported(&run(&program, version, &sessions, false));
    let store = store_of(&sessions);
    let track = track(&store, track_name);
    assert_eq!((track.role, track.dropped), (TrackRole::Communicator, 0));
    let spans = spans(&store, track);
    assert_eq!(spans.len(), told.len());
    assert_eq!(told.len(), 47);
    for ((name, start_ns, end_ns), told) in spans.iter().zip(&told) {
        assert_eq!(*name, format!("{where_to}{}", gnntops_name(&told.name)));
        // The kernel ran within what the plugin's host saw of it. The clocks of both are mapped within some microseconds, or more
        // on a busy machine, but less than an operation takes.
        let apart = 300_000;
        assert!(*start_ns + apart >= told.begin_ns && *end_ns <= told.end_ns + apart, "{name}: {start_ns} to {end_ns}");
        assert!(end_ns - start_ns >= 400_000, "{name} took {} ns", end_ns - start_ns);
    }
    let counter = |name: &str| store.counters().iter().find(|counter| store.name(counter.name) == name);
    for told in told.iter().filter(|told| told.name != "Broadcast") {
        let counter = counter(&format!("{} (bytes)", gnntops_name(&told.name)));
        let newest = counter.and_then(|counter| counter.series.last()).and_then(|point| point.value());
        assert_eq!(newest, Some(told.bytes).filter(|bytes| *bytes > 0.0), "{}", told.name);
    }
}

#[test]
fn version_3_operations_are_published() {
    shows_what_nccl_did(3, "nccl", "");
}

#[test]
fn version_4_operations_are_published() {
    shows_what_nccl_did(4, "nccl default_pg", "");
}

#[test]
fn version_5_operations_of_ranks_on_two_machines_are_published() {
    shows_what_nccl_did(5, "nccl default_pg", "between machines: ");
}

#[test]
fn plugin_turned_off_requests_no_events() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = fake_nccl(dir.path()) else { return };
    for version in [3, 4, 5] {
        let sessions = dir.path().join("sessions");
        assert!(run(&program, version, &sessions, true).stdout.is_empty());
        assert!(!sessions.exists());
    }
}
