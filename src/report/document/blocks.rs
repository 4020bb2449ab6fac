//! What reports are made of: headings, paragraphs, tables, lists and figures, whatever they are written as.

use super::chart::Chart;

/// One part of a document.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::report) enum Block {
    Heading(String),
    Paragraph(String),
    /// The first row is the head.
    Table(Vec<Vec<String>>),
    List(Vec<String>),
    /// SVG; left out where there are no pictures.
    Figure(String),
}

/// A report on one or several recordings, ready to be written in any form.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub(in crate::report) title: String,
    pub(in crate::report) blocks: Vec<Block>,
}

impl Document {
    /// An empty document, for reports of another kind.
    pub fn titled(title: impl Into<String>) -> Self {
        Self { title: title.into(), blocks: Vec::new() }
    }

    /// Adds a heading.
    pub fn heading(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Heading(text.into()));
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Paragraph(text.into()));
    }

    /// Adds a list; nothing where it is empty.
    pub fn list(&mut self, lines: Vec<String>) {
        if !lines.is_empty() {
            self.blocks.push(Block::List(lines));
        }
    }

    /// Adds a table, whose first row is its head.
    pub fn table(&mut self, rows: Vec<Vec<String>>) {
        self.blocks.push(Block::Table(rows));
    }

    /// Adds bars.
    pub fn chart(&mut self, chart: &Chart) {
        self.blocks.push(Block::Figure(chart.to_svg()));
    }
}
