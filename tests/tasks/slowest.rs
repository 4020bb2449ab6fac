//! The slowest step of a run, and why it took so long: by its percentiles, and by what was found.

use gnntop_fixtures::{MS, TrainingRun};

use super::person::{Person, RIGHT};

/// Columns of percentiles; the last one is the slowest.
const PERCENTILES: usize = 8;

#[test]
fn finding_the_slowest_step_and_saying_why() {
    let mut person = Person::new();
    let spikes = vec![(151, "data wait", 270 * MS), (80, "backward", 45 * MS)];
    person.sessions.file("a.gnntop", &TrainingRun { steps: 200, spikes, ..TrainingRun::default() }.bytes());
    person.open("gnntop replay a.gnntop --speed 100");
    person.expect("end of the recording");
    person.show_view("3 latency");
    for _ in 0..PERCENTILES {
        person.press("←→ percentile", RIGHT);
    }
    person.expect("▸310 ms");
    person.press("Enter show step", "\r");
    person.expect("step 151 selected: 310 ms");
    person.expect("spikes: step 151 took 309 ms, 7.9 x the usual: 270 ms more in data wait");
    person.press("Enter more", "\r");
    // Beside what the phase usually takes.
    person.expect("W data wait        274 ms");
    person.expect("x 68");
    // The other slow steps are a key away, which the help names.
    person.find_in_help("the previous step with a finding", "[");
    person.expect("step 150 selected");
    person.press("q quit", "q");
    assert_eq!(person.wait_for_prompt(), 0);
}

#[test]
fn going_from_the_slowest_step_to_the_next() {
    let mut person = Person::new();
    let spikes = vec![(151, "data wait", 270 * MS), (80, "backward", 45 * MS)];
    person.sessions.file("a.gnntop", &TrainingRun { steps: 200, spikes, ..TrainingRun::default() }.bytes());
    person.open("gnntop replay a.gnntop --speed 100");
    person.expect("end of the recording");
    for step in ["step 151 selected", "step 80 selected"] {
        person.find_in_help("the slowest step; again: the next slowest", "s");
        person.expect(step);
    }
    person.press("q quit", "q");
    assert_eq!(person.wait_for_prompt(), 0);
}

#[test]
fn finding_the_slowest_step_of_a_run_that_goes_on() {
    let mut person = Person::new();
    person.open("gnntop run -- ./train");
    // Every fortieth step is slow in backward; an epoch is long enough to be seen.
    person.expect("epoch 2");
    person.show_view("2 steps");
    person.press("Space freeze", " ");
    person.show_view("3 latency");
    for _ in 0..PERCENTILES {
        person.press("←→ percentile", RIGHT);
    }
    person.press("Enter show step", "\r");
    person.expect(" selected: ");
    person.expect("ms more in ");
    person.press("q quit", "q");
    assert_eq!(person.wait_for_prompt(), 0);
    person.read("gnntop stop", &["has ended"]);
}
