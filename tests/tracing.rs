//! `gnntop trace` with programs that answer as they should, and with others. That torch is really traced is tested in
//! `python/tests/test_deep_trace.py`.

use std::fs;
use std::path::Path;

use crate::sessions::{Published, Ran, Sessions, signal, spawn, wait_until};
use gnntop_fixtures::TrainingRun;
use gnntop_wire::{Definition, put_definitions};

const TRACE: &str = r#"{"traceEvents":[
    {"ph":"X","cat":"user_annotation","name":"ProfilerStep#7","pid":1,"tid":1,"ts":1000,"dur":2000},
    {"ph":"X","cat":"cpu_op","name":"aten::linear","pid":1,"tid":1,"ts":1100,"dur":900},
    {"ph":"X","cat":"cpu_op","name":"aten::addmm","pid":1,"tid":1,"ts":1200,"dur":600},
    {"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":"Spans","tid":"PyTorch Profiler","ts":900,"dur":2500}]}"#;

/// A session of a program with this framework.
fn program(sessions: &Sessions, framework: &str) -> Published {
    let mut bytes = TrainingRun::default().bytes();
    put_definitions(&mut bytes, &[Definition::Fact { key: "framework".into(), text: framework.into() }]);
    sessions.live("train", &bytes)
}

/// Runs `gnntop trace` with these arguments, and answers its request in the way of the program.
fn traced(sessions: &Sessions, session: &Path, arguments: &[&str], answers: impl Fn(&str)) -> Ran {
    let mut trace = spawn(
        sessions
            .gnntop([&["trace"], arguments].concat())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped()),
    );
    let mut request = String::new();
    wait_until(|| {
        request = fs::read_to_string(session.join("request")).unwrap_or_default();
        !request.is_empty() || trace.try_wait().unwrap().is_some()
    });
    if let [_, id, _] = request.split_whitespace().collect::<Vec<&str>>()[..] {
        answers(id);
    }
    Ran::of(&trace.wait_with_output().unwrap())
}

fn answer(session: &Path, text: &str) {
    fs::write(session.join("answer.new"), text).unwrap();
    fs::rename(session.join("answer.new"), session.join("answer")).unwrap();
}

fn left_in(session: &Path) -> Vec<String> {
    let names = fs::read_dir(session).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| name.starts_with("request") || name.starts_with("answer") || name.starts_with("trace"))
        .collect()
}

#[test]
fn a_trace_is_fetched_and_its_operators_are_listed() {
    let sessions = Sessions::new();
    let session = program(&sessions, "PyTorch 2.15.0");
    let out = sessions.path().join("t.json");
    let ran = traced(&sessions, session.dir(), &["-o", out.to_str().unwrap(), "--steps", "1"], |id| {
        answer(session.dir(), &format!("{id} began 7\n"));
        fs::write(session.dir().join("trace.json"), TRACE).unwrap();
        answer(session.dir(), &format!("{id} done 7 7 2\n"));
    });
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(fs::read_to_string(&out).unwrap(), TRACE);
    let told = |name: &str| {
        ran.out.lines().find(|line| line.starts_with(name)).unwrap().split_whitespace().collect::<Vec<_>>()
    };
    assert!(ran.out.starts_with("1 step, 2.00 ms each\n"), "{ran:?}");
    assert_eq!(told("aten::addmm"), ["aten::addmm", "600", "µs", "1", "30", "%"]);
    assert_eq!(told("aten::linear"), ["aten::linear", "300", "µs", "1", "15", "%"]);
    assert!(!ran.out.contains("PyTorch Profiler"), "{ran:?}");
    assert!(
        ran.err.contains("step 7") && ran.err.contains("ui.perfetto.dev") && ran.err.contains("gnntop attach"),
        "{ran:?}"
    );
    assert_eq!(left_in(session.dir()), [""; 0]);
}

#[test]
fn what_the_program_cannot_do_is_said_and_leaves_no_file() {
    let sessions = Sessions::new();
    let session = program(&sessions, "PyTorch 2.15.0");
    let out = sessions.path().join("t.json");
    let ran = traced(&sessions, session.dir(), &["-o", out.to_str().unwrap()], |id| {
        answer(session.dir(), &format!("{id} failed RuntimeError: another profiler runs\n"));
    });
    ran.refused("cannot be traced: RuntimeError: another profiler runs");
    assert!(!out.exists() && left_in(session.dir()).is_empty());
    let ran = traced(&sessions, session.dir(), &["-o", out.to_str().unwrap(), "--within", "300ms"], |_| ());
    ran.refused("has not ended a step in that time");
    assert!(!out.exists() && left_in(session.dir()).is_empty());
}

#[test]
fn a_program_that_ends_ends_the_wait() {
    let sessions = Sessions::new();
    let mut session = program(&sessions, "PyTorch 2.15.0");
    let dir = session.dir().to_owned();
    let trace =
        spawn(sessions.gnntop(["trace"]).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()));
    wait_until(|| dir.join("request").exists());
    session.die();
    Ran::of(&trace.wait_with_output().unwrap()).refused("ended before the trace was complete");
    assert!(left_in(&dir).is_empty());
    sessions.run(["trace", dir.to_str().unwrap()]).refused("has ended: only a running program can be traced");
}

#[test]
fn an_interrupted_trace_is_withdrawn() {
    let sessions = Sessions::new();
    let session = program(&sessions, "PyTorch 2.15.0");
    let trace = spawn(
        sessions
            .gnntop(["trace", "-o", "t.json"])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped()),
    );
    wait_until(|| session.dir().join("request").exists());
    sessions.run(["trace", "-o", "u.json"]).refused("another `gnntop trace` waits for this program");
    signal(&trace, "INT");
    let ran = Ran::of(&trace.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (Some(130), ""), "{ran:?}");
    assert!(left_in(session.dir()).is_empty() && !sessions.path().join("t.json").exists());
}

#[test]
fn others_than_pytorch_are_told_what_else_there_is() {
    let sessions = Sessions::new();
    let _session = program(&sessions, "candle 0.9");
    sessions.run(["trace"]).refused("is no PyTorch program (candle 0.9), and only PyTorch can be traced");
    let recording = sessions.file("a.gnntop", &TrainingRun::default().bytes());
    sessions.run(["trace", recording.to_str().unwrap()]).refused("is a recording");
    for wrong in ["0", "101", "x"] {
        assert_eq!(sessions.run(["trace", "--steps", wrong]).code, Some(2));
    }
}

#[test]
fn a_file_is_not_overwritten_and_nothing_is_asked_then() {
    let sessions = Sessions::new();
    let session = program(&sessions, "PyTorch 2.15.0");
    sessions.file("t.json", b"mine");
    sessions.run(["trace", "-o", "t.json"]).refused("already exists: use --force to overwrite it");
    assert!(left_in(session.dir()).is_empty());
    assert_eq!(fs::read(sessions.path().join("t.json")).unwrap(), b"mine");
}
