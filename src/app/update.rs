//! The one place where what happened reaches the app.

use super::action::{Action, Effect};
use super::input::Key;
use super::presentation::ClockedPhases;
use super::state::App;
use super::view::{LineKind, View, ViewPart};
use crate::report::EnergySnapshot;
use gnntop_analysis::figures::count;
use gnntop_analysis::findings::Judgement;
use gnntop_analysis::many_runs::RunRow;
use gnntop_analysis::ranks::Run;
use gnntop_analysis::source::Status;
use gnntop_analysis::source::catalog::CatalogEntry;

/// Applies what happened. The answer is what the main loop must do.
pub fn update(app: &mut App, action: Action) -> Option<Effect> {
    match action {
        Action::Key(key) => return app.press(key),
        Action::Mouse { gesture, on } => return app.handle_gesture(gesture, on),
        Action::BackgroundDetected(background) => {
            app.dirty |= app.background() != background;
            app.preferences.background = background;
        }
        Action::Resized { width, .. } => {
            app.axes.resize(width);
            app.dirty = true;
        }
        Action::Tick { now } => {
            app.dirty |= app.feed.tick(now) | app.message.tick(now);
            app.compare_runs();
        }
        Action::Polled { status, changed } => app.on_polled(status, changed),
        Action::OtherPolled { status, changed } => {
            app.dirty |= changed && app.view() == View::Compare;
            app.other_mut().set_status(status);
            app.compare_runs();
        }
        Action::FindingsUpdated(judgement) => app.on_findings(*judgement),
        Action::EnergyUpdated(told) => app.on_energy(told),
        Action::Measured(cost) => {
            app.dirty |= app.cost != cost;
            app.cost = cost;
        }
        Action::LogRead(read) => {
            let is_news = app.output.as_mut().is_some_and(|output| output.read(read));
            app.dirty |= is_news && app.view().lines() == LineKind::Log;
        }
        Action::SessionsListed(listed) => app.on_sessions_listed(listed),
        Action::RunsListed { rows, problem } => app.on_runs_listed(rows, problem),
        Action::Opened => app.on_opened(),
        Action::Message(text) => {
            app.message.show_progress(text, app.feed.now());
            app.dirty = true;
        }
        Action::Failed(text) => {
            app.message.show(text, true, app.feed.now());
            app.dirty = true;
        }
    }
    None
}

impl App {
    fn press(&mut self, key: Key) -> Option<Effect> {
        self.dirty = true;
        if let Some(question) = self.questions.awaits_a_key() {
            return self.questions.press_once(question, key);
        }
        // By habit it ends what runs, and here may mean the view: asked, it is never mistaken.
        if key == Key::Ctrl('c') && self.may_stop_the_program() {
            self.questions.ask_leaving();
            return None;
        }
        if self.prompt().is_some() && key != Key::Ctrl('c') {
            return self.questions.press(key, self.feed.position_ns()).map(Effect::Control);
        }
        let Some(command) = self.keymap().command(key, &self.situation()) else {
            if let Some(why) = self.keymap().why_not(key, &self.situation()) {
                self.notify(why);
            }
            return None;
        };
        self.message.clear();
        let effect = self.execute(command);
        self.count_latency();
        self.compare_runs();
        effect
    }

    fn on_polled(&mut self, status: Status, has_come: bool) {
        if has_come {
            self.axes.keep_within(self.run.store().steps());
        }
        let missed = |status: &Status| status.transport.and_then(|transport| transport.missed_step);
        let before = missed(self.feed.status());
        if let Some((step, last)) = missed(&status).filter(|missed| before != Some(*missed)) {
            let text = format!("there is no step {}: the last one is {}", count(step), count(last));
            self.message.show(text, true, self.feed.now());
        }
        self.dirty |= self.feed.update(status, has_come);
    }

    /// Takes in new findings. The same finding stays selected.
    fn on_findings(&mut self, judgement: Judgement) {
        self.count_latency();
        if let Some(line) = self.judged.take(judgement, self.line(View::Findings)) {
            self.navigation.set_line(View::Findings, line);
            self.dirty = true;
        }
    }

    /// Brings percentiles up to date, where they are shown.
    fn count_latency(&mut self) {
        if self.view().lines() == LineKind::Durations {
            let (store, measure) = (self.run.store(), self.axes.window().measure());
            let phases = ClockedPhases::new(store, self.presentation.clock(), measure);
            self.latency.count(phases, self.axes.range());
        }
    }

