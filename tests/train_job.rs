//! How far a program is on the way to its goal: in lists and reports, and told to the controller of a Kubeflow TrainJob, which is a
//! stand-in on loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use gnntop_fixtures::TrainingRun;
use gnntop_wire::{Definition, Fact, put_definitions};
use serde_json::Value;

use crate::pictures::{app_of, screen};
use crate::sessions::{Ran, Sessions, has_python, spawn, wait_until};

const TOKEN: &str = "eyJ.secret-of-this-job.xyz";
const ACCEPTED: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Steps of a program's own, until it may go.
const SCRIPT: &str = "
import gnntop, os, time
for i in range(60):
    with gnntop.span('work'):
        time.sleep(0.01)
    gnntop.step()
while not os.path.exists('go'):
    time.sleep(0.05)
";

/// Requests that came in: head and body.
type Received = Arc<Mutex<Vec<(String, Value)>>>;

/// A controller that gives this answer; an empty one is silence. Returns its address, too.
fn controller(answer: &'static str) -> (Received, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/apis/trainjobs/a/status", listener.local_addr().unwrap());
    let received = Received::default();
    let all = Arc::clone(&received);
    thread::spawn(move || {
        let mut silent = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut reader, mut head, mut len) = (BufReader::new(&mut stream), String::new(), 0);
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {
                let line = head.lines().last().unwrap_or_default().to_ascii_lowercase();
                len = line.strip_prefix("content-length:").map_or(len, |text| text.trim().parse().unwrap());
            }
            let mut body = vec![0; len];
            reader.read_exact(&mut body).unwrap();
            all.lock().unwrap().push((head, serde_json::from_slice(&body).unwrap()));
            stream.write_all(answer.as_bytes()).unwrap();
            silent.push(stream);
        }
    });
    (received, address)
}

fn run(sessions: &Sessions, options: &[&str], address: Option<&str>) -> Command {
    sessions.file("script.py", SCRIPT.as_bytes());
    let token = sessions.file("token", format!("{TOKEN}\n").as_bytes());
    let mut command = sessions.gnntop([&["run", "--plain"], options, &["--", "python3", "script.py"]].concat());
    command.env_remove("KUBEFLOW_TRAINER_SERVER_URL");
    address.map(|address| command.env("KUBEFLOW_TRAINER_SERVER_URL", address));
    command.env("KUBEFLOW_TRAINER_SERVER_TOKEN", token);
    command
}

#[test]
fn goal_is_in_lists_and_reports() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    let child = spawn(&mut run(&sessions, &["--goal", "6000"], None));
    wait_until(|| sessions.run(["list"]).out.contains(" left"));
    sessions.file("go", b"");
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!sessions.run(["list"]).out.contains(" left"), "it is over");
    let text = sessions.run(["report", "script.py"]).out;
    assert!(text.contains("goal: 1.0 % of 6,000 steps (--goal)"), "{text}");
    let report: Value = serde_json::from_str(&sessions.run(["report", "script.py", "--json"]).out).unwrap();
    let goal = &report["session"]["goal"];
    assert_eq!((&goal["number"], &goal["steps"], &goal["share"]), (&6000.into(), &60.into(), &0.01.into()), "{goal}");
    assert!(goal["left_ns"].is_null(), "{goal}");
    let figures = sessions.run(["check", "script.py", "--max", "goal.share=50%"]);
    assert_eq!(figures.code, Some(0), "{figures:?}");
}

#[test]
fn header_has_the_time_left_where_there_is_room() {
    let header = |goal: &str, width| {
        let mut bytes = TrainingRun { steps: 100, ends: false, ..TrainingRun::default() }.bytes();
        let goal = Fact::Goal { goal: goal.parse().unwrap(), by: String::new() };
        put_definitions(&mut bytes, [&Definition::Fact(goal)]);
        screen(&mut app_of(&bytes), width, 24).lines().next().unwrap().to_owned()
    };
    for width in [80, 120] {
        assert!(header("90000", width).contains(" left"), "{}", header("90000", width));
        assert!(!header("100", width).contains(" left"), "it is reached: {}", header("100", width));
    }
    assert!(!header("90000", 40).contains(" left"), "{}", header("90000", 40));
}

#[test]
fn goal_that_is_none_is_refused() {
    let refused = Sessions::new().run(["run", "--goal", "soon", "--", "true"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("such as 10ep"), "{refused:?}");
}

#[test]
fn train_job_is_told_the_progress() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    let (received, address) = controller(ACCEPTED);
    let child = spawn(&mut run(&sessions, &["--goal", "120"], Some(&address)));
    wait_until(|| !received.lock().unwrap().is_empty());
    sessions.file("go", b"");
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!format!("{ran:?}").contains(TOKEN), "{ran:?}");
    let received = received.lock().unwrap().clone();
    let (head, last) = received.last().unwrap();
    assert!(head.starts_with("POST /apis/trainjobs/a/status HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("Authorization: Bearer {TOKEN}\r\n")), "{head}");
    let status = &last["trainerStatus"];
    assert_eq!(status["progressPercentage"], 50, "{status}");
    assert!(status["lastUpdatedTime"].as_str().unwrap().ends_with('Z'), "{status}");
    assert_eq!(status["metrics"][0]["value"], "60", "{status}");
}

#[test]
fn controller_that_fails_or_is_silent_changes_nothing_for_the_program() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    for (answer, said) in [("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "status 403"), ("", "in time")] {
        let sessions = Sessions::new();
        sessions.file("go", b"");
        let (_received, address) = controller(answer);
        let ran = Ran::new(&run(&sessions, &["--goal", "120"], Some(&address)).output().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.err.contains("TrainJob") && ran.err.contains(said), "{ran:?}");
        assert!(!ran.err.contains(TOKEN), "{ran:?}");
    }
}

#[test]
fn token_is_not_sent_unencrypted_over_a_network() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    sessions.file("go", b"");
    let mut command = run(&sessions, &[], Some("http://controller.example:8082/"));
    let ran = Ran::new(&command.output().unwrap());
    assert!(ran.err.contains("KUBEFLOW_TRAINER_SERVER_URL is not used"), "{ran:?}");
}
