//! The text of a table: its lines, how it is written, and its cells.
//!
//! Comments and empty lines are passed over, and a quoted cell may continue in the next line. Every row knows its line, so that
//! whatever is wrong with it can be found. What separates columns, whether numbers have decimal commas, and where the head is, is
//! guessed from the first rows. A cell has a number, also with a decimal comma, or a time in ISO 8601.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

use csv_core::{Reader, ReaderBuilder};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::input::Input;
use super::outcome::ImportError;

/// Cells without a value.
const ABSENT: [&str; 9] = ["", "-", "na", "n/a", "nan", "null", "none", "nil", "?"];

/// Splits rows.
pub(super) struct Splitter {
    separator: u8,
    reader: Reader,
}

/// The cells of one row.
#[derive(Clone, Debug, Default)]
pub(super) struct Cells {
    text: Vec<u8>,
    ends: Vec<usize>,
    len: usize,
}

impl Splitter {
    pub(super) fn new(separator: u8) -> Self {
        Self { separator, reader: ReaderBuilder::new().delimiter(separator).build() }
    }

    /// Splits a row that ends with an end of line. A space as separator may be several.
    pub(super) fn split(&mut self, row: &[u8], cells: &mut Cells) {
        cells.text.resize(cells.text.len().max(row.len()), 0);
        cells.ends.resize(cells.ends.len().max(row.len() + 1), 0);
        let spaced;
        let row = match self.separator {
            b' ' => {
                let words: Vec<&[u8]> = row.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
                spaced = [words.join(&b' ').as_slice(), b"\n"].concat();
                &spaced
            }
            _ => row,
        };
        // A row before it may have ended within quotes, and this one would then continue it.
        self.reader.reset();
        // There is room for any row, so that all of it is split at once.
        cells.len = self.reader.read_record(row, &mut cells.text, &mut cells.ends).3;
    }
}

impl Cells {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// One of them, without spaces around it; empty if there is none.
    pub(super) fn get(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        let cell = if at < self.len { &self.text[start..self.ends[at]] } else { &[] };
        std::str::from_utf8(cell).unwrap_or_default().trim()
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len).map(|at| self.get(at))
    }
}

/// Whether a cell has no value.
pub(super) fn is_absent(text: &str) -> bool {
    // Most cells are numbers.
    !text.starts_with(|first: char| first.is_ascii_digit())
        && ABSENT.iter().any(|absent| absent.eq_ignore_ascii_case(text))
}

/// The number in a cell. With decimal commas a point is not part of a number.
pub(super) fn parse_number(text: &str, has_decimal_commas: bool) -> Option<f64> {
    if !has_decimal_commas {
        return text.parse().ok();
    }
    if text.contains('.') { None } else { text.replace(',', ".").parse().ok() }
}

/// A time as ISO 8601 writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct IsoTime {
    /// Nanoseconds since 1970.
    pub(super) ns: f64,
    /// Whether the text contains its offset from UTC; without one it is taken as UTC.
    pub(super) has_zone: bool,
}

/// Reads `2026-02-03T04:05:06.789+01:00`, with a space instead of the T, a comma before the fraction, or slashes in the
/// date, too.
pub(super) fn parse_iso_time(text: &str) -> Option<IsoTime> {
    // Dates alone, and numbers, which are the usual case, are not.
    if text.len() < 14 || !text.is_char_boundary(10) || !text.as_bytes()[..4].iter().all(u8::is_ascii_digit) {
        return None;
    }
    let mut text = Cow::Borrowed(text);
    if text.contains([',', '/']) || text.ends_with(" UTC") {
        let (date, time) = text.split_at(10);
        let time = time.replace(" UTC", "Z");
        text = Cow::Owned(format!("{}{}", date.replace('/', "-"), time.replace(',', ".")));
    }
    let (time, has_zone) = match text.parse::<Timestamp>() {
        Ok(time) => (time, true),
        Err(_) => (text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp(), false),
    };
    Some(IsoTime { ns: time.as_nanosecond() as f64, has_zone })
}

