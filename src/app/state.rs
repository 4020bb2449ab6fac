//! The state of everything on the screen: the parts of the app, each changed only by its own methods, and what drawing
//! needs.

use std::time::Duration;

use super::action::OwnCost;
use super::axes::{Axes, TimeWindow};
use super::colors::{Background, Palette};
use super::findings::{FindingLine, FindingsState};
use super::flame::Flame;
use super::keymap::KeyMap;
use super::latency::{Latency, LatencyLine};
use super::navigation::Navigation;
use super::output::LogView;
use super::presentation::{ClockedPhases, Preferences, Presentation};
use super::questions::{Prompt, Questions};
use super::runs::{self, RunsTable};
use super::sessions::{ComparedSession, SessionChoice};
use super::situation::Situation;
use super::status::{Feed, MessageLine};
use super::step_search::{RangeSummary, StepSearch};
use super::view::{LineExtent, LineKind, Panel, View, ViewPart};
use super::window::Window;
use crate::report::EnergySnapshot;
use crate::runs_table::{FittedColumn, Order};
use gnntop_analysis::findings::{Findings, HeadlinePart, Judgement, Occurrence};
use gnntop_analysis::many_runs::RunRow;
use gnntop_analysis::ranks::Run;
use gnntop_analysis::source::catalog::CatalogEntry;
use gnntop_analysis::source::{SourceState, Status};
use gnntop_analysis::store::{PhaseSlot, StepStatistics};

/// Everything the screen shows.
#[derive(Default)]
pub struct App {
    /// The run's history. The source writes it; the panels read the store of the selected rank.
    pub run: Run,
    pub(super) feed: Feed,
    pub(super) navigation: Navigation,
    pub(super) axes: Axes,
    pub(super) search: StepSearch,
    pub(super) presentation: Presentation,
    pub(super) judged: FindingsState,
    pub(super) latency: Latency,
    pub(super) flame: Flame,
    pub(super) energy: Option<Box<EnergySnapshot>>,
    pub(super) other: Option<Box<ComparedSession>>,
    pub(super) questions: Questions,
    pub(super) sessions: SessionChoice,
    pub(super) runs: RunsTable,
    pub(super) output: Option<LogView>,
    pub(super) message: MessageLine,
    pub(super) preferences: Preferences,
    pub(super) cost: OwnCost,
    /// Whether the program was started for this view.
    pub(super) is_started_here: bool,
    /// Whether the picture on the screen is out of date.
    pub(super) dirty: bool,
}

impl App {
    /// An app without data; `has_log` if there is a log of the program's output.
    pub fn new(has_log: bool) -> Self {
        Self::with_preferences(has_log, Preferences::default())
    }

    /// The same as a person wants it.
    pub fn with_preferences(has_log: bool, preferences: Preferences) -> Self {
        let view = preferences.view;
        let output = has_log.then(LogView::default);
        let mut app = Self { output, preferences, dirty: true, ..Self::default() };
        app.navigation.show(view);
        app
    }

    /// Lets a person choose another session by key; at once, where nothing is open yet.
    pub fn offer_sessions(&mut self, nothing_is_open: bool) {
        self.sessions = SessionChoice::new(nothing_is_open);
        if nothing_is_open {
            self.navigation.open(View::Sessions);
        }
    }

    /// Shows a table of runs, in this order and with this filter. One is opened by key, and left for the table again.
    pub fn offer_runs(&mut self, order: Order, filter: String) {
        self.sessions = SessionChoice::new(true);
        self.runs = RunsTable::new(order);
        self.questions.set_filter(filter);
        self.navigation.show(View::Runs);
    }

    /// The program was started for this view: it may be left to wait for the program, or to stop it.
    pub fn own_the_program(&mut self) {
        self.is_started_here = true;
    }

    /// Says where to look first, for as long as news.
    pub fn show_hint(&mut self, hint: String) {
        self.message.show_progress(hint, self.feed.now());
    }

    /// Whether the program was started for this view, and has not ended.
    pub(super) fn may_stop_the_program(&self) -> bool {
        self.is_started_here && !matches!(self.status().state, SourceState::Ended(_))
    }

    /// Where the items of the session to compare with go; there is one from now on.
    pub fn other_mut(&mut self) -> &mut ComparedSession {
        self.other.get_or_insert_default()
    }

