//! The second labelled corpus: runs that small programs with fixed seeds make up, and what must be found in them.
//!
//! [`case`] says what a run is, [`training`] and [`training_loop`] make its stream, [`score`] holds the findings against
//! it; the other files have the runs, a file for each group of classes. They were written before the checks were changed
//! for them.

mod busy;
mod case;
mod clean;
mod energy;
mod filled;
mod gaps;
mod gpus;
mod kinds;
mod machine;
mod marks;
mod random;
mod score;
mod short;
mod steps;
mod training;
mod training_loop;
mod waiting;

use std::collections::BTreeSet;

use case::{Case, Strength};
use score::Scored;

/// All runs, a line for each file of them.
fn cases() -> Vec<Case> {
    [
        clean::cases(),
        busy::cases(),
        steps::cases(),
        kinds::cases(),
        gaps::cases(),
        short::cases(),
        machine::cases(),
        marks::cases(),
        filled::cases(),
        gpus::cases(),
        waiting::cases(),
        energy::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// `cargo test -p gnntop-analysis --test it corpus -- --nocapture` prints the table of `docs/findings.md`.
#[test]
fn corpus_causes_are_found_and_nothing_else() {
    let scored: Vec<Scored> = cases().iter().map(score::score_case).collect();
    println!("{}", score::table(&scored));
    let wrong: Vec<String> =
        scored.iter().flat_map(|one| one.wrong.iter().map(|what| format!("{}: {what}", one.name))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn corpus_is_large_and_names_are_unique() {
    let cases = cases();
    let names: BTreeSet<String> = cases.iter().map(Case::name).collect();
    assert_eq!(names.len(), cases.len(), "two runs have one name");
    assert!(cases.len() >= 100, "{} runs", cases.len());
    assert!(cases.iter().filter(|case| case.strength == Strength::Clean).count() >= 25);
}
