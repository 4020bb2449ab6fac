//! The weights themselves: maximum, exponentials and their sum for each target and head.

use std::ops::Range;

use super::logits::{Logits, leaky};
use crate::kernels::{Stored, Wide};
use gnntop_data::graph::Adjacency;
use gnntop_data::tasks::{map_tasks, run_tasks, split_rows};

/// Numbers whose exponentials are taken at once.
const LANES: usize = 16;

/// Softmax over the edges into each target, `[edges, heads]`. In f32 or f64 throughout, rounded once at the end.
pub(super) fn softmax_rows<T: Stored>(adjacency: &Adjacency, heads: usize, logits: Logits<'_, T>) -> Vec<T> {
    let mut out = vec![T::default(); adjacency.edges() * heads];
    if heads == 0 {
        return out;
    }
    let targets = adjacency.target_ranges();
    let edges = adjacency.edges_of_ranges();
    run_tasks(targets.iter().zip(split_rows(&mut out, &edges, heads)), |(targets, mut rows)| {
        let mut softmax = Softmax::new(adjacency, heads, logits);
        for target in targets.clone() {
            let (own, rest) = rows.split_at_mut(adjacency.in_degree(target) * heads);
            rows = rest;
            if adjacency.is_hub(adjacency.in_degree(target)) {
                softmax_of_hub(adjacency, heads, logits, target, own);
            } else if !own.is_empty() {
                softmax.write(target, own);
            }
        }
    });
    out
}

/// The softmax of one target after the other, with the buffers for it.
struct Softmax<'a, T: Stored> {
    adjacency: &'a Adjacency,
    heads: usize,
    logits: Logits<'a, T>,
    /// `[edges, heads]`: logits, then their exponentials.
    values: Vec<T::Wide>,
    highest: Vec<T::Wide>,
    sum: Vec<T::Wide>,
}

impl<'a, T: Stored> Softmax<'a, T> {
    fn new(adjacency: &'a Adjacency, heads: usize, logits: Logits<'a, T>) -> Self {
        let zeros = vec![T::Wide::default(); heads];
        Self { adjacency, heads, logits, values: Vec::new(), highest: zeros.clone(), sum: zeros }
    }

    fn write(&mut self, target: usize, out: &mut [T]) {
        self.take(target, self.adjacency.incoming(target));
        self.exponentiate();
        self.divide(out);
    }

    /// Reads the logits of some edges and finds the highest of each head.
    fn take(&mut self, target: usize, edges: Range<usize>) {
        let heads = self.heads;
        let values = &mut self.values;
        values.clear();
        match self.logits {
            Logits::Given(logits) => {
                values.extend(logits[edges.start * heads..edges.end * heads].iter().map(|logit| logit.widen()));
            }
            Logits::OfScores { source, target: of_target, negative_slope } => {
                let own = &of_target[target * heads..][..heads];
                for &node in &self.adjacency.sources()[edges] {
                    let sums = source[node as usize * heads..][..heads].iter().zip(own);
                    values.extend(sums.map(|(a, b)| leaky(a.widen() + b.widen(), negative_slope)));
                }
            }
        }
        self.highest.copy_from_slice(&values[..heads]);
        for row in values.chunks_exact(heads) {
            for (highest, &value) in self.highest.iter_mut().zip(row) {
                *highest = if value > *highest { value } else { *highest };
            }
        }
    }

    /// Takes the exponentials of the distances from the highest, and their sums.
    fn exponentiate(&mut self) {
        for row in self.values.chunks_exact_mut(self.heads) {
            row.iter_mut().zip(&self.highest).for_each(|(value, &highest)| *value -= highest);
        }
        pulp::Arch::new().dispatch(Exponentials { values: &mut self.values });
        self.sum.fill(T::Wide::default());
        for row in self.values.chunks_exact(self.heads) {
            self.sum.iter_mut().zip(row).for_each(|(sum, &value)| *sum += value);
        }
    }

    fn divide(&self, out: &mut [T]) {
        for (out, row) in out.chunks_exact_mut(self.heads).zip(self.values.chunks_exact(self.heads)) {
            for ((out, &value), &sum) in out.iter_mut().zip(row).zip(&self.sum) {
                *out = T::narrow(value / sum);
            }
        }
    }
}

/// A target with very many edges: parts of them on all threads, joined in their order between the steps.
fn softmax_of_hub<T: Stored>(adjacency: &Adjacency, heads: usize, logits: Logits<'_, T>, target: usize, out: &mut [T]) {
    let (edges, part) = (adjacency.incoming(target), adjacency.hub_edges());
    let mut parts = map_tasks(edges.len().div_ceil(part), |index| {
        let start = edges.start + index * part;
        let mut softmax = Softmax::new(adjacency, heads, logits);
        softmax.take(target, start..edges.end.min(start + part));
        softmax
    });
    let higher = |a: T::Wide, b: T::Wide| if b > a || is_nan(b) { b } else { a };
    let highest = joined(&parts, |part| &part.highest, higher);
    run_tasks(&mut parts, |part| {
        part.highest.copy_from_slice(&highest);
        part.exponentiate();
    });
    let sum = joined(&parts, |part| &part.sum, |a, b| a + b);
    run_tasks(parts.iter_mut().zip(out.chunks_mut(part * heads)), |(part, out)| {
        part.sum.copy_from_slice(&sum);
        part.divide(out);
    });
}

#[expect(clippy::eq_op, reason = "true for NaN only, in all number types")]
fn is_nan<W: Wide>(value: W) -> bool {
    value != value
}

/// One number for each head from those of all parts.
fn joined<'a, T: Stored>(
    parts: &'a [Softmax<'_, T>],
    of: impl Fn(&'a Softmax<'_, T>) -> &'a Vec<T::Wide>,
    join: impl Fn(T::Wide, T::Wide) -> T::Wide,
) -> Vec<T::Wide> {
    let mut all = parts.iter().map(of);
    let mut joined = all.next().cloned().unwrap_or_default();
    for next in all {
        joined.iter_mut().zip(next).for_each(|(joined, &next)| *joined = join(*joined, next));
    }
    joined
}

/// Replaces numbers by their exponentials, whole vectors at a time.
struct Exponentials<'a, W> {
    values: &'a mut [W],
}

impl<W: Wide> pulp::NullaryFnOnce for Exponentials<'_, W> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let (blocks, rest) = self.values.as_chunks_mut::<LANES>();
        for block in blocks {
            exponentials(block);
        }
        let mut last = [W::default(); LANES];
        last[..rest.len()].copy_from_slice(rest);
        exponentials(&mut last);
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

#[inline(always)]
fn exponentials<W: Wide>(block: &mut [W; LANES]) {
    for value in block {
        *value = value.exponential();
    }
}
