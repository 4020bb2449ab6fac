//! The two axes that moving and zooming change: that of the step bars and that of the tracks. Both show the selected step.

use std::ops::Range;

use super::command::Command;
use super::window::{AXIS_WIDTH, Window};
use gnntop_analysis::store::{StepTable, Store, Track};

/// Eighths of the time in view that a page of it is.
const PAGE_PARTS: i64 = 7;

/// Which steps and which time are in view.
#[derive(Clone, Debug)]
pub(super) struct Axes {
    window: Window,
    time: TimeWindow,
    /// Columns of the screen.
    width: u16,
    /// The step that the mouse button went down on.
    pressed: Option<u64>,
}

impl Default for Axes {
    fn default() -> Self {
        Self { window: Window::default(), time: TimeWindow::default(), width: 80, pressed: None }
    }
}

impl Axes {
    /// Which steps are in view.
    pub(super) fn window(&self) -> &Window {
        &self.window
    }

    /// Which time the tracks show.
    pub(super) fn time(&self) -> &TimeWindow {
        &self.time
    }

    /// The selected step.
    pub(super) fn cursor(&self) -> Option<u64> {
        self.window.cursor()
    }

    /// The selected range of steps.
    pub(super) fn range(&self) -> Option<Range<u64>> {
        self.window.range()
    }

    /// Columns that the bars have.
    pub(super) fn columns(&self) -> u64 {
        u64::from(self.width.saturating_sub(AXIS_WIDTH).max(1))
    }

    /// Columns of the screen.
    pub(super) fn width(&self) -> u16 {
        self.width
    }

    pub(super) fn resize(&mut self, width: u16) {
        self.width = width;
    }

    /// Forgets steps that are no longer kept.
    pub(super) fn keep_within(&mut self, steps: &StepTable) {
        self.window.keep_within(steps, self.columns());
    }

    /// Selects a step where it can be seen.
    pub(super) fn show(&mut self, ordinal: u64, steps: &StepTable) {
        self.window.show(ordinal, steps, self.columns());
    }

    /// Selects a step and no range, where it can be seen.
    pub(super) fn show_alone(&mut self, ordinal: u64, steps: &StepTable) {
        self.window.clear_range();
        self.show(ordinal, steps);
    }

    /// Gives the selected range all columns.
    pub(super) fn zoom_to_range(&mut self, steps: &StepTable) {
        self.window.zoom_to_range(steps, self.columns());
    }

    /// Selects no step: the bars follow the newest.
    pub(super) fn follow(&mut self) {
        self.window.follow();
    }

    /// Forgets all that is about the steps of one rank.
    pub(super) fn reset(&mut self) {
        self.pressed = None;
        self.time.follow(&mut self.window);
    }

    /// Selects the step that the button went down on; whether it was selected, alone, before.
    pub(super) fn press(&mut self, ordinal: u64, steps: &StepTable) -> bool {
        let was_selected = self.cursor() == Some(ordinal) && self.range().is_none();
        self.pressed = Some(ordinal);
        self.window.select_alone(ordinal, steps, self.columns());
        was_selected
    }

    /// The button went down somewhere else.
    pub(super) fn forget_press(&mut self) {
        self.pressed = None;
    }

    /// Selects the steps from the one where the button went down.
    pub(super) fn drag_to(&mut self, ordinal: u64, steps: &StepTable) {
        if let Some(from) = self.pressed {
            self.window.select_range(from, ordinal, steps, self.columns());
        }
    }

    /// Moves or zooms the time that the tracks show.
    pub(super) fn move_time(&mut self, command: Command, store: &Store) {
        let width = self.columns();
        let (time, window) = (&mut self.time, &mut self.window);
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

    /// Moves, zooms or measures the step bars.
    pub(super) fn move_steps(&mut self, command: Command, store: &Store) {
        let width = self.columns();
        let (window, steps) = (&mut self.window, store.steps());
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
            Command::NextMeasure => window.turn_measure(store.statistics().batch()),
            _ => (),
        }
    }
}

/// Usual steps in view before anyone zooms.
const STEPS_IN_VIEW: u64 = 3;
/// Time in view if there are no steps.
const WITHOUT_STEPS_NS: u64 = 10_000_000_000;
/// After this many usual steps without the end of one, the view moves on to now.
const SLOW_STEPS: u64 = 2;
/// Shortest time in view.
const LEAST_NS: u64 = 1_000;
/// Parts of the view that it can be moved by.
const PARTS: i64 = 8;

