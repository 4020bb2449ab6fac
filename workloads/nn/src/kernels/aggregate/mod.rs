//! Mean, minimum, maximum and standard deviation over in-neighbours, fused, with their gradients.
//!
//! PNA's message from j to i is linear: `m_ij = t_i + q_j`, with a part `t` of the target and a part `q` of the
//! source. So mean, min and max over j are `t_i` plus those of `q_j`, and the standard deviation is that of `q_j`:
//! the kernel reads node-wise rows and never makes a message.
//!
//! The standard deviation follows PyTorch Geometric, `sqrt(max(var, 1e-5))` and then 0 where that is at most
//! `sqrt(1e-5)`, with gradient 0 there. The variance is taken around the mean in a second pass, which in f32 is
//! nearer to the exact value than `E[q^2] - E[q]^2`, and exactly 0 for a single neighbour. A node without
//! in-neighbours gets 0 four times and passes no gradient. The first edge that holds a minimum or maximum gets its
//! whole gradient.

#![expect(
    clippy::needless_range_loop,
    clippy::manual_memcpy,
    reason = "fixed-size lanes: the form that stays in registers, see `load`"
)]

mod backward;
mod forward;
mod sections;

pub use backward::{Saved, gradient_of_messages, gradient_of_targets};
pub use forward::{Aggregates, aggregate};
pub use sections::SectionLayout;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Element;
    use gnntop_data::graph::Adjacency;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    /// A random multigraph: node 0 isolated, node 1 a hub as target, node 2 a hub as source, loops and duplicates.
    fn random_edges(rng: &mut StdRng, nodes: u32) -> (Vec<u32>, Vec<u32>) {
        let mut edges: Vec<(u32, u32)> = (0..3 * nodes).map(|_| (rng.random_range(1..nodes), 3)).collect();
        edges.iter_mut().for_each(|edge| edge.1 = rng.random_range(1..nodes));
        edges.extend((0..40).map(|_| (rng.random_range(1..nodes), 1)));
        edges.extend((0..40).map(|_| (2, rng.random_range(1..nodes))));
        edges.extend([(4, 4), (4, 4), (5, 6), (5, 6), (6, 5)]);
        edges.sort_by_key(|edge| edge.1);
        let mut row_start = vec![0u32; nodes as usize + 1];
        edges.iter().for_each(|edge| row_start[edge.1 as usize + 1] += 1);
        (1..row_start.len()).for_each(|row| row_start[row] += row_start[row - 1]);
        (row_start, edges.into_iter().map(|edge| edge.0).collect())
    }

    fn random<T: Element>(rng: &mut StdRng, count: usize) -> Vec<T> {
        (0..count).map(|_| T::from_f64(rng.random_range(-1.0..1.0))).collect()
    }

    /// Forward and backward of the kernel: the aggregates, the gradient of `t` and that of `q`.
    fn kernel<T: Element>(
        adjacency: &Adjacency,
        layout: SectionLayout,
        (own, messages): (&[T], &[T]),
        upstream: &[T],
    ) -> (Vec<T>, Vec<T>, Vec<T>) {
        let (nodes, width) = (adjacency.nodes(), layout.width);
        let mut values = vec![T::zero(); nodes * layout.stride];
        for (row, own) in values.chunks_exact_mut(layout.stride).zip(own.chunks_exact(width)) {
            row[layout.offset..layout.offset + width].copy_from_slice(own);
        }
        let (mut centre, mut holders) = (vec![T::zero(); nodes * width], vec![0; nodes * 2 * width]);
        let out = Aggregates { values: &mut values, centre: &mut centre, holders: &mut holders };
        aggregate(adjacency, layout, messages, out);
        let mut gradient = upstream.to_vec();
        let (mut of_own, mut of_messages) = (vec![T::zero(); nodes * width], vec![T::zero(); nodes * width]);
        gradient_of_targets(adjacency, layout, 0..nodes, &values, &mut gradient, &mut of_own);
        let saved = Saved { messages, centre: &centre, holders: &holders, gradient: &gradient };
        gradient_of_messages(adjacency, layout, &saved, &mut of_messages);
        (values, of_own, of_messages)
    }

    /// Edge by edge from the definition, with `m_ij = t_i + q_j`: the four aggregates of one column of one node.
    fn naive(adjacency: &Adjacency, own: f64, column: &[f64], node: usize) -> [f64; 4] {
        let sources = &adjacency.sources()[adjacency.incoming(node)];
        let messages: Vec<f64> = sources.iter().map(|&source| own + column[source as usize]).collect();
        if messages.is_empty() {
            return [0.0; 4];
        }
        let count = messages.len() as f64;
        let mean = messages.iter().sum::<f64>() / count;
        let variance = messages.iter().map(|m| m * m).sum::<f64>() / count - mean * mean;
        let std = variance.max(1e-5).sqrt();
        let min = messages.iter().copied().fold(f64::INFINITY, f64::min);
        let max = messages.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        [mean, min, max, if std <= 1e-5f64.sqrt() { 0.0 } else { std }]
    }

    fn column_of(values: &[f64], width: usize, column: usize) -> Vec<f64> {
        values.iter().skip(column).step_by(width).copied().collect()
    }

    fn agrees_with_the_definition(hub_edges: usize) {
        let mut rng = StdRng::seed_from_u64(hub_edges as u64);
        for (nodes, width) in [(7, 1), (40, 5), (300, 37)] {
            let (row_start, source) = random_edges(&mut rng, nodes);
            let adjacency = Adjacency::with_hub_edges(row_start, source, hub_edges).unwrap();
            let layout = SectionLayout { width, offset: 2, stride: 4 * width + 3 };
            let count = nodes as usize * width;
            let (own, messages) = (random::<f64>(&mut rng, count), random::<f64>(&mut rng, count));
            let upstream = random(&mut rng, nodes as usize * layout.stride);
            let (values, ..) = kernel(&adjacency, layout, (&own, &messages), &upstream);
            for column in 0..width {
                let messages = column_of(&messages, width, column);
                for node in 0..nodes as usize {
                    let expected = naive(&adjacency, own[node * width + column], &messages, node);
                    let row = &values[node * layout.stride..];
                    for (section, expected) in expected.into_iter().enumerate() {
                        let got = row[layout.offset + section * width + column];
                        assert!((got - expected).abs() < 1e-12, "node {node} section {section}: {got} {expected}");
                    }
                    assert_eq!([row[0], row[1], row[layout.stride - 1]], [0.0; 3], "a foreign column was written");
                }
            }
        }
    }

    #[test]
    fn agrees_with_the_definition_without_hubs() {
        agrees_with_the_definition(usize::MAX);
    }

    #[test]
    fn agrees_with_the_definition_with_hubs_by_columns() {
        agrees_with_the_definition(20);
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for hub_edges in [20, usize::MAX] {
            let mut rng = StdRng::seed_from_u64(3);
            let (row_start, source) = random_edges(&mut rng, 25);
            let adjacency = Adjacency::with_hub_edges(row_start, source, hub_edges).unwrap();
            let (width, nodes) = (17, 25);
            let layout = SectionLayout { width, offset: 0, stride: 4 * width };
            let inputs = [random::<f64>(&mut rng, nodes * width), random::<f64>(&mut rng, nodes * width)];
            let upstream = random(&mut rng, nodes * layout.stride);
            let (_, of_own, of_messages) = kernel(&adjacency, layout, (&inputs[0], &inputs[1]), &upstream);
            let objective = |inputs: &[Vec<f64>; 2]| -> f64 {
                let (values, ..) = kernel(&adjacency, layout, (&inputs[0], &inputs[1]), &upstream);
                values.iter().zip(&upstream).map(|(value, weight)| value * weight).sum()
            };
            let step = 1e-6;
            for (which, gradient) in [of_own, of_messages].iter().enumerate() {
                for index in 0..nodes * width {
                    let mut moved = inputs.clone();
                    moved[which][index] += step;
                    let above = objective(&moved);
                    moved[which][index] -= 2.0 * step;
                    let slope = (above - objective(&moved)) / (2.0 * step);
                    assert!((slope - gradient[index]).abs() < 1e-6, "{which} {index}: {slope} {}", gradient[index]);
                }
            }
        }
    }

    #[test]
    fn the_first_edge_wins_a_tie() {
        // Node 0 receives 1, 2 and 1 again with equal values.
        let adjacency = Adjacency::new(vec![0, 3, 3, 3], vec![1, 2, 1]).unwrap();
        let layout = SectionLayout { width: 1, offset: 0, stride: 4 };
        let mut upstream = vec![0.0f32; 12];
        (upstream[1], upstream[2]) = (1.0, 10.0);
        let (values, own, messages) = kernel(&adjacency, layout, (&[0.5, 0.0, 0.0], &[9.0, 2.0, 2.0]), &upstream);
        assert_eq!(values[..4], [2.5, 2.5, 2.5, 0.0]);
        assert_eq!(own, [11.0, 0.0, 0.0]);
        assert_eq!(messages, [0.0, 11.0, 0.0]);
    }

    #[test]
    fn a_single_neighbour_has_no_spread_at_any_size() {
        let adjacency = Adjacency::new(vec![0, 1, 1], vec![1]).unwrap();
        let layout = SectionLayout { width: 3, offset: 0, stride: 12 };
        let messages = [0.0, 0.0, 0.0, 1e9f32, 3.3e-7, -7.77e4];
        let (values, _, gradient) = kernel(&adjacency, layout, (&[0.1; 6], &messages), &[1.0; 24]);
        assert_eq!(values[9..12], [0.0; 3]);
        assert_eq!(gradient, [0.0, 0.0, 0.0, 3.0, 3.0, 3.0]);
    }
}
