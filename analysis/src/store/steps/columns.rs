//! Steps for a bar chart of limited width that does not hide spikes: a column of several steps has their worst and median.
//! Columns have either equal numbers of steps or equal durations.

use std::ops::Range;

use super::measure::StepMeasure;
use super::reduced_steps::StepGroup;
use super::step_row::StepRow;
use super::table::StepTable;

/// The steps behind one column.
#[derive(Clone, Copy, Debug)]
pub struct StepColumn<'a> {
    /// The step that took longest.
    pub worst: StepRow<'a>,
    /// The median step; the same as `worst` if the column has one step.
    pub median: StepRow<'a>,
    /// The first ordinal of the column.
    pub first: u64,
    /// Number of steps in the column, at least 1.
    pub steps: u64,
    /// Whether some of them are known only by their group's worst and median.
    pub is_reduced: bool,
}

impl StepColumn<'_> {
    /// The ordinals of its steps.
    pub fn ordinals(&self) -> Range<u64> {
        self.first..self.first + self.steps
    }
}

/// A step that represents one or more steps.
#[derive(Clone, Copy)]
struct ColumnStep {
    ordinal: u64,
    value: u64,
    /// Number of steps that it represents.
    weight: u64,
}

impl StepTable {
    /// The steps of `ordinals` in at most `width` columns, oldest first: one step per column if they fit, else equally many
    /// in each but the first and last. Columns begin at multiples of their number of steps, so they keep their steps as the
    /// range moves on.
    pub fn columns(&self, ordinals: Range<u64>, width: usize) -> Vec<StepColumn<'_>> {
        let (start, end) = (ordinals.start, ordinals.end.min(self.total()));
        if start >= end || width == 0 {
            return Vec::new();
        }
        let bucket = bucket_len(start, end, width as u64).max(self.coarseness(start));
        self.buckets(start..end, bucket, StepMeasure::Period)
    }

    /// The newest steps up to and including ordinal `newest` (the last one if `None`), at least `per_column` in each
    /// column, in at most `width` columns. Steps no longer kept individually share a column with others: see
    /// [`StepTable::fitting`].
    pub fn newest_columns(&self, newest: Option<u64>, per_column: u64, width: usize) -> Vec<StepColumn<'_>> {
        self.newest_columns_by(StepMeasure::Period, newest, per_column, width)
    }

    /// Like [`StepTable::newest_columns`], but with worst and median by another measure. Steps without that measure count
    /// as the smallest.
    pub fn newest_columns_by(
        &self,
        measure: StepMeasure,
        newest: Option<u64>,
        per_column: u64,
        width: usize,
    ) -> Vec<StepColumn<'_>> {
        let end = newest.map_or(self.total(), |n| n.saturating_add(1)).min(self.total());
        let per_column = self.fitting(end, per_column, width as u64);
        self.buckets(first_in_view(end, per_column, width as u64)..end, per_column, measure)
    }

    /// The smallest number of steps per column, at least `per_column`, at which `width` columns before the ordinal `end`
    /// are no finer than the data.
    pub fn fitting(&self, end: u64, per_column: u64, width: u64) -> u64 {
        let mut fitting = per_column.max(1);
        loop {
            let whole = self.whole_groups(first_in_view(end, fitting, width), fitting);
            if whole == fitting {
                return fitting;
            }
            fitting = whole;
        }
    }

    /// The steps that ended in each of `width` columns of `ns_per_column` before `end_ns`, oldest first. A column in which
    /// no step ended has the step that was running, or `None` if there was none. `end_ns` is rounded up, so columns keep
    /// their steps as it moves on.
    pub fn time_columns(
        &self,
        measure: StepMeasure,
        end_ns: u64,
        ns_per_column: u64,
        width: usize,
    ) -> Vec<Option<StepColumn<'_>>> {
        let ns = ns_per_column.max(1);
        let end = end_ns.div_ceil(ns);
        let mut entries = Vec::new();
        let column = |back: u64| {
            let (from_ns, to_ns) = (end.checked_sub(back + 1)?.saturating_mul(ns), (end - back).saturating_mul(ns));
            let ended = self.ended_by(from_ns)..self.ended_by(to_ns);
            if !ended.is_empty() {
                return self.column(ended, measure, &mut entries);
            }
            let running = self.known_row(ended.start).filter(|row| row.period_start_ns() < to_ns)?;
            self.column(running.ordinal()..running.ordinal() + 1, measure, &mut entries)
        };
        (0..width as u64).rev().map(column).collect()
    }

    /// A single column of these ordinals; `None` if none of their steps is known.
    pub fn single_column(&self, ordinals: Range<u64>, measure: StepMeasure) -> Option<StepColumn<'_>> {
        self.column(ordinals, measure, &mut Vec::new())
    }

    /// The time of a column's steps, from the start of the first one's period to the end of the last one, as exactly as it
    /// is known. Empty if the clock went backwards.
    pub fn column_time(&self, column: &StepColumn<'_>) -> Range<u64> {
        let start = self.known_row(column.first).map_or(0, |row| row.period_start_ns());
        let end = self.known_row(column.ordinals().end.saturating_sub(1)).map_or(start, |row| row.end_ns());
        start..end.max(start)
    }

    /// Number of steps that ended at or before `t_ns`, which is the ordinal of the next one. Uses binary search;
    /// approximate for reduced steps.
    pub fn ended_by(&self, t_ns: u64) -> u64 {
        let Range { start: mut low, end: mut high } = 0..self.total();
        while low < high {
            let middle = low + (high - low) / 2;
            let ended = self.known_row(middle).is_some_and(|row| row.end_ns() <= t_ns);
            if ended { low = middle + 1 } else { high = middle }
        }
        low
    }

    fn buckets(&self, ordinals: Range<u64>, bucket: u64, measure: StepMeasure) -> Vec<StepColumn<'_>> {
        let Range { start, end } = ordinals;
        let mut entries = Vec::new();
        (start / bucket..end.div_ceil(bucket))
            .filter_map(|n| {
                let from = (n * bucket).max(start);
                self.column(from..(n + 1).saturating_mul(bucket).min(end), measure, &mut entries)
            })
            .collect()
    }

    fn column(
        &self,
        ordinals: Range<u64>,
        measure: StepMeasure,
        entries: &mut Vec<ColumnStep>,
    ) -> Option<StepColumn<'_>> {
        entries.clear();
        let value = |row: &StepRow<'_>| measure.value(row).unwrap_or(0);
        let entry = |row: StepRow<'_>, weight| ColumnStep { ordinal: row.ordinal(), value: value(&row), weight };
        // A group belongs to the column in which it begins.
        let groups = self.reduced().within(ordinals.start..ordinals.end.min(self.discarded()));
        let steps_of = |group: &StepGroup| group.ordinals().end - group.ordinals().start;
        entries.extend(groups.iter().map(|group| entry(group.median(), steps_of(group))));
        let start = groups.first().map_or(ordinals.start.max(self.discarded()), |group| group.ordinals().start);
        let end = groups.last().map_or(start, |group| group.ordinals().end);
        entries.extend(self.rows(ordinals.clone()).map(|row| entry(row, 1)));
        let end = if entries.len() > groups.len() { ordinals.end.min(self.total()) } else { end };
        // Of a group, only the step with the longest period can be the worst.
        let worst_of_groups = groups.iter().map(|group| entry(group.worst(), 0));
        let worst = entries.iter().copied().chain(worst_of_groups).max_by_key(|entry| entry.value)?.ordinal;
        let (worst, median) = (self.known_row(worst)?, self.known_row(middle(entries)?)?);
        Some(StepColumn { worst, median, first: start, steps: end - start, is_reduced: !groups.is_empty() })
    }
}

