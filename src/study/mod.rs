//! A study: a sweep over settings, described in a file, and what its recordings say side by side.
//!
//! ```text
//! FILE.toml ─▶ file.rs ─▶ Study (plan.rs) ─▶ runs, in order ─▶ recordings ─▶ Numbers (numbers.rs)
//!                                                                                 │
//!      published values and conclusions (published.rs, claims.rs) ─▶ document.rs ◀─────┘ ─▶ Document
//! ```
//!
//! Nothing here starts a program or prints; `cli/study.rs` does.

mod claims;
mod conclusions;
mod document;
mod file;
mod measured;
mod numbers;
mod pictures;
mod plan;
mod published;
mod tables;

pub use claims::{Claim, Expected, Subject};
pub use document::document;
pub use file::{FileError, read};
pub use measured::MeasuredSetting;
pub use numbers::Numbers;
pub use plan::{FigurePlan, PlannedRun, Program, Study, StudySetting};
pub use published::{Holds, Published, PublishedComparison};
