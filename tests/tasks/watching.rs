//! Looking at a run that goes on: what bounds it, which step was slowest and why, percentiles of a part of it, its energy.

use super::person::{ENTER, LEFT, Person};

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
fn finding_the_slowest_step_and_why_it_was_slow() {
    let mut person = Person::sits_down();
    person.reads("STEPS=250 gnntop run --plain --record a.gnntop -- ./train", &[]);
    person.opens("gnntop replay a.gnntop --speed 50");
    person.turns_to("8 findings");
    person.sees("spikes");
    person.sees("more in backward");
    person.looks_up("show the selected place in the steps view", ENTER);
    person.sees("selected: ");
    person.presses("Enter more", ENTER);
    person.sees("against the median");
    person.presses("q quit", "q");
    assert_eq!(person.is_back(), 0);
}

#[test]
fn reading_the_percentiles_of_a_range_of_steps() {
    let mut person = Person::sits_down();
    person.opens("gnntop run -- ./train");
    person.turns_to("2 steps");
    person.sees("step 60");
    person.presses("Space freeze", " ");
    person.presses("←→ step", LEFT);
    person.looks_up("start a range at the selected step, or clear it", "v");
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
