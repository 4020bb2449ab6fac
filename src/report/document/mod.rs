//! Headings, tables, lists and figures, and what writes them: as Markdown, as HTML, as plain text.

mod blocks;
mod chart;
mod html;
mod markdown;
pub(in crate::report) mod markup;
pub(in crate::report) mod plain;

pub use blocks::Document;
pub(in crate::report) use blocks::{Block, Card, StepNote};
pub use chart::{Bar, Chart};
pub use plain::table;
