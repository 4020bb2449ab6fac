//! Backward pass of a layer: gradients of a target, then those of a source along its outgoing edges.

use std::ops::Range;

use candle_core::Result;

use super::forward::{add_scaled, dot};
use super::layer::{Activations, Layer, Weights};
use super::products::ROWS;
use crate::kernels::{Buffer, CompressedRows, Lanes, Selected, add_column_sums, gradient_of_weight};
use crate::models::chain::{LayerGradients, left};
use gnntop_data::tasks::{run_tasks, split_rows};

/// Targets or sources that a task takes.
const NODES: usize = 128;

/// Gradients of `a_src` and `a_dst`.
type OfVectors<T> = (Vec<T>, Vec<T>);

impl<T: Lanes> Layer<T> {
    /// From the gradient of the result, those of the parameters and, where asked, that of `x`.
    pub(super) fn gradients(
        &self,
        x: Selected<'_, T>,
        mut gradient: Buffer<T>,
        with_input: bool,
    ) -> Result<LayerGradients<T>> {
        let activations = self.activations();
        let activations = left(activations.as_ref())?;
        let bias = self.through_activation(&activations.slope, &mut gradient);
        let (of_score, of_target) = self.score_gradients(activations, &gradient);
        self.with_weights(|weights| {
            let back = FromTargets { gradient: &gradient, of_score: &of_score, of_target: &of_target };
            let (mut of_projected, (of_source, of_target)) = self.source_gradients(activations, back, weights);
            let rows = CompressedRows::behind(&mut of_projected, self.columns(), None, &self.workspaces);
            let of_weight = gradient_of_weight(&rows, x, self.input_mask, &self.workspaces);
            let input = with_input.then(|| {
                let mut of_x = self.take(self.adjacency.source_nodes() * self.input);
                self.input_gradient(&of_projected, weights.weight, &mut of_x);
                of_x
            });
            Ok(LayerGradients { input, weights: vec![of_weight, of_source, of_target], bias })
        })
    }

    /// Gradient before dropout and ELU, in place, and its sum over the rows.
    fn through_activation(&self, slope: &[T], gradient: &mut [T]) -> Vec<T> {
        let columns = self.columns();
        let mut sums = vec![T::zero(); gradient.len().div_ceil(ROWS * columns) * columns];
        let tasks = gradient.chunks_mut(ROWS * columns).zip(sums.chunks_exact_mut(columns)).enumerate();
        run_tasks(tasks, |(block, (gradient, sums))| {
            let slope = if self.inner { &slope[block * ROWS * columns..][..gradient.len()] } else { &[] };
            gradient.iter_mut().zip(slope).for_each(|(gradient, &slope)| *gradient *= slope);
            add_column_sums(sums, gradient);
        });
        sum_parts(&sums, columns)
    }

    /// Gradients of the scores: of every edge and added loop before the leaky ReLU, `[edges + loops, heads]`, and of
    /// every target, `[targets, heads]`.
    fn score_gradients(&self, activations: &Activations<T>, gradient: &[T]) -> (Buffer<T>, Buffer<T>) {
        let heads = self.heads;
        let mut of_score = self.take(self.edge_rows() * heads);
        let mut of_target = self.take(self.adjacency.nodes() * heads);
        let (ranges, edges) = self.ranges(NODES);
        let loops = if self.replaces_loops() { heads } else { 0 };
        let (of_edges, of_loops) = of_score.split_at_mut(self.adjacency.edges() * heads);
        let tasks = ranges.iter().zip(split_rows(of_edges, &edges, heads));
        let tasks = tasks.zip(split_rows(of_loops, &ranges, loops)).zip(split_rows(&mut of_target, &ranges, heads));
        run_tasks(tasks, |(((range, of_edges), of_loops), of_target)| {
            let targets = range.clone();
            pulp::Arch::new().dispatch(TargetRange {
                layer: self,
                activations,
                gradient,
                targets,
                of_edges,
                of_loops,
                of_target,
            });
        });
        (of_score, of_target)
    }

