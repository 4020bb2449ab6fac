//! Advice about marks, whatever they cost.

use crate::findings::finding::Finding;
use crate::findings::number::Number;

/// What to try, by the text of the marks.
fn advice(name: &str) -> &'static str {
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

/// Adds whether some of them are where few people look, and what to try.
pub(super) fn advised(finding: Finding, text: &str, outside: u64) -> Finding {
    let finding = match outside {
        0 => finding,
        _ => finding.with_evidence_from(|facts| {
            let marks = facts.count(Number::Outside, outside);
            let verb = if outside == 1 { "is" } else { "are" };
            format!("{marks} of them {verb} between steps, where timers around steps miss them")
        }),
    };
    finding.with_advice(advice(text))
}