/// The time that the tracks show. It follows the newest step, or has the selected step in its middle; moving it selects
/// the step in its middle, so that all views are about the same step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeWindow {
    /// As zoomed; a few steps where `None`.
    span_ns: Option<u64>,
    /// Its middle, given by the selected step.
    middle_ns: Option<u64>,
}

impl TimeWindow {
    /// The time in view, which fills the view within the session's time as far as possible.
    pub fn range(&self, store: &Store, window: &Window) -> Range<u64> {
        let span_ns = self.span_ns(store);
        let end_ns = match self.middle_ns(store, window) {
            Some(middle_ns) => middle_ns.saturating_add(span_ns / 2).min(store.now_ns()),
            None => newest_ns(store),
        };
        let start_ns = end_ns.saturating_sub(span_ns).max(store.first_ns().unwrap_or(0));
        start_ns..start_ns.saturating_add(span_ns)
    }

    /// The instant under the cursor, in the middle of the view if there is time on both sides; `None` while following
    /// the newest.
    pub fn middle_ns(&self, store: &Store, window: &Window) -> Option<u64> {
        let Some(row) = window.cursor().and_then(|cursor| store.steps().known_row(cursor)) else {
            return self.middle_ns.filter(|_| store.steps().is_empty());
        };
        let period = row.period_start_ns()..=row.end_ns();
        let in_step = self.middle_ns.filter(|middle_ns| period.contains(middle_ns));
        Some(in_step.unwrap_or(row.period_start_ns().midpoint(row.end_ns())))
    }

    fn span_ns(&self, store: &Store) -> u64 {
        let step_ns = store.statistics().period().percentile(0.5);
        let usual_ns = step_ns.map_or(WITHOUT_STEPS_NS, |ns| ns.saturating_mul(STEPS_IN_VIEW));
        self.span_ns.unwrap_or(usual_ns).max(LEAST_NS)
    }

    /// Moves by `parts` eighths of the view; beyond the newest it follows again. `width` are the columns of the step bars.
    pub(super) fn move_by(&mut self, parts: i64, store: &Store, window: &mut Window, width: u64) {
        let range = self.range(store, window);
        let by_ns = (range.end - range.start) / PARTS as u64 * parts.unsigned_abs();
        let middle_ns = self.middle_ns(store, window).unwrap_or(range.start.midpoint(range.end));
        let to_ns = if parts < 0 { middle_ns.saturating_sub(by_ns) } else { middle_ns.saturating_add(by_ns) };
        self.go_to(to_ns.max(store.first_ns().unwrap_or(0)), store, window, width);
    }

    /// Puts a time into the middle.
    pub(super) fn go_to(&mut self, t_ns: u64, store: &Store, window: &mut Window, width: u64) {
        let Some(last) = store.steps().last() else {
            self.middle_ns = (t_ns < store.now_ns()).then_some(t_ns);
            return;
        };
        if t_ns > last.end_ns() {
            return self.follow(window);
        }
        let kept = store.steps().kept_ordinals();
        let row = store.steps().row_at(t_ns).or_else(|| store.steps().row(kept.start));
        if let Some(row) = row {
            self.middle_ns = Some(t_ns.max(row.period_start_ns()));
            window.select(row.ordinal(), store.steps(), width);
        }
    }

    /// Follows the newest step.
    pub(super) fn follow(&mut self, window: &mut Window) {
        self.middle_ns = None;
        window.follow();
    }

    /// Shows the whole run or, where it does, a few steps.
    pub(super) fn toggle_whole(&mut self, store: &Store) {
        let whole_ns = store.elapsed_ns().max(LEAST_NS);
        self.span_ns = (self.span_ns != Some(whole_ns)).then_some(whole_ns);
    }

    /// Shows half or twice the time.
    pub(super) fn zoom(&mut self, inward: bool, store: &Store) {
        let span_ns = self.span_ns(store);
        let whole_ns = store.elapsed_ns().max(LEAST_NS);
        self.span_ns = Some(if inward { (span_ns / 2).max(LEAST_NS) } else { span_ns.saturating_mul(2).min(whole_ns) });
    }
}

