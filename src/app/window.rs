//! Which steps the bars show and by which measure, and which step is selected.
//!
//! While no step is selected the window follows the newest. A selected step holds the window still, so that the bar
//! under the cursor does not run away; the window moves only when the cursor would leave it. Where several steps share a
//! column, the cursor is on the worst of them.

use std::ops::Range;

use gnntop_analysis::store::{BatchTotals, StepColumn, StepMeasure, StepTable};

/// Columns left of the bars: the axis with its figures.
pub const AXIS_WIDTH: u16 = 8;
/// Most steps that share a column.
const MOST_PER_COLUMN: u64 = 1 << 40;
/// Shortest time of a column.
const SHORTEST_NS: u64 = 1_000;

/// The part of the step table in view, and how it is drawn. Steps are named by their ordinals in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    cursor: Option<u64>,
    /// The other end of a selected range.
    anchor: Option<u64>,
    /// The newest step in view; the newest there is where `None`.
    newest: Option<u64>,
    per_column: u64,
    /// Whether the whole run is in view, however long it gets.
    is_whole: bool,
    /// Time of a column; `None` if columns are equally many steps.
    ns_per_column: Option<u64>,
    measure: StepMeasure,
    is_log: bool,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            cursor: None,
            anchor: None,
            newest: None,
            per_column: 1,
            is_whole: false,
            ns_per_column: None,
            measure: StepMeasure::Period,
            is_log: false,
        }
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

    /// Fewest steps that share each of `width` columns: older steps may be known only together.
    pub fn per_column(&self, steps: &StepTable, width: u64) -> u64 {
        let wanted = if self.is_whole { whole_run(steps, width) } else { self.per_column };
        steps.fitting(self.end(steps), wanted, width)
    }

    /// Whether columns are equally long times, and not equally many steps.
    pub fn is_by_time(&self) -> bool {
        self.ns_per_column.is_some()
    }

    /// The time of each of `width` columns; `None` if columns are equally many steps.
    pub fn ns_per_column(&self, steps: &StepTable, width: u64) -> Option<u64> {
        self.ns_per_column.map(|ns| if self.is_whole { whole_run_ns(steps, width) } else { ns })
    }

    /// What the bars measure.
    pub fn measure(&self) -> StepMeasure {
        self.measure
    }

    /// Whether the axis of the bars is logarithmic.
    pub fn is_log(&self) -> bool {
        self.is_log
    }

    /// The selected range of steps: from where it was begun to the cursor, in either order.
    pub fn range(&self) -> Option<Range<u64>> {
        let (one, other) = (self.anchor?, self.cursor?);
        Some(one.min(other)..one.max(other) + 1)
    }

    /// The steps in at most `width` columns, oldest first. A column of time in which there was no step is `None`.
    pub fn columns<'s>(&self, steps: &'s StepTable, width: usize) -> Vec<Option<StepColumn<'s>>> {
        match (self.ns_per_column(steps, width as u64), self.last_in_view(steps)) {
            (Some(ns), Some(last)) => {
                let end_ns = steps.known_row(last).map_or(0, |row| row.end_ns());
                steps.time_columns(self.measure, end_ns, ns, width)
            }
            _ => {
                let per_column = self.per_column(steps, width as u64);
                let columns = steps.newest_columns_by(self.measure, self.newest, per_column, width);
                columns.into_iter().map(Some).collect()
            }
        }
    }

    /// Where each of the columns that [`Window::columns`] gives begins and where the last one ends, in nanoseconds; empty
    /// without a step. Costs little: no column looks for its worst step.
    pub fn edges(&self, steps: &StepTable, width: u64) -> Vec<u64> {
        let Some(last) = self.last_in_view(steps) else { return Vec::new() };
        let end_ns = steps.known_row(last).map_or(0, |row| row.end_ns());
        if let Some(ns) = self.ns_per_column(steps, width) {
            let end = end_ns.div_ceil(ns);
            return (end.saturating_sub(width)..=end).map(|at| at.saturating_mul(ns)).collect();
        }
        let per_column = self.per_column(steps, width);
        let first = (last / per_column + 1).saturating_sub(width);
        let start_ns = |column: u64| steps.known_row(column * per_column).map_or(0, |row| row.period_start_ns());
        (first..=last / per_column).map(start_ns).chain([end_ns]).collect()
    }

    /// The ordinal after the newest step in view.
    fn end(&self, steps: &StepTable) -> u64 {
        self.newest.map_or(steps.total(), |newest| newest.saturating_add(1)).min(steps.total())
    }

    fn last_in_view(&self, steps: &StepTable) -> Option<u64> {
        self.end(steps).checked_sub(1)
    }

    /// The ordinal of the oldest step in view.
    fn oldest_in_view(&self, steps: &StepTable, width: u64) -> u64 {
        let Some(last) = self.last_in_view(steps) else { return 0 };
        match self.ns_per_column(steps, width) {
            Some(ns) => {
                let end_ns = steps.known_row(last).map_or(0, |row| row.end_ns());
                let start = end_ns.div_ceil(ns).saturating_sub(width).saturating_mul(ns);
                steps.ended_by(start).min(last)
            }
            None => {
                let per_column = self.per_column(steps, width);
                (last / per_column + 1).saturating_sub(width).saturating_mul(per_column)
            }
        }
    }

    /// Selects the step `columns` further on, or back if negative. Moving past the newest follows again.
    pub(super) fn move_by(&mut self, columns: i64, steps: &StepTable, width: u64) {
        let Some(last) = steps.total().checked_sub(1) else { return };
        let Some(cursor) = self.cursor else {
            return if columns < 0 { self.move_from(last, columns + 1, steps, width) } else { self.follow() };
        };
        if columns > 0 && cursor >= last && self.anchor.is_none() {
            return self.follow();
        }
        self.move_from(cursor, columns, steps, width);
    }

    fn move_from(&mut self, from: u64, columns: i64, steps: &StepTable, width: u64) {
        let last = steps.total().saturating_sub(1);
        let (back, by) = (columns < 0, columns.unsigned_abs());
        let shift = |at: u64, by: u64| if back { at.saturating_sub(by) } else { at.saturating_add(by) };
        let range = match self.ns_per_column(steps, width) {
            Some(ns) => {
                let end_ns = steps.known_row(from).map_or(0, |row| row.end_ns());
                let column = shift(end_ns.div_ceil(ns), by).max(1);
                steps.ended_by((column - 1).saturating_mul(ns))..steps.ended_by(column.saturating_mul(ns))
            }
            None => {
                let per_column = self.per_column(steps, width);
                let column = shift(from / per_column, by);
                column.saturating_mul(per_column)..column.saturating_add(1).saturating_mul(per_column)
            }
        };
        if range.start > last {
            // A range that is being selected may end at the newest step.
            let follows = columns > 0 && self.anchor.is_none();
            return if follows { self.follow() } else { self.select(last, steps, width) };
        }
        let worst =
            steps.single_column(range.clone(), self.measure).map_or(range.start, |column| column.worst.ordinal());
        // In a column that a long step fills there may be no other one.
        let to = match columns {
            0 => worst,
            _ if back => worst.min(from.saturating_sub(1)),
            _ => worst.max(from + 1),
        };
        self.select(to, steps, width);
    }

    /// Selects a step and holds the window still. Of steps that are known only together it is the worst.
    pub(super) fn select(&mut self, ordinal: u64, steps: &StepTable, width: u64) {
        let Some(last) = steps.total().checked_sub(1) else { return };
        let ordinal = steps.known_row(ordinal.min(last)).map_or(last, |row| row.ordinal());
        let newest = self.last_in_view(steps).unwrap_or(last);
        let oldest = self.oldest_in_view(steps, width);
        self.cursor = Some(ordinal);
        if ordinal < oldest || newest < ordinal {
            let newest = if ordinal < oldest { self.newest_from(ordinal, steps, width) } else { ordinal };
            self.newest = Some(newest);
        } else {
            self.newest = Some(newest);
        }
        // The window never begins before the oldest step: a half-empty picture is of no use.
        let least = self.newest_from(0, steps, width);
        self.newest = self.newest.map(|newest| newest.max(least).min(last));
    }

    /// The newest step in view where `oldest` is the oldest one.
    fn newest_from(&self, oldest: u64, steps: &StepTable, width: u64) -> u64 {
        let last = steps.total().saturating_sub(1);
        match self.ns_per_column(steps, width) {
            Some(ns) => {
                let start_ns = steps.known_row(oldest).map_or(0, |row| row.end_ns());
                let end_ns = start_ns.div_ceil(ns).saturating_add(width).saturating_sub(1).saturating_mul(ns);
                steps.ended_by(end_ns).saturating_sub(1).clamp(oldest.min(last), last)
            }
            None => {
                let wanted = if self.is_whole { whole_run(steps, width) } else { self.per_column };
                let per_column = steps.whole_groups(oldest, wanted);
                let end = (oldest / per_column).saturating_add(width).saturating_mul(per_column);
                end.saturating_sub(1).min(last)
            }
        }
    }

    /// Selects the step without moving the window, or in its middle if it is out of view.
    pub(super) fn show(&mut self, ordinal: u64, steps: &StepTable, width: u64) {
        let in_view = self.oldest_in_view(steps, width)..self.end(steps);
        if !in_view.contains(&ordinal) {
            self.newest = Some(self.newest_from(ordinal, steps, width.div_ceil(2)));
        }
        self.select(ordinal, steps, width);
    }

    /// Selects no step and follows the newest.
    pub(super) fn follow(&mut self) {
        (self.cursor, self.anchor, self.newest) = (None, None, None);
    }

    /// Selects a step and no range.
    pub(super) fn select_alone(&mut self, ordinal: u64, steps: &StepTable, width: u64) {
        self.anchor = None;
        self.select(ordinal, steps, width);
    }

    /// Selects the steps from one to another.
    pub(super) fn select_range(&mut self, from: u64, to: u64, steps: &StepTable, width: u64) {
        self.select(to, steps, width);
        self.anchor = self.cursor.map(|last| from.min(steps.total().saturating_sub(1).max(last)));
    }

    /// Begins a range at the selected step, or at the newest; or forgets it.
    pub(super) fn toggle_range(&mut self, steps: &StepTable, width: u64) {
        if self.anchor.take().is_some() {
            return;
        }
        if self.cursor.is_none() {
            self.move_by(-1, steps, width);
        }
        self.anchor = self.cursor;
    }

    /// Forgets the range; its last step stays selected.
    pub(super) fn clear_range(&mut self) {
        self.anchor = None;
    }

    /// Gives the selected range all columns, as far as whole steps fill them.
    pub(super) fn zoom_to_range(&mut self, steps: &StepTable, width: u64) {
        let Some(range) = self.range() else { return };
        self.is_whole = false;
        if self.is_by_time() {
            let from_ns = steps.known_row(range.start).map_or(0, |row| row.period_start_ns());
            let to_ns = steps.known_row(range.end - 1).map_or(0, |row| row.end_ns());
            let ns = to_ns.saturating_sub(from_ns) / width.max(1);
            self.ns_per_column = Some(round_time(ns, true).max(SHORTEST_NS));
        } else {
            self.per_column = (range.end - range.start).div_ceil(width.max(1)).max(1);
        }
        self.newest = Some(range.end - 1);
        self.stay(steps, width);
    }

    /// Puts half or twice as much into a column, at most until everything is in view.
    pub(super) fn zoom(&mut self, inward: bool, steps: &StepTable, width: u64) {
        match self.ns_per_column(steps, width) {
            Some(ns) => {
                let whole = whole_run_ns(steps, width);
                let next = if inward { round_time(ns - ns / 4, false) } else { round_time(ns + ns / 4, true) };
                self.ns_per_column = Some(next.min(whole).max(SHORTEST_NS));
            }
            None => {
                let now = self.per_column(steps, width);
                self.per_column = if inward { (now / 2).max(1) } else { (now * 2).min(whole_run(steps, width)) };
            }
        }
        self.is_whole = false;
        self.stay(steps, width);
    }

    /// Shows the whole run, or what was shown before.
    pub(super) fn toggle_whole(&mut self, steps: &StepTable, width: u64) {
        self.is_whole = !self.is_whole;
        self.newest = None;
        self.stay(steps, width);
    }

    /// Makes columns equal in time instead of in number of steps, with about as much in view, or the reverse.
    pub(super) fn toggle_time(&mut self, steps: &StepTable, width: u64) {
        self.ns_per_column = match self.ns_per_column {
            Some(_) => None,
            None => Some(round_time(usual_ns(steps).saturating_mul(self.per_column), false)),
        };
        self.stay(steps, width);
    }

    /// Selects the next measure that the steps have.
    pub(super) fn turn_measure(&mut self, all: &BatchTotals) {
        let at = StepMeasure::ALL.iter().position(|measure| *measure == self.measure).unwrap_or(0);
        let next = (1..=StepMeasure::ALL.len()).map(|by| StepMeasure::ALL[(at + by) % StepMeasure::ALL.len()]);
        self.measure = next.into_iter().find(|measure| measure.is_known(all)).unwrap_or_default();
    }

    /// Makes the axis of the bars logarithmic, or linear again.
    pub(super) fn toggle_log(&mut self) {
        self.is_log = !self.is_log;
    }

    /// Keeps the selected step in view after a change.
    fn stay(&mut self, steps: &StepTable, width: u64) {
        if let Some(cursor) = self.cursor {
            self.select(cursor, steps, width);
        }
    }

    /// Forgets steps that are no longer kept.
    pub(super) fn keep_within(&mut self, steps: &StepTable, width: u64) {
        let total = steps.total();
        // A replay that went back holds fewer steps than before.
        if self.cursor.is_some_and(|cursor| cursor >= total) {
            self.follow();
        }
        self.anchor = self.anchor.filter(|anchor| *anchor < total);
        // The selected step may have become one of many that are known only together.
        if self.cursor.is_some_and(|cursor| steps.known_row(cursor).is_some_and(|row| row.ordinal() != cursor)) {
            self.stay(steps, width);
        }
    }
}

