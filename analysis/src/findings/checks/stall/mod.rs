//! Stalls at marks: steps, or the time between them, that are long where the program reports that something happened: a
//! garbage collection, a checkpoint, an evaluation, an epoch.
//!
//! A mark with a duration costs that much. Others are matched with their steps by time: rare ones by how much longer
//! than usual these are, frequent ones by how much longer than the steps without.

mod frequent;
mod marked;
mod rare;
mod timed;

use marked::Marked;

use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Finding};

/// Marks at more than one in this many steps are frequent.
const OFTEN: usize = 4;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let by_text = Marked::by_text(evidence);
    if by_text.is_empty() {
        return CheckOutcome::NotEnough(
            "the program reports no events during its steps, such as garbage collections".to_owned(),
        );
    }
    let found: Vec<Finding> = by_text.iter().filter_map(|(text, marked)| finding(evidence, text, marked)).collect();
    match by_text.iter().find(|(_, marked)| is_everywhere(evidence, marked)) {
        Some((text, _)) if found.is_empty() => CheckOutcome::NotEnough(format!(
            "\"{text}\" marks nearly every step and has no duration, so there are no other steps to compare with"
        )),
        _ => found.into(),
    }
}

fn finding(evidence: &StepEvidence<'_>, text: &str, marked: &Marked) -> Option<Finding> {
    let is_frequent = marked.effects.len() * OFTEN > evidence.rows.len();
    match marked.own_ns {
        Some(_) => timed::finding(evidence, text, marked),
        None if is_frequent => frequent::finding(evidence, text, marked),
        None => rare::finding(evidence, text, marked),
    }
}

/// Whether nearly every step has such a mark, and none of them has a duration.
fn is_everywhere(evidence: &StepEvidence<'_>, marked: &Marked) -> bool {
    marked.own_ns.is_none() && marked.effects.len() + 10 > evidence.rows.len()
}
