//! A session in numbers, without a screen: gathered from the store into plain data, written as text or JSON.
//!
//! ```text
//! Store ─▶ sections ─▶ Report::of ─┬─ text.rs   for people, 80 columns
//!          (contents.rs)           ├─ to_json   for machines, `schema_version` 1
//!                                  ├─ sheet.rs  CSV, of one or several recordings
//!                                  └─ pages ─▶ Document ─▶ Markdown, HTML with pictures
//! ```
//!
//! `document` does not depend on reports: studies are written with it, too. `compare` writes a comparison, and `gate`
//! compares a recording with limits. In JSON, names of numbers contain their units; what was not measured is `null`,
//! with a `reason` beside it if there is one.

mod compare;
mod contents;
mod document;
mod gate;
mod options;
mod pages;
mod pictures;
mod sections;
mod sheet;
mod text;

pub use compare::compared_in_text;
pub use contents::{Report, SCHEMA_VERSION};
pub use document::{Bar, Chart, Document, table};
pub use gate::{Bound, Measured, Rule, Ruling, ruling_of};
pub use options::Options;
pub use sections::breakdown::{Breakdown, StepParts};
pub use sections::classes::ClassLine;
pub use sections::counters::Counter;
pub use sections::curves::{Curve, Text};
pub use sections::device::Device;
pub use sections::device_memory::{DeviceMemory, DevicePhaseMemory, MemoryKind};
pub use sections::durations::{Durations, PhaseLine, SpanLine};
pub use sections::energy::{self, Component, Energy, EnergyTold, EnergyWatch};
pub use sections::hardware::{Figure, Gpu, Hardware};
pub use sections::memory::{Memory, PhaseMemory};
pub use sections::noted::NotedStep;
pub use sections::percentile_curve::PercentileCurve;
pub use sections::ranks::{RankLine, RunReport};
pub use sections::session::Session;
pub use sections::steps::Steps;
pub use sections::trace::TracePoint;
pub use sheet::to_csv;

#[cfg(test)]
mod tests;
