//! Which blocks each stage of a pipeline computes.

use std::ops::Range;

use thiserror::Error;

/// Why blocks cannot be divided among stages.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartitionError {
    /// A stage would have nothing to compute.
    #[error("{stages} stages need at least as many blocks, but the model has {blocks}; use fewer stages")]
    TooManyStages {
        /// Stages asked for.
        stages: usize,
        /// Blocks of the model.
        blocks: usize,
    },
    /// The given parts do not add up to the whole.
    #[error("a split into {} has {} blocks, but the model has {blocks}", list(counts), counts.iter().sum::<usize>())]
    OtherSum {
        /// Blocks of each stage.
        counts: Vec<usize>,
        /// Blocks of the model.
        blocks: usize,
    },
}

fn list(counts: &[usize]) -> String {
    counts.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Consecutive blocks for each of `stages`, such that the largest sum of `costs`, one per block, is as small as
/// possible.
///
/// # Errors
/// There are more stages than blocks, or none.
pub fn balanced_parts(costs: &[f64], stages: usize) -> Result<Vec<Range<usize>>, PartitionError> {
    let blocks = costs.len();
    if stages == 0 || stages > blocks {
        return Err(PartitionError::TooManyStages { stages, blocks });
    }
    let sum = |range: Range<usize>| costs[range].iter().sum::<f64>();
    // For each number of stages, less one, and of blocks: the smallest possible largest sum, and where the last stage
    // then begins.
    let mut best: Vec<Vec<(f64, usize)>> = vec![(0..=blocks).map(|end| (sum(0..end), 0)).collect()];
    for stage in 1..stages {
        let before = &best[stage - 1];
        let choose = |end: usize| {
            let choices = (stage..end).map(|begin| (before[begin].0.max(sum(begin..end)), begin));
            choices.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, stage))
        };
        best.push((0..=blocks).map(choose).collect());
    }
    let mut end = blocks;
    let last_part = |row: &Vec<(f64, usize)>| {
        let part = row[end].1..end;
        end = part.start;
        part
    };
    let mut parts: Vec<Range<usize>> = best.iter().rev().map(last_part).collect();
    parts.reverse();
    Ok(parts)
}

/// The given number of consecutive blocks for each stage.
///
/// # Errors
/// A stage has none, or they are not `blocks` together.
pub fn given_parts(counts: &[usize], blocks: usize) -> Result<Vec<Range<usize>>, PartitionError> {
    if counts.contains(&0) || counts.iter().sum::<usize>() != blocks {
        return Err(PartitionError::OtherSum { counts: counts.to_vec(), blocks });
    }
    let starts = counts.iter().scan(0, |end, count| {
        *end += count;
        Some(*end - count)
    });
    Ok(starts.zip(counts).map(|(start, count)| start..start + count).collect())
}

/// Study 3's four stages of 8 blocks as it ran them: its first stage omits only what the last one computes, so that
/// blocks 2 to 5 are computed twice, 12 instead of 8 in all.
#[must_use]
pub fn published_parts() -> Vec<Range<usize>> {
    vec![0..6, 2..4, 4..6, 6..8]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The smallest possible largest sum, by trying every split.
    fn tried(costs: &[f64], stages: usize) -> f64 {
        if stages == 1 {
            return costs.iter().sum();
        }
        let rest = |count: usize| costs[..count].iter().sum::<f64>().max(tried(&costs[count..], stages - 1));
        (1..=costs.len() + 1 - stages).map(rest).fold(f64::INFINITY, f64::min)
    }

    proptest! {
        #[test]
        fn no_split_has_a_smaller_largest_stage(costs in proptest::collection::vec(1_u32..50, 1..8), wanted in 1_usize..8) {
            let costs: Vec<f64> = costs.into_iter().map(f64::from).collect();
            let stages = wanted.min(costs.len());
            let parts = balanced_parts(&costs, stages).unwrap();
            prop_assert_eq!(parts.len(), stages);
            let ends = parts.iter().fold(0, |end, part| if part.start == end && part.end > end { part.end } else { 99 });
            prop_assert_eq!(ends, costs.len());
            let largest = parts.iter().map(|part| costs[part.clone()].iter().sum()).fold(0.0, f64::max);
            prop_assert_eq!(largest, tried(&costs, stages));
        }
    }

    #[test]
    fn equal_blocks_are_divided_equally() {
        assert_eq!(balanced_parts(&[0.25; 8], 4).unwrap(), [0..2, 2..4, 4..6, 6..8]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let error = balanced_parts(&[1.0; 3], 4).unwrap_err().to_string();
        assert_eq!(error, "4 stages need at least as many blocks, but the model has 3; use fewer stages");
        assert!(balanced_parts(&[1.0], 0).is_err());
        let error = given_parts(&[3, 2], 8).unwrap_err().to_string();
        assert_eq!(error, "a split into 3,2 has 5 blocks, but the model has 8");
        assert!(given_parts(&[8, 0], 8).is_err());
        assert_eq!(given_parts(&[3, 1, 4], 8).unwrap(), [0..3, 3..4, 4..8]);
    }

    #[test]
    fn the_published_split_computes_twelve_blocks() {
        let counts: Vec<usize> = published_parts().into_iter().map(|part| part.len()).collect();
        assert_eq!(counts, [6, 2, 2, 2]);
    }
}
