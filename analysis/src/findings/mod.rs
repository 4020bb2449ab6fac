//! What is worth saying about a session, in words: read from the store, drawn by nobody here.
//!
//! ```text
//! Store ─▶ Evidence ─▶ checks/*.rs, one a kind ─┬─▶ Findings ─▶ verdict line · list · marks above bars · report
//! Ranks ─▶ SideBySide ─▶ ranks/*.rs, one a kind ┘
//! ```
//!
//! A check says what it found with how sure it is and on what evidence, that there is nothing, or that the evidence
//! is not enough. [`all`] looks at every step that is kept; [`Watch`] does the same for a running session, over its
//! newest steps and at a bounded cost.

mod checks;
mod evidence;
mod finding;
mod judgement;
mod ranks;
mod robust;
mod shape;
mod signals;
pub mod sweep;
mod verdict;
mod watch;

use std::ops::Range;

pub use finding::{Confidence, Finding, Findings, Kind, NotEnough, Place, Severity};
pub use judgement::Judgement;
pub use ranks::of_ranks;
pub use verdict::Verdict;
pub use watch::Watch;

use evidence::Evidence;
use finding::Outcome;

use crate::ranks::Run;
use crate::store::{StepRow, Store};

/// Newest steps that are looked at in a running session: enough for a p99, and some milliseconds of work.
const LIVE_STEPS: u64 = 8192;

/// What there is to say about the newest 8,192 steps.
pub fn newest(store: &Store) -> Judgement {
    let end = store.steps().total();
    Judgement::of(store, end.saturating_sub(LIVE_STEPS)..end)
}

/// What there is to say about a run now: about the newest steps of the rank that is looked at, and about all ranks.
pub fn of_run(run: &Run) -> Judgement {
    newest(run.store()).and(of_ranks(&run.ranks()))
}

/// All findings over the steps that the store keeps.
pub fn all(store: &Store) -> Findings {
    over(store, 0..u64::MAX)
}

/// All findings over the steps with these ordinals, as far as they are kept. Signals, counters and marks are looked
/// at over the time of these steps.
pub fn over(store: &Store, ordinals: Range<u64>) -> Findings {
    Findings::of_evidence(&Evidence::of(store, ordinals))
}

impl Findings {
    /// What all checks find, the weightiest first.
    fn of_evidence(evidence: &Evidence<'_>) -> Self {
        let mut findings = Self::default();
        for check in checks::ALL {
            match check.look(evidence) {
                Outcome::Found(found) => findings.found.extend(found),
                Outcome::Nothing => (),
                Outcome::NotEnough(reason) => findings.not_enough.push(NotEnough { kind: check.kind(), reason }),
            }
        }
        findings.sort();
        findings
    }
}

/// What a step is, where steps are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// One of the first, which are slower. Only where they are.
    WarmUp,
    /// Its batch is full, or batches are not told apart.
    Full,
    /// Its batch is smaller than a full one.
    Partial,
}

/// The steps with these ordinals, as far as they are kept, with what each is.
pub fn classes(store: &Store, ordinals: Range<u64>) -> Vec<(StepRow<'_>, Class)> {
    let evidence = Evidence::of(store, ordinals);
    let early = |row: &StepRow<'_>| match shape::batch_size(row).zip(evidence.shape.full) {
        _ if evidence.warm_up_ratio > 0.0 => Class::WarmUp,
        Some((size, full)) if size < full => Class::Partial,
        _ => Class::Full,
    };
    let later = evidence.shape.is_partial.iter().map(|is| if *is { Class::Partial } else { Class::Full });
    let classes = evidence.warm_up.iter().map(early).chain(later).collect::<Vec<Class>>();
    evidence.warm_up.into_iter().chain(evidence.rows).zip(classes).collect()
}

/// The session in one line, from its newest 8,192 steps: what bounds it, what was found, how even its steps are.
pub fn verdict(store: &Store) -> String {
    newest(store).to_string()
}

#[cfg(test)]
mod tests;
