//! Compares two sides of one or more runs each: which does its work faster, whether there is enough evidence, and whether
//! both did the same work.
//!
//! ```text
//! Run ─▶ Sample: the steps that are compared ─┬─▶ sameness    whether both ran the same thing
//!                                             ├─▶ chance      intervals over steps, or over runs
//!                                             └─▶ Comparison  work a second, then the step, its phases and the gap
//! ```
//!
//! [`prove`] concludes from pairs of runs of two programs, taken in turn, for `gnntop prove`.
//!
//! The compare view, `gnntop compare` and `gnntop check --baseline` all use [`compare`], so that they cannot disagree.

mod answer;
mod chance;
mod compared;
mod pairs;
mod sample;
mod setup_comparison;

pub use answer::{ComparedWork, Comparison, Disturbed, Line, Side, compare};
pub use compared::{Change, Compared};
pub use pairs::{Losses, MeasuredPair, PLANNED_PAIRS, Proof, Proven, TooFewSteps, prove};
pub use setup_comparison::SetupComparison;
