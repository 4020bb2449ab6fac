//! The one place where the app changes.

use std::time::Duration;

use super::keys::Key;
use super::{AXIS_WIDTH, Action, App, Command, Effect, LogView, Panel, Prompt, Question, View, prompt};
use gnntop_analysis::source::{Control, Status};

/// Eighths of the time in view that a page of it is.
const PAGE_PARTS: i64 = 7;

/// Applies what happened. The answer is what the main loop must do.
pub fn update(app: &mut App, action: Action) -> Option<Effect> {
    match action {
        Action::Key(key) => return app.press(key),
        Action::Mouse { gesture, on } => return app.point(gesture, on),
        Action::BackgroundSeen(background) => {
            app.dirty |= app.background != background;
            app.background = background;
        }
        Action::Resized { width, height } => {
            app.size = (width, height);
            app.dirty = true;
        }
        Action::Tick { now } => app.tick(now),
        Action::Polled { status, changed } => app.polled(status, changed),
        Action::OtherPolled { status, changed } => {
            app.dirty |= changed && app.view() == View::Compare;
            app.other_mut().status = status;
        }
        Action::Judged(judgement) => app.judged(*judgement),
        Action::EnergyTold(told) => app.energy_told(told),
        Action::Measured(cost) => {
            app.dirty |= app.cost != cost;
            app.cost = cost;
        }
        Action::LogRead(read) => app.log_read(read),
        Action::SessionsListed(listed) => app.sessions_listed(listed),
        Action::Opened => app.opened(),
        Action::Failed(text) => app.notify(text, true),
    }
    None
}

impl App {
    fn press(&mut self, key: Key) -> Option<Effect> {
        self.dirty = true;
        if self.prompt.is_some() && key != Key::Ctrl('c') {
            return self.type_answer(key);
        }
        let command = self.keymap.command(key, &self.situation())?;
        let effect = self.obey(command);
        if self.view() == View::Latency {
            self.count_latency();
        }
        effect
    }

    fn type_answer(&mut self, key: Key) -> Option<Effect> {
        let prompt = self.prompt.as_mut()?;
        match key {
            Key::Char(c) => prompt.push(c),
            Key::Backspace => prompt.pop(),
            Key::Esc => {
                if prompt.question == Question::Filter {
                    self.filter.clear();
                }
                self.prompt = None;
            }
            Key::Enter => return self.answer(),
            _ => (),
        }
        None
    }

    /// Does what the answer to the open question asks for.
    fn answer(&mut self) -> Option<Effect> {
        let prompt = self.prompt.as_mut()?;
        let position_ns = self.status.transport.map_or(0, |transport| transport.position_ns);
        let effect = match prompt.question {
            Question::Filter => {
                self.filter = std::mem::take(&mut prompt.text);
                None
            }
            Question::Place => match prompt::place(&prompt.text, position_ns) {
                Ok(control) => Some(Effect::Control(control)),
                Err(complaint) => {
                    prompt.complaint = Some(complaint);
                    return None;
                }
            },
        };
        self.prompt = None;
        effect
    }

