//! Looking at a run that goes on: what bounds it, percentiles of a part of it, its energy.

use super::person::{LEFT, Person};

#[test]
fn starting_a_training_and_saying_what_bounds_it() {
    let mut person = Person::sits_down();
    person.opens("gnntop run -- ./train");
    // The second line says it in words.
    person.sees("step 60");
    person.sees("backward-bound");
    person.presses("q quit", "q");
    person.sees("gnntop stop ");
    assert_eq!(person.is_back(), 0);
    person.reads("gnntop stop", &["has ended"]);
}

#[test]
fn reading_the_percentiles_of_a_range_of_steps() {
    let mut person = Person::sits_down();
    person.opens("gnntop run -- ./train");
    person.turns_to("2 steps");
    person.sees("step 60");
    person.presses("Space freeze", " ");
    person.presses("←→ step", LEFT);
    person.presses("v range", "v");
    for _ in 0..9 {
        person.presses("←→ step", LEFT);
    }
    person.sees("10 steps selected");
    person.presses("3 percentiles", "3");
    person.sees("10 selected steps");
    person.sees("p99");
    person.presses("q quit", "q");
    assert_eq!(person.is_back(), 0);
    person.reads("gnntop stop", &["has ended"]);
}

#[test]
fn reading_what_a_step_costs_in_energy() {
    let mut person = Person::sits_down();
    person.opens("gnntop run -- ./train");
    person.sees("step 60");
    person.turns_to("6 energy");
    // What it is made of depends on the machine, and that is said.
    person.sees("a step");
    let says_how = ["modelled", "measured", "counted", "no counter"].iter().any(|word| person.screen().contains(word));
    assert!(says_how, "{}", person.screen());
    person.presses("q quit", "q");
    assert_eq!(person.is_back(), 0);
    person.reads("gnntop stop", &["has ended"]);
}
