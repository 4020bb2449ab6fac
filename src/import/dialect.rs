//! How a table is written, guessed from its first rows: what separates its columns, whether numbers have decimal commas,
//! and where its head is.

use std::io::{BufRead, Read};

use super::cells::{Cells, Splitter, is_absent, parse_iso_time, parse_number};
use super::error::ImportError;
use super::input::Input;
use super::lines::{BadLine, Lines};

/// Rows that a guess rests on.
const SAMPLE: usize = 100;
/// Bytes that are searched for comments above the head.
const COMMENTS_LEN: u64 = 64 * 1024;
/// What may separate columns, the likeliest first where several would do.
const SEPARATORS: [u8; 5] = [b',', b';', b'\t', b'|', b' '];

/// How a table is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    pub(super) separator: u8,
    pub(super) has_decimal_commas: bool,
    /// The columns' names.
    pub(super) columns: Vec<String>,
    /// Whether these are in a comment, so that the first row has numbers.
    pub(super) has_head_in_comment: bool,
}

impl Dialect {
    /// Looks at the first rows; `separator` is given if it is known.
    pub(super) fn detect(input: &Input, separator: Option<u8>) -> Result<Self, ImportError> {
        let rows = first_rows(input)?;
        let Some(head) = rows.first() else { return Err(input.useless("is empty")) };
        let separator = separator.unwrap_or_else(|| detect_separator(&rows));
        let columns = split(head, separator);
        let numbers = |cells: &[String]| cells.iter().all(|cell| is_absent(cell) || is_number(cell));
        if !numbers(&columns) {
            let has_decimal_commas = has_decimal_commas(&rows[1..], separator);
            return Ok(Self { separator, has_decimal_commas, columns, has_head_in_comment: false });
        }
        let comment = comment_above(input)?;
        let comment = split(comment.trim_start_matches('#').trim().as_bytes(), separator);
        if comment.len() != columns.len() || numbers(&comment) {
            return Err(input.useless("the first row has only numbers: it must name the columns"));
        }
        let has_decimal_commas = has_decimal_commas(&rows, separator);
        Ok(Self { separator, has_decimal_commas, columns: comment, has_head_in_comment: true })
    }

    /// In words, for the person who imports.
    pub(super) fn describe(&self) -> String {
        let separator = match self.separator {
            b',' => "commas",
            b';' => "semicolons",
            b'\t' => "tabs",
            b' ' => "spaces",
            b'|' => "bars",
            _ => "what --separator says",
        };
        let commas = if self.has_decimal_commas { "; numbers have decimal commas" } else { "" };
        let head = if self.has_head_in_comment { "; the last comment above the rows names them" } else { "" };
        format!("columns are separated by {separator}{commas}{head}")
    }
}

fn is_number(cell: &str) -> bool {
    parse_number(cell, false).is_some() || parse_number(cell, true).is_some() || parse_iso_time(cell).is_some()
}

fn first_rows(input: &Input) -> Result<Vec<Vec<u8>>, ImportError> {
    let (mut lines, mut rows, mut row) = (Lines::new(input.text()?), Vec::new(), Vec::new());
    while rows.len() <= SAMPLE {
        match lines.next(&mut row) {
            Ok(Some(line)) if std::str::from_utf8(&row).is_err() => return Err(not_utf8(input, line)),
            Ok(Some(_)) => rows.push(row.clone()),
            Ok(None) => break,
            Err(BadLine::Io(error)) => return Err(input.failed(error)),
            Err(BadLine::Row(line, reason)) => return Err(input.useless(format!("line {line} {reason}"))),
        }
    }
    Ok(rows)
}

/// The message about a row that is not UTF-8.
pub(super) fn not_utf8(input: &Input, line: u64) -> ImportError {
    input.useless(format!("line {line} is not UTF-8 text: save the table as UTF-8"))
}

fn split(row: &[u8], separator: u8) -> Vec<String> {
    let mut cells = Cells::default();
    let row = [row.strip_suffix(b"\n").unwrap_or(row), b"\n"].concat();
    Splitter::new(separator).split(&row, &mut cells);
    cells.iter().map(str::to_owned).collect()
}

/// What gives all rows the same number of cells, and most of them; else what is most frequent in the head.
fn detect_separator(rows: &[Vec<u8>]) -> u8 {
    let cells = |row: &Vec<u8>, separator: u8| split(row, separator).len();
    // If there are several rows, the last may be cut.
    let whole = if rows.len() < 3 { rows } else { &rows[..rows.len() - 1] };
    let fits = |separator: &u8| {
        let first = cells(&rows[0], *separator);
        first > 1 && whole.iter().all(|row| cells(row, *separator) == first)
    };
    let most = |a: &u8, b: &u8| cells(&rows[0], *a).cmp(&cells(&rows[0], *b));
    // Of equals the first: max_by takes the last.
    let fitting = SEPARATORS.into_iter().rev().filter(fits).max_by(most);
    fitting.or_else(|| SEPARATORS.into_iter().take(4).rev().max_by(most)).unwrap_or(b',')
}

/// Whether there are numbers that only a decimal comma explains, and none with a point.
fn has_decimal_commas(rows: &[Vec<u8>], separator: u8) -> bool {
    let cells: Vec<String> = rows.iter().flat_map(|row| split(row, separator)).collect();
    let with = |c: char, has_commas: bool| {
        cells.iter().any(|cell| cell.matches(c).count() == 1 && parse_number(cell, has_commas).is_some())
    };
    with(',', true) && !with('.', false)
}

/// The last comment above the first row.
fn comment_above(input: &Input) -> Result<String, ImportError> {
    let mut last = String::new();
    for line in input.text()?.take(COMMENTS_LEN).lines() {
        let line = line.map_err(|error| input.failed(error))?;
        match line.trim_start_matches('\u{feff}').trim() {
            "" => (),
            text if text.starts_with('#') => last = text.to_owned(),
            _ => break,
        }
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn dialect(text: &str) -> Result<Dialect, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.csv");
        fs::write(&path, text).unwrap();
        Dialect::detect(&Input::open(&path).unwrap(), None).map_err(|error| error.to_string())
    }

    #[test]
    fn separator_and_decimal_comma_are_distinguished() {
        let of = |text: &str| {
            let found = dialect(text).unwrap();
            (found.separator, found.has_decimal_commas, found.columns.len())
        };
        assert_eq!(of("a,b\n1.5,2\n"), (b',', false, 2));
        assert_eq!(of("a;b\n1,5;2\n1,6;2\n"), (b';', true, 2));
        assert_eq!(of("a\tb c\n1\t2\n3\t4\n"), (b'\t', false, 2));
        assert_eq!(of("a b\n1 2\n"), (b' ', false, 2));
        assert_eq!(of("step_ms\n1\n2\n"), (b',', false, 1));
        assert_eq!(of("a,b\n\"1,5\",\"2,5\"\n"), (b',', true, 2));
        assert_eq!(of("a;b\n\"1.5\";\"2,500\"\n"), (b';', false, 2), "a point is a point");
    }

    #[test]
    fn head_in_comment_is_read_and_missing_head_is_refused() {
        let found = dialect("# made by numpy\n# step,step_ms\n1,2.5\n2,2.6\n").unwrap();
        assert_eq!(
            (found.columns.as_slice(), found.has_head_in_comment),
            (&["step".to_owned(), "step_ms".to_owned()][..], true)
        );
        assert!(dialect("1,2.5\n2,2.6\n").unwrap_err().contains("it must name the columns"));
        assert!(dialect("\n# only comments\n").unwrap_err().contains("is empty"));
    }
}
