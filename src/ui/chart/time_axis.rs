//! The columns that a view's charts share: those of the step bars, so that everything in one column happened at the
//! same time. Without steps each column is a second.

use std::ops::Range;

use crate::app::AXIS_WIDTH;
use crate::ui::scene::Scene;
use gnntop_analysis::figures::{count, duration};
use gnntop_analysis::store::TimeColumns;

/// Time in a column where there are no steps.
const SECOND_NS: u64 = 1_000_000_000;

/// The time of each column of the screen.
pub struct TimeAxis {
    /// Whether the columns are those of the step bars.
    pub has_steps: bool,
    /// The time of a column; `None` if columns are equally many steps.
    ns_per_column: Option<u64>,
    /// The time that the columns cover.
    pub columns: TimeColumns,
    /// The first column on the screen.
    pub left: u16,
    /// The column under the cursor, counted from `left`.
    pub cursor: Option<u16>,
}

impl TimeAxis {
    /// The axis of a view of this width, with [`AXIS_WIDTH`] columns for names at its left.
    pub fn new(width: u16, scene: &Scene<'_>) -> Self {
        let room = width.saturating_sub(AXIS_WIDTH);
        let (window, steps) = (scene.app.window(), scene.store.steps());
        // The bars leave the last two columns to a phase that hangs.
        let hangs = window.newest().is_none() && scene.open_phase().is_some();
        let open = if hangs { 2.min(room) } else { 0 };
        let width_of_steps = u64::from(room - open);
        let edges = window.edges(steps, width_of_steps);
        let Some(end_ns) = edges.last().copied() else { return Self::seconds(room, scene) };
        let since_ns = scene.store.now_ns().saturating_sub(end_ns);
        let parts = (1..=open).map(|at| end_ns.saturating_add(since_ns / u64::from(open) * u64::from(at)));
        let columns = TimeColumns::from_edges(edges.iter().copied().chain(parts).collect());
        // The bar of a step is where the step ended.
        let ended_ns = window.cursor().and_then(|cursor| steps.known_row(cursor)).map(|row| row.end_ns());
        let cursor = ended_ns.and_then(|end_ns| columns.column(end_ns.saturating_sub(1)));
        Self {
            has_steps: true,
            ns_per_column: window.ns_per_column(steps, width_of_steps),
            left: width.saturating_sub(columns.count() as u16),
            columns,
            cursor: cursor.map(|at| at as u16),
        }
    }

    /// Seconds up to now.
    fn seconds(room: u16, scene: &Scene<'_>) -> Self {
        let end_ns = (scene.store.now_ns() / SECOND_NS).saturating_add(1).saturating_mul(SECOND_NS);
        let first_ns = scene.store.first_ns().unwrap_or(end_ns) / SECOND_NS * SECOND_NS;
        let count = (end_ns.saturating_sub(first_ns) / SECOND_NS).min(u64::from(room));
        let range = end_ns.saturating_sub(count * SECOND_NS)..end_ns;
        let columns = TimeColumns::equal(range, count as usize);
        Self { has_steps: false, ns_per_column: None, columns, left: AXIS_WIDTH + room - count as u16, cursor: None }
    }

    /// The time of the column under the cursor.
    pub fn cursor_time(&self) -> Option<Range<u64>> {
        let at = usize::from(self.cursor?);
        Some(self.columns.start_ns(at)..self.columns.start_ns(at + 1))
    }

    /// What a column is, and how much time they all are.
    pub fn note(&self, scene: &Scene<'_>) -> String {
        let range = self.columns.range();
        let all = duration(range.end - range.start);
        let window = scene.app.window();
        match (self.has_steps, self.ns_per_column) {
            (false, _) => format!("1 second a column, {all}"),
            (true, Some(ns)) => format!("{} a column, {all}", duration(ns)),
            (true, None) => match window.per_column(scene.store.steps(), self.columns.count() as u64) {
                1 => format!("1 step a column, {all}"),
                steps => format!("{} steps a column, {all}", count(steps)),
            },
        }
    }
}
