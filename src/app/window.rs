//! Which steps the bars show, and which one is selected.
//!
//! While no step is selected the window follows the newest. A selected step holds the window still, so that the bar
//! under the cursor does not run away; the window moves only when the cursor would leave it.

use std::ops::Range;

use crate::store::StepTable;

/// Columns left of the bars: the axis with its figures.
pub const AXIS_WIDTH: u16 = 8;
/// Most steps that share a column.
const MOST_PER_COLUMN: u64 = 1 << 20;

/// The part of the step table in view. Steps are named by their ordinals in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    cursor: Option<u64>,
    /// The newest step in view; the newest there is where `None`.
    newest: Option<u64>,
    per_column: u64,
}

impl Default for Window {
    fn default() -> Self {
        Self { cursor: None, newest: None, per_column: 1 }
    }
}

impl Window {
    /// The selected step.
    pub fn cursor(&self) -> Option<u64> {
        self.cursor
    }

    /// The newest step in view; `None` to follow the newest there is.
    pub fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// Steps that share a column.
    pub fn per_column(&self) -> u64 {
        self.per_column
    }

    /// Selects the step `columns` further on, or back if negative. Moving past the newest follows again.
    pub(super) fn move_by(&mut self, columns: i64, steps: &StepTable, width: u64) {
        let kept = steps.kept();
        if kept.is_empty() {
            return;
        }
        let by = columns.unsigned_abs().saturating_mul(self.per_column);
        let from = self.cursor.unwrap_or(kept.end);
        let to = if columns < 0 { from.saturating_sub(by) } else { from.saturating_add(by) };
        if to >= kept.end {
            return self.follow();
        }
        self.select(to.max(kept.start), kept, width);
    }

    /// Selects a step that is kept and holds the window still.
    pub(super) fn select(&mut self, ordinal: u64, kept: Range<u64>, width: u64) {
        let newest = self.newest.unwrap_or(kept.end.saturating_sub(1));
        let in_view = self.per_column.saturating_mul(width.max(1));
        let oldest = newest.saturating_sub(in_view.saturating_sub(1));
        let shift_back = oldest.saturating_sub(ordinal);
        // The window never begins before the oldest step kept: a half-empty picture helps nobody.
        let least = kept.start.saturating_add(in_view - 1).min(kept.end.saturating_sub(1));
        self.newest = Some((newest - shift_back).max(ordinal).max(least));
        self.cursor = Some(ordinal);
    }

    /// Selects no step and follows the newest.
    pub(super) fn follow(&mut self) {
        self.cursor = None;
        self.newest = None;
    }

    /// Puts half or twice as many steps into a column.
    pub(super) fn zoom(&mut self, inward: bool, steps: &StepTable, width: u64) {
        let whole = (steps.len() as u64).div_ceil(width.max(1)).next_power_of_two().min(MOST_PER_COLUMN);
        self.per_column = if inward { (self.per_column / 2).max(1) } else { (self.per_column * 2).min(whole.max(1)) };
        if let Some(cursor) = self.cursor {
            self.select(cursor, steps.kept(), width);
        }
    }

    /// Lets go of steps that are no longer kept.
    pub(super) fn keep_within(&mut self, steps: &StepTable, width: u64) {
        let kept = steps.kept();
        match self.cursor {
            Some(_) if kept.is_empty() => *self = Self { per_column: self.per_column, ..Self::default() },
            Some(cursor) if cursor < kept.start => self.select(kept.start, kept, width),
            // A replay that went back holds fewer steps than before.
            Some(cursor) if cursor >= kept.end => self.follow(),
            _ => (),
        }
    }
}
