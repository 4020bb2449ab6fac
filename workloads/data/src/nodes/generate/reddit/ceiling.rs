//! The accuracy of a classifier that knows how the graph was made.

use rayon::prelude::*;

use super::means::class_means;
use super::published::FEATURES;
use crate::nodes::{Features, NodeDataset};

/// Shares of the test nodes that the best classifiers get right, which know the class means and how likely an edge is
/// within a class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ceiling {
    /// From a node's own features: the ceiling for a model that does not look at the graph.
    pub own_features: f64,
    /// From the features of the node and of all its neighbours: what a model of the whole neighbourhood can reach.
    pub one_hop: f64,
    /// From a node's own features and the true classes of its neighbours: no model can be expected to do better,
    /// however far it looks.
    pub neighbour_labels: f64,
}

/// The accuracy ceiling of a graph that [`reddit_like`](super::reddit_like) made with `seed`, on its test split.
///
/// The classifiers are Bayes': a neighbour of a node of class `c` has class `c` with probability `a + (1 - a) p_c` and
/// class `k` with `(1 - a) p_k`, where `p_k` is the share of edge ends that class `k` holds and `a` is fitted to the
/// share of edges within a class. Edges count as independent given the classes.
///
/// `None` for a data set with other than this generator's features or without test nodes.
#[must_use]
pub fn reddit_like_ceiling(dataset: &NodeDataset, seed: u64) -> Option<Ceiling> {
    let Features::Dense { values, width: FEATURES } = &*dataset.features else { return None };
    let classes = dataset.classes;
    if dataset.split.test.is_empty() || classes * FEATURES != class_means(seed).len() {
        return None;
    }
    let own = log_likelihoods(values, &class_means(seed), classes);
    let mixing = Mixing::new(dataset);
    let by_features = mixing.by_features(&own, classes);
    let by_label = mixing.by_label(classes);
    let labels = &dataset.labels;
    Some(Ceiling {
        own_features: share_right(dataset, &own, |_| &[]),
        one_hop: share_right(dataset, &own, |node| &by_features[node as usize * classes..][..classes]),
        neighbour_labels: share_right(dataset, &own, |node| {
            &by_label[labels[node as usize] as usize * classes..][..classes]
        }),
    })
}

/// Share of the test nodes whose true class has the highest sum of its own log-likelihood and of its neighbours'
/// evidence.
fn share_right<'a>(dataset: &NodeDataset, own: &[f32], evidence: impl Fn(u32) -> &'a [f32] + Sync) -> f64 {
    let classes = dataset.classes;
    let right = |&&node: &&u32| {
        let mut score: Vec<f64> = own[node as usize * classes..][..classes].iter().map(|&own| f64::from(own)).collect();
        for &neighbour in dataset.graph.neighbours(node) {
            score.iter_mut().zip(evidence(neighbour)).for_each(|(score, &part)| *score += f64::from(part));
        }
        let best = (0..classes).max_by(|&a, &b| score[a].total_cmp(&score[b]));
        best == Some(dataset.labels[node as usize] as usize)
    };
    let test = &dataset.split.test;
    test.par_iter().filter(right).count() as f64 / test.len() as f64
}

/// `x . m - |m|^2 / 2` for every node and class mean `m`, `[nodes, classes]`: the logarithm of the normal density, up
/// to what is the same for all classes.
fn log_likelihoods(values: &[f32], means: &[f32], classes: usize) -> Vec<f32> {
    let by_feature: Vec<f32> =
        (0..FEATURES * classes).map(|index| means[index % classes * FEATURES + index / classes]).collect();
    let half_squares: Vec<f32> =
        means.chunks(FEATURES).map(|mean| mean.iter().map(|value| value * value).sum::<f32>() / 2.0).collect();
    let mut scores = vec![0.0; values.len() / FEATURES * classes];
    scores.par_chunks_mut(classes).zip(values.par_chunks(FEATURES)).for_each(|(scores, row)| {
        scores.iter_mut().zip(&half_squares).for_each(|(score, half)| *score = -half);
        for (value, weights) in row.iter().zip(by_feature.chunks(classes)) {
            scores.iter_mut().zip(weights).for_each(|(score, weight)| *score += value * weight);
        }
    });
    scores
}

/// Who is whose neighbour.
struct Mixing {
    /// Share of the edges that are within a class by intent.
    inside: f64,
    /// Share of edge ends that each class holds.
    ends: Vec<f64>,
}

impl Mixing {
    fn new(dataset: &NodeDataset) -> Self {
        let (mut ends, mut same) = (vec![0.0; dataset.classes], 0usize);
        for (node, &label) in dataset.labels.iter().enumerate() {
            let neighbours = dataset.graph.neighbours(node as u32);
            ends[label as usize] += neighbours.len() as f64;
            same += neighbours.iter().filter(|&&neighbour| dataset.labels[neighbour as usize] == label).count();
        }
        let edges = dataset.graph.edges().max(1) as f64;
        ends.iter_mut().for_each(|end| *end /= edges);
        let by_chance: f64 = ends.iter().map(|end| end * end).sum();
        let inside = ((same as f64 / edges - by_chance) / (1.0 - by_chance)).clamp(0.0, 1.0 - 1e-9);
        Self { inside, ends }
    }

    /// The evidence of a neighbour's features for each class of a node, `[nodes, classes]`, in logarithms.
    fn by_features(&self, own: &[f32], classes: usize) -> Vec<f32> {
        let mut evidence = own.to_vec();
        evidence.par_chunks_mut(classes).for_each(|row| {
            let highest = row.iter().fold(f32::NEG_INFINITY, |highest, &value| highest.max(value));
            let density: Vec<f64> = row.iter().map(|&value| f64::from(value - highest).exp()).collect();
            let anyone: f64 = density.iter().zip(&self.ends).map(|(density, end)| density * end).sum();
            for (value, density) in row.iter_mut().zip(density) {
                *value = (self.inside * density + (1.0 - self.inside) * anyone).ln() as f32;
            }
        });
        evidence
    }

    /// The same for a neighbour's class, `[classes of the neighbour, classes of the node]`.
    fn by_label(&self, classes: usize) -> Vec<f32> {
        let probability = |index: usize| {
            let (neighbour, node) = (index / classes, index % classes);
            let by_intent = if neighbour == node { self.inside } else { 0.0 };
            (by_intent + (1.0 - self.inside) * self.ends[neighbour]).ln() as f32
        };
        (0..classes * classes).map(probability).collect()
    }
}
