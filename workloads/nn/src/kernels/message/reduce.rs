//! Sums of messages, one row per node.

use std::ops::Range;

use candle_core::WithDType;

use super::lanes::{AddRows, Gathered, PADDING, Target, rows_ahead};
use super::messages::Messages;
use super::walk::{Batch, Walk};
use super::written::{IN_ORDER, Written, pieces};
use crate::kernels::Stored;
use gnntop_data::graph::{Adjacency, Direction, EdgeOp, Endpoint};
use gnntop_data::tasks::{map_tasks, run_tasks, split_rows};

/// Adds up the messages of every node: `out`, `[nodes, heads * width]`, of the targets or of the sources. Where `mean`,
/// each sum is divided by the number of messages. The order of summation is that of the edges, except that a hub's
/// edges are added up in parts of a fixed size and the parts then in their order: no result depends on the threads. The sums
/// are stored as `O`.
///
/// # Panics
/// If a slice is shorter than `adjacency` and `messages` ask for.
pub fn sum_rows<T: Stored, O: Stored<Wide = T::Wide>>(
    adjacency: &Adjacency,
    direction: Direction,
    messages: &Messages<'_, T>,
    mean: bool,
    out: &mut [O],
) {
    let total = messages.columns.total();
    if total == 0 {
        return;
    }
    let walk = Walk { adjacency, direction };
    run_tasks(walk.ranges().iter().zip(split_rows(out, walk.ranges(), total)), |(range, mut rows)| {
        let mut sums = Sums::new(walk, messages, mean);
        let mut batch = Batch::default();
        let mut first = range.start;
        while first < range.end {
            walk.next(first, range.end, &mut batch);
            let (own, rest) = rows.split_at_mut(batch.nodes.len() * total);
            if batch.is_hub(adjacency) {
                sums.add_hub(first, batch.positions.clone(), own);
            } else {
                sums.add_batch(&batch, own);
            }
            (first, rows) = (batch.nodes.end, rest);
        }
    });
}

/// The sums of one batch after the other, with the buffers for them.
struct Sums<'a, T: Stored> {
    arch: pulp::Arch,
    walk: Walk<'a>,
    messages: &'a Messages<'a, T>,
    mean: bool,
    /// `[heads * width + PADDING]`
    sum: Vec<T::Wide>,
    /// `[heads, edges]`
    factors: Vec<T::Wide>,
    rows: Vec<u32>,
    written: Written<T::Wide>,
}

impl<'a, T: Stored> Sums<'a, T> {
    fn new(walk: Walk<'a>, messages: &'a Messages<'a, T>, mean: bool) -> Self {
        let sum = vec![T::Wide::default(); messages.columns.total() + PADDING];
        let (factors, rows, written) = (Vec::new(), Vec::new(), Written::default());
        Self { arch: pulp::Arch::new(), walk, messages, mean, sum, factors, rows, written }
    }

    /// A node with very many edges: parts of them on all threads, then the sum of the parts.
    fn add_hub<O: Stored<Wide = T::Wide>>(&self, node: usize, edges: Range<usize>, out: &mut [O]) {
        let part = self.walk.adjacency.hub_edges();
        let parts: Vec<Vec<T::Wide>> = map_tasks(edges.len().div_ceil(part), |index| {
            let start = edges.start + index * part;
            let batch = Batch::part(node, start..edges.end.min(start + part));
            let mut sums = Self::new(self.walk, self.messages, self.mean);
            if self.messages.is_scaled_row() {
                sums.add_scaled_rows(&batch, Target::<T>::Part(true));
            } else {
                sums.written.find(self.messages, self.walk, &batch);
                sums.add_messages(0..batch.positions.len());
            }
            sums.sum
        });
        let divisor = self.divisor(edges.len());
        for (column, out) in out.iter_mut().enumerate() {
            let sum = parts.iter().fold(T::Wide::default(), |sum, part| sum + part[column]);
            *out = O::narrow(sum / divisor);
        }
    }

    fn divisor(&self, edges: usize) -> T::Wide {
        T::Wide::from_f64(if self.mean { edges.max(1) as f64 } else { 1.0 })
    }

    fn add_batch<O: Stored<Wide = T::Wide>>(&mut self, batch: &Batch, out: &mut [O]) {
        if self.messages.is_scaled_row() {
            self.add_scaled_rows(batch, Target::Rows(out));
            return;
        }
        self.written.find(self.messages, self.walk, batch);
        let mut start = 0;
        for (out, &end) in out.chunks_exact_mut(self.messages.columns.total()).zip(&batch.ends) {
            self.add_messages(start..end);
            let divisor = self.divisor(end - start);
            out.iter_mut().zip(&self.sum).for_each(|(out, &sum)| *out = O::narrow(sum / divisor));
            start = end;
        }
    }

    /// The fast way: messages that are rows times factors.
    fn add_scaled_rows<O: Stored<Wide = T::Wide>>(&mut self, batch: &Batch, target: Target<'_, O>) {
        let (messages, total) = (self.messages, self.messages.columns.total());
        let heads = self.fill_factors(batch);
        self.walk.rows_of(messages.lhs, batch, rows_ahead::<T>(total), &mut self.rows);
        let gathered = Gathered { x: messages.lhs.data, width: total, rows: &self.rows, ends: &batch.ends };
        let (factors, sum) = (&self.factors[..], &mut self.sum[..]);
        self.arch.dispatch(AddRows { gathered, heads, factors, mean: self.mean, sum, target });
    }

    /// The factors of the rows, and the number of groups of columns for which they differ.
    fn fill_factors(&mut self, batch: &Batch) -> usize {
        let (messages, edges) = (self.messages, batch.positions.len());
        self.factors.clear();
        let heads = if messages.op == EdgeOp::CopyLhs { 1 } else { messages.columns.heads };
        if messages.op == EdgeOp::CopyLhs {
            self.factors.resize(edges, T::Wide::from_f64(1.0));
        } else {
            self.walk.rows_of(messages.rhs, batch, 0, &mut self.rows);
            for head in 0..heads {
                let value = |&row: &u32| messages.rhs.data[row as usize * heads + head].widen();
                self.factors.extend(self.rows[..edges].iter().map(value));
            }
        }
        if let Some(scale) = messages.scale {
            self.walk.rows(Endpoint::Destination, batch, 0, &mut self.rows);
            for factors in self.factors.chunks_exact_mut(edges.max(1)) {
                factors.iter_mut().zip(&self.rows).for_each(|(factor, &row)| *factor *= scale[row as usize]);
            }
        }
        heads
    }

    /// The sum of some messages of the batch whose rows were found, written down a piece at a time. It stays in the
    /// buffer.
    fn add_messages(&mut self, edges: Range<usize>) {
        let width = self.messages.columns.total();
        let first = edges.start;
        self.sum.fill(T::Wide::default());
        for piece in pieces(edges) {
            self.written.write(self.messages, piece.clone());
            let ends = &[piece.len()];
            let gathered = Gathered { x: &self.written.values, width, rows: &IN_ORDER, ends };
            self.factors.resize(piece.len(), T::Wide::from_f64(1.0));
            let (factors, sum) = (&self.factors[..piece.len()], &mut self.sum[..]);
            let target = Target::<T>::Part(piece.start == first);
            self.arch.dispatch(AddRows { gathered, heads: 1, factors, mean: false, sum, target });
        }
    }
}
