//! The features of the nodes of a batch, copied together.

use thiserror::Error;

use crate::graph::SparseMatrix;
use crate::nodes::Features;
use crate::tasks::{even_ranges, run_tasks, split_rows};

/// Fills `out` with the features of `nodes`, `[nodes.len(), width]`, row after row, whatever form the features are held
/// in. The memory of `out` is reused. With `use_all_threads` the rows are divided among the threads of the current
/// rayon pool.
///
/// # Panics
/// If there are no features for one of the nodes.
pub fn gather_features(features: &Features, nodes: &[u32], out: &mut Vec<f32>, use_all_threads: bool) {
    let width = features.width();
    resize(out, nodes.len() * width);
    if use_all_threads { gather_into(features, nodes, out) } else { gather_rows(features, nodes, out) }
}

/// The same into existing memory, `[nodes.len(), width]`, with all threads of the current rayon pool.
pub fn gather_into(features: &Features, nodes: &[u32], out: &mut [f32]) {
    let ranges = even_ranges(nodes.len());
    let parts = split_rows(out, &ranges, features.width());
    run_tasks(ranges.into_iter().zip(parts), |(range, part)| gather_rows(features, &nodes[range], part));
}

/// The features of `nodes` without their zeros, if that is how they are held.
///
/// # Errors
/// There are more entries than 2^32.
///
/// # Panics
/// If there are no features for one of the nodes.
pub fn gather_without_zeros(features: &Features, nodes: &[u32]) -> candle_core::Result<Option<SparseMatrix>> {
    let Features::Sparse { row_start, column, value, width } = features else { return Ok(None) };
    let entries = |node: u32| row_start[node as usize] as usize..row_start[node as usize + 1] as usize;
    let (mut starts, mut columns, mut values) = (Vec::with_capacity(nodes.len() + 1), Vec::new(), Vec::new());
    starts.push(0);
    for &node in nodes {
        columns.extend_from_slice(&column[entries(node)]);
        values.extend_from_slice(&value[entries(node)]);
        starts.push(values.len() as u32);
    }
    SparseMatrix::new(starts, columns, values, *width).map(Some)
}

/// Why features cannot be gathered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FeatureError {
    /// Not one row for each node.
    #[error("the graph has {nodes} nodes, but features for {rows}")]
    Rows {
        /// Rows of features.
        rows: usize,
        /// Nodes of the graph.
        nodes: usize,
    },
    /// The starts of the rows do not divide the entries.
    #[error("row_start of the features must ascend from 0 to their number of entries ({entries})")]
    RowStart {
        /// Entries of the features.
        entries: usize,
    },
    /// An entry is outside the row.
    #[error("node {node} has a feature in column {column}, but there are only {width} (numbered from 0)")]
    Column {
        /// The node.
        node: usize,
        /// The column.
        column: u32,
        /// Features per node.
        width: usize,
    },
}

/// Checks that [`gather_features`] finds the features of every one of `nodes` nodes.
///
/// # Errors
/// There are other than `nodes` rows, or a sparse layout is inconsistent.
pub fn check_features(features: &Features, nodes: usize) -> Result<(), FeatureError> {
    let rows = match features {
        Features::Dense { width: 0, .. } => nodes,
        features => features.rows(),
    };
    if rows != nodes {
        return Err(FeatureError::Rows { rows, nodes });
    }
    match features {
        Features::Dense { .. } => Ok(()),
        Features::Sparse { row_start, column, value, width } => check_sparse(row_start, column, value, *width),
    }
}

fn check_sparse(row_start: &[u32], column: &[u32], value: &[f32], width: usize) -> Result<(), FeatureError> {
    let entries = value.len();
    let ascends = row_start.windows(2).all(|row| row[0] <= row[1]);
    let ends = row_start.first() == Some(&0) && row_start.last().is_some_and(|&end| end as usize == entries);
    if !ascends || !ends || column.len() != entries {
        return Err(FeatureError::RowStart { entries });
    }
    match column.iter().position(|&column| column as usize >= width) {
        None => Ok(()),
        Some(entry) => {
            let node = row_start.partition_point(|&start| start as usize <= entry) - 1;
            Err(FeatureError::Column { node, column: column[entry], width })
        }
    }
}

