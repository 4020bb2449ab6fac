//! What each command does, and which rank of the run is selected: the selected step stays the same on the next rank if it is
//! known there.

use std::path::Path;

use super::action::Effect;
use super::command::Command;
use super::runs;
use super::sessions::SessionChoice;
use super::state::App;
use super::view::{Axis, LineKind, View};
use gnntop_analysis::many_runs::RunRow;
use gnntop_analysis::source::Control;
use gnntop_analysis::store::StackTree;
use gnntop_wire::StepId;

/// What the main loop must do for a command, where the app itself need not change.
fn effect_of(command: Command) -> Option<Effect> {
    Some(match command {
        Command::Quit => Effect::Quit,
        Command::Wait => Effect::Wait,
        Command::Suspend => Effect::Suspend,
        Command::Redraw => Effect::Redraw,
        Command::TogglePause => Effect::Control(Control::TogglePause),
        Command::StepFrame { forward } => Effect::Control(Control::StepFrames(if forward { 1 } else { -1 })),
        Command::Faster => Effect::Control(Control::Faster),
        Command::Slower => Effect::Control(Control::Slower),
        Command::ToggleLoop => Effect::Control(Control::ToggleLoop),
        Command::MarkRange => Effect::Control(Control::MarkRange),
        _ => return None,
    })
}

impl App {
    /// Does what a key, or the mouse, asks for.
    pub(super) fn execute(&mut self, command: Command) -> Option<Effect> {
        match command {
            Command::Back => return self.back(),
            Command::OpenSelected => return self.open_selected(),
            Command::ShowRuns => return Some(self.show_runs()),
            Command::SortByNext => self.sort_runs(|app| app.runs.sort_by_next(&app.questions, app.axes.width())),
            Command::ReverseOrder => self.sort_runs(|app| app.runs.set_order(app.runs.order().reversed())),
            Command::ToggleSessions => return self.toggle_read(View::Sessions, Effect::ListSessions),
            Command::ToggleOutput => return self.toggle_read(View::Log, Effect::ReadLog),
            Command::AskTime => self.questions.ask_position(),
            Command::GoToEnd => return self.go_to_end(),
            Command::AskFilter => self.questions.ask_filter(),
            Command::AskTrace => self.questions.ask_trace(),
            Command::ToggleFreeze => self.feed.toggle_freeze(),
            Command::ToggleHelp => self.navigation.toggle(View::Help),
            Command::ToggleDetail if self.view().lines() == LineKind::Frames => {
                return self.execute(Command::Zoom { inward: true });
            }
            Command::ToggleDetail => self.navigation.toggle(View::Step),
            Command::NextPanel => self.navigation.turn_focus(true),
            Command::PreviousPanel => self.navigation.turn_focus(false),
            Command::Show(view) => self.show(view),
            Command::Enlarge => self.navigation.open(self.focus().view()),
            Command::ToggleClock => self.toggle_clock(),
            Command::TogglePercentiles => self.presentation.toggle_percentiles(),
            Command::NextPalette => self.next_palette(),
            Command::TurnRank { forward } => self.select_next_rank(forward),
            Command::RangePercentiles => self.show_range_percentiles(),
            Command::NextRange => self.latency.next_range(self.axes.range().is_some()),
            Command::MovePercentile { by } => self.latency.move_percentile(by),
            Command::ShowPercentile => self.show_percentile(),
            Command::ShowSlowest => self.show_slowest(),
            Command::ZoomToRange => self.zoom_to_range(),
            Command::ShowPlace => self.show_place(),
            Command::ShowFinding { forward } if self.view().lines() != LineKind::Findings => self.show_finding(forward),
            Command::MovePlace { forward } | Command::ShowFinding { forward } => {
                self.judged.move_place(forward, self.line(View::Findings));
            }
            Command::Scroll { .. } | Command::ScrollEnd { .. } | Command::MoveCursor { .. } | Command::Zoom { .. }
                if self.view().lines() == LineKind::Frames =>
            {
                self.flame.apply(command, &StackTree::from_sampled(self.run.store().sampled()));
            }
            Command::Scroll { .. } | Command::ScrollPage { .. } | Command::ScrollEnd { .. } => self.scroll(command),
            Command::MoveCursor { .. }
            | Command::MovePage { .. }
            | Command::FirstStep
            | Command::FollowNewest
            | Command::Zoom { .. }
            | Command::ToggleWhole
            | Command::ToggleTime
            | Command::ToggleLog
            | Command::ToggleRange => self.move_axis(command),
            Command::NextMeasure => self.turn_measure(),
            _ => return effect_of(command),
        }
        None
    }

