//! A Python of one process that stops making steps: where it is, while it is so and afterwards. Skipped, and said, without a
//! Python of 3.10 or newer; torch is not needed.

use std::io::{BufRead, BufReader};

use crate::sessions::{Ran, Sessions, has_python, spawn, wait_until};
use serde_json::Value;

/// A hundred steps of 10 ms, and then what `stop()` does.
const LOOP: &str = "
import gnntop, sys, threading, time
lock = threading.Lock()
lock.acquire()

def stop_here():
    STOP

def main():
    for step in range(100):
        with gnntop.span('work'):
            time.sleep(0.01)
        gnntop.step()
    stop_here()

main()
";

fn report(sessions: &Sessions) -> Option<Value> {
    serde_json::from_str(&sessions.run(["report", "loop.py", "--json"]).out).ok()
}

/// What the viewer without a screen says of a loop that ends up in `stop`, and the findings after `gnntop stop`.
fn live_and_later(stop: &str) -> (String, Vec<Value>) {
    let sessions = Sessions::new();
    sessions.file("loop.py", LOOP.replace("STOP", stop).as_bytes());
    let program = spawn(&mut sessions.gnntop(["run", "--plain", "--", "python3", "loop.py"]));
    wait_until(|| report(&sessions).is_some_and(|report| report["steps"]["total"] == 100));
    let mut viewer = spawn(&mut sessions.gnntop(["attach", "loop.py", "--plain", "--interval", "100ms"]));
    let lines = BufReader::new(viewer.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    let said: Vec<String> = lines
        .scan(false, |is_over, line| (!std::mem::replace(is_over, line.starts_with("hang: "))).then_some(line))
        .collect();
    viewer.kill().unwrap();
    viewer.wait().unwrap();
    let stopped = sessions.run(["stop", "loop.py"]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    Ran::new(&program.wait_with_output().unwrap());
    let found = report(&sessions).unwrap()["findings"]["found"].as_array().unwrap().clone();
    (said.last().cloned().unwrap_or_default(), found)
}

#[test]
fn process_that_waits_for_a_lock_is_named_live_and_later() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let (said, found) = live_and_later("lock.acquire()");
    assert!(said.starts_with("hang: no step for ") && said.ends_with(" s, in stop_here (loop.py:7)"), "{said}");
    let summary = found[0]["summary"].as_str().unwrap();
    assert_eq!(found[0]["kind"], "hang", "{found:#?}");
    assert!(summary.starts_with("no step in its last ") && summary.ends_with("in stop_here (loop.py:7)"), "{summary}");
    let others = found[1..].iter().map(Value::to_string).collect::<String>();
    assert!(!others.contains("stop_here"), "where it hangs is evidence of nothing else: {others}");
}

#[test]
fn process_that_waits_for_an_input_is_named() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let (said, found) = live_and_later("import os; os.read(os.pipe()[0], 1)");
    assert!(said.ends_with(" s, in stop_here (loop.py:7)"), "{said}");
    let evidence = found[0]["evidence"].to_string();
    assert!(evidence.contains("waits in the system call read of a pipe"), "{evidence}");
}
