//! Options of the viewer, and how it ended.

use std::path::PathBuf;

use crate::app::{Background, ColorDepth, Preferences};
use gnntop_analysis::energy::Assumptions;
use gnntop_analysis::source::catalog::Catalog;

/// Options of the screen.
#[derive(Clone, Debug, Default)]
pub struct ScreenOptions {
    /// The log of the program's output, if there is one.
    pub log_path: Option<PathBuf>,
    /// Whether the program was started for this view, which then may be left to wait for the program, or to stop it.
    pub is_started_here: bool,
    /// Where to look first, shown for a while.
    pub hint: Option<String>,
    /// Draw ASCII only.
    pub ascii: bool,
    /// Colours, whatever the environment says.
    pub colors: Option<ColorDepth>,
    /// The background, whatever the environment says.
    pub background: Option<Background>,
    /// Where to look for other sessions to open; `None` if only this one is to be shown.
    pub catalog: Option<Catalog>,
    /// Leave the mouse to the terminal.
    pub no_mouse: bool,
    /// How the screen begins, and what keys do.
    pub preferences: Preferences,
    /// Assumptions for energy and carbon.
    pub assumptions: Assumptions,
}

/// Why the screen ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A key was pressed to leave.
    Quit,
    /// A key was pressed to leave and wait for the program's end.
    Wait,
    /// A key was pressed to leave and end the program.
    Stop,
    /// This signal arrived.
    Signal(i32),
}
