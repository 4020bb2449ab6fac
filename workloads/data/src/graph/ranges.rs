//! How rows that carry edges are divided among threads.

use std::ops::Range;

/// `0..start.len() - 1` in at most `parts` contiguous ranges of about equal work, where row `i` costs one unit and
/// one for each of its `start[i + 1] - start[i]` entries. A row with `limit` entries or more counts as one unit:
/// such rows are computed apart.
pub fn balanced_ranges(start: &[u32], parts: usize, limit: usize) -> Vec<Range<usize>> {
    let rows = start.len().saturating_sub(1);
    if parts <= 1 {
        return std::iter::once(0..rows).collect();
    }
    let cost = |row: &[u32]| match (row[1] - row[0]) as usize {
        entries if entries >= limit => 1,
        entries => 1 + entries,
    };
    let total: usize = start.windows(2).map(cost).sum();
    let share = total.div_ceil(parts).max(1);
    let mut ranges = Vec::with_capacity(parts);
    let (mut begin, mut spent) = (0, 0);
    for (index, row) in start.windows(2).enumerate() {
        spent += cost(row);
        if spent >= share {
            ranges.push(begin..index + 1);
            (begin, spent) = (index + 1, 0);
        }
    }
    if begin < rows || ranges.is_empty() {
        ranges.push(begin..rows);
    }
    ranges
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
}
