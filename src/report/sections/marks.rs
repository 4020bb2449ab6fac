//! Marks in a report: how many of each text, where they are, and how long what ended at them took.

use serde::Serialize;

use crate::report::document::Block;
use gnntop_analysis::catalogue::{Catalogue, Statistic};
use gnntop_analysis::figures::{count, duration, percent};
use gnntop_analysis::store::MarkTotals;

/// The marks of one text, in and between the steps of the session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MarkLine {
    /// What they are called.
    pub text: String,
    /// How many.
    pub count: u64,
    /// How many of them are inside a step, by its own timer.
    pub in_steps: u64,
    /// How many of them are between two steps.
    pub between_steps: u64,
    /// How long what ended at them took, where the marks say so.
    pub total_ns: Option<u64>,
    /// That as a share of the wall time of the steps.
    pub share: Option<f64>,
}

impl MarkLine {
    /// The kept marks in or between steps, those that took longest first.
    pub(in crate::report) fn all(figures: &Catalogue<'_>) -> Vec<Self> {
        let lines = figures.marks().iter().filter(|(_, marks)| marks.inside + marks.between > 0);
        let line = |(text, marks): &(&str, MarkTotals)| {
            let called = figures.subject("mark.MARK", text);
            Self {
                text: (*text).to_owned(),
                count: called.whole(Statistic::Count).unwrap_or(0),
                in_steps: marks.inside,
                between_steps: marks.between,
                total_ns: called.whole(Statistic::Total),
                share: called.value(Statistic::Share),
            }
        };
        lines.map(line).collect()
    }
}

/// The section; nothing without marks.
pub(in crate::report) fn blocks(marks: &[MarkLine]) -> Vec<Block> {
    if marks.is_empty() {
        return Vec::new();
    }
    let elsewhere = |line: &MarkLine| line.count.saturating_sub(line.in_steps + line.between_steps);
    let has_others = marks.iter().any(|line| elsewhere(line) > 0);
    let mut heads = vec!["mark", "count", "in steps", "between steps", "took", "share"];
    if has_others {
        heads.insert(4, "before or after all");
    }
    let mut rows = vec![heads.into_iter().map(str::to_owned).collect::<Vec<String>>()];
    let dash = || "-".to_owned();
    for line in marks {
        let mut row = vec![
            line.text.clone(),
            count(line.count),
            count(line.in_steps),
            count(line.between_steps),
            line.total_ns.map_or_else(dash, duration),
            line.share.map_or_else(dash, percent),
        ];
        if has_others {
            row.insert(4, count(elsewhere(line)));
        }
        rows.push(row);
    }
    vec![Block::heading("Marks"), Block::table(rows)]
}
