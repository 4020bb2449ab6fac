//! Watching a recording again: four times as fast, a given step, a part of it over and over.

use gnntop_fixtures::TrainingRun;

use super::person::Person;

#[test]
fn replaying_four_times_as_fast_going_to_a_step_and_looping_over_a_part() {
    let mut person = Person::new();
    person.sessions.file("a.gnntop", &TrainingRun { steps: 1000, ..TrainingRun::default() }.bytes());
    person.open("gnntop replay a.gnntop --speed 4");
    person.expect("replay 4x");
    person.press(": go to", ":");
    person.answer("go to", "step 500");
    person.expect("step 50");
    // The help has it: eighty columns have no room for its name.
    person.press("? help", "a");
    person.press(": go to", ":");
    person.answer("go to", "+2");
    person.press("? help", "a");
    person.expect("part 00:");
    // It has come to the end of the part, and is at its start again.
    person.expect("at 00:19");
    person.press("q quit", "q");
    assert_eq!(person.wait_for_prompt(), 0);
}