/// Steps a column at which the whole run is in view: few choices, so that columns seldom change while it grows.
fn whole_run(steps: &StepTable, width: u64) -> u64 {
    let least = steps.total().div_ceil(width.max(1)).clamp(1, MOST_PER_COLUMN);
    let power = least.next_power_of_two();
    if power >= 4 && power / 4 * 3 >= least { power / 4 * 3 } else { power }
}

/// Time of a column at which the whole run is in view.
fn whole_run_ns(steps: &StepTable, width: u64) -> u64 {
    round_time(all_ns(steps) / width.max(1), true)
}

/// Time from the first step's start to the last one's end.
fn all_ns(steps: &StepTable) -> u64 {
    let start = steps.known_row(0).map_or(0, |row| row.period_start_ns());
    steps.last().map_or(0, |row| row.end_ns()).saturating_sub(start)
}

/// About how long a step takes.
fn usual_ns(steps: &StepTable) -> u64 {
    (all_ns(steps) / steps.total().max(1)).max(SHORTEST_NS)
}

/// 1, 2 or 5 times a power of ten, at or above `ns` or at or below it.
fn round_time(ns: u64, up: bool) -> u64 {
    let ns = ns.clamp(SHORTEST_NS, u64::MAX / 20);
    let decade = 10u64.pow(ns.ilog10());
    let stops = [1, 2, 5, 10].map(|stop| stop * decade);
    let found = if up { stops.iter().find(|stop| **stop >= ns) } else { stops.iter().rev().find(|stop| **stop <= ns) };
    found.copied().unwrap_or(ns)
}
