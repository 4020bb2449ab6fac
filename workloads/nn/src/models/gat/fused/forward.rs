//! Forward pass of a layer: projection, then everything that concerns a target at once.

use std::ops::Range;

use candle_core::Result;

use super::layer::{Activations, Layer};
use super::products::ROWS;
use crate::kernels::{Buffer, Lanes, Selected};
use gnntop_data::graph::DropMask;
use gnntop_data::tasks::{run_tasks, split_rows};

/// Targets that a task takes.
const TARGETS: usize = 128;

impl<T: Lanes> Layer<T> {
    /// `x`, `[sources, input]`, to `[targets, columns]`.
    pub(super) fn computed(&self, x: Selected<'_, T>, bias: &[T]) -> Result<Buffer<T>> {
        self.with_weights(|weights| {
            let mut projected = self.take(self.adjacency.source_nodes() * self.columns());
            self.project(x, weights.weight, &mut projected);
            let mut source_score = self.take(self.adjacency.source_nodes() * self.heads);
            self.scores(&projected, weights.source, &mut source_score);
            let mut target_score = self.take(self.adjacency.nodes() * self.heads);
            self.scores(&projected, weights.target, &mut target_score);
            let (out, activations) = self.attend(projected, source_score, target_score, bias);
            *self.activations() = Some(activations);
            Ok(out)
        })
    }

    /// The product of each head with its vector, for the first nodes.
    fn scores(&self, projected: &[T], vector: &[T], out: &mut [T]) {
        let columns = self.columns();
        run_tasks(out.chunks_mut(ROWS * self.heads).zip(projected.chunks(ROWS * columns)), |(out, rows)| {
            pulp::Arch::new().dispatch(Scores { rows, vector, heads: self.heads, width: self.width, out });
        });
    }

    fn attend(
        &self,
        projected: Buffer<T>,
        source_score: Buffer<T>,
        target_score: Buffer<T>,
        bias: &[T],
    ) -> (Buffer<T>, Activations<T>) {
        let (targets, columns, heads) = (self.adjacency.nodes(), self.columns(), self.heads);
        let mut out = self.take(targets * columns);
        let mut slope = self.take(if self.inner { targets * columns } else { 0 });
        let (mut attention, mut weight) = (self.take(self.edge_rows() * heads), self.take(self.edge_rows() * heads));
        let positions = self.attention_mask.map(|mask| (mask, self.positions()));
        let (ranges, edges) = self.ranges(TARGETS);
        let slopes = if self.inner { columns } else { 0 };
        let loops = if self.replaces_loops() { heads } else { 0 };
        let (of_edges, of_loops) = attention.split_at_mut(self.adjacency.edges() * heads);
        let (weight_of_edges, weight_of_loops) = weight.split_at_mut(self.adjacency.edges() * heads);
        let tasks = ranges.iter().zip(split_rows(&mut out, &ranges, columns));
        let tasks = tasks.zip(split_rows(&mut slope, &ranges, slopes));
        let tasks = tasks.zip(split_rows(of_edges, &edges, heads)).zip(split_rows(of_loops, &ranges, loops));
        let tasks = tasks.zip(split_rows(weight_of_edges, &edges, heads));
        let tasks = tasks.zip(split_rows(weight_of_loops, &ranges, loops));
        let scores = (&source_score[..], &target_score[..]);
        let drop = positions.as_ref().map(|(mask, positions)| (*mask, &positions[..]));
        run_tasks(tasks, |((((((range, out), slope), attention), loops), weight), loop_weight)| {
            let (targets, attention, weight) = (range.clone(), (attention, loops), (weight, loop_weight));
            let rows = TargetRows { targets, out, slope, attention, weight };
            pulp::Arch::new().dispatch(Attend { layer: self, projected: &projected, scores, bias, drop, rows });
        });
        (out, Activations { projected, source_score, target_score, attention, weight, slope })
    }

