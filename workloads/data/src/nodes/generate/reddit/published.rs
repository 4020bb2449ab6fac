//! The numbers of Reddit that do not depend on the size of the graph, and the streams of random numbers of a seed.

/// Classes, as in Reddit.
pub(super) const CLASSES: usize = 41;

/// Features per node, as in Reddit.
pub(super) const FEATURES: usize = 602;

/// Share of the drawn edges that join two nodes of one class by intent.
pub(super) const INSIDE: f64 = 0.6;

/// Streams of random numbers of a seed.
pub(super) const LABELS: u64 = 1;
pub(super) const WEIGHTS: u64 = 2;
pub(super) const EDGES: u64 = 3;
pub(super) const MEANS: u64 = 4;
pub(super) const NOISE: u64 = 5;
pub(super) const SPLIT: u64 = 6;
