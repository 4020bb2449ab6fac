//! Makes recordings of what other programs measured: tables of steps, traces in Chrome's format, histories of trackers.
//!
//! ```text
//! table.csv ─▶ input.rs ─▶ table_text.rs ─▶ table.rs ─▶ rows.rs ─▶ survey.rs, warnings.rs ─▶ steps.rs ─┐
//!           given and guessed roles: mapping.rs, guess.rs ─▶ columns.rs ─▶┘          marks.rs ───▶┘         ├─▶ writer.rs
//! logs that have steps become tables first: other_text.rs
//! trace.json ─▶ input.rs ─▶ chrome ─────────────────────────────────────────────────────────────────────────┘
//! folders and files of trackers ─▶ history ─────────────────────────────────────────────────────────────────┘
//! ```
//!
//! The result is a recording like any other, whose publisher says that it was imported. Nothing is made up: what
//! the input does not have, such as the time between steps without time stamps, is stated in the recording's head;
//! and impossible values are refused, or warned of, with their line.

mod anomalies;
pub mod chrome;
mod columns;
mod guess;
pub mod history;
mod input;
mod mapping;
mod marks;
mod options;
mod order;
mod other_text;
mod outcome;
mod rows;
mod steps;
mod survey;
mod table;
mod table_text;
mod units;
mod waits;
mod warnings;
mod writer;

pub use mapping::{Mapping, Role};
pub use options::{CsvOptions, MarkFile, stage_fact};
pub use outcome::{ImportError, ImportSummary};
pub use steps::{Imported, csv};
pub use units::UnitScale;
