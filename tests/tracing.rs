//! `gnntop trace`, and the key for it, with programs that answer as they should, and with others. That torch is really traced is tested in
//! `python/tests/test_deep_trace.py`.

use std::fs;
use std::path::Path;

use crate::pictures::{app_of, press, screen};
use crate::sessions::{Published, Ran, Sessions, signal, spawn, wait_until};
use crate::terminal::Terminal;
use gnntop::app::keys::Key;
use gnntop_fixtures::{MS, START_NS, StreamBuilder, TrainingRun};
use gnntop_wire::{Definition, Fact, TrackRole, put_definitions};

const TRACE: &str = r#"{"traceEvents":[
    {"ph":"X","cat":"user_annotation","name":"ProfilerStep#7","pid":1,"tid":1,"ts":1000,"dur":2000},
    {"ph":"X","cat":"cpu_op","name":"aten::linear","pid":1,"tid":1,"ts":1100,"dur":900},
    {"ph":"X","cat":"cpu_op","name":"aten::addmm","pid":1,"tid":1,"ts":1200,"dur":600},
    {"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":"Spans","tid":"PyTorch Profiler","ts":900,"dur":2500}]}"#;

/// A session of a program with this framework.
fn program(sessions: &Sessions, framework: &str) -> Published {
    let mut bytes = TrainingRun { ends: false, ..TrainingRun::default() }.bytes();
    put_definitions(&mut bytes, &[Definition::Fact(Fact::Framework(framework.into()))]);
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
    Ran::new(&trace.wait_with_output().unwrap())
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
fn refused_trace_is_reported_without_file() {
    let sessions = Sessions::new();
    let session = program(&sessions, "PyTorch 2.15.0");
    let out = sessions.path().join("t.json");
    let ran = traced(&sessions, session.dir(), &["-o", out.to_str().unwrap()], |id| {
        answer(session.dir(), &format!("{id} failed RuntimeError: another profiler runs\n"));
    });
    ran.assert_refused("cannot be traced: RuntimeError: another profiler runs");
    assert!(!out.exists() && left_in(session.dir()).is_empty());
    let ran = traced(&sessions, session.dir(), &["-o", out.to_str().unwrap(), "--within", "300ms"], |_| ());
    ran.assert_refused("finished no step in that time");
    assert!(!out.exists() && left_in(session.dir()).is_empty());
}

#[test]
fn ended_program_ends_the_wait() {
    let sessions = Sessions::new();
    let mut session = program(&sessions, "PyTorch 2.15.0");
    let dir = session.dir().to_owned();
    let trace =
        spawn(sessions.gnntop(["trace"]).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()));
    wait_until(|| dir.join("request").exists());
    session.die();
    Ran::new(&trace.wait_with_output().unwrap()).assert_refused("ended before the trace was complete");
    assert!(left_in(&dir).is_empty());
    sessions.run(["trace", dir.to_str().unwrap()]).assert_refused("has ended: only a running program can be traced");
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
    sessions.run(["trace", "-o", "u.json"]).assert_refused("another `gnntop trace` waits for this program");
    signal(&trace, "INT");
    let ran = Ran::new(&trace.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (Some(130), ""), "{ran:?}");
    assert!(left_in(session.dir()).is_empty() && !sessions.path().join("t.json").exists());
}

#[test]
fn at_slow_asks_only_after_a_slow_step() {
    let sessions = Sessions::new();
    let mut stream = StreamBuilder::new("train");
    let main = stream.track(TrackRole::Training, "main");
    let (mut step, mut t_ns) = (0, START_NS);
    let mut steps = |times: u64, ns: u64| {
        for _ in 0..times {
            step += 1;
            stream.step(main, step, t_ns, t_ns + ns);
            t_ns += ns;
        }
        stream.anchor(t_ns);
        stream.take_bytes()
    };
    let mut bytes = steps(300, 10 * MS);
    put_definitions(&mut bytes, &[Definition::Fact(Fact::Framework("PyTorch 2.15.0".into()))]);
    let session = sessions.live("train", &bytes);
    let trace = spawn(&mut sessions.gnntop(["trace", "--at", "slow", "--within", "60s", "-o", "t.json"]));
    let request = session.dir().join("request");
    std::thread::sleep(std::time::Duration::from_millis(700));
    session.append(&steps(20, 10 * MS));
    std::thread::sleep(std::time::Duration::from_millis(700));
    assert!(!request.exists(), "no step was slow yet");
    session.append(&steps(1, 50 * MS));
    wait_until(|| request.exists());
    signal(&trace, "INT");
    let ran = Ran::new(&trace.wait_with_output().unwrap());
    assert!(ran.code == Some(130) && ran.err.contains("step 321 took 50.0 ms"), "{ran:?}");
}

