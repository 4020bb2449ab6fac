//! The lines of a text that are rows of a table: comments and empty lines are passed over, and a quoted cell may
//! continue in the next line. Every row knows its line, so that whatever is wrong with it can be found.

use std::io::{self, BufRead, Read};

/// Most bytes of a row: a file without line ends is not a table, and must not fill the memory.
const MAX_LEN: usize = 1 << 20;
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
        loop {
            row.clear();
            let line = self.line + 1;
            if !self.append(row)? {
                return Ok(None);
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(rows(&[b'x'; MAX_LEN + 5]).unwrap_err(), "1 is longer than 1 MiB: is this a table?");
    }
}