    /// Which frame is selected in the stacks view, and which one has its whole width.
    pub fn flame(&self) -> &Flame {
        &self.flame
    }

    /// Whether the picture on the screen is out of date.
    pub fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// The screen shows everything now, and how far the lines of the view go is what its drawing learned.
    pub fn drawn(&mut self, extent: Option<LineExtent>) {
        self.navigation.drawn(extent);
        self.dirty = false;
    }

    /// The status of the source.
    pub fn status(&self) -> &Status {
        self.feed.status()
    }

    /// For how long the picture has been frozen, `None` when it is not.
    pub fn frozen_for(&self) -> Option<Duration> {
        self.feed.frozen_for()
    }

    /// How long a run that should be live has been silent; `None` while it is not.
    pub fn silent_for(&self) -> Option<Duration> {
        self.feed.silent_for()
    }

    /// What fills the screen.
    pub fn view(&self) -> View {
        self.navigation.view()
    }

    /// The main view that is shown, or that is below the shown one.
    pub fn main_view(&self) -> View {
        self.navigation.main_view()
    }

    /// The panel with the focus.
    pub fn focus(&self) -> Panel {
        self.navigation.focus()
    }

    /// The line of `view` that is selected or, where nothing can be selected, the first one shown. It may be beyond
    /// the last one.
    pub fn line(&self, view: View) -> usize {
        self.navigation.line(view)
    }

    /// Which steps are in view.
    pub fn window(&self) -> &Window {
        self.axes.window()
    }

    /// Which time the tracks show.
    pub fn time_window(&self) -> &TimeWindow {
        self.axes.time()
    }

    /// The ordinal of the step that a detail is about: the selected one, else the newest.
    pub fn step_in_view(&self) -> Option<u64> {
        self.axes.cursor().or_else(|| self.run.store().steps().total().checked_sub(1))
    }

    /// What is found in the selected range, once it was zoomed to.
    pub fn range_summary(&self) -> Option<&RangeSummary> {
        self.search.summary(self.axes.range())
    }

    /// Whether percentiles are shown instead of bars.
    pub fn shows_percentiles(&self) -> bool {
        self.presentation.percentiles() && self.view().has(ViewPart::Bars)
    }

    /// The phase that is shown more clearly than the others.
    pub fn highlight(&self) -> Option<PhaseSlot> {
        self.presentation.highlight()
    }

