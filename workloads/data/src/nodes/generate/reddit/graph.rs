//! The graph: its classes, how strongly its nodes attract edges, its features and its split.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rand::RngExt;
use rand::seq::SliceRandom;
use rayon::prelude::*;

use super::super::random::{fill_normal, random_stream};
use super::GenerateError;
use super::edges::{self, Communities};
use super::means::class_means;
use super::published::{CLASSES, FEATURES, LABELS, NOISE, SPLIT, WEIGHTS};
use crate::nodes::values::Writer;
use crate::nodes::{Features, NodeDataset, Split, Values};

/// Shares of the nodes that are trained on and validated on; the others test.
const TRAIN: f64 = 0.66;
const VALIDATION: f64 = 0.10;

/// A graph like Reddit's: `nodes` nodes in 41 classes, `edges` directed edges (an odd number is rounded down: every
/// edge is there in both directions; no loops, no duplicates), 602 features. Reddit has 232,965 nodes and 114,615,892
/// directed edges. `progress` is called from time to time with the share of the work that is done.
///
/// Classes are equally likely. Pairs of nodes are drawn one after the other until `edges / 2` different ones are found:
/// the first node in proportion to weights `(rank + 30)^-0.8`, which gives a power law of degrees with exponent 2.25
/// (cut off where a hub is joined to nearly all), the second by the same weights, with probability 0.6 within the class
/// of the first. A node's features are its class mean (deviation 0.12 in each feature) plus noise of deviation 1.
/// Of the nodes 66 % train, 10 % validate and 24 % test.
///
/// The accuracy ceiling is computed by [`reddit_like_ceiling`](super::reddit_like_ceiling). On 50,000 nodes and 10,000,000 edges with seed 1 the
/// best classifier of a node's own features is right for 76.8 % of the test nodes, and with the features of all
/// neighbours for 100.0 %: a graph model should come close to that, a model without the graph cannot.
///
/// # Errors
/// More than `u32::MAX` nodes or edges, or too many edges for the nodes.
pub fn reddit_like(
    nodes: usize,
    edges: usize,
    seed: u64,
    progress: &mut dyn FnMut(f64),
) -> Result<NodeDataset, GenerateError> {
    generate(nodes, edges, seed, None, progress)
}

/// The same with the features in a file in this folder, 2,408 bytes for each node: they may exceed memory. The file has no name, and
/// is gone when the data set is.
///
/// # Errors
/// As [`reddit_like`]; or the file cannot be made or written.
pub fn reddit_like_on_disk(
    nodes: usize,
    edges: usize,
    seed: u64,
    folder: &Path,
    progress: &mut dyn FnMut(f64),
) -> Result<NodeDataset, GenerateError> {
    generate(nodes, edges, seed, Some(folder), progress)
}

fn generate(
    nodes: usize,
    edges: usize,
    seed: u64,
    folder: Option<&Path>,
    progress: &mut dyn FnMut(f64),
) -> Result<NodeDataset, GenerateError> {
    const EDGES_SHARE: f64 = 0.7;
    if nodes > u32::MAX as usize || edges > u32::MAX as usize {
        return Err(GenerateError::TooLarge { nodes, edges });
    }
    // Drawing may have to start again, but progress must not go back.
    let mut furthest = 0.0f64;
    let mut progress = |share: f64| {
        furthest = furthest.max(share);
        progress(furthest);
    };
    let labels = labels(nodes, seed);
    let communities = Communities::new(&labels, CLASSES, weights(nodes, seed));
    let graph = edges::draw(&communities, edges / 2, seed, &mut |share| progress(EDGES_SHARE * share))?;
    let values = features(&labels, seed, folder, &mut |share| progress(EDGES_SHARE + (1.0 - EDGES_SHARE) * share));
    let values = values.map_err(|error| GenerateError::Write {
        folder: folder.unwrap_or(Path::new("memory")).to_owned(),
        problem: error.to_string(),
    })?;
    Ok(NodeDataset {
        origin: format!("generated (Reddit-like, {nodes} nodes, {} directed edges, seed {seed})", graph.edges()),
        graph: Arc::new(graph),
        features: Arc::new(Features::Dense { values, width: FEATURES }),
        labels: Arc::new(labels),
        classes: CLASSES,
        split: split(nodes, seed),
    })
}

fn labels(nodes: usize, seed: u64) -> Vec<u32> {
    let random = &mut random_stream(seed, LABELS, 0);
    (0..nodes).map(|_| random.random_range(0..CLASSES as u32)).collect()
}

/// How strongly each node attracts edges; the ranks are shuffled over the nodes.
fn weights(nodes: usize, seed: u64) -> Vec<f64> {
    const FLATTENED_RANKS: f64 = 30.0;
    const EXPONENT: f64 = -0.8;
    let mut weights: Vec<f64> = (0..nodes).map(|rank| (rank as f64 + FLATTENED_RANKS).powf(EXPONENT)).collect();
    weights.shuffle(&mut random_stream(seed, WEIGHTS, 0));
    weights
}

/// `[nodes, features]`; each row has its own random numbers, so that threads do not matter.
fn features(labels: &[u32], seed: u64, folder: Option<&Path>, progress: &mut dyn FnMut(f64)) -> io::Result<Values> {
    const ROWS_AT_ONCE: usize = 8192;
    let means = class_means(seed);
    let fill_row = |node: usize, row: &mut [f32], label: u32| {
        fill_normal(row, 1.0, &mut random_stream(seed, NOISE, node as u64));
        let mean = &means[label as usize * FEATURES..][..FEATURES];
        row.iter_mut().zip(mean).for_each(|(value, mean)| *value += mean);
    };
    let mut writer = folder.map_or_else(|| Ok(Writer::memory(labels.len() * FEATURES)), Writer::file)?;
    let mut block = vec![0.0; ROWS_AT_ONCE.min(labels.len()) * FEATURES];
    for (number, labels_of_block) in labels.chunks(ROWS_AT_ONCE).enumerate() {
        let first = number * ROWS_AT_ONCE;
        let rows = &mut block[..labels_of_block.len() * FEATURES];
        rows.par_chunks_mut(FEATURES)
            .zip(labels_of_block)
            .enumerate()
            .for_each(|(row, (values, &label))| fill_row(first + row, values, label));
        writer.write(rows)?;
        progress(((first + ROWS_AT_ONCE) as f64 / labels.len() as f64).min(1.0));
    }
    writer.finish()
}

fn split(nodes: usize, seed: u64) -> Split {
    let random = &mut random_stream(seed, SPLIT, 0);
    let mut split = Split::default();
    for node in 0..nodes as u32 {
        match random.random::<f64>() {
            mark if mark < TRAIN => split.train.push(node),
            mark if mark < TRAIN + VALIDATION => split.validation.push(node),
            _ => split.test.push(node),
        }
    }
    split
}
