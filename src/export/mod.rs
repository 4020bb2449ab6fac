//! Recordings in forms that other tools open, written as they are read, in bounded memory.
//!
//! ```text
//! source ─▶ Exporter (what ids mean, the window) ─▶ Format: perfetto │ chrome │ speedscope │ collapsed │ csv │ ndjson │ parquet │ hlog
//! source ─▶ Wide: one row a step, as csv │ parquet
//! Store, Findings ─▶ openmetrics
//! Run, Findings ─▶ otlp
//! Store ─▶ emissions (CodeCarbon's file, and one of its quality)
//! ```

mod chrome;
mod collapsed;
mod definitions;
pub mod emissions;
mod exporter;
mod format;
mod hlog;
pub mod openmetrics;
pub mod otlp;
mod parquet;
mod perfetto;
mod row_groups;
mod rows;
mod speedscope;
mod stack_samples;
mod wide;

pub use exporter::{ExportFormat, Exporter};
pub use wide::{RowFilter, WideExporter, WideForm, phases};