    pub(super) fn obey(&mut self, command: Command) -> Option<Effect> {
        match command {
            Command::Quit => return Some(Effect::Quit),
            Command::Suspend => return Some(Effect::Suspend),
            Command::Redraw => return Some(Effect::Redraw),
            Command::TogglePause => return Some(Effect::Control(Control::TogglePause)),
            Command::StepFrame { forward } => {
                return Some(Effect::Control(Control::StepFrames(if forward { 1 } else { -1 })));
            }
            Command::Faster => return Some(Effect::Control(Control::Faster)),
            Command::Slower => return Some(Effect::Control(Control::Slower)),
            Command::ToggleLoop => return Some(Effect::Control(Control::ToggleLoop)),
            Command::MarkRange => return Some(Effect::Control(Control::MarkRange)),
            Command::AskTime => self.prompt = Some(Prompt::new(Question::Place, String::new())),
            Command::AskFilter => self.prompt = Some(Prompt::new(Question::Filter, self.filter.clone())),
            Command::ToggleFreeze => {
                self.frozen_at = if self.frozen_at.is_some() { None } else { Some(self.now) };
                self.heard_at = self.now;
            }
            Command::Back if self.view() == View::Sessions && self.has_nothing_open() && self.filter.is_empty() => {
                return Some(Effect::Quit);
            }
            Command::Back => self.back(),
            Command::OpenSelected => return self.open_selected(),
            Command::ToggleSessions => return self.toggle_read(View::Sessions, Effect::ListSessions),
            Command::ToggleHelp => self.toggle(View::Help),
            Command::ToggleDetail => self.toggle(View::Step),
            Command::ToggleOutput => return self.toggle_read(View::Log, Effect::ReadLog),
            Command::NextPanel => self.turn_focus(1),
            Command::PreviousPanel => self.turn_focus(Panel::ALL.len() - 1),
            Command::ToggleClock => self.toggle_clock(),
            Command::TogglePercentiles => self.percentiles = !self.percentiles,
            Command::NextPalette => {
                self.palette = self.palette.next();
                self.tell(format!("theme: {}", self.palette));
            }
            Command::TurnRank { forward } => self.turn_rank(forward),
            Command::Show(view) => self.show(view),
            Command::Enlarge => self.open(self.focus.view()),
            Command::NextRange | Command::MovePercentile { .. } | Command::ShowPercentile => {
                self.change_latency(command)
            }
            Command::MovePlace { .. } | Command::ShowPlace | Command::ShowFinding { .. } => self.walk_findings(command),
            Command::Scroll { .. } | Command::ScrollPage { .. } | Command::ScrollEnd { .. } => self.scroll(command),
            Command::MoveCursor { .. }
            | Command::MovePage { .. }
            | Command::FirstStep
            | Command::FollowNewest
            | Command::Zoom { .. }
            | Command::ToggleWhole
            | Command::ToggleTime
            | Command::ToggleLog
            | Command::ToggleRange
            | Command::NextMeasure => self.move_window(command),
        }
        None
    }

    /// Opens or leaves a view; opened, it first needs something to be read.
    fn toggle_read(&mut self, view: View, read: Effect) -> Option<Effect> {
        self.toggle(view);
        (self.view() == view).then_some(read)
    }

    /// Leaves the innermost thing: what lies on top, then the selected step, then the view.
    fn back(&mut self) {
        let can_filter = self.view().key().is_some() || self.view() == View::Sessions;
        if can_filter && (self.highlight.take().is_some() || !std::mem::take(&mut self.filter).is_empty()) {
            return;
        }
        let alone = self.views.len() < 2 && self.view().key().is_some();
        let has_cursor = self.view().has_step_axis() || self.view().has_time_axis();
        if alone && has_cursor && self.window.cursor().is_some() {
            self.window.follow();
        } else {
            self.views.pop();
        }
    }

    /// Shows a view in the place of all others.
    pub(super) fn show(&mut self, view: View) {
        self.views.clear();
        self.views.extend((view != View::Overview).then_some(view));
    }

    /// Shows a view on top of the one shown.
    pub(super) fn open(&mut self, view: View) {
        self.views.retain(|below| *below != view);
        self.views.push(view);
    }

    /// Shows a view on top of the one shown, from its first line on, or leaves it.
    pub(super) fn toggle(&mut self, view: View) {
        if self.view() == view {
            self.views.pop();
        } else {
            self.open(view);
        }
        self.lines.set(view, 0);
    }

    fn turn_focus(&mut self, by: usize) {
        let at = Panel::ALL.iter().position(|panel| *panel == self.focus).unwrap_or(0);
        self.focus = Panel::ALL[(at + by) % Panel::ALL.len()];
    }

    /// Columns that the bars have.
    pub(super) fn columns(&self) -> u64 {
        u64::from(self.size.0.saturating_sub(AXIS_WIDTH).max(1))
    }

    /// Moves the time that the tracks show.
    fn move_time(&mut self, command: Command) {
        let width = self.columns();
        let Self { run, window, time_window: time, .. } = self;
        let store = run.store();
        match command {
            Command::MoveCursor { columns: parts } => time.move_by(parts, store, window, width),
            Command::MovePage { forward } => {
                time.move_by(if forward { PAGE_PARTS } else { -PAGE_PARTS }, store, window, width)
            }
            Command::FirstStep => time.go_to(store.first_ns().unwrap_or(0), store, window, width),
            Command::FollowNewest => time.follow(window),
            Command::Zoom { inward } => time.zoom(inward, store),
            Command::ToggleWhole => time.toggle_whole(store),
            _ => (),
        }
    }

