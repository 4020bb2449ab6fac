//! The commands of keys, and their names in the settings.

use super::view::View;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command {
    /// End the viewer.
    Quit,
    /// End the viewer, and wait for the program's end.
    Wait,
    /// Stop the viewer until its shell continues it.
    Suspend,
    /// Redraw everything.
    Redraw,
    /// Show or hide the keys.
    ToggleHelp,
    /// Leave what is shown for what was before.
    Back,
    /// Stop taking in data, or continue.
    ToggleFreeze,
    /// Pause the replay, or continue it.
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
    /// Go to the end of the replay.
    GoToEnd,
    /// Show or leave the choice of sessions.
    ToggleSessions,
    /// Open the selected session.
    OpenSelected,
    /// Close what was opened from the table of runs, and show that.
    ShowRuns,
    /// Sort the runs by the next column.
    SortByNext,
    /// Sort the runs the other way round.
    ReverseOrder,
    /// Mark one end of a part to play over and over, then the other, then forget it.
    MarkRange,
    /// Ask for a part of the names to show.
    AskFilter,
    /// Ask whether to trace the next steps.
    AskTrace,
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
    /// Show percentiles instead of bars, or bars again.
    TogglePercentiles,
    /// Count percentiles over other steps: all, the newest, the selected range.
    NextRange,
    /// Show percentiles of the selected range of steps.
    RangePercentiles,
    /// Put the selected range of steps into view, and say what is found in it.
    ZoomToRange,
    /// Show the slowest step, then the next slowest.
    ShowSlowest,
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

impl Command {
    /// Its name, by which a person gives it other keys.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Quit => "quit",
            Self::Wait => "wait",
            Self::Suspend => "suspend",
            Self::Redraw => "redraw",
            Self::ToggleHelp => "help",
            Self::Back => "back",
            Self::ToggleFreeze => "freeze",
            Self::TogglePause => "pause",
            Self::StepFrame { forward } => either(*forward, "frame-on", "frame-back"),
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::ToggleLoop => "loop",
            Self::AskTime => "go-to",
            Self::GoToEnd => "go-to-end",
            Self::ToggleSessions => "sessions",
            Self::OpenSelected => "open",
            Self::ShowRuns => "runs",
            Self::SortByNext => "sort",
            Self::ReverseOrder => "reverse",
            Self::MarkRange => "ab-range",
            Self::AskFilter => "filter",
            Self::AskTrace => "trace",
            Self::Scroll { lines: ..0 } => "up",
            Self::Scroll { lines: 0.. } => "down",
            Self::ScrollPage { down } => either(*down, "page-down", "page-up"),
            Self::ScrollEnd { bottom } => either(*bottom, "bottom", "top"),
            Self::MoveCursor { columns: ..0 } => "step-before",
            Self::MoveCursor { columns: 0.. } => "step-after",
            Self::MovePage { forward } => either(*forward, "steps-on", "steps-back"),
            Self::FirstStep => "first-step",
            Self::FollowNewest => "follow",
            Self::Zoom { inward } => either(*inward, "zoom-in", "zoom-out"),
            Self::ToggleWhole => "whole-run",
            Self::ToggleTime => "by-time",
            Self::ToggleLog => "logarithmic",
            Self::ToggleRange => "range",
            Self::NextMeasure => "unit",
            Self::NextRange => "latency-range",
            Self::RangePercentiles => "range-percentiles",
            Self::ZoomToRange => "zoom-to-range",
            Self::ShowSlowest => "slowest",
            Self::MovePercentile { by: ..0 } => "percentile-before",
            Self::MovePercentile { by: 0.. } => "percentile-after",
            Self::ShowPercentile => "show-percentile",
            Self::ToggleClock => "clock",
            Self::TogglePercentiles => "percentiles",
            Self::MovePlace { forward } => either(*forward, "place-after", "place-before"),
            Self::ShowPlace => "show-place",
            Self::ShowFinding { forward } => either(*forward, "finding-after", "finding-before"),
            Self::ToggleDetail => "detail",
            Self::NextPanel => "next-panel",
            Self::PreviousPanel => "previous-panel",
            Self::Show(view) => show_name(*view),
            Self::Enlarge => "enlarge",
            Self::TurnRank { forward } => either(*forward, "rank-after", "rank-before"),
            Self::ToggleOutput => "output",
            Self::NextPalette => "theme",
        }
    }
}

fn either(yes: bool, name: &'static str, otherwise: &'static str) -> &'static str {
    if yes { name } else { otherwise }
}

fn show_name(view: View) -> &'static str {
    // Views that are opened on top of another one have their own commands, except for these.
    if view.key().is_some() || matches!(view, View::Marks | View::Values | View::Stacks) { view.name() } else { "" }
}
