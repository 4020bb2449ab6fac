//! What decides whether a key does something: conditions, and the facts about the screen that they check.

use super::view::{Axis, LineKind, Panel, View, ViewPart};

/// What must be so for a key to do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Nothing: it works everywhere.
    Always,
    /// The program was started for this view.
    Started,
    /// Something is open.
    Open,
    /// What is shown has the axis of the step bars, and there are steps.
    Steps,
    /// The same, and there is no text whose pages could be meant.
    StepPages,
    /// The step bars have the screen or share it, and there are steps.
    Bars,
    /// Something with an axis of time is on the screen, and there are steps.
    Axis,
    /// What is shown has an axis of time: tracks, ranks.
    Tracks,
    /// The stacks are on the screen.
    Stacks,
    /// The values that the program logs are on the screen.
    Values,
    /// Phases are shown, and the program has a device timed.
    Device,
    /// The run has several ranks.
    Ranks,
    /// The run is a pipeline.
    Stages,
    /// The overview is on the screen.
    Overview,
    /// A main view other than the overview is on the screen.
    MainView,
    /// The latency view is on the screen.
    Latency,
    /// The latency view is on the screen, and what is selected there is about steps.
    Percentile,
    /// What is shown has the axis of the step bars or lists findings, and there is a place to go to.
    Found,
    /// The findings view is on the screen, and the selected finding has a place.
    FoundHere,
    /// The findings view is on the screen.
    Findings,
    /// The ranks are on the screen.
    RankLanes,
    /// Something with lines is on the screen and has the focus.
    Lines,
    /// Something with names is on the screen: phases, spans, tracks.
    Names,
    /// The source can be frozen: it is live.
    Live,
    /// The picture is frozen.
    Frozen,
    /// The source is a replay.
    Replay,
    /// The source is a replay that is not paused.
    Playing,
    /// The source is a paused replay.
    Paused,
    /// A range of steps is selected, and steps are shown.
    Range,
    /// There is a log of the program's output.
    Log,
    /// The program is alive and uses PyTorch, whose profiler can be started.
    Traceable,
    /// Another session may be chosen.
    Sessions,
    /// Sessions or runs are being chosen from.
    Choosing,
    /// The table of runs is on the screen.
    Table,
    /// What is open was opened from the table of runs.
    FromTable,
    /// It was not.
    NotFromTable,
    /// There is something to go back from.
    Away,
}

impl When {
    /// Whether only something in the view that is shown is missing.
    pub(super) fn is_near(self, situation: &Situation) -> bool {
        match self {
            Self::Lines => true,
            Self::FoundHere => situation.view.lines() == LineKind::Findings,
            Self::Percentile => situation.view.lines() == LineKind::Durations,
            Self::Range => situation.view.axis() == Axis::Steps,
            _ => false,
        }
    }

    /// What is missing, for a key that does nothing in this situation; `None` where nobody would miss it.
    pub fn unmet(self, situation: &Situation) -> Option<&'static str> {
        if situation.allows(self) || !situation.open {
            return None;
        }
        Some(match self {
            Self::Steps | Self::StepPages | Self::Bars | Self::Axis if !situation.steps => "there are no steps yet",
            Self::Steps | Self::StepPages | Self::Bars | Self::Axis => "only where the step bars are",
            Self::Tracks => "only in the tracks and the ranks",
            Self::Stacks => "only in the stacks",
            Self::Values => "only in the values that the program logs",
            Self::Ranks => "the run has one rank",
            Self::Stages => "the run has one stage",
            Self::Overview => "only in the overview",
            Self::Percentile if situation.view.lines() == LineKind::Durations => "only for what is about steps",
            Self::Latency | Self::Percentile => "only in the latency view",
            Self::FoundHere if situation.view.lines() == LineKind::Findings => "this finding has no place to go to",
            Self::Found | Self::FoundHere if !situation.found => "no finding has a place to go to",
            Self::Found => "only where the step bars are, and in the findings",
            Self::FoundHere | Self::Findings => "only in the findings",
            Self::RankLanes => "only in the ranks",
            Self::Lines if situation.view == View::Overview => "the phases scroll, once Tab has gone to them",
            Self::Lines => "there are no lines to scroll here",
            Self::Names => "there are no names here",
            Self::Live => "nothing comes that could be frozen",
            Self::Replay | Self::Playing | Self::Paused => "only in a replay",
            Self::Range => "no range of steps is selected (v)",
            Self::Log => "no output of the program is kept",
            Self::Traceable => "only for a live program that uses PyTorch",
            Self::Sessions => "there is no other session",
            _ => return None,
        })
    }
}

