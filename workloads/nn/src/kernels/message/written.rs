//! Messages written down a piece at a time, for the operators that have no kernel of their own.

use std::ops::Range;

use super::messages::Messages;
use super::walk::{Batch, Walk};
use crate::kernels::{Stored, Wide};
use gnntop_data::graph::Endpoint;

/// Messages written down, a few at a time: the way for the operators that have no kernel of their own.
#[derive(Default)]
pub(super) struct Written<W> {
    left: Vec<u32>,
    right: Vec<u32>,
    destination: Vec<u32>,
    /// `[PIECE, columns]`
    pub(super) values: Vec<W>,
}

/// Messages that are written down at once.
const PIECE: usize = 32;
/// The numbers of a piece's rows.
pub(super) const IN_ORDER: [u32; PIECE] = {
    let mut rows = [0; PIECE];
    let mut row = 0;
    while row < PIECE {
        rows[row] = row as u32;
        row += 1;
    }
    rows
};

impl<W: Wide> Written<W> {
    /// Finds the operands' rows for the edges of a batch.
    pub(super) fn find<T: Stored<Wide = W>>(&mut self, messages: &Messages<'_, T>, walk: Walk<'_>, batch: &Batch) {
        self.values.resize(PIECE * messages.columns.total(), W::default());
        walk.rows_of(messages.lhs, batch, 0, &mut self.left);
        walk.rows_of(messages.rhs, batch, 0, &mut self.right);
        walk.rows(Endpoint::Destination, batch, 0, &mut self.destination);
    }

    /// Writes the messages of some edges of the batch, at most [`PIECE`], to `values`.
    pub(super) fn write<T: Stored<Wide = W>>(&mut self, messages: &Messages<'_, T>, edges: Range<usize>) {
        let total = messages.columns.total();
        for (edge, out) in edges.zip(self.values.chunks_exact_mut(total)) {
            messages.write(self.left[edge], self.right[edge], self.destination[edge], out);
        }
    }
}

/// Cuts some edges into pieces of at most [`PIECE`].
pub(super) fn pieces(edges: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    edges.clone().step_by(PIECE).map(move |first| first..edges.end.min(first + PIECE))
}
