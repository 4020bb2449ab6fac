//! A loop in Python without torch, which says by itself what its phases are.

use super::person::Person;

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
    let new_enough = "python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'";
    if person.run(new_enough).1 != 0 {
        eprintln!("skipped: there is no python3 of 3.10 or newer");
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
fn a_program_that_fails_says_so() {
    let mut person = Person::new();
    person.open("gnntop run -- sh -c 'sleep 2; echo no such data set >&2; exit 4'");
    person.expect("ended with exit code 4");
    person.press("o: its output", "o");
    person.expect("no such data set");
    person.press("q quit", "q");
    assert_eq!(person.wait_for_prompt(), 4);
}
