//! The parts of reports: headings, paragraphs, tables, findings and figures, in any format.

use super::chart::Chart;
use gnntop_analysis::findings::Severity;

/// One part of a document.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::report) enum Block {
    Heading(String),
    Paragraph(String),
    /// The first row is the head. The last columns are `details`, left out where a page is too narrow.
    Table {
        rows: Vec<Vec<String>>,
        details: usize,
    },
    /// A head, and rows of a label and words, which may be long.
    Facts(Vec<Vec<String>>),
    List(Vec<String>),
    /// HTML; and lines that say the same in text, if any can.
    Picture {
        html: String,
        lines: Vec<String>,
    },
    /// What bounds the run: the first part, then what else matters.
    Verdict(Vec<String>),
    /// What was found.
    Findings(Vec<Card>),
    /// Steps that findings point to.
    Steps(Vec<StepNote>),
    /// All of something, folded under a line that opens it; `short` is shown above. Text, which cannot be unfolded, has
    /// all of it and no short form.
    Folded {
        line: String,
        short: Vec<Block>,
        all: Vec<Block>,
    },
    /// Side by side if there is room.
    Columns(Vec<Vec<Block>>),
}

impl Block {
    pub(in crate::report) fn heading(text: &str) -> Self {
        Self::Heading(text.to_owned())
    }

    pub(in crate::report) fn table(rows: Vec<Vec<String>>) -> Self {
        Self::Table { rows, details: 0 }
    }

    /// A picture that text lacks.
    pub(in crate::report) fn picture(html: String) -> Self {
        Self::Picture { html, lines: Vec::new() }
    }
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
    pub fn with_title(title: impl Into<String>) -> Self {
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
        self.blocks.push(Block::table(rows));
    }

    /// Adds bars.
    pub fn chart(&mut self, chart: &Chart) {
        self.blocks.push(Block::picture(chart.to_svg()));
    }
}

/// A table with a row for each quantity and a column for each of several recordings.
#[derive(Debug)]
pub(in crate::report) struct ComparisonTable<'r, T> {
    recordings: &'r [(&'r str, T)],
    rows: Vec<Vec<String>>,
}

impl<'r, T: Copy> ComparisonTable<'r, T> {
    /// A head with the names of the recordings, behind what the table is about.
    pub(in crate::report) fn new(about: &str, recordings: &'r [(&'r str, T)]) -> Self {
        let head = std::iter::once(about).chain(recordings.iter().map(|(name, _)| *name)).map(str::to_owned).collect();
        Self { recordings, rows: vec![head] }
    }

    /// Adds a row, with a dash where a recording lacks the quantity; none if all do.
    pub(in crate::report) fn row(&mut self, what: &str, cell: impl Fn(T) -> Option<String>) {
        let cells: Vec<Option<String>> = self.recordings.iter().map(|(_, of)| cell(*of)).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
            self.rows.push(std::iter::once(what.to_owned()).chain(cells).collect());
        }
    }

    /// The table, of one recording as facts; `None` if nothing is known.
    pub(in crate::report) fn table(self) -> Option<Block> {
        let is_of_one = self.recordings.len() == 1;
        (self.rows.len() > 1).then(|| if is_of_one { Block::Facts(self.rows) } else { Block::table(self.rows) })
    }
}
