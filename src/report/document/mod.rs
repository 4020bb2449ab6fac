//! Headings, tables, lists and pictures, and what writes them: as text, as Markdown, as HTML.

mod blocks;
mod chart;
mod html;
mod markdown;
pub(in crate::report) mod markup;
mod text;

pub use blocks::Document;
pub(in crate::report) use blocks::{Block, Card, ComparisonTable, StepNote};
pub use chart::{Bar, Chart};
pub use text::aligned;
