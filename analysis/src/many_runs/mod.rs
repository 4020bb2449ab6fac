//! Many runs at once: a few figures of each, kept as fresh as a bounded part of a core allows.
//!
//! ```text
//! discover, runs::group ─▶ who there is, who lives                    ┐
//! pace.rs      the end of the newest segment: step, steps a second    ├─▶ watch.rs, each with a budget of CPU time ─▶ row.rs
//! figures.rs   a part of it in a store: bound, findings, GPUs, power  ┘   (budget.rs); the oldest figure is next
//! ```
//!
//! No session is followed and none is read as a whole, so that a look costs the same for a run of an hour and of a week. Every
//! file is opened, read and closed at each look: nothing is mapped, locked or watched, and a shared file system needs no more.

mod budget;
mod figures;
mod pace;
mod row;
mod watch;

pub use figures::{RunFigures, WorstFinding};
pub use pace::Pace;
pub use row::{Aged, RunRow, RunState};
pub use watch::{RunsWatch, SessionsPlace};