/// What the key table needs to know of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    /// What is shown.
    pub view: View,
    /// The panel of the overview with the focus.
    pub focus: Panel,
    /// Whether there are steps.
    pub steps: bool,
    /// Whether a step is selected, a phase highlighted or a filter set.
    pub selected: bool,
    /// Whether a percentile of steps is selected in the latency view.
    pub percentile: bool,
    /// Whether a finding has a place to go to: the selected one in the findings view, any one elsewhere.
    pub found: bool,
    /// Whether data comes, and so can be frozen.
    pub live: bool,
    /// Whether the picture is frozen.
    pub frozen: bool,
    /// Whether the source can be moved in.
    pub replay: bool,
    /// Whether such a source is paused.
    pub paused: bool,
    /// Whether a range of steps is selected.
    pub range: bool,
    /// Whether there is a log.
    pub log: bool,
    /// Whether the program uses PyTorch.
    pub torch: bool,
    /// Whether another session may be chosen.
    pub sessions: bool,
    /// Whether the run has several ranks.
    pub ranks: bool,
    /// Whether the run has several stages.
    pub stages: bool,
    /// Whether the program has a device timed.
    pub device: bool,
    /// Whether the program was started for this view.
    pub started: bool,
    /// Whether something is open, so that views have something to show.
    pub open: bool,
    /// Whether there is a table of runs to come back to.
    pub table: bool,
}

impl Situation {
    /// Whether a key with this condition does something.
    pub fn allows(&self, when: When) -> bool {
        let (overview, axis, lines) = (self.view == View::Overview, self.view.axis(), self.view.lines());
        match when {
            When::Always => true,
            When::Started => self.started,
            When::Steps => self.steps && axis == Axis::Steps,
            When::StepPages => self.steps && axis == Axis::Steps && lines != LineKind::Text,
            When::Bars => self.steps && self.view.has(ViewPart::Bars),
            When::Axis => self.steps && self.view.has(ViewPart::Scale),
            When::Tracks => axis == Axis::Time,
            When::Stacks => lines == LineKind::Frames,
            When::Values => lines == LineKind::Values,
            When::Device => self.device && self.view.has(ViewPart::Phases),
            When::Ranks => self.ranks && self.open,
            When::Stages => self.stages && self.open,
            When::Overview => overview,
            When::MainView => !overview && self.view.key().is_some(),
            When::Latency => lines == LineKind::Durations,
            When::Percentile => lines == LineKind::Durations && self.percentile,
            When::Found => self.found && (axis == Axis::Steps || lines == LineKind::Findings),
            When::FoundHere => self.found && lines == LineKind::Findings,
            When::Findings => lines == LineKind::Findings,
            When::RankLanes => lines == LineKind::Ranks,
            When::Lines => match lines {
                LineKind::Phases => self.focus == Panel::Phases,
                LineKind::Nothing | LineKind::Frames => false,
                _ => true,
            },
            When::Names => self.view.has(ViewPart::Names),
            When::Live => self.live && !self.replay && !self.frozen,
            When::Frozen => self.frozen && !self.replay,
            When::Replay => self.replay,
            When::Playing => self.replay && !self.paused,
            When::Paused => self.replay && self.paused,
            When::Range => self.range && self.steps && axis == Axis::Steps,
            When::Log => self.log,
            When::Traceable => self.torch && self.live && !self.replay,
            When::Sessions => self.sessions && self.open,
            When::Choosing => matches!(lines, LineKind::Sessions | LineKind::Runs),
            When::Table => lines == LineKind::Runs,
            When::FromTable => self.table && self.open,
            When::NotFromTable => !(self.table && self.open),
            When::Open => self.open,
            When::Away if lines == LineKind::Runs => self.selected,
            When::Away => !overview || self.selected || self.table,
        }
    }
}
