//! The gradient of the softmax, `s * (g - sum of s * g)`, and of the scores that its logits came from.

use std::ops::Range;

use super::logits::Logits;
use crate::kernels::Stored;
use gnntop_data::graph::Adjacency;
use gnntop_data::tasks::{map_tasks, run_tasks, split_rows};

/// Gradients from a softmax and its gradient: that of the logits, or of the sums of scores before the rectifier,
/// `[edges, heads]`; and its sum over the edges into each target, `[targets, heads]`, for scores only.
pub(super) fn gradient_of_logits<T: Stored>(
    adjacency: &Adjacency,
    heads: usize,
    logits: Logits<'_, T>,
    (result, gradient): (&[T], &[T]),
) -> (Vec<T>, Vec<T>) {
    let target_heads = if matches!(logits, Logits::OfScores { .. }) { heads } else { 0 };
    let mut of_logits = vec![T::default(); adjacency.edges() * heads];
    let mut of_targets = vec![T::default(); adjacency.nodes() * target_heads];
    if heads == 0 {
        return (of_logits, of_targets);
    }
    let backward = Backward { adjacency, heads, logits, result, gradient };
    let (targets, edges) = (adjacency.target_ranges(), adjacency.edges_of_ranges());
    let tasks = targets.iter().zip(split_rows(&mut of_logits, &edges, heads));
    run_tasks(tasks.zip(split_rows(&mut of_targets, targets, target_heads)), |((targets, mut rows), of_targets)| {
        let (mut products, mut sums) = (vec![T::Wide::default(); heads], vec![T::Wide::default(); heads]);
        for (index, target) in targets.clone().enumerate() {
            let (own, rest) = rows.split_at_mut(adjacency.in_degree(target) * heads);
            rows = rest;
            if adjacency.is_hub(adjacency.in_degree(target)) {
                sums = backward.hub(target, own);
            } else {
                let edges = adjacency.incoming(target);
                backward.products(edges.clone(), &mut products);
                backward.write(target, edges, &products, own, &mut sums);
            }
            let of_target = &mut of_targets[index * target_heads..][..target_heads];
            of_target.iter_mut().zip(&sums).for_each(|(out, &sum)| *out = T::narrow(sum));
        }
    });
    (of_logits, of_targets)
}

struct Backward<'a, T: Stored> {
    adjacency: &'a Adjacency,
    heads: usize,
    logits: Logits<'a, T>,
    result: &'a [T],
    gradient: &'a [T],
}

impl<T: Stored> Backward<'_, T> {
    /// Rows of the result and its gradient.
    fn rows(&self, edges: Range<usize>) -> impl Iterator<Item = (&[T], &[T])> {
        let place = edges.start * self.heads..edges.end * self.heads;
        self.result[place.clone()].chunks_exact(self.heads).zip(self.gradient[place].chunks_exact(self.heads))
    }

    /// The sum of result times gradient over some edges, for each head.
    fn products(&self, edges: Range<usize>, sum: &mut [T::Wide]) {
        sum.fill(T::Wide::default());
        for (result, gradient) in self.rows(edges) {
            for ((sum, result), gradient) in sum.iter_mut().zip(result).zip(gradient) {
                *sum += result.widen() * gradient.widen();
            }
        }
    }

    /// Writes the gradients of some edges of a target, and the sum of them.
    fn write(&self, target: usize, edges: Range<usize>, products: &[T::Wide], out: &mut [T], sum: &mut [T::Wide]) {
        let heads = self.heads;
        sum.fill(T::Wide::default());
        for ((edge, (result, gradient)), out) in edges.clone().zip(self.rows(edges)).zip(out.chunks_exact_mut(heads)) {
            for head in 0..heads {
                let value = result[head].widen() * (gradient[head].widen() - products[head]);
                let value = value * self.slope(target, edge, head);
                out[head] = T::narrow(value);
                sum[head] += value;
            }
        }
    }

    /// The derivative of a logit by the sum of its scores.
    fn slope(&self, node: usize, edge: usize, head: usize) -> T::Wide {
        let one = <T::Wide as candle_core::WithDType>::from_f64(1.0);
        match self.logits {
            Logits::Given(_) => one,
            Logits::OfScores { source, target, negative_slope } => {
                let from = self.adjacency.sources()[edge] as usize;
                let sum = source[from * self.heads + head].widen() + target[node * self.heads + head].widen();
                if sum > T::Wide::default() { one } else { negative_slope }
            }
        }
    }

    /// A target with very many edges: parts of them on all threads, joined in their order.
    fn hub(&self, target: usize, out: &mut [T]) -> Vec<T::Wide> {
        let (edges, part, zeros) =
            (self.adjacency.incoming(target), self.adjacency.hub_edges(), vec![T::Wide::default(); self.heads]);
        let part_of = |index: usize| {
            let start = edges.start + index * part;
            start..edges.end.min(start + part)
        };
        let joined = |parts: Vec<Vec<T::Wide>>| {
            parts.iter().fold(zeros.clone(), |mut all, part| {
                all.iter_mut().zip(part).for_each(|(all, &part)| *all += part);
                all
            })
        };
        let parts = edges.len().div_ceil(part);
        let products = joined(map_tasks(parts, |index| {
            let mut sum = zeros.clone();
            self.products(part_of(index), &mut sum);
            sum
        }));
        let mut sums = vec![zeros.clone(); parts];
        run_tasks(out.chunks_mut(part * self.heads).zip(&mut sums).enumerate(), |(index, (out, sum))| {
            self.write(target, part_of(index), &products, out, sum);
        });
        joined(sums)
    }
}