/// The ordinal of the median entry by value, weighted by steps; reorders the entries.
fn middle(entries: &mut [ColumnStep]) -> Option<u64> {
    let key = |entry: &ColumnStep| (entry.value, entry.ordinal);
    if entries.iter().all(|entry| entry.weight == 1) {
        let at = entries.len().checked_sub(1)? / 2;
        return Some(entries.select_nth_unstable_by_key(at, key).1.ordinal);
    }
    entries.sort_unstable_by_key(key);
    let all: u64 = entries.iter().map(|entry| entry.weight).sum();
    let mut below = 0;
    let reaches_middle = |entry: &&ColumnStep| {
        below += entry.weight;
        below * 2 >= all
    };
    entries.iter().find(reaches_middle).map(|entry| entry.ordinal)
}

/// The first ordinal of `width` columns before `end`, the last of which may be partly filled.
fn first_in_view(end: u64, per_column: u64, width: u64) -> u64 {
    let last = end.div_ceil(per_column).saturating_mul(per_column);
    last.saturating_sub(per_column.saturating_mul(width))
}

/// The smallest number of steps per column such that aligned columns over `start..end` are at most `width`.
fn bucket_len(start: u64, end: u64, width: u64) -> u64 {
    let mut bucket = (end - start).div_ceil(width).max(1);
    while end.div_ceil(bucket) - start / bucket > width {
        bucket += 1;
    }
    bucket
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::{Limits, Store};
    use gnntop_fixtures::{MS, START_NS, StreamBuilder, each_item};

    /// A store of `steps` steps of 1 ms or more, few of which are kept individually.
    fn store(steps: u64, length_ns: impl Fn(u64) -> u64) -> Store {
        let mut stream = StreamBuilder::new("columns");
        let track = stream.track(gnntop_wire::TrackRole::Training, "main");
        let mut t_ns = START_NS;
        for step in 0..steps {
            let start_ns = t_ns;
            t_ns += length_ns(step);
            stream.phase(track, step, "forward", start_ns, t_ns - MS / 2);
            stream.step(track, step, start_ns, t_ns);
        }
        let mut store = Store::with_limits(Limits { step_rows: 100, step_groups: 64, ..Limits::default() });
        each_item(&stream.bytes(), |item| store.apply(item));
        store
    }

    fn worst_ns<'a>(columns: impl IntoIterator<Item = StepColumn<'a>>) -> Option<u64> {
        columns.into_iter().map(|column| column.worst.period_ns()).max()
    }

    #[test]
    fn reduced_columns_keep_worst_and_median() {
        let spike = |step: u64| if step == 1234 { 900 * MS } else { MS + step % 10 * MS / 10 };
        let store = store(50_000, spike);
        let table = store.steps();
        assert!(table.discarded() > 40_000 && table.len() <= 100 + 2 * 4096);
        let all = table.newest_columns(None, 1 << 12, 80);
        assert_eq!(all.iter().map(|column| column.steps).sum::<u64>(), 50_000, "each step is in a column");
        assert_eq!(worst_ns(all.iter().copied()), Some(900 * MS));
        assert_eq!(all[0].worst.step().0, 1234);
        assert!(all[0].is_reduced && !all[12].is_reduced);
        let phase = store.phase("forward").unwrap().slot;
        assert_eq!(all[0].worst.phase_ns(phase), 899 * MS + MS / 2, "with its phases");
        for column in &all {
            let median_ms = column.median.period_ns() as f64 / MS as f64;
            assert!((1.2..1.7).contains(&median_ms), "{median_ms} of 1.0 to 1.9");
        }
    }

    #[test]
    fn columns_are_no_finer_than_groups() {
        let store = store(30_000, |_| MS);
        let table = store.steps();
        let fitting = table.fitting(2000, 1, 20);
        assert!(fitting >= 64);
        let columns = table.newest_columns(Some(1999), 1, 20);
        assert!(columns.len() > 2000 / fitting as usize / 2, "{} of {fitting}", columns.len());
        assert_eq!(table.fitting(table.total(), 1, 20), 1, "the newest are known one by one");
    }

    #[test]
    fn time_columns_contain_ended_or_running_steps() {
        let store = store(100, |step| if step == 50 { 35 * MS } else { 10 * MS });
        let table = store.steps();
        let end_ns = table.last().unwrap().end_ns();
        let columns = table.time_columns(StepMeasure::Period, end_ns, 10 * MS, 200);
        let shown: Vec<Option<u64>> = columns.iter().map(|column| column.map(|column| column.worst.step().0)).collect();
        assert_eq!(shown.iter().flatten().filter(|step| **step == 50).count(), 4, "as wide as it was long");
        assert!(shown.iter().flatten().is_sorted());
        assert_eq!(shown.last(), Some(&Some(99)));
        assert!(shown[0].is_none(), "before the first step");
        let wide = table.time_columns(StepMeasure::Period, end_ns, 100 * MS, 12);
        assert_eq!(wide.iter().flatten().map(|column| column.steps).sum::<u64>(), 100);
    }

    proptest! {
        #[test]
        fn every_step_is_in_exactly_one_column(
            steps in 1u64..20_000,
            per_column in 1u64..5000,
            width in 1usize..300,
            newest in 0u64..25_000,
        ) {
            let store = store(steps, |_| MS);
            let table = store.steps();
            let columns = table.newest_columns(Some(newest), per_column, width);
            prop_assert!(columns.len() <= width);
            prop_assert!(columns.windows(2).all(|pair| pair[0].ordinals().end == pair[1].first));
            prop_assert!(columns.last().is_some_and(|last| last.ordinals().contains(&newest.min(steps - 1))));
            for column in &columns {
                prop_assert!(column.ordinals().contains(&column.worst.ordinal()));
                prop_assert!(column.ordinals().contains(&column.median.ordinal()));
                prop_assert_eq!(table.known_row(column.worst.ordinal()).unwrap().step(), column.worst.step());
            }
        }
    }
}
