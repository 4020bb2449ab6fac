//! Makes recordings of what other programs measured: tables of steps, and traces in Chrome's format.
//!
//! ```text
//! table.csv + mapping ─▶ table.rs ─▶ rows.rs ─▶ layout.rs, marks.rs ─▶ steps.rs ─┐
//!                                                                                ├─▶ writer.rs ─▶ recording
//! trace.json ──────────▶ chrome.rs ──────────────────────────────────────────────┘
//! ```
//!
//! What comes out is a recording like any other, whose publisher says that it was imported. Nothing is made up: what
//! the input does not tell, such as the time between steps that have no time stamps, is said in the recording's head.

pub mod chrome;
mod error;
mod given;
mod layout;
mod mapping;
mod marks;
mod rows;
mod steps;
mod table;
mod writer;

pub use error::ImportError;
pub use given::Given;
pub use mapping::{Mapping, Role, Scale};
pub use marks::MarkFile;
pub use steps::{Imported, csv};
