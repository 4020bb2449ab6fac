//! Loops in Python without torch, which say by themselves what their phases are, and programs that show nothing.

use super::person::{Person, has_python};

const LOOP: &str = "
import time
import gnntop

while True:
    with gnntop.phase('data wait'):
        time.sleep(0.002)
    with gnntop.phase('forward'):
        time.sleep(0.01)
    gnntop.step()
";

#[test]
fn a_loop_in_python_is_watched() {
    let mut person = Person::new();
    person.sessions.file("train.py", LOOP.as_bytes());
    if !has_python(&mut person, "3, 10") {
        return;
    }
    person.open("gnntop run -- python3 train.py");
    person.expect("gnntop  train.py");
    person.expect("forward-bound");
    person.press("q quit", "q");
    assert_eq!(person.wait_for_prompt(), 0);
    person.read("gnntop list", &["train.py", "live"]);
    person.read("gnntop stop", &["python3 train.py", "has ended"]);
}

#[test]
fn where_in_a_python_program_the_time_goes() {
    let mut person = Person::new();
    let slow = LOOP.replace("        time.sleep(0.01)", "        compute()");
    let text = format!("def compute():\n    time.sleep(0.01)\n{slow}");
    person.sessions.file("train.py", text.as_bytes());
    if !has_python(&mut person, "3, 11") {
        return;
    }
    person.open("gnntop run --stacks 50 -- python3 train.py");
    person.expect("forward-bound");
    person.find_in_help("stacks: where in the program the time goes", "f");
    person.expect("compute (train.py:2)");
    person.press("q quit", "q");
    assert_eq!(person.wait_for_prompt(), 0);
    person.read("gnntop stop", &["has ended"]);
}

/// A hundred steps, and then a lock that nobody gives back.
const HANGS: &str = "
import threading, time
import gnntop

def wait_for_lock():
    lock.acquire()

lock = threading.Lock()
lock.acquire()
for _ in range(100):
    with gnntop.phase('forward'):
        time.sleep(0.01)
    gnntop.step()
wait_for_lock()
";

#[test]
fn where_a_program_hangs_and_that_its_report_says_so() {
    let mut person = Person::new();
    person.sessions.file("train.py", HANGS.as_bytes());
    if !has_python(&mut person, "3, 11") {
        return;
    }
    person.open("gnntop run -- python3 train.py");
    person.expect("no step for");
    person.expect("in wait_for_lock (train.py:6)");
    person.press("q quit", "q");
    assert_eq!(person.wait_for_prompt(), 0);
    person.read("gnntop stop", &["has ended"]);
    person.read("gnntop report train.py | grep -m1 'no step'", &["wait_for_lock (train.py:6)"]);
}

#[test]
fn why_a_python_program_shows_no_steps() {
    let mut person = Person::new();
    if !has_python(&mut person, "3, 10") {
        return;
    }
    person.read("gnntop run --plain -- python3 -c pass", &["showed no steps: no Python of it imported torch"]);
}

#[test]
fn a_program_that_asks_gets_the_terminal() {
    let mut person = Person::new();
    person.sessions.file("ask.py", b"print('hello', input('who? '))\n");
    if !has_python(&mut person, "3, 10") {
        return;
    }
    let (said, code) = person.run("gnntop run --plain -- python3 ask.py");
    assert!(code == 1 && said.contains("gnntop run --tty -- ..."), "{said}");
    person.start("clear; gnntop run --tty -- python3 ask.py");
    person.answer("who? ", "me");
    person.expect("hello me");
    assert_eq!(person.wait_for_prompt(), 0);
}

#[test]
fn a_program_that_fails_says_so() {
    let mut person = Person::new();
    person.open("gnntop run -- sh -c 'sleep 2; echo no such data set >&2; exit 4'");
    person.expect("ended with exit code 4");
    person.press("o: its output", "o");
    person.expect("no such data set");
    person.press("q quit", "q");
    assert_eq!(person.wait_for_prompt(), 4);
}