    /// Gradient of the projected features, `[sources, columns]`, and of the two vectors.
    fn source_gradients(
        &self,
        activations: &Activations<T>,
        back: FromTargets<'_, T>,
        weights: Weights<'_, T>,
    ) -> (Buffer<T>, OfVectors<T>) {
        let (sources, columns) = (self.adjacency.source_nodes(), self.columns());
        let mut out = self.take(sources * columns);
        let mut vectors = vec![T::zero(); sources.div_ceil(NODES) * 2 * columns];
        let tasks = out.chunks_mut(NODES * columns).zip(vectors.chunks_exact_mut(2 * columns)).enumerate();
        run_tasks(tasks, |(block, (out, vectors))| {
            let range = SourceRange { layer: self, activations, back, weights, first: block * NODES, out, vectors };
            pulp::Arch::new().dispatch(range);
        });
        let sums = sum_parts(&vectors, 2 * columns);
        let (of_source, of_target) = sums.split_at(columns);
        (out, (of_source.to_vec(), of_target.to_vec()))
    }
}

/// Sum of the parts of `length` in their order.
fn sum_parts<T: Lanes>(parts: &[T], length: usize) -> Vec<T> {
    let mut sums = vec![T::zero(); length];
    add_column_sums(&mut sums, parts);
    sums
}

/// Score gradients of a range of targets.
struct TargetRange<'a, T> {
    layer: &'a Layer<T>,
    activations: &'a Activations<T>,
    gradient: &'a [T],
    targets: Range<usize>,
    of_edges: &'a mut [T],
    of_loops: &'a mut [T],
    of_target: &'a mut [T],
}

impl<T: Lanes> pulp::NullaryFnOnce for TargetRange<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(mut self) {
        let first_edge = self.layer.adjacency.incoming(self.targets.start).start;
        for (index, target) in self.targets.clone().enumerate() {
            for head in 0..self.layer.heads {
                self.target(index, target, first_edge, head);
            }
        }
    }
}

impl<T: Lanes> TargetRange<'_, T> {
    /// One target and head. With `w` the weight of an edge, `a` its attention and `g` the gradient of its weight, the
    /// gradient of its score is `w g - a sum(w g)`: what dropout has removed is 0 in `w`, the rest has its factor.
    #[inline(always)]
    fn target(&mut self, index: usize, target: usize, first_edge: usize, head: usize) {
        let (layer, saved) = (self.layer, self.activations);
        let (heads, width, columns) = (layer.heads, layer.width, layer.columns());
        let edges = layer.adjacency.incoming(target);
        let sources = &layer.adjacency.sources()[edges.clone()];
        let start = head * width;
        let gradient = &self.gradient[target * columns + start..][..width];
        let of_edges = &mut self.of_edges[(edges.start - first_edge) * heads..][..sources.len() * heads];
        let saved = Saved { layer, activations: saved, gradient, head };
        let mut sum = T::zero();
        for ((of_edge, edge), &source) in of_edges.chunks_exact_mut(heads).zip(edges.clone()).zip(sources) {
            of_edge[head] = saved.weighted(edge, source as usize);
            sum += of_edge[head];
        }
        let loop_row = layer.adjacency.edges() + target;
        let of_loop = if layer.replaces_loops() { saved.weighted(loop_row, target) } else { T::zero() };
        sum += of_loop;
        let total = (sum, saved.activations.target_score[target * heads + head]);
        let mut of_target = T::zero();
        for ((of_edge, edge), &source) in of_edges.chunks_exact_mut(heads).zip(edges).zip(sources) {
            of_edge[head] = saved.of_score(of_edge[head], total, edge, source as usize);
            of_target += of_edge[head];
        }
        if layer.replaces_loops() {
            let of_loop = saved.of_score(of_loop, total, loop_row, target);
            self.of_loops[index * heads + head] = of_loop;
            of_target += of_loop;
        }
        self.of_target[index * heads + head] = of_target;
    }
}

