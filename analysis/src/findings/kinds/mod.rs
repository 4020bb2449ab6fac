//! Kinds of step: lengths that come again and again and that no batch size explains.
//!
//! ```text
//! times ─▶ by position in the epoch ─┬─▶ sides.rs: do the times bear it out? ─▶ Kinds
//!          by rhythm ────────────────┤
//!          by mixture ───────────────┘
//! ```
//!
//! A kind is found among the steps that no kind before it has, until none is left. Of the steps of one kind, what comes
//! from outside the work is no kind of its own: pages faulted in, a CPU that was taken away, a mark that says what happened.

mod causes;
mod found;
mod mixture;
mod repeats;
mod sides;

pub(super) use found::{Kinds, StepKind};
