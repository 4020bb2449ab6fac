//! The output of the program that is watched.

/// The program's output, as last read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogView {
    /// Its last lines, oldest first, harmless to a terminal.
    pub lines: Vec<String>,
    /// Why it could not be read.
    pub error: Option<String>,
    /// Lines that the view has been scrolled up from the end.
    pub lines_up: usize,
}
