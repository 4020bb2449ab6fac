//! Watching a recording again: four times as fast, a given step, a part of it over and over.

use gnntop_fixtures::TrainingRun;

use super::person::Person;

#[test]
fn replaying_four_times_as_fast_going_to_a_step_and_looping_over_a_part() {
    let mut person = Person::sits_down();
    person.sessions.file("a.gnntop", &TrainingRun { steps: 1000, ..TrainingRun::default() }.bytes());
    person.opens("gnntop replay a.gnntop --speed 4");
    person.sees("replay 4x");
    person.presses(": go to", ":");
    person.answers("go to", "step 500");
    person.sees("step 50");
    person.presses("a loop", "a");
    person.presses(": go to", ":");
    person.answers("go to", "+2");
    person.presses("a loop", "a");
    person.sees("part 00:");
    // It has come to the end of the part, and is at its start again.
    person.sees("at 00:19");
    person.presses("q quit", "q");
    assert_eq!(person.is_back(), 0);
}