    /// Targets in ranges of `count`, and the ranges of their edges.
    pub(super) fn ranges(&self, count: usize) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
        let targets = self.adjacency.nodes();
        let ranges: Vec<_> = (0..targets).step_by(count).map(|first| first..targets.min(first + count)).collect();
        let edges = |range: &Range<usize>| {
            self.adjacency.incoming(range.start).start..self.adjacency.incoming(range.end - 1).end
        };
        let edges = ranges.iter().map(edges).collect();
        (ranges, edges)
    }

    /// Number of the first edge of each target among the edges that count, for the positions of dropout.
    fn positions(&self) -> Buffer<u32> {
        let targets = self.adjacency.nodes();
        let mut positions = self.workspaces.indices.take(targets);
        let mut next = 0;
        for (target, position) in positions.iter_mut().enumerate() {
            *position = next;
            let edges = &self.adjacency.sources()[self.adjacency.incoming(target)];
            next += match self.replaces_loops() {
                true => edges.iter().filter(|&&source| source as usize != target).count() as u32 + 1,
                false => edges.len() as u32,
            };
        }
        positions
    }
}

/// Scores of some rows.
struct Scores<'a, T> {
    rows: &'a [T],
    vector: &'a [T],
    heads: usize,
    width: usize,
    out: &'a mut [T],
}

impl<T: Lanes> pulp::NullaryFnOnce for Scores<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let rows = self.rows.chunks_exact(self.heads * self.width);
        for (out, row) in self.out.chunks_exact_mut(self.heads).zip(rows) {
            let heads = row.chunks_exact(self.width).zip(self.vector.chunks_exact(self.width));
            for (out, (row, vector)) in out.iter_mut().zip(heads) {
                *out = dot(row, vector);
            }
        }
    }
}

/// Product of two short rows, in lanes and then in a fixed order.
#[inline(always)]
pub(super) fn dot<T: Lanes>(left: &[T], right: &[T]) -> T {
    const LANES: usize = 16;
    let mut lanes = [T::zero(); LANES];
    let (left, left_rest) = left.as_chunks::<LANES>();
    let (right, right_rest) = right.as_chunks::<LANES>();
    for (left, right) in left.iter().zip(right) {
        for lane in 0..LANES {
            lanes[lane] += left[lane] * right[lane];
        }
    }
    let mut count = LANES;
    while count > 1 {
        count /= 2;
        for lane in 0..count {
            lanes[lane] += lanes[lane + count];
        }
    }
    let rest = left_rest.iter().zip(right_rest);
    rest.fold(lanes[0], |sum, (&left, &right)| sum + left * right)
}

/// The output of a range of targets, for edges and for added loops separately.
struct TargetRows<'a, T> {
    targets: Range<usize>,
    out: &'a mut [T],
    slope: &'a mut [T],
    attention: (&'a mut [T], &'a mut [T]),
    weight: (&'a mut [T], &'a mut [T]),
}

/// Attention of a range of targets, and its result.
struct Attend<'a, T> {
    layer: &'a Layer<T>,
    projected: &'a [T],
    /// Of the sources and of the targets.
    scores: (&'a [T], &'a [T]),
    bias: &'a [T],
    drop: Option<(DropMask, &'a [u32])>,
    rows: TargetRows<'a, T>,
}

impl<T: Lanes> pulp::NullaryFnOnce for Attend<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(mut self) {
        let columns = self.layer.columns();
        let first_edge = self.layer.adjacency.incoming(self.rows.targets.start).start;
        for (index, target) in self.rows.targets.clone().enumerate() {
            let edges = self.layer.adjacency.incoming(target);
            let sources = &self.layer.adjacency.sources()[edges.clone()];
            let local = edges.start - first_edge..edges.end - first_edge;
            for head in 0..self.layer.heads {
                self.softmax(index, target, sources, local.start, head);
                self.drop_weights(index, target, sources, local.start, head);
                self.average(index, target, sources, local.start, head);
            }
            self.activate(index, target, columns);
        }
    }
}

