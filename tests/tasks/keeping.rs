//! Keeping what has just happened, leaving, coming back, stopping.

use super::person::Person;

#[test]
fn keeping_the_last_seconds_leaving_coming_back_and_stopping() {
    let mut person = Person::new();
    person.open("gnntop run -- ./train");
    person.expect_step(60);
    person.press("q quit", "q");
    // What to type next stands there.
    person.expect("to see it again:  gnntop attach ");
    person.expect("to stop it:       gnntop stop ");
    assert_eq!(person.wait_for_prompt(), 0);
    person.read("gnntop list", &["train", "live"]);
    person.read("gnntop record --last 30s -o kept.gnntop", &["kept.gnntop"]);
    person.read("gnntop report kept.gnntop | grep ^backward", &["ms"]);
    person.open("gnntop attach");
    person.expect("● live");
    person.press("q quit", "q");
    assert_eq!(person.wait_for_prompt(), 0);
    person.read("gnntop stop", &["train", "has ended"]);
    person.read("gnntop list", &["train", "ended"]);
}

#[test]
fn coming_back_to_a_program_that_publishes_nothing() {
    let mut person = Person::new();
    person.open("gnntop run -- nice sh -c 'sleep 100'");
    person.expect("gnntop  sleep");
    person.expect("this program publishes no steps");
    person.press("q quit", "q");
    assert_eq!(person.wait_for_prompt(), 0);
    person.read("gnntop list", &["sleep", "live"]);
    person.open("gnntop attach");
    person.expect("gnntop  sleep");
    person.press("q quit", "q");
    assert_eq!(person.wait_for_prompt(), 0);
    person.read("gnntop stop sleep", &["has ended"]);
}
