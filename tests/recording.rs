//! `gnntop record`: from hand-written sessions into files that say the same.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::sessions::{Sessions, signal, spawn, wait_until};
use gnntop_analysis::store::Store;
use gnntop_fixtures::{SECOND, TrainingRun};

/// 400 steps of 40 ms: sixteen seconds.
fn long_run() -> TrainingRun {
    TrainingRun { steps: 400, ends: false, ..TrainingRun::default() }
}

fn store_of(bytes: &[u8]) -> Store {
    let mut store = Store::new();
    gnntop_fixtures::each_item(bytes, |item| store.apply(item));
    store
}

#[test]
fn an_ended_session_is_saved_whole_and_privately() {
    let sessions = Sessions::new();
    sessions.ended("pna-4711-5f3a90c2", &long_run().bytes());
    let ran = sessions.run(["record", "pna"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{ran:?}");
    let path = sessions.path().join("pna-4711-5f3a90c2.gnntop");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let from_session = sessions.run(["report", "pna", "--json"]);
    let from_file = sessions.run(["report", path.to_str().unwrap(), "--json"]);
    let phases = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap()["phases"].clone();
    assert_eq!(phases(&from_session.out), phases(&from_file.out));
}

#[test]
fn existing_file_is_not_overwritten() {
    let sessions = Sessions::new();
    sessions.ended("one", &long_run().bytes());
    let path = sessions.file("a.gnntop", b"precious");
    sessions.run(["record", "pna", "-o", "a.gnntop"]).assert_refused("a.gnntop already exists: use --force");
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    assert_eq!(sessions.run(["record", "pna", "-o", "a.gnntop", "--force"]).code, Some(0));
    assert_eq!(store_of(&fs::read(&path).unwrap()).steps().total(), 400);
    sessions.run(["record", "pna", "-o", "none/a.gnntop"]).assert_refused("cannot write none/a.gnntop");
}

#[test]
fn the_last_seconds_of_a_living_session_are_saved_at_once() {
    let sessions = Sessions::new();
    let _live = sessions.live("one", &long_run().bytes());
    assert_eq!(sessions.run(["record", "--last", "4s", "-o", "a.gnntop"]).code, Some(0));
    let store = store_of(&fs::read(sessions.path().join("a.gnntop")).unwrap());
    assert!((95..=110).contains(&store.steps().total()), "{}", store.steps().total());
    assert!(store.elapsed_ns() <= 4 * SECOND + SECOND / 10, "{}", store.elapsed_ns());
    assert_eq!(store.losses().missed_events, 0);
    // The step that went on four seconds ago is there with all its phases.
    let first = store.steps().all().next().unwrap();
    assert_eq!((first.gap_ns(), store.session().is_cut()), (0, true));
}

#[test]
fn the_end_of_a_recording_can_be_cut_out() {
    let sessions = Sessions::new();
    sessions.file("a.gnntop", &long_run().bytes());
    assert_eq!(sessions.run(["record", "./a.gnntop", "--last", "2s", "-o", "b.gnntop"]).code, Some(0));
    let store = store_of(&fs::read(sessions.path().join("b.gnntop")).unwrap());
    assert!((45..=58).contains(&store.steps().total()), "{}", store.steps().total());
}

#[test]
fn a_recording_goes_through_a_pipe() {
    let sessions = Sessions::new();
    let mut live = sessions.live("one", &TrainingRun { steps: 1, ..long_run() }.bytes());
    let mut child = spawn(&mut sessions.gnntop(["record", "-"]));
    let mut pipe = child.stdout.take().unwrap();
    let mut out = vec![0];
    std::io::Read::read_exact(&mut pipe, &mut out).unwrap(); // it records: only now may the session end
    live.append(&long_run().bytes());
    live.die();
    std::io::Read::read_to_end(&mut pipe, &mut out).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let report = sessions.run_with(["report", "-"], &out);
    assert!(report.code == Some(0) && report.out.contains("steps"), "{report:?}");
}

#[test]
fn the_file_behind_standard_input_is_not_overwritten() {
    let sessions = Sessions::new();
    let path = sessions.file("a.gnntop", &long_run().bytes());
    let mut record = sessions.gnntop(["export", "-", "--to", "csv", "-o", "a.gnntop", "--force"]);
    let ran = crate::sessions::Ran::new(&record.stdin(fs::File::open(&path).unwrap()).output().unwrap());
    assert!(ran.code == Some(1) && ran.err.contains("- is also the input"), "{ran:?}");
    assert_eq!(fs::read(&path).unwrap(), long_run().bytes());
}

/// Starts a recording of everything that comes and waits until some of it is on disk.
fn recorder_at_work(sessions: &Sessions) -> std::process::Child {
    let child = spawn(&mut sessions.gnntop(["record", "--last", "1h", "--duration", "1h", "-o", "a.gnntop"]));
    let path = sessions.path().join("a.gnntop");
    wait_until(|| fs::metadata(&path).is_ok_and(|meta| meta.len() > 1000));
    child
}

#[test]
fn a_signal_ends_a_recording_cleanly() {
    for name in ["INT", "TERM"] {
        let sessions = Sessions::new();
        let _live = sessions.live("one", &long_run().bytes());
        let child = recorder_at_work(&sessions);
        signal(&child, name);
        let ran = crate::sessions::Ran::new(&child.wait_with_output().unwrap());
        assert!(ran.code == Some(0) && ran.err.contains("interrupted"), "{ran:?}");
        let report = sessions.run(["report", "a.gnntop"]);
        assert!(report.out.contains("400 steps") && report.err.is_empty(), "{report:?}");
    }
}

#[test]
fn killed_recorder_leaves_a_valid_recording() {
    let sessions = Sessions::new();
    let _live = sessions.live("one", &long_run().bytes());
    let mut child = recorder_at_work(&sessions);
    let is_whole = || {
        let report = sessions.run(["report", "a.gnntop"]);
        report.code == Some(0) && report.out.contains("400 steps") && report.err.is_empty()
    };
    // A kill in the middle of a write leaves part of it, which is damage at the end.
    wait_until(is_whole);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_whole());
}

#[test]
fn sizes_and_times_are_bounds() {
    let sessions = Sessions::new();
    sessions.ended("one", &long_run().bytes());
    let ran = sessions.run(["record", "pna", "-o", "a.gnntop", "--max-size", "4K"]);
    assert!(ran.code == Some(1) || ran.code == Some(0), "{ran:?}");
    assert!(fs::metadata(sessions.path().join("a.gnntop")).map_or(0, |meta| meta.len()) <= 4096);
    let _live = sessions.live("two", &TrainingRun { name: "gin", ..long_run() }.bytes());
    let quiet = sessions.run(["record", "gin", "-o", "b.gnntop", "--duration", "100ms"]);
    assert!(matches!(quiet.code, Some(0 | 1)), "{quiet:?}");
    assert_eq!(sessions.run(["record", "gin", "--duration", "soon"]).code, Some(2));
}
