//! A session in numbers, without a screen: gathered from the catalogue into plain data, written as text or JSON.
//!
//! ```text
//! Catalogue ─▶ sections ─▶ Report ─┬─ to_json   for machines, `schema_version` 1
//!                                  └─ documents.rs ─▶ Document ─▶ text in 80 columns, Markdown, HTML with pictures
//! Catalogue ─▶ figures_csv.rs  CSV, of one or several recordings
//! ```
//!
//! `document` does not depend on reports: studies are written with it, too. `gate` compares a recording
//! with limits. In JSON, names of numbers contain their units; what was not measured is `null`,
//! with a `reason` beside it if there is one.

mod document;
mod documents;
mod figures_csv;
mod gate;
mod options;
mod pictures;
mod sections;

pub use document::{Bar, Chart, Document, aligned};
pub use figures_csv::to_csv;
pub use gate::{Bound, Rule, Ruling, rule_change};
pub use options::Options;
pub use sections::energy::{self, Component, EnergySnapshot, EnergyWatch};
pub use sections::{Report, SCHEMA_VERSION};

#[cfg(test)]
mod tests;
