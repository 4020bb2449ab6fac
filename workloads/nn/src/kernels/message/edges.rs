//! One row per edge: the messages themselves, or the dot products of their operands.

use std::ops::Range;

use super::lanes::{Dots, rows_ahead};
use super::messages::Messages;
use super::walk::{BATCH, Batch, Walk};
use super::written::{Written, pieces};
use crate::kernels::Stored;
use gnntop_data::graph::{Adjacency, Direction, EdgeOp, Endpoint};
use gnntop_data::tasks::{run_tasks, split_rows};

/// Values to compute below which one thread does it alone.
const MIN_PARALLEL: usize = 1 << 13;

/// Stores the message of every edge, `[edges, heads * width]`; for [`EdgeOp::Dot`] its sum over each head,
/// `[edges, heads]`. In parallel over equal ranges of edges, whatever node they belong to.
///
/// # Panics
/// If a slice is shorter than `adjacency` and `messages` ask for.
pub fn edge_rows<T: Stored>(adjacency: &Adjacency, messages: &Messages<'_, T>, out: &mut [T]) {
    let stored = messages.stored_width();
    if stored == 0 {
        return;
    }
    let walk = Walk { adjacency, direction: Direction::Incoming };
    let ranges = edge_ranges(adjacency.edges(), messages.columns.total());
    run_tasks(ranges.iter().zip(split_rows(out, &ranges, stored)), |(range, rows)| {
        let mut buffers = Buffers::default();
        for (index, rows) in rows.chunks_mut(BATCH * stored).enumerate() {
            let first = range.start + index * BATCH;
            buffers.find(walk, messages, first..first + rows.len() / stored);
            match (messages.op, messages.scale) {
                (EdgeOp::Dot, _) => buffers.store_dots(messages, rows),
                (EdgeOp::CopyLhs, None) => buffers.store_copies(messages, rows),
                _ => buffers.store_messages(messages, rows),
            }
        }
    });
}

fn edge_ranges(edges: usize, width: usize) -> Vec<Range<usize>> {
    let parts = if edges * width < MIN_PARALLEL { 1 } else { 4 * rayon::current_num_threads() };
    (0..parts).map(|part| edges * part / parts..edges * (part + 1) / parts).collect()
}

/// The rows of a few edges.
struct Buffers<T: Stored> {
    batch: Batch,
    left: Vec<u32>,
    right: Vec<u32>,
    destination: Vec<u32>,
    written: Written<T::Wide>,
}

impl<T: Stored> Default for Buffers<T> {
    fn default() -> Self {
        let (left, right, destination) = (Vec::new(), Vec::new(), Vec::new());
        Self { batch: Batch::default(), left, right, destination, written: Written::default() }
    }
}

impl<T: Stored> Buffers<T> {
    /// Finds the rows of both operands for the edges at some positions.
    fn find(&mut self, walk: Walk<'_>, messages: &Messages<'_, T>, positions: Range<usize>) {
        walk.cut(positions, &mut self.batch);
        let ahead = rows_ahead::<T>(messages.columns.total());
        match (messages.op, messages.scale) {
            (EdgeOp::Dot, _) => {
                walk.rows_of(messages.lhs, &self.batch, ahead, &mut self.left);
                walk.rows_of(messages.rhs, &self.batch, ahead, &mut self.right);
                walk.rows(Endpoint::Destination, &self.batch, 0, &mut self.destination);
            }
            (EdgeOp::CopyLhs, None) => walk.rows_of(messages.lhs, &self.batch, 0, &mut self.left),
            _ => self.written.find(messages, walk, &self.batch),
        }
    }

    fn store_dots(&self, messages: &Messages<'_, T>, out: &mut [T]) {
        let (heads, width) = (messages.columns.heads, messages.columns.width);
        let (left, right, rows) = (messages.lhs.data, messages.rhs.data, [&self.left[..], &self.right[..]]);
        pulp::Arch::new().dispatch(Dots { left, right, rows, heads, width, out: &mut *out });
        if let Some(scale) = messages.scale {
            for (out, &destination) in out.chunks_exact_mut(heads).zip(&self.destination) {
                let scale = scale[destination as usize];
                out.iter_mut().for_each(|out| *out = T::narrow(out.widen() * scale));
            }
        }
    }

    fn store_copies(&self, messages: &Messages<'_, T>, out: &mut [T]) {
        let total = messages.columns.total();
        for (out, &row) in out.chunks_exact_mut(total).zip(&self.left) {
            out.copy_from_slice(&messages.lhs.data[row as usize * total..][..total]);
        }
    }

    fn store_messages(&mut self, messages: &Messages<'_, T>, out: &mut [T]) {
        let total = messages.columns.total();
        for piece in pieces(0..out.len() / total) {
            let out = &mut out[piece.start * total..piece.end * total];
            self.written.write(messages, piece);
            out.iter_mut().zip(&self.written.values).for_each(|(out, &value)| *out = T::narrow(value));
        }
    }
}
