//! Findings about a session, in words. Reads the store and draws nothing.
//!
//! ```text
//! Store ─▶ Evidence ─▶ checks/*.rs, one a kind ─▶ attribution ─┬─▶ Findings ─▶ verdict line · list · marks above bars · report
//! Ranks ─▶ RankEvidence ─▶ ranks/*.rs, one a kind ───────────────┘
//! ```
//!
//! A check returns what it found, with confidence and evidence, or that there is nothing, or that the evidence is not
//! enough. [`all_findings`] looks at every kept step; [`Watch`] does the same for a running session, over its newest steps and
//! at a bounded cost.

mod attribution;
mod batch_fit;
mod bottleneck;
mod bound;
mod checks;
mod claim;
mod epoch_starts;
mod evidence;
mod few_steps;
mod finding;
mod finding_kind;
mod hardware;
mod headline;
mod judgement;
mod kinds;
mod level_change;
mod number;
mod pauses;
mod ranks;
mod repeated_work;
mod rhythm;
mod robust;
mod run_stretches;
mod sampled_places;
mod stacks;
mod stated_numbers;
pub mod sweep;
mod watch;

pub use bottleneck::Verdict;
pub use evidence::{Class, classes};
pub use finding::{Confidence, EndedFinding, Finding, FindingKind, Findings, NotEnough, Occurrence, Severity};
pub(crate) use hardware::held_mean;
pub use headline::HeadlinePart;
pub use judgement::{Judgement, all_findings, findings_in, judge_newest, judge_run, verdict};
pub use number::Number;
pub use ranks::rank_findings;
pub use stated_numbers::StatedNumber;
pub use watch::Watch;

#[cfg(test)]
mod tests;
