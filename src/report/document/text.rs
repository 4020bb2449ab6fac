//! Documents as text for a terminal, in 80 columns. In tables the first column is aligned left, the others right.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::blocks::{Block, Card, Document};
use crate::wrap::hanging;
use gnntop_analysis::findings::Severity;

/// Maximum width of lines, if possible.
const WIDTH: usize = 80;
/// The first column is not cut to less than this.
const NARROWEST: usize = 10;
/// Labels of facts are at least this wide.
const LABEL: usize = 16;

impl Document {
    /// As text, without pictures. A table is wider than 80 columns only if its numbers are.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        std::iter::once(&self.title).chain(&self.about).filter(|line| !line.is_empty()).for_each(|line| {
            indented(&mut out, "", line);
        });
        write(&mut out, &self.blocks);
        out
    }
}

/// Writes blocks with an empty line between them; none follows a heading, or is between paragraphs.
fn write(out: &mut String, blocks: &[Block]) {
    let mut before: Option<&Block> = None;
    for block in blocks {
        let mut text = String::new();
        write_block(&mut text, block);
        if text.is_empty() {
            continue;
        }
        let is_close = match before {
            Some(Block::Heading(_)) => true,
            Some(Block::Paragraph(_) | Block::Verdict(_)) => matches!(block, Block::Paragraph(_)),
            Some(_) => false,
            None => out.is_empty(),
        };
        out.push_str(if is_close { "" } else { "\n" });
        out.push_str(&text);
        before = Some(block);
    }
}

fn write_block(out: &mut String, block: &Block) {
    match block {
        Block::Heading(text) | Block::Paragraph(text) => indented(out, "", text),
        Block::List(lines) => lines.iter().for_each(|line| item(out, line)),
        Block::Facts(rows) => facts(out, rows),
        Block::Table { rows, details } => out.push_str(&table(&narrowed(rows, *details), WIDTH)),
        Block::Picture { lines, .. } => lines.iter().for_each(|line| out.push_str(&format!("{line}\n"))),
        Block::Verdict(parts) => verdict(out, parts),
        Block::Findings(cards) => cards.iter().for_each(|one| card(out, one)),
        Block::Steps(notes) => {
            for note in notes {
                item(out, &format!("{}, {}: {}", note.title, note.time, note.sentences.join("; ")));
            }
        }
        Block::Folded { line, all, .. } => {
            indented(out, "", &format!("{line}:"));
            all.iter().for_each(|block| write_block(out, block));
        }
        Block::Columns(columns) => columns.iter().for_each(|blocks| write(out, blocks)),
    }
}

/// Breaks between parts where that is enough.
fn verdict(out: &mut String, parts: &[String]) {
    let mut line = String::new();
    for part in parts {
        // One column for the semicolon after it.
        if !line.is_empty() && line.width() + "; ".len() + part.width() + 1 > WIDTH {
            indented(out, "", &format!("{line};"));
            line.clear();
        }
        line += &format!("{}{part}", if line.is_empty() { "" } else { "; " });
    }
    indented(out, "", &line);
}

/// A finding with its evidence and what to try.
fn card(out: &mut String, card: &Card) {
    let weight = match card.severity {
        Severity::Major => "!! ",
        Severity::Minor => " ! ",
        Severity::Note => "   ",
    };
    let share = if card.share.is_empty() { String::new() } else { format!(", {}", card.share) };
    indented(out, weight, &format!("{} ({}{share}): {}", card.title, card.confidence, card.summary));
    card.evidence.iter().for_each(|line| indented(out, "     - ", line));
    card.advice.iter().for_each(|line| indented(out, "     > ", line));
}

/// Rows of a label and words, which are broken to hang behind it. What has no words, such as an empty head, is left out.
fn facts(out: &mut String, rows: &[Vec<String>]) {
    let label = |row: &[String]| row.first().map(|label| label.width()).filter(|width| *width <= 2 * LABEL);
    let width = rows.iter().filter_map(|row| label(row)).fold(LABEL, usize::max);
    for row in rows {
        let [label, text] = row.as_slice() else { continue };
        if !text.is_empty() {
            let padding = " ".repeat(width.saturating_sub(label.width()));
            out.push_str(&hanging(&format!("  {label}{padding} "), &" ".repeat(width + 3), text, WIDTH));
            out.push('\n');
        }
    }
}