    fn move_window(&mut self, command: Command) {
        if self.view().has_time_axis() {
            return self.move_time(command);
        }
        let width = self.columns();
        let (window, steps) = (&mut self.window, self.run.store().steps());
        match command {
            Command::MoveCursor { columns } => window.move_by(columns, steps, width),
            Command::MovePage { forward } => {
                let page = width.min(i64::MAX as u64) as i64;
                window.move_by(if forward { page } else { -page }, steps, width);
            }
            Command::FirstStep => window.select(0, steps, width),
            Command::FollowNewest => window.follow(),
            Command::Zoom { inward } => window.zoom(inward, steps, width),
            Command::ToggleWhole => window.toggle_whole(steps, width),
            Command::ToggleTime => window.toggle_time(steps, width),
            Command::ToggleLog => window.toggle_log(),
            Command::ToggleRange => window.toggle_range(steps, width),
            Command::NextMeasure => window.turn_measure(self.run.store().statistics().batch()),
            _ => (),
        }
        self.lines.set(View::Step, 0);
    }

    fn tick(&mut self, now: Duration) {
        let clocks = |app: &Self| (app.frozen_for().map(|d| d.as_secs()), app.silent_for().map(|d| d.as_secs()));
        let before = clocks(self);
        self.now = now;
        self.dirty |= clocks(self) != before;
        self.forget_notice();
    }

    fn polled(&mut self, status: Status, changed: bool) {
        if changed {
            self.heard_at = self.now;
            let width = self.columns();
            self.window.keep_within(self.run.store().steps(), width);
        }
        self.dirty |= changed || self.status != status;
        self.status = status;
    }

