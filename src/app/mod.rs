//! The state of the screen and how it changes: an event becomes an [`Action`], [`update()`] applies it to the [`App`],
//! and the screen draws what the app then is. Nothing here draws, reads a file, looks at a clock or knows a terminal.

mod clock;
mod commands;
mod compare;
mod energy;
mod filter;
mod findings;
mod key;
mod keymap;
pub mod keys;
mod latency;
mod lines;
mod log;
mod looks;
mod mouse;
mod notice;
mod preferences;
mod prompt;
mod ranks;
mod sessions;
mod situation;
mod time_window;
mod update;
mod view;
mod window;

use std::time::Duration;

use crate::report::EnergyTold;
use gnntop_analysis::findings::Judgement;
use gnntop_analysis::ranks::Run;
use gnntop_analysis::source::catalog::Entry;
use gnntop_analysis::source::{Control, State, Status};
use gnntop_analysis::store::PhaseSlot;

pub use clock::PhaseClock;
pub use compare::{Other, Pair};
pub use findings::FindingLine;
pub use keymap::{Bound, KeyMap, KeyMapError, Override};
pub use latency::{LatencyLine, Over, QUANTILES};
pub use log::LogView;
pub use looks::{Background, ColorDepth, Palette};
pub use mouse::{Gesture, Target};
pub use preferences::Preferences;
pub use prompt::{Prompt, Question};
pub use situation::Situation;
pub use time_window::TimeWindow;
pub use update::update;
pub use view::{Panel, View};
pub use window::{AXIS_WIDTH, Window};

use findings::Judged;
use keys::Key;
use latency::Latency;
use lines::Lines;
use notice::Notice;
use sessions::Sessions;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command {
    /// End the viewer.
    Quit,
    /// Stop the viewer until its shell continues it.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// Show or hide the keys.
    ToggleHelp,
    /// Leave what is shown for what was before.
    Back,
    /// Stop or go on taking in data.
    ToggleFreeze,
    /// Stop or go on replaying.
    TogglePause,
    /// Move the replay by one frame.
    StepFrame {
        /// On, or back.
        forward: bool,
    },
    /// Replay faster.
    Faster,
    /// Replay slower.
    Slower,
    /// Replay over and over, or once.
    ToggleLoop,
    /// Ask for a place to go to.
    AskTime,
    /// Show or leave the choice of sessions.
    ToggleSessions,
    /// Open the selected session.
    OpenSelected,
    /// Mark one end of a part to play over and over, then the other, then forget it.
    MarkRange,
    /// Ask for a part of the names to show.
    AskFilter,
    /// Scroll what has the focus.
    Scroll {
        /// Down, or up if negative.
        lines: i32,
    },
    /// Scroll by what fits on the screen.
    ScrollPage {
        /// Down or up.
        down: bool,
    },
    /// Scroll to an end.
    ScrollEnd {
        /// The bottom or the top.
        bottom: bool,
    },
    /// Select another step.
    MoveCursor {
        /// Newer, or older if negative.
        columns: i64,
    },
    /// Select a step a screen away.
    MovePage {
        /// Newer or older.
        forward: bool,
    },
    /// Select the oldest step.
    FirstStep,
    /// Select no step and follow the newest.
    FollowNewest,
    /// Change how much shares a column.
    Zoom {
        /// Fewer or more.
        inward: bool,
    },
    /// Put the whole run into view, or no longer.
    ToggleWhole,
    /// Make columns equally long times, or equally many steps.
    ToggleTime,
    /// Make the axis of the bars logarithmic, or linear.
    ToggleLog,
    /// Begin a range of steps at the selected one, or forget it.
    ToggleRange,
    /// Measure steps by the next piece of their work.
    NextMeasure,
    /// Show phases by the device's clock, or by the host's.
    ToggleClock,
    /// Show percentiles in the place of bars, or no longer.
    TogglePercentiles,
    /// Count percentiles over other steps: all, the newest, the selected range.
    NextRange,
    /// Select another percentile.
    MovePercentile {
        /// Rarer, or more common if negative.
        by: isize,
    },
    /// Show the step that is the selected percentile.
    ShowPercentile,
    /// Select another place of the selected finding.
    MovePlace {
        /// A shorter one, or a longer one.
        forward: bool,
    },
    /// Show the nearest step at which something was found.
    ShowFinding {
        /// After the selected step, or before.
        forward: bool,
    },
    /// Show the selected place of the selected finding among the steps.
    ShowPlace,
    /// Show or leave the step's detail.
    ToggleDetail,
    /// Focus the next panel.
    NextPanel,
    /// Focus the panel before.
    PreviousPanel,
    /// Show one of the views.
    Show(View),
    /// Show the focused panel's own view.
    Enlarge,
    /// Look at another rank of the run.
    TurnRank {
        /// The next, or the one before.
        forward: bool,
    },
    /// Show or leave the program's output.
    ToggleOutput,
    /// Change to the next palette of colours.
    NextPalette,
}

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
    BackgroundSeen(Background),
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
    /// The source was asked and handed its items to the store.
    Polled {
        /// What is known about the source now.
        status: Status,
        /// Whether anything came.
        changed: bool,
    },
    /// The source of the session to compare with was asked and handed its items to that session's store.
    OtherPolled {
        /// What is known about that source now.
        status: Status,
        /// Whether anything came.
        changed: bool,
    },
    /// The run's newest steps were looked at.
    Judged(Box<Judgement>),
    /// The run's energy was told anew.
    EnergyTold(Box<EnergyTold>),
    /// The viewer measured itself.
    Measured(OwnCost),
    /// The program's output was read: its last lines, or why it could not be read.
    LogRead(Result<Vec<String>, String>),
    /// What can be opened was listed, or why it could not be.
    SessionsListed(Result<Vec<Entry>, String>),
    /// Another session was opened in the place of the one shown.
    Opened,
    /// Something did not work, in words.
    Failed(String),
}

