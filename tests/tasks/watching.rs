//! Looking at a run that goes on: what bounds it, percentiles of a part of it, its energy.

use super::person::{LEFT, Person};

#[test]
fn starting_a_training_and_saying_what_bounds_it() {
    let mut person = Person::new();
    person.open("gnntop run -- ./train");
    // The second line says it in words.
    person.expect_step(60);
    person.expect("backward-bound");
    person.press("q quit", "q");
    person.expect("gnntop stop ");
    assert_eq!(person.wait_for_prompt(), 0);
    person.read("gnntop stop", &["has ended"]);
}

#[test]
fn reading_the_percentiles_of_a_range_of_steps() {
    let mut person = Person::new();
    person.open("gnntop run -- ./train");
    person.show_view("2 steps");
    person.expect_step(60);
    person.press("Space freeze", " ");
    person.press("←→ step", LEFT);
    person.press("v range", "v");
    for _ in 0..9 {
        person.press("←→ step", LEFT);
    }
    person.expect("10 steps selected");
    person.press("3 percentiles", "3");
    person.expect("10 selected steps");
    person.expect("p99");
    person.press("q quit", "q");
    assert_eq!(person.wait_for_prompt(), 0);
    person.read("gnntop stop", &["has ended"]);
}

#[test]
fn reading_what_a_step_costs_in_energy() {
    let mut person = Person::new();
    person.open("gnntop run -- ./train");
    person.expect_step(60);
    person.show_view("6 energy");
    // What it is made of depends on the machine, and that is said.
    person.expect("a step");
    let says_how = ["modelled", "measured", "counted", "no counter"].iter().any(|word| person.screen().contains(word));
    assert!(says_how, "{}", person.screen());
    person.press("q quit", "q");
    assert_eq!(person.wait_for_prompt(), 0);
    person.read("gnntop stop", &["has ended"]);
}
