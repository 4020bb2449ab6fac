//! A study: a sweep over settings, described in a file, and what its recordings say side by side.
//!
//! ```text
//! FILE.toml ─▶ file.rs ─▶ Study (plan.rs) ─▶ runs, in order ─▶ recordings ─▶ Numbers (numbers.rs)
//!                                                                                 │
//!                             published values (published.rs) ─▶ tables.rs ◀──────┘ ─▶ Document
//! ```
//!
//! Nothing here starts a program or prints; `cli/study.rs` does.

mod file;
mod numbers;
mod plan;
mod published;
mod tables;

pub use file::{FileError, read};
pub use numbers::{Numbers, Unit, unit_of};
pub use plan::{Program, Run, Setting, Study};
pub use published::{Comparison, Holds, Published};
pub use tables::{Measured, document};
