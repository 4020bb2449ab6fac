//! What commands are called in the settings.

use super::keys::Binding;
use super::situation::When;
use super::{Command, View};

impl Binding {
    /// What the line does is called this in the settings.
    pub fn action(&self) -> &'static str {
        match (self.command, self.when) {
            // The way back that `enlarge` has, which would take the place of `enlarge` if it worked everywhere.
            (Command::Show(View::Overview), When::Place) => "shrink",
            (command, _) => command.name(),
        }
    }
}

impl Command {
    /// Its name, by which a person gives it other keys.
    fn name(&self) -> &'static str {
        match self {
            Self::Quit => "quit",
            Self::Suspend => "suspend",
            Self::Redraw => "redraw",
            Self::ToggleHelp => "help",
            Self::Back => "back",
            Self::ToggleFreeze => "freeze",
            Self::TogglePause => "pause",
            Self::StepFrame { forward: false } => "frame-back",
            Self::StepFrame { forward: true } => "frame-on",
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::ToggleLoop => "loop",
            Self::AskTime => "go-to",
            Self::ToggleSessions => "sessions",
            Self::OpenSelected => "open",
            Self::MarkRange => "ab-range",
            Self::AskFilter => "filter",
            Self::Scroll { lines: ..0 } => "up",
            Self::Scroll { lines: 0.. } => "down",
            Self::ScrollPage { down: false } => "page-up",
            Self::ScrollPage { down: true } => "page-down",
            Self::ScrollEnd { bottom: false } => "top",
            Self::ScrollEnd { bottom: true } => "bottom",
            Self::MoveCursor { columns: ..0 } => "step-before",
            Self::MoveCursor { columns: 0.. } => "step-after",
            Self::MovePage { forward: false } => "steps-back",
            Self::MovePage { forward: true } => "steps-on",
            Self::FirstStep => "first-step",
            Self::FollowNewest => "follow",
            Self::Zoom { inward: true } => "zoom-in",
            Self::Zoom { inward: false } => "zoom-out",
            Self::ToggleWhole => "whole-run",
            Self::ToggleTime => "by-time",
            Self::ToggleLog => "logarithmic",
            Self::ToggleRange => "range",
            Self::NextMeasure => "unit",
            Self::NextRange => "latency-range",
            Self::MovePercentile { by: ..0 } => "percentile-before",
            Self::MovePercentile { by: 0.. } => "percentile-after",
            Self::ShowPercentile => "show-percentile",
            Self::ToggleClock => "clock",
            Self::TogglePercentiles => "percentiles",
            Self::MovePlace { forward: false } => "place-before",
            Self::MovePlace { forward: true } => "place-after",
            Self::ShowPlace => "show-place",
            Self::ShowFinding { forward: false } => "finding-before",
            Self::ShowFinding { forward: true } => "finding-after",
            Self::ToggleDetail => "detail",
            Self::NextPanel => "next-panel",
            Self::PreviousPanel => "previous-panel",
            Self::Show(view) => show_name(*view),
            Self::Enlarge => "enlarge",
            Self::TurnRank { forward: false } => "rank-before",
            Self::TurnRank { forward: true } => "rank-after",
            Self::ToggleOutput => "output",
            Self::NextPalette => "theme",
        }
    }
}

fn show_name(view: View) -> &'static str {
    // Those that lie on top of another one have commands of their own.
    if view.key().is_some() { view.name() } else { "" }
}
