//! How many draws it takes until a number of different pairs is found.

use super::published::{CLASSES, INSIDE};

/// The draws after which `pairs` different pairs are expected, and a little more. Nodes of about equal weight are taken
/// together and classes as equally strong, so that this is an estimate.
pub(super) fn draws_for(weights: &[f64], pairs: usize) -> f64 {
    const SPARE: f64 = 1.01;
    const MOST_DRAWS_OF_A_PAIR: f64 = 256.0;
    let groups = groups(weights);
    let wanted = pairs as f64;
    let (mut low, mut high) = (wanted, wanted * MOST_DRAWS_OF_A_PAIR);
    for _ in 0..30 {
        let middle = (low * high).sqrt();
        if expected_pairs(&groups, middle) < wanted { low = middle } else { high = middle }
    }
    SPARE * high + 10.0 * wanted.sqrt()
}

/// Nodes of about equal weight.
struct WeightClass {
    nodes: f64,
    /// Probability of one of them to be drawn first.
    share: f64,
}

/// Groups of ranks, small for the heavy nodes.
fn groups(weights: &[f64]) -> Vec<WeightClass> {
    const GROWTH: f64 = 1.15;
    let mut sorted = weights.to_vec();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let total: f64 = sorted.iter().sum();
    let (mut groups, mut rest, mut size) = (Vec::new(), &*sorted, 1.0f64);
    while !rest.is_empty() {
        let (group, after) = rest.split_at((size as usize).min(rest.len()));
        let nodes = group.len() as f64;
        groups.push(WeightClass { nodes, share: group.iter().sum::<f64>() / total / nodes });
        (rest, size) = (after, (size * GROWTH).max(size + 1.0));
    }
    groups
}

/// Different pairs expected after some draws.
fn expected_pairs(groups: &[WeightClass], draws: f64) -> f64 {
    let classes = CLASSES as f64;
    let mut pairs = 0.0;
    for (position, a) in groups.iter().enumerate() {
        for (other, b) in groups[..=position].iter().enumerate() {
            let count = if other == position { a.nodes * (a.nodes - 1.0) / 2.0 } else { a.nodes * b.nodes };
            let draws_of_pair = 2.0 * draws * a.share * b.share;
            let met = |factor: f64| 1.0 - (-draws_of_pair * factor).exp();
            let same_class = met(1.0 - INSIDE + INSIDE * classes);
            pairs += count * (same_class / classes + met(1.0 - INSIDE) * (1.0 - 1.0 / classes));
        }
    }
    pairs
}
