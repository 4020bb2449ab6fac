//! How rows are divided among threads: evenly, or by the edges they carry, and run as one parallel region.

use std::ops::Range;

use rayon::prelude::*;

/// Rows below which a second thread costs more than it saves (a parallel region is about 10 us).
const MIN_ROWS: usize = 128;

/// `0..rows` in one contiguous range per thread of the current rayon pool, fewer for few rows. At least one.
#[must_use]
pub fn even_ranges(rows: usize) -> Vec<Range<usize>> {
    let parts = rayon::current_num_threads().min(rows / MIN_ROWS).max(1);
    (0..parts).map(|part| rows * part / parts..rows * (part + 1) / parts).collect()
}

/// `0..start.len() - 1` in at most `parts` contiguous ranges of about equal work, where row `i` costs one unit and
/// one for each of its `start[i + 1] - start[i]` entries. A row with `limit` entries or more counts as one unit:
/// such rows are computed apart.
pub(super) fn balanced_ranges(start: &[u32], parts: usize, limit: usize) -> Vec<Range<usize>> {
    let cost = |row: &[u32]| match (row[1] - row[0]) as usize {
        entries if entries >= limit => 1,
        entries => 1 + entries,
    };
    let total: usize = start.windows(2).map(cost).sum();
    let share = total.div_ceil(parts.max(1)).max(1);
    let mut ranges = Vec::with_capacity(parts);
    let (mut begin, mut spent) = (0, 0);
    for (index, row) in start.windows(2).enumerate() {
        spent += cost(row);
        if spent >= share {
            ranges.push(begin..index + 1);
            (begin, spent) = (index + 1, 0);
        }
    }
    let rows = start.len().saturating_sub(1);
    if begin < rows || ranges.is_empty() {
        ranges.push(begin..rows);
    }
    ranges
}

/// One mutable slice per range of rows of `width` elements. The ranges must follow each other from 0.
///
/// # Panics
/// If `data` is shorter than the rows.
pub fn split_rows<'a, T>(mut data: &'a mut [T], ranges: &[Range<usize>], width: usize) -> Vec<&'a mut [T]> {
    let mut parts = Vec::with_capacity(ranges.len());
    for range in ranges {
        let (part, rest) = data.split_at_mut(range.len() * width);
        parts.push(part);
        data = rest;
    }
    parts
}

/// Runs `work` on every task, in parallel on the current rayon pool, or at once where there is only one.
pub fn run_tasks<I, T, F>(tasks: I, work: F)
where
    I: IntoIterator<Item = T>,
    T: Send,
    F: Fn(T) + Sync + Send,
{
    let mut tasks: Vec<T> = tasks.into_iter().collect();
    if tasks.len() == 1 {
        tasks.into_iter().for_each(work);
    } else {
        tasks.par_drain(..).for_each(work);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_ranges_cover_the_rows_and_share_the_entries() {
        let start: Vec<u32> = [0u32, 0, 50, 51, 52, 53, 103, 103, 104].to_vec();
        let ranges = balanced_ranges(&start, 2, 1000);
        assert_eq!(ranges, [0..4, 4..8]);
        assert_eq!(balanced_ranges(&start, 1, 1000).as_slice(), std::slice::from_ref(&(0..8)));
        assert_eq!(balanced_ranges(&start, 100, 1000).last().cloned(), Some(6..8));
        assert_eq!(balanced_ranges(&[0], 4, 1000).as_slice(), std::slice::from_ref(&(0..0)));
    }

    #[test]
    fn a_row_over_the_limit_does_not_count_its_entries() {
        let start: Vec<u32> = vec![0, 1_000_000, 1_000_001, 1_000_002, 1_000_003];
        assert_eq!(balanced_ranges(&start, 2, 4096), [0..3, 3..4]);
    }

    #[test]
    fn even_ranges_cover_everything_once() {
        for rows in [0, 1, 127, 1000, 10_007] {
            let ranges = even_ranges(rows);
            assert_eq!(ranges.first().map(|range| range.start), Some(0));
            assert_eq!(ranges.last().map(|range| range.end), Some(rows));
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }
}
