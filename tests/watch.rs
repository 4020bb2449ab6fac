//! `gnntop watch` beside a program that publishes: what it prints, starts and posts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use std::{fs, thread};

use serde_json::Value;

use crate::sessions::{Ran, Sessions, wait_until};
use gnntop_fixtures::TrainingRun;

fn training() -> Vec<u8> {
    TrainingRun { ends: false, ..TrainingRun::default() }.bytes()
}

#[test]
fn a_limit_and_a_death_are_reported_once_each() {
    let sessions = Sessions::new();
    let mut session = sessions.live("train-1-aa", &training());
    let script = "cat >>notices; echo >>notices; echo \"$GNNTOP_NOTICE\" >>texts";
    let on = ["--on", "gap.share>0.1%", "--on", "steps.per_s<1", "--on", "death"];
    let mut watch = sessions.gnntop(["watch", "train-1-aa", "--for", "0s", "--run", script]);
    let watch = watch.args(on).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (notices, texts) = (sessions.path().join("notices"), sessions.path().join("texts"));
    wait_until(|| fs::read_to_string(&texts).is_ok_and(|texts| texts.contains('\n')));
    session.die();
    let ran = Ran::new(&watch.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines.len(), 2, "{ran:?}");
    assert!(lines[0].contains("gap.share is ") && lines[0].contains("at step 100"), "{ran:?}");
    assert!(lines[1].contains("killed?"), "{ran:?}");
    assert_eq!(fs::read_to_string(&texts).unwrap().lines().collect::<Vec<_>>(), lines);
    let reported = fs::read_to_string(&notices).unwrap();
    let reported: Vec<Value> = reported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        reported.iter().map(|notice| notice["cause"].as_str().unwrap()).collect::<Vec<_>>(),
        ["gap.share>0.1%", "death"]
    );
    assert_eq!(reported[0]["text"], lines[0]);
}

/// The body of a request; it is answered with success.
fn body(stream: TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line).unwrap() > 2 {
        let header = line.to_ascii_lowercase();
        length = header.strip_prefix("content-length:").map_or(length, |text| text.trim().parse().unwrap());
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    reader.into_inner().write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
    String::from_utf8(body).unwrap()
}

/// The command lines of all processes, as `ps` shows them.
fn command_lines() -> String {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).into_owned()).collect()
}

#[test]
fn a_notice_is_posted_to_an_address_that_ps_does_not_show() {
    if std::process::Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
        return println!("skipped: there is no curl");
    }
    let sessions = Sessions::new();
    let mut session = sessions.live("train-1-aa", &training());
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/hook/token-4711\n", server.local_addr().unwrap());
    let file = sessions.file("webhook", address.as_bytes());
    let posted = thread::spawn(move || {
        let (stream, _) = server.accept().unwrap();
        let seen = command_lines();
        assert!(!Path::new("/proc/self").exists() || seen.contains("curl"), "it runs now");
        assert!(!seen.contains("token-4711"), "{seen}");
        body(stream)
    });
    // By its name, which is found however late the watch begins.
    let on = ["watch", "train-1-aa", "--on", "death", "--webhook", file.to_str().unwrap()];
    let watch = sessions.gnntop(on).spawn().unwrap();
    session.die();
    let notice: Value = serde_json::from_str(&posted.join().unwrap()).unwrap();
    assert_eq!(notice["cause"], "death");
    assert_eq!(notice["text"], notice["content"]);
    assert_eq!(watch.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn mistakes_are_explained() {
    let sessions = Sessions::new();
    let _session = sessions.live("train-1-aa", &training());
    let refused = |arguments: &[&str]| {
        let ran = sessions.run([&["watch"], arguments].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        ran.err
    };
    assert!(refused(&["--on", "deth"]).contains("give death, end, hang"));
    assert!(refused(&["--webhook", "https://hooks.example/T0"]).contains("put it into a file"));
    assert!(refused(&["--on", "span.nothing.p50>1s"]).contains("nothing"));
}

/// A program that ends its session well, and dies a moment later.
#[test]
#[ignore = "is the program that is started"]
fn a_training_that_fails_at_the_end() {
    use gnntop_probe::{Session, TrackRole, step};
    let session = Session::builder("fails").start();
    let track = session.track("main", TrackRole::Training);
    while !Path::new("go").exists() {
        drop(step(0));
        thread::sleep(Duration::from_millis(5));
    }
    drop(track);
    drop(session);
    thread::sleep(Duration::from_millis(700));
    std::process::exit(9);
}

#[test]
fn a_death_after_the_end_of_the_session_is_reported() {
    let sessions = Sessions::new();
    let this = std::env::current_exe().unwrap().display().to_string();
    let program = ["--exact", "watch::a_training_that_fails_at_the_end", "--ignored", "--nocapture"];
    let mut run = sessions.gnntop([&["run", "--plain", "--", &this], &program[..]].concat());
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until(|| sessions.run(["list"]).out.contains("fails "));
    let mut watch = sessions.gnntop(["watch", "fails", "--on", "death"]);
    let watch = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_millis(500));
    sessions.file("go", b"");
    let ran = Ran::new(&watch.wait_with_output().unwrap());
    assert!(ran.out.contains("exited with code 9"), "{ran:?}");
    assert_eq!(run.wait().unwrap().code(), Some(9));
}
