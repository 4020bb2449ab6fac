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
    fn even_ranges_cover_everything_once() {
        for rows in [0, 1, 127, 1000, 10_007] {
            let ranges = even_ranges(rows);
            assert_eq!(ranges.first().map(|range| range.start), Some(0));
            assert_eq!(ranges.last().map(|range| range.end), Some(rows));
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }
}
