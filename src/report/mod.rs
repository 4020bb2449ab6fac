//! A session in numbers, without a screen: gathered from the store into plain data, written as text or JSON.
//!
//! ```text
//! Store ─▶ sections ─▶ Report ─┬─ to_json   for machines, `schema_version` 1
//!                              └─ run.rs ─▶ Document ─▶ text in 80 columns, Markdown, HTML with pictures
//! Catalogue ─▶ sheet.rs  CSV, of one or several recordings
//! ```
//!
//! `document` does not depend on reports: studies are written with it, too. `comparison` makes one of two runs, and `gate`
//! compares a recording with limits. In JSON, names of numbers contain their units; what was not measured is `null`,
//! with a `reason` beside it if there is one.

mod comparison;
mod document;
mod gate;
mod options;
mod pictures;
mod run;
mod sections;
mod sheet;

pub use document::{Bar, Chart, Document, aligned};
pub use gate::{Bound, Rule, Ruling, ruling_of};
pub use options::Options;
pub use sections::energy::{self, Component, EnergyTold, EnergyWatch};
pub use sections::{Report, SCHEMA_VERSION};
pub use sheet::to_csv;

#[cfg(test)]
mod tests;
