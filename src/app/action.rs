//! What happens to the app, and what it asks the main loop for.

use std::time::Duration;

use super::colors::Background;
use super::input::{Gesture, Key, Target};
use crate::report::EnergySnapshot;
use gnntop_analysis::findings::Judgement;
use gnntop_analysis::many_runs::RunRow;
use gnntop_analysis::source::catalog::CatalogEntry;
use gnntop_analysis::source::{Control, Status};

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A key was pressed.
    Key(Key),
    /// The mouse did something, on something.
    Mouse {
        /// What it did.
        gesture: Gesture,
        /// On what.
        on: Target,
    },
    /// The terminal said what its background is.
    BackgroundDetected(Background),
    /// The terminal has this size now.
    Resized {
        /// Columns.
        width: u16,
        /// Rows.
        height: u16,
    },
    /// Time has passed; `now` counts from the start of the screen.
    Tick {
        /// The time.
        now: Duration,
    },
    /// The source was polled and passed its items to the store.
    Polled {
        /// The source's status now.
        status: Status,
        /// Whether anything came.
        changed: bool,
    },
    /// The source of the session to compare with was polled and passed its items to that session's store.
    OtherPolled {
        /// That source's status now.
        status: Status,
        /// Whether anything came.
        changed: bool,
    },
    /// The run's newest steps were judged.
    FindingsUpdated(Box<Judgement>),
    /// The run's energy was computed again.
    EnergyUpdated(Box<EnergySnapshot>),
    /// The viewer measured itself.
    Measured(OwnCost),
    /// The program's output was read: its last lines, or why it could not be read.
    LogRead(Result<Vec<String>, String>),
    /// What can be opened was listed, or why it could not be.
    SessionsListed(Result<Vec<CatalogEntry>, String>),
    /// What is known of many runs now, where that is new, and why there may be more or nothing new.
    RunsListed {
        /// The rows.
        rows: Option<Vec<RunRow>>,
        /// In words.
        problem: Option<String>,
    },
    /// Another session was opened instead of the one shown.
    Opened,
    /// Something that takes a while has begun or worked, in words.
    Message(String),
    /// Something did not work, in words.
    Failed(String),
}

/// What the main loop must do, as the app cannot.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// End the screen.
    Quit,
    /// End the screen, and wait for the program's end.
    Wait,
    /// End the screen, and ask the program to end.
    Stop,
    /// Stop this process until it is continued.
    Suspend,
    /// Redraw everything.
    Redraw,
    /// Read the program's output.
    ReadLog,
    /// Look for what can be opened.
    ListSessions,
    /// Follow nothing any more: the table of runs is shown.
    Close,
    /// Open this instead of what is shown.
    Open(CatalogEntry),
    /// Trace the next steps of the program that is shown.
    Trace {
        /// Wait for a slow step first.
        after_slow: bool,
    },
    /// Pass this to the source.
    Control(Control),
}

/// What the viewer itself takes from the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnCost {
    /// CPU time over wall time since the measurement before, in percent of one core.
    pub cpu_percent: Option<f64>,
    /// Resident memory.
    pub rss_bytes: Option<u64>,
}
