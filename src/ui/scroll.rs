//! Which lines of many are shown in a few rows.

use super::sheet::Sheet;
use crate::app::LineExtent;

/// The first of `lines` lines to show in `rows` rows of a view scrolled to line `at`; the last rows are never left empty.
/// Notes how far the view can be scrolled.
pub fn first_scrolled(sheet: &mut Sheet<'_>, at: usize, lines: usize, rows: u16) -> usize {
    let last = lines.saturating_sub(usize::from(rows));
    sheet.set_extent(LineExtent { last, page: page(rows) });
    at.min(last)
}

/// The selected one of `lines` lines, where `at` was selected among perhaps more, and the first one to show in `rows` rows.
/// Notes how far the selection can be moved.
pub fn selected_and_first(sheet: &mut Sheet<'_>, at: usize, lines: usize, rows: u16) -> (usize, usize) {
    let last = lines.saturating_sub(1);
    sheet.set_extent(LineExtent { last, page: page(rows) });
    (at.min(last), first_shown(at, lines, rows))
}

/// The first of `lines` lines to show in `rows` rows, so that the line `at` is among them, if possible in the middle.
pub fn first_shown(at: usize, lines: usize, rows: u16) -> usize {
    let rows = usize::from(rows);
    at.min(lines.saturating_sub(1)).saturating_sub(rows / 2).min(lines.saturating_sub(rows))
}

/// A page has all rows but one, which shows where one was.
fn page(rows: u16) -> usize {
    usize::from(rows).saturating_sub(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_line_is_shown_and_no_row_is_wasted() {
        for rows in 0..12u16 {
            for lines in 0..30 {
                for at in 0..40 {
                    let first = first_shown(at, lines, rows);
                    let shown = first..lines.min(first + usize::from(rows));
                    assert_eq!(shown.len(), lines.min(usize::from(rows)));
                    assert!(shown.is_empty() || shown.contains(&at.min(lines - 1)));
                }
            }
        }
    }
}
