//! Steps for a bar chart of limited width, without hiding a spike: where several steps share a column, the
//! column names the worst and the median of them.

use std::ops::Range;

use super::steps::{StepRow, StepTable};

/// The steps behind one column.
#[derive(Clone, Copy, Debug)]
pub struct StepColumn<'a> {
    /// The step with the longest period.
    pub worst: StepRow<'a>,
    /// The step with the median period; the same as `worst` where the column holds one step.
    pub median: StepRow<'a>,
    /// The first ordinal in the column.
    pub first: u64,
    /// Steps in the column, at least 1.
    pub steps: u64,
}

impl StepTable {
    /// The steps of `ordinals` that are kept in at most `width` columns, oldest first: one step a column if they
    /// fit, else equally many in each but the first and last. Columns begin at multiples of their number of
    /// steps, so that they keep their steps while the range moves on.
    pub fn columns(&self, ordinals: Range<u64>, width: usize) -> Vec<StepColumn<'_>> {
        let kept = self.kept();
        let (start, end) = (ordinals.start.max(kept.start), ordinals.end.min(kept.end));
        if start >= end || width == 0 {
            return Vec::new();
        }
        let bucket = bucket_len(start, end, width as u64);
        let mut rows = Vec::new();
        (start / bucket..end.div_ceil(bucket))
            .filter_map(|n| self.column((n * bucket).max(start)..((n + 1) * bucket).min(end), &mut rows))
            .collect()
    }

    /// The newest steps up to and including ordinal `newest` (the last one where `None`), `per_column` in each
    /// column, in at most `width` columns.
    pub fn newest_columns(&self, newest: Option<u64>, per_column: u64, width: usize) -> Vec<StepColumn<'_>> {
        let end = newest.map_or(self.total(), |n| n.saturating_add(1)).min(self.total());
        let per_column = per_column.max(1);
        // The last column may be partly filled: aligned columns begin `width` whole buckets before its end.
        let last = end.div_ceil(per_column).saturating_mul(per_column);
        self.columns(last.saturating_sub(per_column.saturating_mul(width as u64))..end, width)
    }

    fn column<'a>(&'a self, ordinals: Range<u64>, rows: &mut Vec<StepRow<'a>>) -> Option<StepColumn<'a>> {
        rows.clear();
        rows.extend(self.rows(ordinals.clone()));
        let worst = rows.iter().copied().max_by_key(StepRow::period_ns)?;
        let middle = (rows.len() - 1) / 2;
        let (_, median, _) = rows.select_nth_unstable_by_key(middle, |row| (row.period_ns(), row.ordinal()));
        Some(StepColumn { worst, median: *median, first: ordinals.start, steps: ordinals.end - ordinals.start })
    }
}

/// The smallest number of steps a column so that aligned columns over `start..end` are at most `width`.
fn bucket_len(start: u64, end: u64, width: u64) -> u64 {
    let mut bucket = (end - start).div_ceil(width).max(1);
    while end.div_ceil(bucket) - start / bucket > width {
        bucket += 1;
    }
    bucket
}
