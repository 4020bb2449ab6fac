//! Every number that gnntop knows about a run, by one name: what limits, studies, reports and comparisons read.
//!
//! ```text
//! Store, Run ─▶ context.rs: what several figures need, once
//!                    │
//! rows/*.rs: a row for each subject, with its statistics, units and how they are computed
//!                    │
//! id.rs: FigureId ◀─▶ text ─▶ contents.rs: Catalogue::get, list, resolve ─▶ Measured, or why it is Absent
//!                                                └─▶ page.rs: docs/figures.md
//! ```
//!
//! A figure is added as a row; everything else follows.

mod contents;
mod context;
mod id;
mod measured;
mod names;
mod page;
mod row;
mod rows;
mod statistic;
#[cfg(test)]
mod tests;
mod work;

pub use contents::{Subject, UnknownName};
pub use context::Catalogue;
pub use id::{FigureError, FigureId};
pub use measured::{AbsentFigure, Measured, Population};
pub use page::page;
pub use statistic::Statistic;
