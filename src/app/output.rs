//! The output of the program that is watched.

/// The program's output, as last read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogView {
    lines: Vec<String>,
    error: Option<String>,
    lines_up: usize,
}

impl LogView {
    /// Its last lines, oldest first, harmless to a terminal.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Why it could not be read.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Lines that the view has been scrolled up from the end. There may be fewer by now.
    pub fn lines_up(&self) -> usize {
        self.lines_up
    }

    /// Takes in what was read; returns whether that is new. If scrolled up, the lines in view stay while new ones
    /// arrive.
    pub(super) fn read(&mut self, read: Result<Vec<String>, String>) -> bool {
        let (lines, error) = match read {
            Ok(lines) => (lines, None),
            Err(error) => (std::mem::take(&mut self.lines), Some(error)),
        };
        let grown = lines.len().saturating_sub(self.lines.len());
        let lines_up = if self.lines_up > 0 { self.lines_up + grown } else { 0 };
        let next = Self { lines_up: lines_up.min(lines.len()), lines, error };
        let is_news = *self != next;
        *self = next;
        is_news
    }

    /// Scrolls by lines, up to `last` of them above the end.
    pub(super) fn scroll(&mut self, up: bool, lines: usize, last: usize) {
        let last = last.min(self.lines.len());
        let at = self.lines_up.min(last);
        self.lines_up = if up { at.saturating_add(lines).min(last) } else { at.saturating_sub(lines) };
    }
}