    /// Compares the two runs again if that is shown and there is news.
    fn compare_runs(&mut self) {
        let now = self.feed.now();
        if self.view() == View::Compare {
            self.dirty |= self.other.as_mut().is_some_and(|other| other.compare_with(&self.run, now));
        }
    }

    fn on_energy(&mut self, told: Box<EnergySnapshot>) {
        let is_shown = self.view().has(ViewPart::Energy);
        self.dirty |= is_shown && self.energy.as_ref().is_none_or(|known| *known != told);
        self.energy = Some(told);
    }

    /// Takes in what can be opened now. A selected entry stays selected while others come and go.
    fn on_sessions_listed(&mut self, listed: Result<Vec<CatalogEntry>, String>) {
        let selected = self.sessions.entry(self.line(View::Sessions), &self.questions).map(|entry| entry.path.clone());
        self.sessions.set_entries(listed);
        // New ages alone are not worth a frame a second if the list is not shown.
        self.dirty |= self.view().lines() == LineKind::Sessions;
        if let Some(line) = selected.and_then(|path| self.sessions.line_of(&path, &self.questions)) {
            self.navigation.set_line(View::Sessions, line);
        }
    }

    /// Takes in what is known of the runs now. A selected one stays selected while others come, go and change places.
    fn on_runs_listed(&mut self, rows: Option<Vec<RunRow>>, problem: Option<String>) {
        let selected = self.selected_run().map(|row| row.path.clone());
        self.runs.set(rows, problem);
        self.dirty |= self.view().lines() == LineKind::Runs;
        self.select_run(selected.as_deref());
    }

    /// Forgets all about the session that was shown: another one is open.
    fn on_opened(&mut self) {
        if self.sessions.has_nothing_open() {
            self.runs.keep_filter(self.questions.filter());
        }
        self.forget_session();
        self.navigation.show(View::Overview);
        self.sessions.set_opened();
    }

