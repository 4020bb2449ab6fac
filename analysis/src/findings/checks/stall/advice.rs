//! Advice about marks, whatever they cost.

use crate::figures::count;

/// What to try, by the text of the marks.
pub(super) fn advice(name: &str) -> &'static str {
    let name = name.to_lowercase();
    let speaks_of = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if speaks_of(&["gc", "garbage"]) {
        "collect garbage only between epochs"
    } else if speaks_of(&["checkpoint", "save"]) {
        "write checkpoints from another thread"
    } else if speaks_of(&["eval", "valid", "test"]) {
        "evaluate outside the timed training step"
    } else if speaks_of(&["epoch"]) {
        "look for what every epoch sets up again, such as the loader's workers"
    } else {
        "look at what the program does at these marks"
    }
}

/// Whether some of them are where few people look.
pub(super) fn outside(marks: u64) -> String {
    let verb = if marks == 1 { "is" } else { "are" };
    format!("{} of them {verb} between steps, where timers around steps miss them", count(marks))
}
