//! Marks grouped by text: how many, where they are, and how long what ended at them took.

use std::collections::BTreeMap;

use crate::store::contents::Store;
use crate::store::instants::StoredMark;
use crate::store::steps::step_row::StepRow;

/// Longest plausible duration: one day.
const BELIEVED_NS: u64 = 86_400_000_000_000;

/// All kept marks with one text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MarkTotals {
    /// Number of marks.
    pub count: u64,
    /// How many of them are inside a step, by the step's own timer.
    pub inside: u64,
    /// How many of them are between two steps.
    pub between: u64,
    /// Total duration of what ended at them; `None` if they have no durations.
    pub total_ns: Option<u64>,
    /// Time of the newest.
    pub newest_ns: u64,
    /// The steps that contain or follow them: each once, with its ordinal and period.
    pub steps: Vec<(u64, u64)>,
}

impl MarkTotals {
    /// Whether all are inside steps or all between them, in words; else how many are where.
    pub fn describe_place(&self) -> String {
        describe_place(self.inside, self.between)
    }
}

/// Describes where marks are, given how many are inside steps and how many between them.
pub fn describe_place(inside: u64, between: u64) -> String {
    let count = crate::figures::count;
    match (inside, between) {
        (_, 0) => "all in steps".to_owned(),
        (0, _) => "all between steps".to_owned(),
        (inside, between) => format!("{} in steps, {} between them", count(inside), count(between)),
    }
}

/// A sum of durations, some of which are unknown.
fn sum(total_ns: Option<u64>, more_ns: Option<u64>) -> Option<u64> {
    more_ns.map(|ns| total_ns.unwrap_or(0).saturating_add(ns)).or(total_ns)
}

impl StoredMark {
    /// How long what ended at it took, if that is plausible.
    pub fn duration_ns(&self) -> Option<u64> {
        self.took_ns.filter(|ns| *ns <= BELIEVED_NS)
    }
}

impl Store {
    /// A mark's text.
    pub fn mark_text(&self, mark: &StoredMark) -> &str {
        self.name(mark.name)
    }

    /// Whether a mark in a step's period is inside the step, by its own timer, rather than before it. What ended at the
    /// mark is placed by its middle; what ended as a step began is before the step.
    pub fn is_mark_inside(&self, mark: &StoredMark, row: &StepRow<'_>) -> bool {
        let half_ns = mark.duration_ns().unwrap_or(0) / 2;
        mark.t_ns.saturating_sub(half_ns) > row.start_ns()
    }

    /// How many of the kept marks have this text, and the total duration of what ended at them, in nanoseconds; `None` if
    /// they have no durations. Looks up no steps, unlike [`marks_by_text`](Self::marks_by_text), so it suits every frame.
    pub fn marks_with_text(&self, text: &str) -> (u64, Option<u64>) {
        let called = self.marks().iter().filter(|mark| self.mark_text(mark) == text);
        called.fold((0, None), |(count, total_ns), mark| (count + 1, sum(total_ns, mark.duration_ns())))
    }

    /// The kept marks by text: longest total first, then the most frequent.
    pub fn marks_by_text(&self) -> Vec<(&str, MarkTotals)> {
        let mut by_text: BTreeMap<&str, MarkTotals> = BTreeMap::new();
        for mark in self.marks().iter() {
            self.add_mark(by_text.entry(self.mark_text(mark)).or_default(), mark);
        }
        let mut all: Vec<(&str, MarkTotals)> = by_text.into_iter().collect();
        all.sort_by_key(|(_, marks)| std::cmp::Reverse((marks.total_ns, marks.count)));
        all
    }

    /// Share (0 to 1) of wall time taken by what ended at these marks; `None` if they have no durations. If older marks are
    /// no longer kept, it is the share of the time since the oldest kept one.
    pub fn marks_share(&self, marks: &MarkTotals) -> Option<f64> {
        let steps = self.steps_time()?;
        let oldest = self.marks().iter().next().filter(|_| self.marks().discarded() > 0);
        let from_ns = oldest.map_or(steps.start, |mark| mark.t_ns.max(steps.start));
        let wall_ns = steps.end.checked_sub(from_ns).filter(|ns| *ns > 0)?;
        Some(marks.total_ns? as f64 / wall_ns as f64)
    }

    fn add_mark(&self, marks: &mut MarkTotals, mark: &StoredMark) {
        marks.count += 1;
        marks.newest_ns = marks.newest_ns.max(mark.t_ns);
        marks.total_ns = sum(marks.total_ns, mark.duration_ns());
        // A mark at the very end of a step belongs to the step.
        let Some(row) = self.steps().row_at(mark.t_ns.saturating_sub(1)).filter(|row| mark.t_ns <= row.end_ns()) else {
            return;
        };
        if self.is_mark_inside(mark, &row) {
            marks.inside += 1
        } else {
            marks.between += 1
        }
        if marks.steps.last().is_none_or(|(last, _)| *last != row.ordinal()) {
            marks.steps.push((row.ordinal(), row.period_ns()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_fixtures::{MS, START_NS, StreamBuilder, each_item};
    use gnntop_wire::TrackRole;

    #[test]
    fn only_timed_marks_have_duration() {
        let mut stream = StreamBuilder::new("marks");
        let main = stream.track(TrackRole::Training, "main");
        let end_ns = |step: u64| START_NS + step * 10 * MS;
        for step in 1..=4 {
            stream.step(main, step, end_ns(step) - 8 * MS, end_ns(step));
            stream.timed_mark(main, "gc", end_ns(step) + if step % 2 == 0 { MS } else { 0 }, MS * 3 / 2);
            stream.valued_mark(main, "batch (ms)", end_ns(step) - MS, 512.0);
        }
        stream.timed_mark(main, "gc", end_ns(5), u64::MAX);
        let mut store = Store::new();
        each_item(&stream.bytes(), |item| store.apply(item));
        let by_text = store.marks_by_text();
        let (text, gc) = &by_text[0];
        assert_eq!((*text, gc.count, gc.total_ns), ("gc", 5, Some(6 * MS)));
        assert_eq!((store.marks_with_text("gc"), store.marks_with_text("batch (ms)")), ((5, Some(6 * MS)), (4, None)));
        assert_eq!((gc.inside, gc.between), (2, 1), "the last two come after the last step");
        assert_eq!(gc.describe_place(), "2 in steps, 1 between them");
        assert_eq!(gc.steps.iter().map(|(ordinal, _)| *ordinal).collect::<Vec<_>>(), [0, 2]);
        let share = store.marks_share(gc).unwrap();
        assert!((share - 6.0 / 38.0).abs() < 1e-9, "of the time from the first step's start: {share}");
        let (text, batch) = &by_text[1];
        assert_eq!((*text, batch.total_ns, batch.describe_place().as_str()), ("batch (ms)", None, "all in steps"));
    }
}