    fn log_read(&mut self, read: Result<Vec<String>, String>) {
        let Some(log) = &mut self.log else { return };
        let (lines, error) = match read {
            Ok(lines) => (lines, None),
            Err(error) => (std::mem::take(&mut log.lines), Some(error)),
        };
        // Who has scrolled up keeps the lines in view while new ones come.
        let grown = lines.len().saturating_sub(log.lines.len());
        let lines_up = if log.lines_up > 0 { log.lines_up + grown } else { 0 };
        let next = LogView { lines_up: lines_up.min(lines.len()), lines, error };
        self.dirty |= *log != next && self.view() == View::Log;
        self.log = Some(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Palette;
    use gnntop_analysis::source::{State, Transport};
    use gnntop_fixtures::{TrainingRun, each_item};

    fn live() -> Status {
        Status { state: State::Running, live: true, ..Status::default() }
    }

    fn app(steps: u64, status: Status) -> App {
        let mut app = App::new(true);
        feed(&mut app, steps);
        update(&mut app, Action::Resized { width: 28, height: 24 });
        update(&mut app, Action::Polled { status, changed: true });
        app
    }

    /// Fills the app's store with a run of so many steps, as a replay that was moved does.
    fn feed(app: &mut App, steps: u64) {
        app.run = Default::default();
        each_item(&TrainingRun { steps, ..TrainingRun::default() }.bytes(), |item| app.run.apply(item));
    }

    fn per_column(app: &App) -> u64 {
        app.window().per_column(app.run.store().steps(), 20)
    }

    fn press(app: &mut App, key: Key) -> Option<Effect> {
        update(app, Action::Key(key))
    }

    fn tick(app: &mut App, seconds: u64) {
        update(app, Action::Tick { now: Duration::from_secs(seconds) });
    }

    #[test]
    fn the_cursor_walks_and_comes_back_to_following() {
        let mut app = app(100, live());
        assert_eq!((app.window().cursor(), app.step_in_view()), (None, Some(99)));
        press(&mut app, Key::Left);
        assert_eq!(app.window().cursor(), Some(99), "first the newest");
        press(&mut app, Key::Char('h'));
        assert_eq!((app.window().cursor(), app.step_in_view()), (Some(98), Some(98)));
        press(&mut app, Key::Char('l'));
        press(&mut app, Key::Right);
        assert_eq!(app.window().cursor(), None, "past the newest");
        press(&mut app, Key::Char('g'));
        assert_eq!(app.window().cursor(), Some(0));
        press(&mut app, Key::Left);
        assert_eq!(app.window().cursor(), Some(0));
        press(&mut app, Key::Char('G'));
        assert_eq!(app.window().cursor(), None);
    }

    #[test]
    fn a_selected_step_holds_the_window_and_stays_inside() {
        let mut app = app(100, live());
        // 28 columns less the axis: 20 bars.
        press(&mut app, Key::Left);
        assert_eq!(app.window().newest(), Some(99));
        feed(&mut app, 140);
        update(&mut app, Action::Polled { status: live(), changed: true });
        assert_eq!(app.window().newest(), Some(99), "new steps do not move it");
        for _ in 0..19 {
            press(&mut app, Key::Left);
        }
        assert_eq!((app.window().cursor(), app.window().newest()), (Some(80), Some(99)));
        press(&mut app, Key::Left);
        assert_eq!((app.window().cursor(), app.window().newest()), (Some(79), Some(98)), "moved by one");
        press(&mut app, Key::PageUp);
        assert_eq!((app.window().cursor(), app.window().newest()), (Some(59), Some(78)));
        press(&mut app, Key::Char('g'));
        assert_eq!((app.window().cursor(), app.window().newest()), (Some(0), Some(19)), "full from the oldest on");
        press(&mut app, Key::Esc);
        assert_eq!((app.window().cursor(), app.window().newest()), (None, None));
    }

    #[test]
    fn a_replay_that_goes_back_takes_the_cursor_along() {
        let mut app = app(100, live());
        press(&mut app, Key::Left);
        feed(&mut app, 50);
        update(&mut app, Action::Polled { status: live(), changed: true });
        assert_eq!(app.window().cursor(), None);
        press(&mut app, Key::Left);
        feed(&mut app, 0);
        update(&mut app, Action::Polled { status: live(), changed: true });
        assert_eq!((app.window().cursor(), app.step_in_view()), (None, None));
        assert_eq!(press(&mut app, Key::Left), None);
    }

    #[test]
    fn zoom_has_two_ends() {
        let mut app = app(100, live());
        press(&mut app, Key::Char('+'));
        assert_eq!(per_column(&app), 1);
        for _ in 0..40 {
            press(&mut app, Key::Char('-'));
        }
        assert_eq!(per_column(&app), 6, "100 steps in 20 columns");
        press(&mut app, Key::Left);
        press(&mut app, Key::Left);
        assert_eq!(app.window().cursor(), Some(95), "by columns, the worst of each");
        for _ in 0..40 {
            press(&mut app, Key::Char('+'));
        }
        assert_eq!((per_column(&app), app.window().cursor()), (1, Some(95)));
    }

    #[test]
    fn on_an_axis_of_time_each_press_is_another_step() {
        let mut app = app(100, live());
        press(&mut app, Key::Char('x'));
        let mut cursors = Vec::new();
        for _ in 0..100 {
            press(&mut app, Key::Left);
            cursors.extend(app.window().cursor());
        }
        let walked: Vec<u64> = (0..100).rev().collect();
        assert_eq!(cursors, walked, "no step is passed over where each has columns of its own");
        press(&mut app, Key::Right);
        assert_eq!(app.window().cursor(), Some(1));
        press(&mut app, Key::Char('x'));
        assert_eq!((app.window().cursor(), app.window().is_by_time()), (Some(1), false));
    }

    #[test]
    fn the_whole_run_stays_in_view_while_it_grows() {
        let mut app = app(100, live());
        press(&mut app, Key::Char('w'));
        for steps in [100, 1000, 5000] {
            feed(&mut app, steps);
            update(&mut app, Action::Polled { status: live(), changed: true });
            let columns = app.window().columns(app.run.store().steps(), 20);
            let shown: u64 = columns.iter().flatten().map(|column| column.steps).sum();
            assert_eq!((shown, columns.len() <= 20), (steps, true));
        }
        press(&mut app, Key::Char('w'));
        assert_eq!(per_column(&app), 1, "as before");
    }

    #[test]
    fn a_range_goes_from_where_it_was_begun_to_the_cursor() {
        let mut app = app(100, live());
        press(&mut app, Key::Char('v'));
        assert_eq!(app.window().range(), Some(99..100), "from the newest");
        for _ in 0..3 {
            press(&mut app, Key::Left);
        }
        assert_eq!(app.window().range(), Some(96..100));
        press(&mut app, Key::PageDown);
        assert_eq!(app.window().range(), Some(99..100), "not beyond the newest");
        press(&mut app, Key::Char('v'));
        assert_eq!((app.window().range(), app.window().cursor()), (None, Some(99)));
    }

    #[test]
    fn escape_goes_back_one_view_at_a_time() {
        let mut app = app(100, live());
        press(&mut app, Key::Left);
        press(&mut app, Key::Char('e'));
        assert_eq!(app.view(), View::Steps);
        press(&mut app, Key::Enter);
        press(&mut app, Key::Char('?'));
        assert_eq!(app.view(), View::Help);
        press(&mut app, Key::Esc);
        assert_eq!(app.view(), View::Step);
        press(&mut app, Key::Esc);
        assert_eq!((app.view(), app.window().cursor()), (View::Steps, Some(99)));
        press(&mut app, Key::Esc);
        assert_eq!((app.view(), app.window().cursor()), (View::Steps, None), "first the step");
        press(&mut app, Key::Esc);
        assert_eq!(app.view(), View::Overview);
        assert_eq!(press(&mut app, Key::Esc), None, "and never quits");
    }

    #[test]
    fn digits_show_views_and_each_keeps_its_line() {
        let mut app = app(100, live());
        for view in View::PLACES.into_iter().filter(|view| !view.is_of_ranks()) {
            press(&mut app, Key::Char('?'));
            press(&mut app, Key::Char(view.key().unwrap_or('0')));
            assert_eq!((app.view(), app.place()), (view, view), "also from the help");
        }
        press(&mut app, Key::Char('3'));
        press(&mut app, Key::Down);
        press(&mut app, Key::Down);
        press(&mut app, Key::Char('7'));
        assert_eq!((app.line(View::Latency), app.line(View::Tracks)), (2, 0));
        press(&mut app, Key::Char('o'));
        assert_eq!((app.view(), app.place()), (View::Log, View::Tracks));
        press(&mut app, Key::Esc);
        press(&mut app, Key::Esc);
        assert_eq!(app.view(), View::Overview, "one level down, whatever was looked at before");
    }

    #[test]
    fn the_focus_goes_round() {
        let mut app = app(1, live());
        press(&mut app, Key::Tab);
        assert_eq!(app.focus(), Panel::Phases);
        press(&mut app, Key::BackTab);
        press(&mut app, Key::BackTab);
        assert_eq!(app.focus(), Panel::Hardware);
        press(&mut app, Key::Tab);
        assert_eq!(app.focus(), Panel::Steps);
    }

    #[test]
    fn freezing_counts_the_time_and_forgives_the_silence() {
        let mut app = app(1, live());
        tick(&mut app, 5);
        press(&mut app, Key::Char(' '));
        tick(&mut app, 12);
        assert_eq!((app.frozen_for(), app.silent_for()), (Some(Duration::from_secs(7)), None));
        press(&mut app, Key::Char(' '));
        assert_eq!((app.frozen_for(), app.silent_for()), (None, None));
        tick(&mut app, 15);
        assert_eq!(app.silent_for(), Some(Duration::from_secs(3)));
        update(&mut app, Action::Polled { status: Status { live: false, ..live() }, changed: false });
        assert_eq!(app.silent_for(), None, "a recording is not expected to speak");
    }

    #[test]
    fn only_news_make_the_picture_old() {
        let mut app = app(1, live());
        app.drawn();
        update(&mut app, Action::Polled { status: live(), changed: false });
        let cost = app.cost();
        update(&mut app, Action::Measured(cost));
        tick(&mut app, 1);
        assert!(!app.is_dirty());
        update(&mut app, Action::Polled { status: live(), changed: true });
        assert!(app.is_dirty());
        app.drawn();
        tick(&mut app, 7);
        assert!(app.is_dirty(), "silence is news");
    }

    #[test]
    fn transport_keys_reach_the_source() {
        let mut app = app(1, Status { transport: Some(Transport::default()), ..live() });
        assert_eq!(press(&mut app, Key::Char(' ')), Some(Effect::Control(Control::TogglePause)));
        assert_eq!(press(&mut app, Key::Char('.')), Some(Effect::Control(Control::StepFrames(1))));
        assert_eq!(press(&mut app, Key::Char(',')), Some(Effect::Control(Control::StepFrames(-1))));
        assert_eq!(press(&mut app, Key::Char('>')), Some(Effect::Control(Control::Faster)));
        assert_eq!(press(&mut app, Key::Char('<')), Some(Effect::Control(Control::Slower)));
        assert_eq!(press(&mut app, Key::Char('L')), Some(Effect::Control(Control::ToggleLoop)));
        assert_eq!(press(&mut app, Key::Char('a')), Some(Effect::Control(Control::MarkRange)));
        assert_eq!(app.frozen_for(), None);
    }

    #[test]
    fn palettes_change_by_key_and_say_so_for_a_while() {
        let mut app = app(1, Status::default());
        press(&mut app, Key::Char('t'));
        assert_eq!((app.palette(), app.notice()), (Palette::ColorBlind, Some("theme: colour-blind")));
        app.drawn();
        tick(&mut app, 3);
        assert!(app.notice().is_some() && !app.is_dirty());
        tick(&mut app, 4);
        assert!(app.notice().is_none() && app.is_dirty());
        for _ in 1..Palette::ALL.len() {
            press(&mut app, Key::Char('t'));
        }
        assert_eq!(app.palette(), Palette::Default);
    }

    #[test]
    fn a_question_takes_all_keys_until_it_is_answered() {
        let mut app = app(1, Status { transport: Some(Transport::default()), ..live() });
        press(&mut app, Key::Char(':'));
        assert_eq!(press(&mut app, Key::Char('q')), None, "is no quit now");
        assert_eq!(press(&mut app, Key::Enter), None);
        assert!(app.prompt().is_some_and(|prompt| prompt.complaint.is_some()));
        for c in "55%".chars() {
            press(&mut app, Key::Char(c));
        }
        press(&mut app, Key::Backspace);
        press(&mut app, Key::Backspace);
        press(&mut app, Key::Char('%'));
        assert_eq!(press(&mut app, Key::Enter), Some(Effect::Control(Control::SeekShare(0.05))));
        assert_eq!(app.prompt(), None);
        press(&mut app, Key::Char(':'));
        assert_eq!(press(&mut app, Key::Ctrl('c')), Some(Effect::Quit));
    }

    #[test]
    fn a_filter_holds_while_it_is_typed_and_until_escape() {
        let mut app = app(10, live());
        press(&mut app, Key::Char('/'));
        for c in "WARD".chars() {
            press(&mut app, Key::Char(c));
        }
        assert!(app.passes("forward") && app.passes("backward") && !app.passes("optimizer"));
        press(&mut app, Key::Enter);
        assert_eq!((app.filter(), app.prompt()), ("WARD", None));
        press(&mut app, Key::Char('3'));
        assert_eq!(app.latency_lines().len(), 2, "forward and backward");
        press(&mut app, Key::Char('/'));
        press(&mut app, Key::Backspace);
        assert_eq!(app.filter(), "WAR", "goes on from where it was");
        press(&mut app, Key::Enter);
        press(&mut app, Key::Esc);
        assert_eq!((app.filter(), app.view()), ("", View::Latency), "the filter goes before the view");
        press(&mut app, Key::Esc);
        assert_eq!(app.view(), View::Overview);
    }

    #[test]
    fn the_log_stays_where_it_was_scrolled_to() {
        let mut app = app(1, live());
        let lines = |n: u32| Ok((0..n).map(|i| i.to_string()).collect::<Vec<_>>());
        assert_eq!(press(&mut app, Key::Char('o')), Some(Effect::ReadLog));
        update(&mut app, Action::LogRead(lines(100)));
        press(&mut app, Key::Up);
        update(&mut app, Action::LogRead(lines(150)));
        assert_eq!(app.log().map(|log| log.lines_up), Some(51));
        press(&mut app, Key::Char('G'));
        assert_eq!(app.log().map(|log| log.lines_up), Some(0));
        update(&mut app, Action::LogRead(Err("gone".to_owned())));
        assert_eq!(app.log().map(|log| (log.lines.len(), log.error.as_deref())), Some((150, Some("gone"))));
        assert_eq!(press(&mut app, Key::Char('o')), None, "leaves it");
        assert_eq!(app.view(), View::Overview);
    }
}