#[test]
fn trace_of_other_programs_suggests_alternatives() {
    let sessions = Sessions::new();
    let _session = program(&sessions, "candle 0.9");
    sessions.run(["trace"]).assert_refused("is not a PyTorch program (candle 0.9): only PyTorch can be traced. Try ");
    let recording = sessions.file("a.gnntop", &TrainingRun::default().bytes());
    sessions.run(["trace", recording.to_str().unwrap()]).assert_refused("is a recording");
    for wrong in ["0", "101", "x"] {
        assert_eq!(sessions.run(["trace", "--steps", wrong]).code, Some(2));
    }
}

#[test]
fn existing_file_is_kept_and_no_trace_requested() {
    let sessions = Sessions::new();
    let session = program(&sessions, "PyTorch 2.15.0");
    sessions.file("t.json", b"mine");
    sessions.run(["trace", "-o", "t.json"]).assert_refused("already exists: use --force to overwrite it");
    assert!(left_in(session.dir()).is_empty());
    assert_eq!(fs::read(sessions.path().join("t.json")).unwrap(), b"mine");
}

/// The screen of the session, in the directory of sessions.
fn attached(sessions: &Sessions, session: &Published) -> Terminal {
    let mut terminal = Terminal::gnntop_in(
        sessions.path(),
        &["attach", session.dir().to_str().unwrap()],
        &[("GNNTOP_DIR", sessions.path().to_str().unwrap())],
    );
    terminal.wait_for("step 100");
    terminal.press("T");
    terminal.wait_for("which slows them down");
    terminal
}

fn request(session: &Published) -> String {
    let path = session.dir().join("request");
    wait_until(|| path.exists());
    fs::read_to_string(path).unwrap()
}

#[test]
fn trace_key_asks_then_traces() {
    let sessions = Sessions::new();
    let session = program(&sessions, "PyTorch 2.15.0");
    let mut terminal = attached(&sessions, &session);
    terminal.press("x\x1b");
    terminal.wait_until("the question is gone", |screen| !screen.contents().contains("slows them down"));
    assert_eq!(left_in(session.dir()), [""; 0]);

    terminal.press("T\r");
    let request = request(&session);
    let [_, id, steps] = request.split_whitespace().collect::<Vec<&str>>()[..] else { panic!("{request}") };
    assert_eq!(steps, "5");
    fs::write(session.dir().join("trace.json"), TRACE).unwrap();
    answer(session.dir(), &format!("{id} done 7 11 2\n"));
    terminal.wait_for("-trace.json: steps 7 to 11");
    let mut traces = fs::read_dir(sessions.path()).unwrap().map(|entry| entry.unwrap().path());
    let trace = traces.find(|path| path.extension().is_some_and(|is| is == "json")).unwrap();
    assert_eq!(fs::read_to_string(trace).unwrap(), TRACE);
    assert_eq!(left_in(session.dir()), [""; 0]);
}

#[test]
fn leaving_the_screen_withdraws_the_request() {
    let sessions = Sessions::new();
    let session = program(&sessions, "PyTorch 2.15.0");
    let mut terminal = attached(&sessions, &session);
    terminal.press("\r");
    request(&session);
    terminal.press("T\r");
    terminal.wait_for("already running");
    terminal.press("q");
    assert!(terminal.wait_for_exit().success());
    assert_eq!(left_in(session.dir()), [""; 0]);
}

#[test]
fn trace_key_needs_pytorch() {
    let mut app = app_of(&TrainingRun::default().bytes());
    press(&mut app, &[Key::Char('T')]);
    assert_eq!(app.prompt(), None);
    press(&mut app, &[Key::Char('?')]);
    assert!(!screen(&mut app, 120, 60).contains("every operator"));
}

#[test]
fn a_traced_step_is_marked_as_one_and_has_its_operators() {
    let mut stream = StreamBuilder::new("train.py");
    let main = stream.track(TrackRole::Training, "train");
    let operators = stream.track(TrackRole::Operators, "operators");
    for step in 1..=20 {
        let begin_ns = START_NS + (step - 1) * 20 * MS;
        stream.phase(main, step, "forward", begin_ns, begin_ns + 18 * MS);
        if step == 20 {
            stream.span(operators, step, "aten::addmm", begin_ns + MS, begin_ns + 5 * MS);
            stream.span(operators, step, "aten::addmm", begin_ns + 6 * MS, begin_ns + 8 * MS);
            stream.span(operators, step, "aten::relu", begin_ns + 9 * MS, begin_ns + 10 * MS);
        }
        match step {
            20 => stream.traced_step(main, step, begin_ns, begin_ns + 20 * MS),
            _ => stream.step(main, step, begin_ns, begin_ns + 20 * MS),
        }
    }
    let mut app = app_of(&stream.bytes());
    press(&mut app, &[Key::Char('2'), Key::Enter]);
    let shown = screen(&mut app, 100, 40);
    assert!(shown.contains(" traced       a deep trace slowed this step down"), "{shown}");
    assert!(shown.contains(" spans        aten::addmm 6.00 ms in 2, aten::relu 1.00 ms"), "{shown}");
    press(&mut app, &[Key::Left, Key::Left]);
    let shown = screen(&mut app, 100, 40);
    assert!(!shown.contains(" traced ") && !shown.contains("aten::"), "{shown}");
}