/// The terms of the gradients of one target's scores. Methods and not closures, which are compiled separately.
#[derive(Clone, Copy)]
struct Saved<'a, T> {
    layer: &'a Layer<T>,
    activations: &'a Activations<T>,
    /// Of the head's columns of the target's result.
    gradient: &'a [T],
    head: usize,
}

impl<T: Lanes> Saved<'_, T> {
    /// Weight of an edge times the gradient of that weight.
    #[inline(always)]
    fn weighted(self, row: usize, source: usize) -> T {
        let (width, columns) = (self.layer.width, self.layer.columns());
        let projected = &self.activations.projected[source * columns + self.head * width..][..width];
        self.activations.weight[row * self.layer.heads + self.head] * dot(self.gradient, projected)
    }

    /// Gradient of a score, from the product for its edge, their sum over the target's edges, and the target's own score.
    #[inline(always)]
    fn of_score(self, weighted: T, (sum, own): (T, T), row: usize, source: usize) -> T {
        let (heads, head) = (self.layer.heads, self.head);
        let score = self.activations.source_score[source * heads + head] + own;
        let slope = if score > T::zero() { T::from_f64(1.0) } else { self.layer.negative_slope };
        (weighted - self.activations.attention[row * heads + head] * sum) * slope
    }
}

/// What the targets' half of the backward pass leaves to the sources' half.
#[derive(Clone, Copy)]
struct FromTargets<'a, T> {
    /// `[targets, columns]`
    gradient: &'a [T],
    /// `[edges + loops, heads]`
    of_score: &'a [T],
    /// `[targets, heads]`
    of_target: &'a [T],
}

/// Gradients of a range of sources; each gathers over its outgoing edges, so that no two threads write the same row and
/// the sum has a fixed order.
struct SourceRange<'a, T> {
    layer: &'a Layer<T>,
    activations: &'a Activations<T>,
    back: FromTargets<'a, T>,
    weights: Weights<'a, T>,
    first: usize,
    out: &'a mut [T],
    /// Gradients of `a_src` and of `a_dst` from these nodes.
    vectors: &'a mut [T],
}

impl<T: Lanes> pulp::NullaryFnOnce for SourceRange<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(mut self) {
        let count = self.out.len() / self.layer.columns();
        for index in 0..count {
            for head in 0..self.layer.heads {
                self.source(index, head);
            }
        }
    }
}

impl<T: Lanes> SourceRange<'_, T> {
    /// One source and head.
    #[inline(always)]
    fn source(&mut self, index: usize, head: usize) {
        let (layer, back, saved) = (self.layer, self.back, self.activations);
        let (heads, width, columns) = (layer.heads, layer.width, layer.columns());
        let (source, span) = (self.first + index, head * width..(head + 1) * width);
        let gradient = |target: usize| &back.gradient[target * columns + span.start..][..width];
        let out = &mut self.out[index * columns + span.start..][..width];
        out.fill(T::zero());
        let mut of_score = T::zero();
        for &(target, edge) in layer.adjacency.outgoing(source) {
            let row = edge as usize * heads + head;
            add_scaled(out, saved.weight[row], gradient(target as usize));
            of_score += back.of_score[row];
        }
        let (of_source, of_target) = self.vectors.split_at_mut(columns);
        let projected = &saved.projected[source * columns + span.start..][..width];
        if source < layer.adjacency.nodes() {
            if layer.replaces_loops() {
                let row = (layer.adjacency.edges() + source) * heads + head;
                add_scaled(out, saved.weight[row], gradient(source));
                of_score += back.of_score[row];
            }
            let own = back.of_target[source * heads + head];
            add_scaled(out, own, &self.weights.target[span.clone()]);
            add_scaled(&mut of_target[span.clone()], own, projected);
        }
        add_scaled(out, of_score, &self.weights.source[span.clone()]);
        add_scaled(&mut of_source[span], of_score, projected);
    }
}