    /// Forgets all about the session that was shown.
    pub(super) fn forget_session(&mut self) {
        self.run = Run::default();
        self.forget_steps();
        self.flame = Default::default();
        self.navigation.set_line(View::Findings, 0);
        self.questions = Default::default();
        (self.output, self.is_started_here) = (None, false);
        self.feed.reset();
        self.dirty = true;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::app::{Palette, Panel};
    use gnntop_analysis::source::{Control, SourceState, Transport};
    use gnntop_fixtures::{TrainingRun, each_item};
    use gnntop_wire::{Definition, Fact, Item};

    fn live() -> Status {
        Status { state: SourceState::Running, live: true, ..Status::default() }
    }

    fn app(steps: u64, status: Status) -> App {
        let mut app = App::new(true);
        feed(&mut app, steps);
        update(&mut app, Action::Resized { width: 28, height: 24 });
        update(&mut app, Action::Polled { status, changed: true });
        app
    }

    /// Fills the app's store with a run of this many steps, as a replay that was moved does.
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
    fn cursor_moves_and_returns_to_following() {
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
    fn selected_step_stays_in_a_fixed_window() {
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
    fn cursor_follows_replay_moved_back() {
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
    fn zoom_is_limited_both_ways() {
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
    fn cursor_moves_by_steps_on_time_axis() {
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
    fn range_is_from_its_start_to_the_cursor() {
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
        for view in View::MAIN.into_iter().filter(|view| !view.is_of_ranks()) {
            press(&mut app, Key::Char('?'));
            press(&mut app, Key::Char(view.key().unwrap_or('0')));
            assert_eq!((app.view(), app.main_view()), (view, view), "also from the help");
        }
        press(&mut app, Key::Char('3'));
        press(&mut app, Key::Down);
        press(&mut app, Key::Down);
        press(&mut app, Key::Char('7'));
        assert_eq!((app.line(View::Latency), app.line(View::Tracks)), (2, 0));
        press(&mut app, Key::Char('o'));
        assert_eq!((app.view(), app.main_view()), (View::Log, View::Tracks));
        press(&mut app, Key::Esc);
        press(&mut app, Key::Esc);
        assert_eq!(app.view(), View::Overview, "one level down, whatever was looked at before");
    }

    #[test]
    fn tab_cycles_the_focus() {
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
    fn freeze_counts_time_and_resets_silence() {
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
    fn only_news_make_the_screen_dirty() {
        let mut app = app(1, live());
        app.drawn(None);
        update(&mut app, Action::Polled { status: live(), changed: false });
        let cost = app.cost();
        update(&mut app, Action::Measured(cost));
        tick(&mut app, 1);
        assert!(!app.is_dirty());
        update(&mut app, Action::Polled { status: live(), changed: true });
        assert!(app.is_dirty());
        app.drawn(None);
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
    fn palette_key_changes_palette_with_notice() {
        let mut app = app(1, Status::default());
        press(&mut app, Key::Char('t'));
        assert_eq!((app.palette(), app.notice()), (Palette::ColorBlind, Some("theme: colour-blind")));
        app.drawn(None);
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
        assert!(app.prompt().is_some_and(|prompt| prompt.text == "q" && prompt.complaint.is_some()));
        press(&mut app, Key::Backspace);
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
    fn step_beyond_the_last_is_said_once() {
        let replay =
            |missed_step| Status { transport: Some(Transport { missed_step, ..Transport::default() }), ..live() };
        let mut app = app(1, replay(None));
        for seconds in [1, 2] {
            update(&mut app, Action::Polled { status: replay(Some((9999, 429))), changed: false });
            assert_eq!(app.notice(), Some("there is no step 9,999: the last one is 429"));
            tick(&mut app, seconds);
        }
        tick(&mut app, 9);
        update(&mut app, Action::Polled { status: replay(Some((9999, 429))), changed: false });
        assert_eq!(app.notice(), None);
    }

    #[test]
    fn control_c_asks_when_program_was_started_here() {
        let mut app = app(1, live());
        app.own_the_program();
        for (answer, effect) in [
            (Key::Esc, None),
            (Key::Char('d'), Some(Effect::Quit)),
            (Key::Char('w'), Some(Effect::Wait)),
            (Key::Char('s'), Some(Effect::Stop)),
            (Key::Ctrl('c'), Some(Effect::Quit)),
        ] {
            assert_eq!(press(&mut app, Key::Ctrl('c')), None, "it is asked");
            assert_eq!(press(&mut app, Key::Char('x')), None, "no answer");
            assert_eq!(press(&mut app, answer), effect);
            assert_eq!(app.prompt(), None);
        }
        assert_eq!(press(&mut app, Key::Char('Q')), Some(Effect::Wait));
        let ended = Status { state: SourceState::Ended("ended".to_owned()), ..live() };
        update(&mut app, Action::Polled { status: ended, changed: true });
        assert_eq!(press(&mut app, Key::Ctrl('c')), Some(Effect::Quit), "there is nothing to ask");
        assert_eq!(press(&mut app, Key::Char('Q')), Some(Effect::Wait), "pressed a moment too late");
    }

    #[test]
    fn trace_key_asks_first_and_needs_pytorch() {
        let mut app = app(1, live());
        press(&mut app, Key::Char('T'));
        assert_eq!(app.prompt(), None);
        let fact = Definition::Fact(Fact::Framework("PyTorch 2.15.0".into()));
        app.run.apply(Item::Definitions(vec![fact]));
        for (answer, effect) in [
            (Key::Esc, None),
            (Key::Enter, Some(Effect::Trace { after_slow: false })),
            (Key::Char('s'), Some(Effect::Trace { after_slow: true })),
        ] {
            assert_eq!(press(&mut app, Key::Char('T')), None, "it is asked");
            assert_eq!(press(&mut app, Key::Char('q')), None, "no answer");
            assert_eq!(press(&mut app, answer), effect);
            assert_eq!(app.prompt(), None);
        }
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
    fn log_keeps_its_scroll_position() {
        let mut app = app(1, live());
        let lines = |n: u32| Ok((0..n).map(|i| i.to_string()).collect::<Vec<_>>());
        assert_eq!(press(&mut app, Key::Char('o')), Some(Effect::ReadLog));
        update(&mut app, Action::LogRead(lines(100)));
        press(&mut app, Key::Up);
        update(&mut app, Action::LogRead(lines(150)));
        assert_eq!(app.log().map(|log| log.lines_up()), Some(51));
        press(&mut app, Key::Char('G'));
        assert_eq!(app.log().map(|log| log.lines_up()), Some(0));
        update(&mut app, Action::LogRead(Err("gone".to_owned())));
        assert_eq!(app.log().map(|log| (log.lines().len(), log.error())), Some((150, Some("gone"))));
        assert_eq!(press(&mut app, Key::Char('o')), None, "leaves it");
        assert_eq!(app.view(), View::Overview);
    }
}
