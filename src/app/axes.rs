//! The two axes that moving and zooming change: that of the step bars and that of the tracks. Both show the selected step.

use std::ops::Range;

use super::command::Command;
use super::time_window::TimeWindow;
use super::window::{AXIS_WIDTH, Window};
use gnntop_analysis::store::{StepTable, Store};

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
