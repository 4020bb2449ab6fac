//! The parts of reports: headings, paragraphs, tables, findings and figures, in any format.

use super::chart::Chart;
use gnntop_analysis::findings::Severity;

/// One part of a document.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::report) enum Block {
    Heading(String),
    Paragraph(String),
    /// The first row is the head.
    Table(Vec<Vec<String>>),
    List(Vec<String>),
    /// HTML, made by `pictures`; left out in formats without pictures.
    Figure(String),
    /// What bounds the run: the first part, then what else matters.
    Verdict(Vec<String>),
    /// What was found.
    Findings(Vec<Card>),
    /// Steps that findings point to.
    Steps(Vec<StepNote>),
    /// Folded under a line that opens it.
    Folded(String, Vec<Block>),
    /// Side by side if there is room.
    Columns(Vec<Vec<Block>>),
}

/// A finding in a document.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::report) struct Card {
    pub severity: Severity,
    /// Its kind, in words.
    pub title: String,
    /// Its confidence, in a word.
    pub confidence: &'static str,
    /// Its share of the wall time, in words; empty if it has none.
    pub share: String,
    pub summary: String,
    /// HTML; empty for none.
    pub picture: String,
    /// Steps to look at: the anchor of a [`StepNote`], and what the link says.
    pub steps: Vec<(String, String)>,
    pub evidence: Vec<String>,
    pub advice: Vec<String>,
}

/// A step that findings point to.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::report) struct StepNote {
    /// Letters, digits and hyphens, used once in a document.
    pub anchor: String,
    pub title: String,
    /// Its time, and how many times the usual.
    pub time: String,
    /// HTML: its phases.
    pub picture: String,
    /// What happened, in sentences.
    pub sentences: Vec<String>,
}

/// A report on one or several recordings, ready to be written in any format.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub(in crate::report) title: String,
    /// A line or two below the title: where, when, how long.
    pub(in crate::report) about: Vec<String>,
    pub(in crate::report) blocks: Vec<Block>,
}

impl Document {
    /// An empty document, for other reports.
    pub fn titled(title: impl Into<String>) -> Self {
        Self { title: title.into(), about: Vec::new(), blocks: Vec::new() }
    }

    /// Adds a heading.
    pub fn heading(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Heading(text.into()));
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Paragraph(text.into()));
    }

    /// Adds a list; nothing if it is empty.
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
