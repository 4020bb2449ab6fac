//! Columns of text: the first aligned left, the others right.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::wrap::hanging;

/// Maximum width of tables, if possible.
pub(in crate::report) const WIDTH: usize = 80;
/// The first column is not cut to less than this.
const NARROWEST: usize = 10;

/// Rows of cells, the first column aligned left, the others right.
pub fn table(rows: &[Vec<String>]) -> String {
    let mut out = String::new();
    write(&mut out, rows);
    out
}

/// Writes rows of cells with aligned columns. If needed to keep the table within 80 columns, columns are closer
/// together and the first one is cut.
pub(in crate::report) fn write(out: &mut String, rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max();
    let mut widths: Vec<usize> = (0..columns).map(|column| widest(column).unwrap_or(0)).collect();
    let total = |widths: &[usize], space: usize| widths.iter().sum::<usize>() + space * widths.len().saturating_sub(1);
    let space = if total(&widths, 2) <= WIDTH { 2 } else { 1 };
    let excess = total(&widths, space).saturating_sub(WIDTH);
    if let Some(first) = widths.first_mut() {
        *first = first.saturating_sub(excess).max(NARROWEST.min(*first));
    }
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let cell = cut(cell, *width);
            let padding = " ".repeat(width - cell.width());
            let between = if column == 0 { 0 } else { space };
            line.extend(std::iter::repeat_n(' ', between));
            line += &if column == 0 { cell + &padding } else { padding + &cell };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

/// A text in at most `width` columns, with an ellipsis if it was cut.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    kept
}

/// Writes a text after `first`; further lines are aligned with it.
pub(in crate::report) fn indented(out: &mut String, first: &str, text: &str) {
    wrapped(out, first, &" ".repeat(first.width()), text);
}

/// Writes a text after `first`, broken between words; further lines follow `below`.
pub(in crate::report) fn wrapped(out: &mut String, first: &str, below: &str, text: &str) {
    out.push_str(&hanging(first, below, text, WIDTH));
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(rows: &[&[&str]]) -> String {
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| cell.to_string()).collect()).collect();
        let mut out = String::new();
        write(&mut out, &rows);
        out
    }

    #[test]
    fn columns_align_also_with_wide_characters() {
        assert_eq!(written(&[&["a", "1"], &["前向", "12"]]), "a      1\n前向  12\n");
    }

    #[test]
    fn a_long_name_is_cut_and_the_numbers_stay() {
        let long = "前".repeat(100);
        let text = written(&[&[&long, "123456"], &["x", "7"]]);
        let first = text.lines().next().unwrap();
        assert!(first.width() <= WIDTH && first.ends_with("… 123456"), "{first}");
    }
}
