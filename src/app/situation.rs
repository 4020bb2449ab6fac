//! What decides whether a key does something: conditions, and the facts about the screen that they are held against.

use super::{App, Panel, View};
use gnntop_analysis::source::State;

/// What must be so for a key to do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Nothing: it works everywhere.
    Always,
    /// Something is open.
    Open,
    /// What is shown has the axis of the step bars, and there are steps.
    Steps,
    /// The step bars have the screen or share it, and there are steps.
    Bars,
    /// Something with an axis of time is on the screen, and there are steps.
    Axis,
    /// What is shown has an axis of time: tracks, ranks.
    Tracks,
    /// Phases are shown, and the program has a device timed.
    Device,
    /// The run has several ranks.
    Ranks,
    /// The run is a pipeline.
    Stages,
    /// The overview is on the screen.
    Overview,
    /// A view with a key of its own other than the overview is on the screen.
    Place,
    /// The latency view is on the screen.
    Latency,
    /// The latency view is on the screen, and what is selected there is about steps.
    Percentile,
    /// What is shown has the axis of the step bars or lists findings, and there is a place to go to.
    Found,
    /// The findings view is on the screen, and the selected finding has a place.
    FoundHere,
    /// Something with lines is on the screen and has the focus.
    Lines,
    /// Something with names is on the screen: phases, spans, tracks.
    Names,
    /// The source can be frozen: it is live.
    Live,
    /// The source is a replay.
    Replay,
    /// There is a log of the program's output.
    Log,
    /// Another session may be chosen.
    Sessions,
    /// Sessions are being chosen from.
    Choosing,
    /// There is something to go back from.
    Away,
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
    pub place: bool,
    /// Whether data comes, and so can be frozen.
    pub live: bool,
    /// Whether the source can be moved in.
    pub replay: bool,
    /// Whether there is a log.
    pub log: bool,
    /// Whether another session may be chosen.
    pub sessions: bool,
    /// Whether the run has several ranks.
    pub ranks: bool,
    /// Whether the run has several stages.
    pub stages: bool,
    /// Whether the program has a device timed.
    pub device: bool,
    /// Whether something is open, so that views have something to show.
    pub open: bool,
}

impl Situation {
    /// Whether a key with this condition does something.
    pub fn allows(&self, when: When) -> bool {
        let overview = self.view == View::Overview;
        match when {
            When::Always => true,
            When::Steps => self.steps && self.view.has_step_axis(),
            When::Bars => self.steps && matches!(self.view, View::Overview | View::Steps),
            When::Axis => self.steps && matches!(self.view, View::Overview | View::Steps | View::Latency),
            When::Tracks => self.view.has_time_axis(),
            When::Device => self.device && matches!(self.view, View::Overview | View::Latency | View::Step),
            When::Ranks => self.ranks && self.open,
            When::Stages => self.stages && self.open,
            When::Overview => overview,
            When::Place => !overview && self.view.key().is_some(),
            When::Latency => self.view == View::Latency,
            When::Percentile => self.view == View::Latency && self.percentile,
            When::Found => self.place && (self.view.has_step_axis() || self.view == View::Findings),
            When::FoundHere => self.place && self.view == View::Findings,
            When::Lines => match self.view {
                View::Overview => self.focus == Panel::Phases,
                View::Steps => false,
                _ => true,
            },
            When::Names => matches!(self.view, View::Overview | View::Latency | View::Tracks | View::Sessions),
            When::Live => self.live && !self.replay,
            When::Replay => self.replay,
            When::Log => self.log,
            When::Sessions => self.sessions && self.open,
            When::Choosing => self.view == View::Sessions,
            When::Open => self.open,
            When::Away => !overview || self.selected,
        }
    }
}

impl App {
    /// Whether the run has what this view shows.
    pub fn offers(&self, view: View) -> bool {
        match view {
            View::Ranks => self.run.is_parallel(),
            View::Pipeline => self.run.is_pipeline(),
            _ => true,
        }
    }

    /// The situation that decides what keys do.
    pub fn situation(&self) -> Situation {
        let replay = self.status.transport.is_some();
        let ended = matches!(self.status.state, State::Ended(_));
        Situation {
            view: self.view(),
            focus: self.focus,
            steps: !self.run.store().steps().is_empty(),
            percentile: self.view() == View::Latency && self.can_show_percentile(),
            place: self.has_place(),
            selected: self.window.cursor().is_some() || self.highlight.is_some() || !self.filter.is_empty(),
            live: !replay && (!ended || self.frozen_at.is_some()),
            replay,
            log: self.log.is_some(),
            sessions: self.offers_sessions(),
            ranks: self.run.is_parallel(),
            stages: self.run.is_pipeline(),
            device: self.timed_device().is_some(),
            open: !self.has_nothing_open(),
        }
    }
}