/// A little more room than requested, so that the next, slightly larger batch also fits.
fn resize(out: &mut Vec<f32>, length: usize) {
    if out.capacity() < length {
        *out = Vec::with_capacity(length + length / 8);
    }
    out.resize(length, 0.0);
}

fn gather_rows(features: &Features, nodes: &[u32], out: &mut [f32]) {
    match features {
        // Rows without values have no chunks.
        Features::Dense { width: 0, .. } | Features::Sparse { width: 0, .. } => {}
        Features::Dense { values, width } => {
            values.read_ahead(nodes, *width);
            for (row, &node) in out.chunks_exact_mut(*width).zip(nodes) {
                row.copy_from_slice(&values[node as usize * width..][..*width]);
            }
        }
        Features::Sparse { row_start, column, value, width } => {
            out.fill(0.0);
            for (row, &node) in out.chunks_exact_mut(*width).zip(nodes) {
                let entries = row_start[node as usize] as usize..row_start[node as usize + 1] as usize;
                for (&column, &value) in column[entries.clone()].iter().zip(&value[entries]) {
                    row[column as usize] = value;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dense() -> Features {
        Features::Dense { values: (0..4000).map(|value| value as f32).collect(), width: 4 }
    }

    fn sparse() -> Features {
        let row_start = vec![0, 2, 2, 3];
        Features::Sparse { row_start, column: vec![0, 2, 1], value: vec![1.0, 2.0, 3.0], width: 3 }
    }

    #[test]
    fn rows_come_in_the_order_of_the_nodes() {
        let nodes: Vec<u32> = (0..1000).rev().chain([5, 5]).collect();
        let expected: Vec<f32> =
            nodes.iter().flat_map(|node| (0..4).map(move |column| (node * 4 + column) as f32)).collect();
        for use_all_threads in [false, true] {
            let mut out = vec![7.0; 9];
            gather_features(&dense(), &nodes, &mut out, use_all_threads);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn sparse_features_are_gathered_dense() {
        let mut out = vec![7.0; 20];
        gather_features(&sparse(), &[2, 0, 1, 2], &mut out, false);
        assert_eq!(out, [0.0, 3.0, 0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0]);
    }

    #[test]
    fn inconsistent_features_are_refused() {
        assert_eq!(check_features(&dense(), 1000), Ok(()));
        assert_eq!(check_features(&dense(), 999), Err(FeatureError::Rows { rows: 1000, nodes: 999 }));
        assert_eq!(check_features(&sparse(), 3), Ok(()));
        assert_eq!(check_features(&sparse(), 4), Err(FeatureError::Rows { rows: 3, nodes: 4 }));
        let broken = |row_start: &[u32], column: &[u32]| {
            let (row_start, column) = (row_start.to_vec(), column.to_vec());
            let features = Features::Sparse { row_start, column, value: vec![1.0; 3], width: 3 };
            check_features(&features, 3)
        };
        assert_eq!(broken(&[0, 2, 2, 3], &[0, 1, 3]), Err(FeatureError::Column { node: 2, column: 3, width: 3 }));
        assert_eq!(broken(&[0, 2, 1, 3], &[0, 1, 2]), Err(FeatureError::RowStart { entries: 3 }));
        assert_eq!(broken(&[0, 2, 2, 4], &[0, 1, 2]), Err(FeatureError::RowStart { entries: 3 }));
        assert_eq!(broken(&[0, 2, 2, 3], &[0, 1]), Err(FeatureError::RowStart { entries: 3 }));
    }

    #[test]
    fn no_nodes_and_no_columns_give_nothing() {
        let mut out = vec![1.0];
        gather_features(&dense(), &[], &mut out, true);
        assert!(out.is_empty());
        gather_features(&Features::Dense { values: vec![].into(), width: 0 }, &[0, 1], &mut out, false);
        assert!(out.is_empty());
    }

    #[test]
    fn the_memory_is_used_again() {
        let mut out = Vec::new();
        gather_features(&dense(), &[1; 100], &mut out, false);
        let address = out.as_ptr();
        gather_features(&dense(), &[2; 110], &mut out, false);
        assert_eq!(out.as_ptr(), address);
    }
}