    /// The phases by the clock that is shown.
    pub fn phases(&self) -> ClockedPhases<'_> {
        ClockedPhases::new(self.run.store(), self.presentation.clock(), self.window().measure())
    }

    /// The verdict on the run, in the parts of a line. Empty before the first data.
    pub fn verdict(&self) -> &[HeadlinePart] {
        self.judged.verdict()
    }

    /// The findings of the run's newest steps.
    pub fn judgement(&self) -> &Judgement {
        self.judged.judgement()
    }

    /// The findings in the run's newest steps.
    pub fn findings(&self) -> &Findings {
        self.judged.findings()
    }

    /// The lines of the findings view: what was found, the most severe first, then what could not be looked for.
    pub fn finding_lines(&self) -> Vec<FindingLine<'_>> {
        self.judged.lines()
    }

    /// The selected line of the findings view.
    pub fn finding_line(&self) -> Option<FindingLine<'_>> {
        self.judged.line(self.line(View::Findings))
    }

    /// The places of the selected finding, the longest first, and which of them is selected.
    pub fn finding_places(&self) -> (Vec<&Occurrence>, usize) {
        self.judged.places(self.line(View::Findings))
    }

    /// The first line shown of the text about the selected finding, perhaps beyond its last.
    pub fn finding_text_line(&self) -> usize {
        self.judged.text_line()
    }

    /// The latency view's own state.
    pub fn latency(&self) -> &Latency {
        &self.latency
    }

    /// Figures over the steps that the latency view is about.
    pub fn latency_figures(&self) -> &StepStatistics {
        self.latency.figures(self.phases())
    }

    /// The lines of the latency table: the step, its phases and, since the start, spans by the time they took.
    pub fn latency_lines(&self) -> Vec<LatencyLine<'_>> {
        self.latency.lines(self.run.store(), |name| self.passes(name))
    }

    /// The line of the latency table that is selected.
    pub fn latency_line(&self) -> LatencyLine<'_> {
        let lines = self.latency_lines();
        lines.get(self.line(View::Latency)).or(lines.last()).copied().unwrap_or(LatencyLine::Period)
    }

    /// The run's energy when last computed; `None` before the first time.
    pub fn energy(&self) -> Option<&EnergySnapshot> {
        self.energy.as_deref()
    }

    /// The session that this one is compared with.
    pub fn other(&self) -> Option<&ComparedSession> {
        self.other.as_deref()
    }

    /// The open question, if one is asked.
    pub fn prompt(&self) -> Option<&Prompt> {
        self.questions.open()
    }

    /// The part that names must have to be shown; empty if all are.
    pub fn filter(&self) -> &str {
        self.questions.filter()
    }

    /// Whether something with this name is shown.
    pub fn passes(&self, name: &str) -> bool {
        self.questions.passes(name)
    }

    /// What can be opened and passes the filter, in the order of the catalog.
    pub fn entries(&self) -> Vec<&CatalogEntry> {
        self.sessions.entries(&self.questions)
    }

    /// Why there may be more than [`App::entries`].
    pub fn sessions_problem(&self) -> Option<&str> {
        self.sessions.problem()
    }

    /// The runs of the table that pass the filter, in its order.
    pub fn runs(&self) -> Vec<&RunRow> {
        self.runs.shown(&self.questions)
    }

    /// All runs of the table, in no order.
    pub fn all_runs(&self) -> &[RunRow] {
        self.runs.all()
    }

    /// The columns of the table of runs that there is room for.
    pub fn runs_columns(&self, rows: &[&RunRow]) -> Vec<FittedColumn> {
        runs::columns(rows, self.axes.width())
    }

    /// By what the table of runs is sorted.
    pub fn runs_order(&self) -> Order {
        self.runs.order()
    }

    /// Why there may be more runs than [`App::all_runs`], or why they are old.
    pub fn runs_problem(&self) -> Option<&str> {
        self.runs.problem()
    }

    /// The program's output, if there is a log of it.
    pub fn log(&self) -> Option<&LogView> {
        self.output.as_ref()
    }

    /// The message of the moment, such as what a key changed.
    pub fn notice(&self) -> Option<&str> {
        self.message.text()
    }

    /// Whether the notice is about something that did not work.
    pub fn notice_is_problem(&self) -> bool {
        self.message.is_problem()
    }

    /// What the keys do.
    pub fn keymap(&self) -> &KeyMap {
        &self.preferences.keys
    }

    /// The palette of colours.
    pub fn palette(&self) -> Palette {
        self.preferences.palette
    }

    /// The terminal's background.
    pub fn background(&self) -> Background {
        self.preferences.background
    }

    /// What the viewer takes from the machine.
    pub fn cost(&self) -> OwnCost {
        self.cost
    }

    /// Whether the run has what this view shows.
    pub fn offers(&self, view: View) -> bool {
        let (is_parallel, is_pipeline) = (self.run.is_parallel(), self.run.is_pipeline());
        (is_parallel || !view.has(ViewPart::Ranks)) && (is_pipeline || !view.has(ViewPart::Stages))
    }

    /// The situation that decides what keys do.
    pub fn situation(&self) -> Situation {
        let (view, has_steps) = (self.view(), !self.run.store().steps().is_empty());
        Situation {
            view,
            focus: self.focus(),
            steps: has_steps,
            percentile: view.lines() == LineKind::Durations
                && has_steps
                && !matches!(self.latency_line(), LatencyLine::Span(_)),
            found: match view.lines() {
                LineKind::Findings => self.judged.has_place_at(self.line(view)),
                _ => self.judged.has_any_place(),
            },
            selected: self.axes.cursor().is_some() || self.highlight().is_some() || self.questions.has_filter(),
            live: self.feed.is_live() && view != View::Runs,
            frozen: self.feed.frozen_for().is_some(),
            replay: self.feed.is_replay(),
            paused: self.feed.is_paused(),
            range: self.axes.range().is_some(),
            log: self.output.is_some(),
            torch: self.run.store().session().uses_torch(),
            sessions: self.sessions.is_offered(),
            ranks: self.run.is_parallel(),
            stages: self.run.is_pipeline(),
            device: self.phases().timed_device().is_some(),
            started: self.is_started_here,
            open: !self.sessions.has_nothing_open(),
            table: self.runs.is_offered(),
        }
    }
}