/// The end of the newest step or, where the next one takes long, now.
fn newest_ns(store: &Store) -> u64 {
    let now_ns = store.now_ns();
    let usual_ns = store.statistics().period().percentile(0.5).unwrap_or(0);
    let last_ns = store.steps().last().map(|row| row.end_ns());
    let is_recent = |last_ns: &u64| now_ns.saturating_sub(*last_ns) < usual_ns.saturating_mul(SLOW_STEPS);
    // After the end of a program nothing happens any more: what it did last is shown.
    let is_over = store.is_over() && store.open_spans().next().is_none();
    let did_last = || last_ns.filter(|_| is_over).map(|last_ns| last_span_ns(store, last_ns, usual_ns));
    last_ns.filter(is_recent).or_else(did_last).unwrap_or(now_ns)
}

/// The end of the last span that took as long as a step, or of the last step if none came after it: what a program's end takes is too
/// short to be seen.
fn last_span_ns(store: &Store, last_step_ns: u64, least_ns: u64) -> u64 {
    let mut last_ns = last_step_ns;
    for lane in store.tracks().iter().filter_map(Track::lane) {
        lane.each_box(last_step_ns..store.now_ns().saturating_add(1), |span, _| {
            let is_long = span.end_ns.saturating_sub(span.start_ns) >= least_ns;
            last_ns = if is_long { last_ns.max(span.end_ns) } else { last_ns };
        });
    }
    last_ns.min(store.now_ns())
}

#[cfg(test)]
mod tests {
    use gnntop_wire::TrackRole;

    use super::*;
    use gnntop_fixtures::{MS, SECOND, START_NS, StreamBuilder, each_item};

    /// 100 steps of 10 ms from the start on.
    fn store() -> Store {
        let mut stream = StreamBuilder::new("pna");
        let main = stream.track(TrackRole::Training, "main");
        for step in 0..100 {
            stream.step(main, step + 1, START_NS + step * 10 * MS, START_NS + (step + 1) * 10 * MS);
        }
        let mut store = Store::new();
        each_item(&stream.bytes(), |item| store.apply(item));
        store
    }

    #[test]
    fn window_follows_newest_steps_until_moved() {
        let (store, mut window, mut time) = (store(), Window::default(), TimeWindow::default());
        let range = time.range(&store, &window);
        assert_eq!(range.end, START_NS + SECOND);
        assert!((range.end - range.start).abs_diff(30 * MS) < MS, "three steps");
        time.move_by(-5, &store, &mut window, 50);
        assert_eq!(window.cursor(), Some(96), "more than half a screen before its middle");
        let middle_ns = time.middle_ns(&store, &window).unwrap();
        let range = time.range(&store, &window);
        assert!(range.start.midpoint(range.end).abs_diff(middle_ns) <= 1);
        time.move_by(10, &store, &mut window, 50);
        assert_eq!((window.cursor(), time.middle_ns(&store, &window)), (None, None), "and follows again");
    }

    #[test]
    fn step_selected_elsewhere_is_centred() {
        let (store, mut window, mut time) = (store(), Window::default(), TimeWindow::default());
        time.go_to(START_NS + 205 * MS, &store, &mut window, 50);
        assert_eq!(window.cursor(), Some(20));
        window.select(70, store.steps(), 50);
        assert_eq!(time.middle_ns(&store, &window), Some(START_NS + 705 * MS));
    }

    #[test]
    fn zoom_is_limited_to_whole_run_and_microsecond() {
        let (store, mut window, mut time) = (store(), Window::default(), TimeWindow::default());
        (0..60).for_each(|_| time.zoom(false, &store));
        assert_eq!(time.range(&store, &window), START_NS..START_NS + SECOND);
        (0..60).for_each(|_| time.zoom(true, &store));
        let range = time.range(&store, &window);
        assert_eq!(range.end - range.start, LEAST_NS);
        time.go_to(0, &store, &mut window, 50);
        assert_eq!(time.range(&store, &window).start, START_NS, "nothing before the first time");
    }

    #[test]
    fn window_without_steps_shows_time() {
        let (mut window, mut time, mut store) = (Window::default(), TimeWindow::default(), Store::new());
        time.move_by(-8, &store, &mut window, 50);
        time.zoom(false, &store);
        let mut stream = StreamBuilder::new("pna");
        let track = stream.track(TrackRole::Other, "a");
        stream.span(track, 0, "work", START_NS, START_NS + 100 * SECOND);
        each_item(&stream.bytes(), |item| store.apply(item));
        time.go_to(START_NS + 50 * SECOND, &store, &mut window, 50);
        let range = time.range(&store, &window);
        assert_eq!(range.start.midpoint(range.end), START_NS + 50 * SECOND);
        time.go_to(u64::MAX, &store, &mut window, 50);
        assert_eq!(time.range(&store, &window).end, START_NS + 100 * SECOND);
    }
}
