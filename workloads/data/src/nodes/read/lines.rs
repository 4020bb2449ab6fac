//! Lines of a text file with their numbers, for errors that say where they are.

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use super::error::ReadError;
use crate::files::{self, FileError};

/// Longest line that is read: a hundred thousand features fit. A file without line ends must not fill the memory.
const LONGEST_LINE_BYTES: u64 = 4 << 20;

/// The lines of a file, packed with gzip or not (detected from the content). Empty lines are skipped.
pub(super) struct Lines {
    path: PathBuf,
    reader: Box<dyn BufRead>,
    line: u64,
    buffer: Vec<u8>,
}

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Self, ReadError> {
        Ok(Self { path: path.to_owned(), reader: files::open_text(path)?, line: 0, buffer: Vec::new() })
    }

    /// Advances to the next line that is not empty; false at the end.
    pub(super) fn advance(&mut self) -> Result<bool, ReadError> {
        loop {
            self.buffer.clear();
            let limited = &mut self.reader.by_ref().take(LONGEST_LINE_BYTES);
            let length = limited.read_until(b'\n', &mut self.buffer);
            let length =
                length.map_err(|source| FileError::Read { path: self.path.clone(), line: self.line, source })?;
            if length == 0 {
                return Ok(false);
            }
            self.line += 1;
            if length as u64 == LONGEST_LINE_BYTES && self.buffer.last() != Some(&b'\n') {
                return Err(self.problem(format!("a line is longer than {LONGEST_LINE_BYTES} bytes")));
            }
            if self.line == 1 && self.buffer.starts_with(b"\xef\xbb\xbf") {
                self.buffer.drain(..3);
            }
            if !self.buffer.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// The current line, without its line end.
    pub(super) fn text(&self) -> Result<&str, ReadError> {
        let bytes = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        std::str::from_utf8(bytes).map_err(|_| self.problem("the line is not UTF-8 text"))
    }

    /// An error at the current line.
    pub(super) fn problem(&self, problem: impl Into<String>) -> ReadError {
        ReadError::Line { path: self.path.clone(), line: self.line, problem: problem.into() }
    }

    /// A number of the current line; `what` names it for errors.
    pub(super) fn number<T: std::str::FromStr>(&self, text: &str, what: &str) -> Result<T, ReadError> {
        text.trim().parse().map_err(|_| self.problem(format!("expected {what}, found {:?}", shortened(text))))
    }
}

/// The beginning of a text, to be shown in an error.
pub(super) fn shortened(text: &str) -> String {
    const SHOWN_CHARACTERS: usize = 40;
    text.chars().take(SHOWN_CHARACTERS).collect()
}
