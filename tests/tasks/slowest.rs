//! The slowest step of a run, and why it took so long: by its percentiles, and by what was found.

use gnntop_fixtures::{MS, TrainingRun};

use super::person::{Person, RIGHT};

/// Columns of percentiles; the last one is the slowest.
const PERCENTILES: usize = 8;

#[test]
fn finding_the_slowest_step_and_saying_why() {
    let mut person = Person::sits_down();
    let spikes = vec![(151, "data wait", 270 * MS), (80, "backward", 45 * MS)];
    person.sessions.file("a.gnntop", &TrainingRun { steps: 200, spikes, ..TrainingRun::default() }.bytes());
    person.opens("gnntop replay a.gnntop --speed 100");
    person.sees("end of the recording");
    person.turns_to("3 latency");
    for _ in 0..PERCENTILES {
        person.presses("←→ percentile", RIGHT);
    }
    person.sees("▸310 ms");
    person.presses("Enter show step", "\r");
    person.sees("step 151 selected: 310 ms");
    person.sees("spikes: step 151 took 309 ms, 7.9 x the usual: 270 ms more in data wait");
    person.presses("Enter more", "\r");
    // Beside what the phase usually takes.
    person.sees("W data wait        274 ms");
    person.sees("x 68");
    // The other slow steps are a key away, which the help names.
    person.looks_up("the previous step with a finding", "[");
    person.sees("step 150 selected");
    person.presses("q quit", "q");
    assert_eq!(person.is_back(), 0);
}

#[test]
fn finding_the_slowest_step_of_a_run_that_goes_on() {
    let mut person = Person::sits_down();
    person.opens("gnntop run -- ./train");
    // Every fortieth step is slow in backward; an epoch is long enough to be seen.
    person.sees("epoch 2");
    person.turns_to("2 steps");
    person.presses("Space freeze", " ");
    person.turns_to("3 latency");
    for _ in 0..PERCENTILES {
        person.presses("←→ percentile", RIGHT);
    }
    person.presses("Enter show step", "\r");
    person.sees(" selected: ");
    person.sees("ms more in ");
    person.presses("q quit", "q");
    assert_eq!(person.is_back(), 0);
    person.reads("gnntop stop", &["has ended"]);
}