/// The table without its last columns, which are details, where it would be too wide with them.
fn narrowed(rows: &[Vec<String>], details: usize) -> Vec<Vec<String>> {
    let widths = widths(rows);
    let all = widths.iter().sum::<usize>() + widths.len().saturating_sub(1);
    let kept = if all > WIDTH { widths.len().saturating_sub(details) } else { widths.len() };
    rows.iter().map(|row| row[..row.len().min(kept)].to_vec()).collect()
}

/// The width of each column.
fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column)).map(|cell| cell.width());
    (0..columns).map(|column| cells(column).max().unwrap_or(0)).collect()
}

/// Rows of cells with aligned columns, as wide as they are.
pub fn aligned(rows: &[Vec<String>]) -> String {
    table(rows, usize::MAX)
}

/// Rows of cells with aligned columns. If needed to keep the table within `width`, columns are closer together and the
/// first one is cut.
fn table(rows: &[Vec<String>], width: usize) -> String {
    let mut out = String::new();
    let mut widths = widths(rows);
    let total = |widths: &[usize], space: usize| widths.iter().sum::<usize>() + space * widths.len().saturating_sub(1);
    let space = if total(&widths, 2) <= width { 2 } else { 1 };
    let excess = total(&widths, space).saturating_sub(width);
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
    out
}

/// A text in at most `width` columns. What is cut out is in its first half: names often differ at their ends.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let end = starting_columns(text.chars().rev(), room - room / 3).chars().rev().collect::<String>();
    format!("{}…{end}", starting_columns(text.chars(), room / 3))
}

/// The first characters, in at most `width` columns.
fn starting_columns(chars: impl Iterator<Item = char>, width: usize) -> String {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= width
        })
        .collect()
}

/// Writes a line of a list.
fn item(out: &mut String, text: &str) {
    out.push_str(&hanging("  ", "    ", text, WIDTH));
    out.push('\n');
}

/// Writes a text after `first`, broken between words; further lines are aligned with it.
fn indented(out: &mut String, first: &str, text: &str) {
    out.push_str(&hanging(first, &" ".repeat(first.width()), text, WIDTH));
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(|cell| cell.to_string()).collect()).collect()
    }

    fn written(blocks: Vec<Block>) -> String {
        Document { blocks, ..Document::with_title("") }.to_text()
    }

    #[test]
    fn columns_align_also_with_wide_characters() {
        assert_eq!(aligned(&rows(&[&["a", "1"], &["前向", "12"]])), "a      1\n前向  12\n");
    }

    #[test]
    fn long_name_is_cut_and_numbers_are_kept() {
        let long = "前".repeat(100);
        let text = table(&rows(&[&[&long, "123456"], &["x", "7"]]), WIDTH);
        let first = text.lines().next().unwrap();
        assert!(first.width() <= WIDTH && first.contains("前…前") && first.ends_with("前 123456"), "{first}");
    }

    #[test]
    fn names_that_differ_at_their_ends_still_differ_once_cut() {
        let place = "wait for the device: item in train (train.py:41)";
        assert_eq!(cut(place, 20), "wait f…(train.py:41)");
        assert_eq!(cut(place, 100), place);
    }

    #[test]
    fn details_are_left_out_where_there_is_no_room_for_them() {
        let (word, wide) = ("x".repeat(30), "y".repeat(30));
        let kept = |rows: &[&[&str]]| narrowed(&self::rows(rows), 1)[0].len();
        assert_eq!(kept(&[&["a", "b", "c"]]), 3);
        assert_eq!(kept(&[&[&word, &wide, &word]]), 2);
    }

    #[test]
    fn a_table_of_two_columns_is_aligned_like_any_other() {
        let text = written(vec![Block::table(rows(&[&["setting", "forward"], &["a", "1 MiB"]]))]);
        assert_eq!(text, "setting  forward\na          1 MiB\n");
    }

    #[test]
    fn facts_hang_behind_their_labels() {
        let long = "word ".repeat(16);
        let text = written(vec![
            Block::heading("Run"),
            Block::Facts(rows(&[&["", ""], &["host", "bench"], &["command", &long]])),
            Block::Paragraph("end".to_owned()),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["Run", "  host             bench"]);
        assert!(lines[2].width() <= WIDTH && lines[3] == format!("{}word word word word", " ".repeat(19)), "{text}");
        assert_eq!(lines[4..], ["", "end"]);
    }

    #[test]
    fn a_verdict_breaks_between_its_parts() {
        let parts = ["a".repeat(40), "b".repeat(37), "c".repeat(2)];
        let text = written(vec![Block::Verdict(parts.to_vec())]);
        assert_eq!(text, format!("{}; {};\ncc\n", parts[0], parts[1]));
    }
}