    /// Goes to the end of the replay, and follows it there.
    fn go_to_end(&mut self) -> Option<Effect> {
        self.axes.follow();
        if self.feed.is_at_end() {
            self.notify("this is the end of the recording".to_owned());
            return None;
        }
        Some(Effect::Control(Control::SeekShare(1.0)))
    }

    fn show_range_percentiles(&mut self) {
        self.latency.show_selected();
        self.navigation.show(View::Latency);
    }

    /// Opens or leaves a view; opened, it first needs something to be read.
    fn toggle_read(&mut self, view: View, read: Effect) -> Option<Effect> {
        self.navigation.toggle(view);
        (self.view() == view).then_some(read)
    }

    /// Leaves the innermost thing: what is on top, then the selected step, then the view; the screen, if nothing is
    /// open.
    fn back(&mut self) -> Option<Effect> {
        let (view, lines) = (self.view(), self.view().lines());
        if lines == LineKind::Sessions && self.sessions.has_nothing_open() && !self.questions.has_filter() {
            return Some(Effect::Quit);
        }
        if lines == LineKind::Frames && self.flame.reset_zoom() {
            return None;
        }
        let can_filter = view.key().is_some() || matches!(lines, LineKind::Sessions | LineKind::Runs);
        if can_filter && (self.presentation.take_highlight() || self.questions.clear_filter()) {
            return None;
        }
        let alone = self.navigation.is_alone() && view.key().is_some();
        let has_cursor = view.axis() != Axis::Nothing;
        if alone && has_cursor && self.axes.cursor().is_some() {
            self.axes.follow();
        } else if view == View::Overview && self.runs.is_offered() {
            return Some(self.show_runs());
        } else if lines != LineKind::Runs {
            self.navigation.leave();
        }
        None
    }

    /// Opens the selected entry of the choice of sessions.
    pub(super) fn open_selected(&mut self) -> Option<Effect> {
        if self.view().lines() == LineKind::Runs {
            return self.selected_run().map(|row| Effect::Open(runs::entry(row)));
        }
        let entry = self.sessions.entry(self.line(View::Sessions), &self.questions);
        entry.cloned().map(Effect::Open)
    }

    /// Closes what is open for the table of runs, as it was left.
    fn show_runs(&mut self) -> Effect {
        self.forget_session();
        let filter = self.runs.take_filter();
        self.questions.set_filter(filter);
        self.sessions = SessionChoice::new(true);
        self.navigation.show(View::Runs);
        Effect::Close
    }

    /// Changes the order of the runs. The same one stays selected.
    fn sort_runs(&mut self, change: impl FnOnce(&mut Self)) {
        let selected = self.selected_run().map(|row| row.path.clone());
        change(self);
        self.select_run(selected.as_deref());
    }

    /// The run that is selected in the table.
    pub(super) fn selected_run(&self) -> Option<&RunRow> {
        self.runs.row(self.line(View::Runs), &self.questions)
    }

    /// Selects the run with this path, if it is shown.
    pub(super) fn select_run(&mut self, path: Option<&Path>) {
        if let Some(line) = path.and_then(|path| self.runs.line_of(path, &self.questions)) {
            self.navigation.set_line(View::Runs, line);
        }
    }

    /// Shows a view. The findings view begins at the most severe finding each time.
    fn show(&mut self, view: View) {
        if view == View::Findings && self.view() != view {
            self.navigation.set_line(view, 0);
            self.judged.forget_place();
        }
        self.navigation.show(view);
    }

    fn toggle_clock(&mut self) {
        self.presentation.toggle_clock();
        self.latency.forget_figures();
    }

    fn next_palette(&mut self) {
        self.preferences.palette = self.palette().next();
        self.notify(format!("theme: {}", self.palette()));
    }

    /// Selects the step that is the selected percentile, and shows it among the others.
    fn show_percentile(&mut self) {
        if let Some(ordinal) = self.latency.percentile_step(self.phases(), &self.latency_line()) {
            self.show_step(ordinal);
            self.navigation.open(View::Steps);
        }
    }

    /// Selects the slowest step, or the next slowest, and says which it is.
    fn show_slowest(&mut self) {
        let (steps, measure) = (self.run.store().steps(), self.axes.window().measure());
        let Some((ordinal, place)) = self.search.next_slowest(steps, measure, self.axes.cursor()) else { return };
        self.axes.show_alone(ordinal, steps);
        self.notify(if place == 1 {
            "the slowest step".to_owned()
        } else {
            format!("number {place} of the slowest steps")
        });
    }

    /// Puts the selected range into view, and looks at what is in it.
    fn zoom_to_range(&mut self) {
        if let Some(range) = self.axes.range() {
            self.axes.zoom_to_range(self.run.store().steps());
            self.search.judge(self.run.store(), range);
        }
    }

