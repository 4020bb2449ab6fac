//! What to say of marks, whatever they cost.

use crate::figures::count;

/// What to try, by what the marks are called.
pub(super) fn advice(name: &str) -> &'static str {
    let name = name.to_lowercase();
    let speaks_of = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if speaks_of(&["gc", "garbage"]) {
        "collect garbage between epochs instead of at any time, or freeze what lives long"
    } else if speaks_of(&["checkpoint", "save"]) {
        "write checkpoints from another thread, or less often"
    } else if speaks_of(&["eval", "valid", "test"]) {
        "evaluation is work of its own: keep it out of a training step's time"
    } else if speaks_of(&["epoch"]) {
        "see what is set up again for every epoch, such as the loader's workers"
    } else {
        "see what the program does at these marks"
    }
}

/// That some of them lie where few look.
pub(super) fn outside(marks: u64) -> String {
    let verb = if marks == 1 { "lies" } else { "lie" };
    format!("{} of them {verb} between steps, where timers around steps miss them", count(marks))
}
