//! A table of runs as text. Nothing in it is cut where the output has no width.

use crate::runs_table::{FittedColumn, fit};
use gnntop_analysis::many_runs::RunRow;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// More than any table takes.
const NO_LIMIT: usize = 10_000;
/// Stands for a figure that is not known...
const ABSENT: &str = "-";
/// ...and for one that was not read yet.
const AWAITED: &str = "...";

/// Headings, then a line for each run.
pub(super) fn table(rows: &[&RunRow], columns: Option<usize>) -> String {
    let fitted = fit(rows, columns.unwrap_or(NO_LIMIT));
    let headings = line(&fitted, |fitted| fitted.column.heading().to_owned());
    let runs = rows.iter().map(|row| {
        line(&fitted, |fitted| {
            let absent = if fitted.column.is_awaited(row) { AWAITED } else { ABSENT };
            fitted.column.text(row).unwrap_or_else(|| absent.to_owned())
        })
    });
    std::iter::once(headings).chain(runs).collect::<Vec<_>>().join("\n")
}

fn line(fitted: &[FittedColumn], text: impl Fn(&FittedColumn) -> String) -> String {
    let mut line = String::new();
    for column in fitted {
        let text = clipped(&text(column), column.width);
        let before = column.x.saturating_sub(line.width());
        let room = if column.column.is_figure() { column.width.saturating_sub(text.width()) } else { 0 };
        line.extend(std::iter::repeat_n(' ', before + room));
        line.push_str(&text);
    }
    line
}

/// As much of a text as fits into these columns.
fn clipped(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used < columns
    };
    let start: String = text.chars().take_while(fits).collect();
    format!("{start}~")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::runs_table::example::run;
    use gnntop_analysis::many_runs::RunState;

    #[test]
    fn table_has_a_line_for_each_run() {
        let rows = [
            run("pna", RunState::Live, Some(12.5)),
            run("前向传播", RunState::Ended(Some(Duration::from_secs(60))), None),
        ];
        let rows: Vec<&RunRow> = rows.iter().collect();
        let expected = "\
NAME      STATE             STEPS/S  USUAL  BOUND BY  WORST FINDING
pna       live                 12.5    ...  ...       ...
前向传播  ended 1m 00s ago        -      -  ...       ...";
        assert_eq!(table(&rows, None), expected);
        for columns in 12..90 {
            assert!(table(&rows, Some(columns)).lines().all(|line| line.width() <= columns), "{columns}");
        }
        assert_eq!(table(&rows, Some(12)), "NAME\npna\n前向传播");
    }
}