impl<T: Lanes> Attend<'_, T> {
    /// Attention of one target and head. An edge that does not count has a score of minus infinity.
    #[inline(always)]
    fn softmax(&mut self, index: usize, target: usize, sources: &[u32], first: usize, head: usize) {
        let heads = self.layer.heads;
        let replaced = self.layer.replaces_loops();
        let (of_sources, of_targets) = self.scores;
        let own = of_targets[target * heads + head];
        let leaky = |score: T| if score > T::zero() { score } else { score * self.layer.negative_slope };
        let lowest = T::from_f64(f64::NEG_INFINITY);
        let mut highest = lowest;
        let attention = &mut self.rows.attention.0[first * heads..][..sources.len() * heads];
        for (row, &source) in attention.chunks_exact_mut(heads).zip(sources) {
            let score = leaky(of_sources[source as usize * heads + head] + own);
            let score = if replaced && source as usize == target { lowest } else { score };
            highest = if score > highest { score } else { highest };
            row[head] = score;
        }
        let mut sum = T::zero();
        let mut of_loop = T::zero();
        if replaced {
            let score = leaky(of_sources[target * heads + head] + own);
            highest = if score > highest { score } else { highest };
            of_loop = (score - highest).exponential();
        }
        for row in attention.chunks_exact_mut(heads) {
            row[head] = (row[head] - highest).exponential();
            sum += row[head];
        }
        sum += of_loop;
        for row in attention.chunks_exact_mut(heads) {
            row[head] /= sum;
        }
        if replaced {
            self.rows.attention.1[index * heads + head] = of_loop / sum;
        }
    }

    /// The weights, from the attention.
    #[inline(always)]
    fn drop_weights(&mut self, index: usize, target: usize, sources: &[u32], first: usize, head: usize) {
        let heads = self.layer.heads;
        let span = first * heads..(first + sources.len()) * heads;
        let attention = self.rows.attention.0[span.clone()].chunks_exact(heads);
        let weight = self.rows.weight.0[span].chunks_exact_mut(heads);
        let replaced = self.layer.replaces_loops();
        let Some((mask, positions)) = self.drop else {
            weight.zip(attention).for_each(|(weight, attention)| weight[head] = attention[head]);
            if replaced {
                self.rows.weight.1[index * heads + head] = self.rows.attention.1[index * heads + head];
            }
            return;
        };
        let factor = T::from_f64(mask.factor());
        let dropped = |number: u64, attention: T| {
            let position = number * heads as u64 + head as u64;
            let stays = mask.stream(position >> 32).stays(position as u32);
            if stays { attention * factor } else { T::zero() }
        };
        let mut number = u64::from(positions[target]);
        for ((weight, attention), &source) in weight.zip(attention).zip(sources) {
            weight[head] = dropped(number, attention[head]);
            number += u64::from(!replaced || source as usize != target);
        }
        if replaced {
            self.rows.weight.1[index * heads + head] = dropped(number, self.rows.attention.1[index * heads + head]);
        }
    }

    /// The weighted sum of the sources, and of the target itself where a loop is added.
    #[inline(always)]
    fn average(&mut self, index: usize, target: usize, sources: &[u32], first: usize, head: usize) {
        let (heads, width, columns) = (self.layer.heads, self.layer.width, self.layer.columns());
        let start = head * width;
        let out = &mut self.rows.out[index * columns + start..][..width];
        out.copy_from_slice(&self.bias[start..start + width]);
        let weights = &self.rows.weight.0[first * heads..][..sources.len() * heads];
        for (weight, &source) in weights.chunks_exact(heads).zip(sources) {
            add_scaled(out, weight[head], &self.projected[source as usize * columns + start..][..width]);
        }
        if self.layer.replaces_loops() {
            let weight = self.rows.weight.1[index * heads + head];
            add_scaled(out, weight, &self.projected[target * columns + start..][..width]);
        }
    }

    /// ELU and dropout, and the derivative of both.
    #[inline(always)]
    fn activate(&mut self, index: usize, target: usize, columns: usize) {
        if !self.layer.inner {
            return;
        }
        let span = index * columns..(index + 1) * columns;
        let (out, slope) = (&mut self.rows.out[span.clone()], &mut self.rows.slope[span]);
        for (out, slope) in out.iter_mut().zip(slope.iter_mut()) {
            let exponential = out.exponential();
            let positive = *out > T::zero();
            *slope = if positive { T::from_f64(1.0) } else { exponential };
            *out = if positive { *out } else { exponential - T::from_f64(1.0) };
        }
        if let Some(mask) = self.layer.output_mask {
            mask.apply((target * columns) as u64, out);
            mask.apply((target * columns) as u64, slope);
        }
    }
}

/// `out += factor row`
#[inline(always)]
pub(super) fn add_scaled<T: Lanes>(out: &mut [T], factor: T, row: &[T]) {
    for (out, &value) in out.iter_mut().zip(row) {
        *out += factor * value;
    }
}
