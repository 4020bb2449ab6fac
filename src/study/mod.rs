//! A study: a sweep over settings, described in a file, and what its recordings say side by side.
//!
//! ```text
//! FILE.toml ─▶ file.rs ─▶ Study (plan.rs) ─▶ runs, in order ─▶ recordings ─▶ Numbers (measured.rs)
//!                                                                                 │
//!      published values and conclusions (published.rs) ─▶ document.rs ◀─────┘ ─▶ Document
//! ```
//!
//! Nothing here starts a program or prints; `cli/study.rs` does.

mod document;
mod file;
mod measured;
mod pictures;
mod plan;
mod published;
mod tables;

pub use document::document;
pub use file::{FileError, read};
pub use measured::{MeasuredSetting, Numbers};
pub use plan::{FigurePlan, PlannedRun, Program, Study, StudySetting};
pub use published::{Claim, Expected, Holds, Published, PublishedComparison, Subject};