/// What the main loop must do, as the app cannot.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// End the screen.
    Quit,
    /// Stop this process until it is continued.
    Suspend,
    /// Draw everything anew, whatever was drawn before.
    Redraw,
    /// Read the program's output.
    ReadLog,
    /// Look for what can be opened.
    ListSessions,
    /// Open this in the place of what is shown.
    Open(Entry),
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

/// Everything the screen shows.
#[derive(Default)]
pub struct App {
    /// What is known of the run. The source writes it; the panels read the store of the rank that is looked at.
    pub run: Run,
    status: Status,
    judged: Judged,
    energy: Option<Box<EnergyTold>>,
    /// Views that were left for the one shown, which is the last. Below all of them lies the overview.
    views: Vec<View>,
    focus: Panel,
    percentiles: bool,
    phase_clock: PhaseClock,
    window: Window,
    time_window: TimeWindow,
    lines: Lines,
    latency: Latency,
    other: Option<Box<Other>>,
    frozen_at: Option<Duration>,
    prompt: Option<Prompt>,
    filter: String,
    sessions: Sessions,
    keymap: KeyMap,
    palette: Palette,
    background: Background,
    /// The phase that is shown more clearly than the others.
    highlight: Option<PhaseSlot>,
    /// The step that the mouse button went down on.
    pressed_step: Option<u64>,
    notice: Option<Notice>,
    log: Option<LogView>,
    cost: OwnCost,
    size: (u16, u16),
    now: Duration,
    /// When something last came from the source.
    heard_at: Duration,
    dirty: bool,
}

/// Without news for this long, a live run is called silent. Sensors alone speak ten times a second.
const SILENT_AFTER: Duration = Duration::from_secs(2);

impl App {
    /// An app that knows nothing yet; `has_log` when there is a log of the program's output.
    pub fn new(has_log: bool) -> Self {
        Self::with(has_log, Preferences::default())
    }

    /// What is known about the source.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// What fills the screen.
    pub fn view(&self) -> View {
        self.views.last().copied().unwrap_or_default()
    }

    /// The panel with the focus.
    pub fn focus(&self) -> Panel {
        self.focus
    }

    /// The view with a key of its own that is shown, or lies below what is shown.
    pub fn place(&self) -> View {
        self.views.iter().rev().find(|view| view.key().is_some()).copied().unwrap_or_default()
    }

    /// Whether percentiles are shown in the place of bars.
    pub fn shows_percentiles(&self) -> bool {
        self.percentiles && matches!(self.view(), View::Overview | View::Steps)
    }

    /// Which steps are in view.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Which time the tracks show.
    pub fn time_window(&self) -> &TimeWindow {
        &self.time_window
    }

    /// The open question, if one is asked.
    pub fn prompt(&self) -> Option<&Prompt> {
        self.prompt.as_ref()
    }

    /// The program's output, if there is a log of it.
    pub fn log(&self) -> Option<&LogView> {
        self.log.as_ref()
    }

    /// What the viewer takes from the machine.
    pub fn cost(&self) -> OwnCost {
        self.cost
    }

    /// For how long the picture has been frozen, `None` when it is not.
    pub fn frozen_for(&self) -> Option<Duration> {
        self.frozen_at.map(|at| self.now.saturating_sub(at))
    }

    /// For how long a run that should be live has said nothing, `None` while it speaks.
    pub fn silent_for(&self) -> Option<Duration> {
        let silence = self.now.saturating_sub(self.heard_at);
        let expected = self.status.live && self.status.state == State::Running && self.frozen_at.is_none();
        (expected && silence >= SILENT_AFTER).then_some(silence)
    }

    /// Whether the picture on the screen is out of date.
    pub fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// Says that the screen shows everything now.
    pub fn drawn(&mut self) {
        self.dirty = false;
    }

    /// The ordinal of the step that a detail is about: the selected one, else the newest.
    pub fn step_in_view(&self) -> Option<u64> {
        self.window.cursor().or_else(|| self.run.store().steps().total().checked_sub(1))
    }
}
