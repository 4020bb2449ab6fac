//! How rows are divided among threads: evenly, or by the edges they carry, and run as one parallel region.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

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
    // Each is taken once, so no thread waits for a lock.
    let tasks: Vec<Mutex<Option<T>>> = tasks.into_iter().map(|task| Mutex::new(Some(task))).collect();
    for_each_index(tasks.len(), &|index| {
        let task = tasks[index].lock().unwrap_or_else(PoisonError::into_inner).take();
        task.into_iter().for_each(&work);
    });
}

/// What `work` makes of each of `0..tasks`, in their order, made in parallel like [`run_tasks`].
pub fn map_tasks<R: Send>(tasks: usize, work: impl Fn(usize) -> R + Sync + Send) -> Vec<R> {
    let mut results: Vec<Option<R>> = (0..tasks).map(|_| None).collect();
    run_tasks(results.iter_mut().enumerate(), |(index, result)| *result = Some(work(index)));
    results.into_iter().flatten().collect()
}

/// Rayon is compiled here once, and not again for each closure: it was a third of this crate's code.
fn for_each_index(count: usize, work: &(dyn Fn(usize) + Sync)) {
    if count == 1 {
        work(0);
    } else {
        (0..count).into_par_iter().for_each(work);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once_and_results_keep_their_order() {
        for count in [0, 1, 2, 1000] {
            let mut sums = vec![0; count];
            run_tasks(sums.iter_mut().enumerate(), |(index, sum)| *sum += index);
            let numbers: Vec<usize> = (0..count).collect();
            assert_eq!(sums, numbers);
            assert_eq!(map_tasks(count, |index| index), numbers);
        }
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
