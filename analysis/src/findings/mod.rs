//! What is worth saying about a session, in words: read from the store, drawn by nobody here.
//!
//! ```text
//! Store ─▶ Evidence ─▶ checks/*.rs, one a kind ─▶ attribution ─┬─▶ Findings ─▶ verdict line · list · marks above bars · report
//! Ranks ─▶ SideBySide ─▶ ranks/*.rs, one a kind ───────────────┘
//! ```
//!
//! A check says what it found with how sure it is and on what evidence, that there is nothing, or that the evidence
//! is not enough. [`all`] looks at every step that is kept; [`Watch`] does the same for a running session, over its
//! newest steps and at a bounded cost.

mod attribution;
mod bottleneck;
mod checks;
mod claim;
mod classes;
mod diagnosis;
mod evidence;
mod few_steps;
mod finding;
mod judgement;
mod kernels;
mod kinds;
mod level_change;
mod past;
mod pauses;
mod ranks;
mod rhythm;
mod robust;
mod shape;
mod signals;
mod stacks;
mod stretches;
pub mod sweep;
mod watch;

pub use bottleneck::Verdict;
pub use classes::{Class, classes};
pub use diagnosis::{all, newest, of_run, over, verdict};
pub use finding::{Confidence, Finding, Findings, Kind, NotEnough, Occurrence, Over, Severity};
pub use judgement::Judgement;
pub use ranks::of_ranks;
pub use watch::Watch;

#[cfg(test)]
mod tests;
