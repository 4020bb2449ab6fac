//! Maximum and minimum of the messages into every node, and which edge holds it.

use std::ops::Range;

use super::lanes::{Gathered, PADDING, TakeRows, Target, rows_ahead};
use super::messages::Messages;
use super::walk::{Batch, Walk};
use super::written::{IN_ORDER, Written, pieces};
use crate::kernels::Stored;
use gnntop_data::graph::{Adjacency, Direction, EdgeOp, Endpoint, Extreme};
use gnntop_data::tasks::{map_tasks, run_tasks, split_rows};

/// Holder of a node without incoming edges.
pub(in crate::kernels) const NOBODY: u32 = u32::MAX;

/// The extremum of the messages of every target: `out` and the edges that hold it, `holders`, both
/// `[targets, heads * width]`. Without messages 0, held by edge `u32::MAX`.
///
/// # Panics
/// If a slice is shorter than `adjacency` and `messages` ask for.
pub fn extreme_rows<T: Stored>(
    adjacency: &Adjacency,
    messages: &Messages<'_, T>,
    extreme: Extreme,
    out: &mut [T],
    holders: &mut [u32],
) {
    let total = messages.columns.total();
    if total == 0 {
        return;
    }
    let walk = Walk { adjacency, direction: Direction::Incoming };
    let rows = split_rows(out, walk.ranges(), total).into_iter().zip(split_rows(holders, walk.ranges(), total));
    run_tasks(walk.ranges().iter().zip(rows), |(range, (mut rows, mut holders))| {
        let mut best = Best::new(walk, messages, extreme);
        let mut batch = Batch::default();
        let mut first = range.start;
        while first < range.end {
            walk.next(first, range.end, &mut batch);
            let (own, rest) = rows.split_at_mut(batch.nodes.len() * total);
            let (own_holders, rest_holders) = holders.split_at_mut(own.len());
            if batch.is_hub(adjacency) {
                best.take_hub(first, batch.positions.clone());
                best.give(own, own_holders);
            } else {
                best.take_batch(&batch, own, own_holders);
            }
            (first, rows, holders) = (batch.nodes.end, rest, rest_holders);
        }
    });
}

/// The extrema of one batch after the other, with the buffers for them.
struct Best<'a, T: Stored> {
    arch: pulp::Arch,
    walk: Walk<'a>,
    messages: &'a Messages<'a, T>,
    extreme: Extreme,
    /// `[heads * width + PADDING]`, and so are the holders.
    value: Vec<T::Wide>,
    holder: Vec<u32>,
    rows: Vec<u32>,
    edges: Vec<u32>,
    written: Written<T::Wide>,
}

impl<'a, T: Stored> Best<'a, T> {
    fn new(walk: Walk<'a>, messages: &'a Messages<'a, T>, extreme: Extreme) -> Self {
        let length = messages.columns.total() + PADDING;
        let (value, holder) = (vec![T::Wide::default(); length], vec![NOBODY; length]);
        let (rows, edges, written) = (Vec::new(), Vec::new(), Written::default());
        Self { arch: pulp::Arch::new(), walk, messages, extreme, value, holder, rows, edges, written }
    }

    /// A node with very many edges: parts of them on all threads, then the extremum of the parts, in their order.
    fn take_hub(&mut self, node: usize, edges: Range<usize>) {
        let part = self.walk.adjacency.hub_edges();
        let parts = map_tasks(edges.len().div_ceil(part), |index| {
            let start = edges.start + index * part;
            let batch = Batch::part(node, start..edges.end.min(start + part));
            let mut best = Self::new(self.walk, self.messages, self.extreme);
            best.find(&batch);
            if best.is_copy() {
                best.take_copies(&batch, Target::Part(true), &mut []);
            } else {
                best.take_messages(0..batch.positions.len());
            }
            best
        });
        for (index, part) in parts.iter().enumerate() {
            for column in 0..self.messages.columns.total() {
                if index == 0 || self.extreme.replaces(part.value[column], self.value[column]) {
                    (self.value[column], self.holder[column]) = (part.value[column], part.holder[column]);
                }
            }
        }
    }

    /// Writes the buffers down as a node's result.
    fn give(&self, out: &mut [T], holders: &mut [u32]) {
        out.iter_mut().zip(&self.value).for_each(|(out, &value)| *out = T::narrow(value));
        holders.copy_from_slice(&self.holder[..holders.len()]);
    }

    /// Whether messages are rows as they are, for which there is a kernel.
    fn is_copy(&self) -> bool {
        self.messages.op == EdgeOp::CopyLhs && self.messages.scale.is_none()
    }

    /// Finds the rows and numbers of the edges of a batch.
    fn find(&mut self, batch: &Batch) {
        let (messages, walk) = (self.messages, self.walk);
        walk.rows(Endpoint::Edge, batch, 0, &mut self.edges);
        if self.is_copy() {
            walk.rows_of(messages.lhs, batch, rows_ahead::<T>(messages.columns.total()), &mut self.rows);
        } else {
            self.written.find(messages, walk, batch);
        }
    }

    fn take_batch(&mut self, batch: &Batch, out: &mut [T], holders: &mut [u32]) {
        let total = self.messages.columns.total();
        self.find(batch);
        if self.is_copy() {
            self.take_copies(batch, Target::Rows(&mut *out), holders);
        }
        let mut start = 0;
        let rows = out.chunks_exact_mut(total).zip(holders.chunks_exact_mut(total));
        for ((out, holders), &end) in rows.zip(&batch.ends) {
            if start == end {
                out.fill(T::default());
                holders.fill(NOBODY);
            } else if !self.is_copy() {
                self.take_messages(start..end);
                self.give(out, holders);
            }
            start = end;
        }
    }

    /// The fast way: the rows are the messages.
    fn take_copies(&mut self, batch: &Batch, target: Target<'_, T>, holders: &mut [u32]) {
        let (x, width) = (self.messages.lhs.data, self.messages.columns.total());
        let gathered = Gathered { x, width, rows: &self.rows, ends: &batch.ends };
        let (extreme, edges) = (self.extreme, &self.edges[..]);
        let (best, holder) = (&mut self.value[..], &mut self.holder[..]);
        self.arch.dispatch(TakeRows { gathered, extreme, edges, best, holder, target, holders });
    }

    /// Some messages of the batch whose rows were found, written down a piece at a time. The result stays in the
    /// buffers.
    fn take_messages(&mut self, edges: Range<usize>) {
        let width = self.messages.columns.total();
        let first = edges.start;
        for piece in pieces(edges) {
            self.written.write(self.messages, piece.clone());
            let ends = &[piece.len()];
            let gathered = Gathered { x: &self.written.values, width, rows: &IN_ORDER, ends };
            let (best, holder) = (&mut self.value[..], &mut self.holder[..]);
            let (extreme, target) = (self.extreme, Target::Part(piece.start == first));
            let edges = &self.edges[piece];
            self.arch.dispatch(TakeRows { gathered, extreme, edges, best, holder, target, holders: &mut [] });
        }
    }
}