    /// Shows the selected place of the selected finding among the steps.
    fn show_place(&mut self) {
        if let Some(ordinal) = self.judged.place_step(self.line(View::Findings)) {
            self.show_step(ordinal);
            self.navigation.open(View::Steps);
        }
    }

    /// Selects the nearest step before or after the selected one at which a finding begins, and says what it is.
    fn show_finding(&mut self, forward: bool) {
        let steps = self.run.store().steps();
        let from = self.axes.cursor().unwrap_or(steps.total());
        match self.judged.nearest(from, forward, steps) {
            Some((at, text)) => {
                self.show_step(at);
                self.notify(text);
            }
            None => self.notify(format!("no finding {} this step", if forward { "after" } else { "before" })),
        }
    }

    /// Selects a step where it can be seen.
    fn show_step(&mut self, ordinal: u64) {
        self.axes.show(ordinal, self.run.store().steps());
    }

    /// Moves the view that is shown by lines.
    fn scroll(&mut self, command: Command) {
        if let (Command::ScrollPage { down }, LineKind::Findings) = (command, self.view().lines()) {
            return self.judged.set_text_line(self.navigation.turn_text(self.judged.text_line(), down));
        }
        let Some((down, lines)) = self.navigation.scrolling(command) else { return };
        match (self.view().lines(), &mut self.output) {
            (LineKind::Ranks, _) => self.move_rank_selection(down, lines),
            // A log is read from its end.
            (LineKind::Log, Some(output)) => output.scroll(!down, lines, self.navigation.last_line()),
            _ => {
                self.navigation.scroll(down, lines);
                self.on_line_change();
            }
        }
    }

    /// Another line may be selected now.
    pub(super) fn on_line_change(&mut self) {
        if self.view().lines() == LineKind::Findings {
            self.judged.forget_place();
        }
    }

    /// Moves or zooms the axis of what is shown.
    /// Turns to the next unit of the bars; says so where the step is all there is.
    fn turn_measure(&mut self) {
        let before = self.window().measure();
        self.move_axis(Command::NextMeasure);
        if self.window().measure() == before {
            self.notify("only time per step: batches have no graphs, seeds, edges".to_owned());
        }
    }

    fn move_axis(&mut self, command: Command) {
        if self.view().axis() == Axis::Time {
            self.axes.move_time(command, self.run.store());
        } else {
            self.axes.move_steps(command, self.run.store());
            self.navigation.set_line(View::Step, 0);
        }
    }
}

impl App {
    /// Looks at the next rank, or at the one before.
    pub(super) fn select_next_rank(&mut self, forward: bool) {
        self.change_rank(|app| app.run.select_next(forward));
        if self.view().lines() != LineKind::Ranks {
            let of = self.run.expected();
            self.notify(self.run.rank().map_or_else(String::new, |rank| format!("rank {rank} of {of}")));
        }
    }

    /// Selects a rank this many places forward or back, among those that have published.
    pub(super) fn move_rank_selection(&mut self, forward: bool, places: usize) {
        let most = self.run.ranks().all().len();
        self.change_rank(|app| (0..places.min(most)).for_each(|_| app.run.select_next(forward)));
    }

    /// Looks at the rank with this place among those that have published.
    pub(super) fn select_rank(&mut self, at: usize) {
        let rank = self.run.ranks().all().get(at).map(|rank| rank.place.rank);
        if let Some(rank) = rank {
            self.change_rank(|app| _ = app.run.select(rank));
        }
    }

    /// Says something for a while.
    pub(super) fn notify(&mut self, text: String) {
        self.message.show(text, false, self.feed.now());
    }

    /// Forgets what was only true of the steps shown so far.
    pub(super) fn forget_steps(&mut self) {
        (self.judged, self.energy) = Default::default();
        self.presentation.take_highlight();
        self.latency.forget_figures();
        self.axes.reset();
    }

    /// Changes the rank, and forgets what was only true of the one before.
    fn change_rank(&mut self, change: impl FnOnce(&mut Self)) {
        let (before, step) = (self.run.rank(), self.cursor_step());
        change(self);
        if self.run.rank() == before {
            return;
        }
        // The same rank of the run that this one is compared with, if that has ranks.
        if let (Some(other), Some(rank)) = (&mut self.other, self.run.rank()) {
            other.run.select(rank);
        }
        self.forget_steps();
        if let Some(ordinal) = step.and_then(|step| Some(self.run.store().steps().find_step(step)?.ordinal())) {
            self.axes.show(ordinal, self.run.store().steps());
        }
        self.dirty = true;
    }

    /// The selected step, as the program counts.
    fn cursor_step(&self) -> Option<StepId> {
        let row = self.run.store().steps().known_row(self.axes.cursor()?)?;
        Some(row.step())
    }
}
