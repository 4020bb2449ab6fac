//! Keeping what has just happened, leaving, coming back, stopping.

use super::person::Person;

#[test]
fn keeping_the_last_seconds_leaving_coming_back_and_stopping() {
    let mut person = Person::sits_down();
    person.opens("gnntop run -- ./train");
    person.sees("step 60");
    person.presses("q quit", "q");
    // What to type next stands there.
    person.sees("to see it again:  gnntop attach ");
    person.sees("to stop it:       gnntop stop ");
    assert_eq!(person.is_back(), 0);
    person.reads("gnntop list", &["train", "live"]);
    person.reads("gnntop record --last 30s -o kept.gnntop", &["kept.gnntop"]);
    person.reads("gnntop report kept.gnntop | grep ^backward", &["ms"]);
    person.opens("gnntop attach");
    person.sees("● live");
    person.presses("q quit", "q");
    assert_eq!(person.is_back(), 0);
    person.reads("gnntop stop", &["train", "has ended"]);
    person.reads("gnntop list", &["train", "ended"]);
}

#[test]
fn coming_back_to_a_program_that_publishes_nothing() {
    let mut person = Person::sits_down();
    person.opens("gnntop run -- nice sh -c 'sleep 100'");
    person.sees("gnntop  sleep");
    person.sees("this program publishes no steps");
    person.presses("q quit", "q");
    assert_eq!(person.is_back(), 0);
    person.reads("gnntop list", &["sleep", "live"]);
    person.opens("gnntop attach");
    person.sees("gnntop  sleep");
    person.presses("q quit", "q");
    assert_eq!(person.is_back(), 0);
    person.reads("gnntop stop sleep", &["has ended"]);
}
