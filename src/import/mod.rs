//! Makes recordings of what other programs measured: tables of steps, and traces in Chrome's format.
//!
//! ```text
//! table.csv ─▶ input.rs ─▶ lines.rs ─▶ cells.rs ─▶ table.rs ─▶ rows.rs ─▶ survey.rs, warnings.rs ─▶ steps.rs ─┐
//!           given and guessed roles: mapping.rs, guess.rs ─▶ columns.rs ─▶┘          marks.rs ───▶┘         ├─▶ writer.rs
//! trace.json ─▶ input.rs ─▶ chrome ─────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! The result is a recording like any other, whose publisher says that it was imported. Nothing is made up: what
//! the input does not have, such as the time between steps without time stamps, is stated in the recording's head;
//! and impossible values are refused, or warned of, with their line.

mod account;
mod anomalies;
mod cells;
pub mod chrome;
mod columns;
mod dialect;
mod error;
mod events;
mod guess;
mod input;
mod layout;
mod lines;
mod mapping;
mod marks;
mod metric;
mod options;
mod order;
mod rows;
mod running;
mod signals;
mod steps;
mod survey;
mod table;
mod units;
mod warnings;
mod writer;

pub use account::ImportSummary;
pub use error::ImportError;
pub use mapping::{Mapping, Role};
pub use options::{CsvOptions, MarkFile, stage_fact};
pub use steps::{Imported, csv};
pub use units::UnitScale;
