//! Kinds of steps: durations that recur and that no batch size explains.
//!
//! ```text
//! times ─▶ by position in the epoch ─┬─▶ sides.rs: do the times differ clearly? ─▶ Kinds
//!          by rhythm ────────────────┤
//!          by mixture ───────────────┘
//! ```
//!
//! Each kind is looked for among the steps of no earlier kind, until none is left. Causes outside the work make no
//! separate kind: page faults, a CPU that was taken away, a mark that says what happened.

mod found;
mod mixture;
mod repeats;
mod sides;

pub(super) use found::{FoundKinds, StepKind};