/// Most bytes of a row: a file without line ends is not a table, and must not fill the memory.
const MAX_LEN: usize = 1 << 20;
/// Empty lines and comments before a row that are read.
const MAX_EMPTY_LINES: u64 = 1_000_000;
/// What some programs put in front of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Why there is no next row.
#[derive(Debug)]
pub(super) enum BadLine {
    /// The file cannot be read on.
    Io(io::Error),
    /// The line is not a row, for this reason.
    Row(u64, &'static str),
}

/// Goes through the rows.
pub(super) struct Lines<R> {
    input: R,
    line: u64,
    /// Lines that begin with `#`, so far.
    pub(super) comments: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, line: 0, comments: 0 }
    }

    /// Reads the next row into `row`, with an end of line and nothing before or after it, and returns its
    /// line, the first where it has several; `None` at the end of the text.
    pub(super) fn next(&mut self, row: &mut Vec<u8>) -> Result<Option<u64>, BadLine> {
        let before = self.line;
        loop {
            row.clear();
            let line = self.line + 1;
            if !self.append(row)? {
                return Ok(None);
            }
            if line - before > MAX_EMPTY_LINES {
                return Err(BadLine::Row(line, "follows a million lines without a row: is this a table?"));
            }
            if line == 1 && row.starts_with(BYTE_ORDER_MARK) {
                row.drain(..BYTE_ORDER_MARK.len());
            }
            let start = row.trim_ascii_start();
            if start.first() == Some(&b'#') {
                self.comments += 1;
                continue;
            }
            if start.is_empty() {
                continue;
            }
            while row.iter().filter(|byte| **byte == b'"').count() % 2 == 1 {
                row.push(b'\n');
                if !self.append(row)? {
                    return Err(BadLine::Row(line, "has a quotation mark that is not closed"));
                }
            }
            if row.contains(&0) {
                return Err(BadLine::Row(line, "holds binary data: is this a table?"));
            }
            row.push(b'\n');
            return Ok(Some(line));
        }
    }

    /// Appends a line without its end; returns false if there is none.
    fn append(&mut self, row: &mut Vec<u8>) -> Result<bool, BadLine> {
        let room = MAX_LEN.saturating_sub(row.len()) as u64;
        let read = (&mut self.input).take(room).read_until(b'\n', row).map_err(BadLine::Io)?;
        if read as u64 == room && row.last() != Some(&b'\n') {
            return Err(BadLine::Row(self.line + 1, "is longer than 1 MiB: is this a table?"));
        }
        self.line += u64::from(read > 0);
        if row.last() == Some(&b'\n') {
            row.pop();
            if row.last() == Some(&b'\r') {
                row.pop();
            }
        }
        Ok(read > 0)
    }
}

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

    #[test]
    fn rows_are_split_whatever_the_separator() {
        let mut cells = Cells::default();
        let mut split = |separator: u8, row: &str| {
            Splitter::new(separator).split(row.as_bytes(), &mut cells);
            cells.iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(split(b',', "1,\"a, \"\"b\"\"\",\n"), ["1", "a, \"b\"", ""]);
        assert_eq!(split(b';', "1,5;2\n"), ["1,5", "2"]);
        assert_eq!(split(b' ', "  1   2 \n"), ["1", "2"]);
        assert_eq!(split(b'\t', "1\t\t2\n"), ["1", "", "2"]);
        let mut splitter = Splitter::new(b',');
        let mut cells = Cells::default();
        splitter.split(b"1,\"a very long cell that does not end\n", &mut cells);
        splitter.split(b"2,b\n", &mut cells);
        assert_eq!(cells.iter().collect::<Vec<_>>(), ["2", "b"], "no row goes on in the next one");
    }

    #[test]
    fn numbers_are_parsed_with_points_or_commas() {
        assert_eq!((parse_number("1.5", false), parse_number("1,5", false)), (Some(1.5), None));
        assert_eq!(
            (parse_number("1,5", true), parse_number("-2e-3", true), parse_number("1.5", true)),
            (Some(1.5), Some(-2e-3), None)
        );
        assert!(is_absent("NaN") && is_absent("N/A") && !is_absent("0"));
    }

    #[test]
    fn iso_times_are_parsed_with_and_without_zone() {
        let of = |text: &str| parse_iso_time(text).map(|time| ((time.ns / 1e6) as i64, time.has_zone));
        let expected = 1_770_087_906_789;
        assert_eq!(of("2026-02-03T04:05:06.789+01:00"), Some((expected, true)));
        for text in
            ["2026-02-03T03:05:06.789Z", "2026-02-03 03:05:06.789 UTC", "2026-02-03T04:05:06.789+0100[Europe/Berlin]"]
        {
            assert_eq!(of(text), Some((expected, true)), "{text}");
        }
        for text in ["2026-02-03T03:05:06.789", "2026-02-03 03:05:06,789", "2026/02/03 03:05:06.789"] {
            assert_eq!(of(text), Some((expected, false)), "{text}");
        }
        for text in ["", "1770091506.789", "soon", "2026-13-03T03:05:06", "12:13:14.15"] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    fn rows(text: &[u8]) -> Result<Vec<(u64, String)>, String> {
        let (mut lines, mut row, mut rows) = (Lines::new(text), Vec::new(), Vec::new());
        loop {
            match lines.next(&mut row) {
                Ok(Some(line)) => rows.push((line, String::from_utf8(row.clone()).unwrap())),
                Ok(None) => return Ok(rows),
                Err(BadLine::Row(line, reason)) => return Err(format!("{line} {reason}")),
                Err(BadLine::Io(error)) => return Err(error.to_string()),
            }
        }
    }

    #[test]
    fn rows_have_line_numbers() {
        let text = b"\xef\xbb\xbfa,b\r\n\n# c\n1,\"x\ny\"\n  \n2,3";
        let expected = [(1, "a,b\n"), (4, "1,\"x\ny\"\n"), (7, "2,3\n")].map(|(line, row)| (line, row.to_owned()));
        assert_eq!(rows(text).unwrap(), expected);
        assert_eq!(rows(b"").unwrap(), []);
        assert_eq!(rows(b"a\n1\0\n").unwrap_err(), "2 holds binary data: is this a table?");
        assert_eq!(rows(b"a\n\"1\n2\n").unwrap_err(), "2 has a quotation mark that is not closed");
        assert_eq!(rows(&[b'\n'; 1_000_000]).unwrap(), []);
        let reason = "1000001 follows a million lines without a row: is this a table?";
        assert_eq!(rows(&[b'\n'; 1_000_001]).unwrap_err(), reason);
        assert_eq!(rows(&[b'x'; MAX_LEN + 5]).unwrap_err(), "1 is longer than 1 MiB: is this a table?");
    }

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
