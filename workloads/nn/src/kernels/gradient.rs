//! Gradients of summed and of stored messages. Both kinds of kernel share them: the incoming gradient belongs to the
//! destination (g-SpMM) or to the edge (g-SDDMM), and each operand collects it over the edges at its own end.

use candle_core::WithDType;

use super::Stored;
use super::message::{Messages, Rows, edge_rows, sum_rows};
use gnntop_data::graph::{Adjacency, Columns, Direction, EdgeOp, Endpoint};

/// Collects messages at `at`: summed over the edges of each source or destination, or one by one for the edges.
pub(super) fn collect<T: Stored>(adjacency: &Adjacency, at: Endpoint, messages: &Messages<'_, T>) -> Vec<T> {
    let width = messages.stored_width();
    let mut out = vec![T::default(); at.rows(adjacency) * width];
    match at {
        Endpoint::Source => sum_rows(adjacency, Direction::Outgoing, messages, false, &mut out),
        Endpoint::Destination => sum_rows(adjacency, Direction::Incoming, messages, false, &mut out),
        Endpoint::Edge => edge_rows(adjacency, messages, &mut out),
    }
    out
}

/// One over the number of edges into each target, the factor with which a mean passes its gradient on.
pub(super) fn inverse_degrees<T: Stored>(adjacency: &Adjacency) -> Vec<T::Wide> {
    (0..adjacency.nodes()).map(|node| T::Wide::from_f64(1.0 / adjacency.in_degree(node).max(1) as f64)).collect()
}

/// Messages whose gradients are requested, and the incoming gradient.
#[derive(Clone, Copy)]
pub(super) struct Backward<'a, T: Stored> {
    pub adjacency: &'a Adjacency,
    /// As in the forward pass, with both operands; `scale` as [`inverse_degrees`] for a mean.
    pub messages: Messages<'a, T>,
    /// `[rows, heads * width]`, or `[rows, heads]` for [`EdgeOp::Dot`].
    pub gradient: Rows<'a, T>,
}

impl<'a, T: Stored> Backward<'a, T> {
    /// Gradient of `lhs`.
    pub fn of_lhs(&self) -> Vec<T> {
        let Messages { op, rhs, per_head, .. } = self.messages;
        let gradient = self.gradient;
        let messages = match op {
            EdgeOp::Mul | EdgeOp::Div => Messages { op, lhs: gradient, rhs, per_head, ..self.messages },
            EdgeOp::Dot => Messages { op: EdgeOp::Mul, lhs: rhs, rhs: gradient, per_head: true, ..self.messages },
            _ => self.copies(gradient),
        };
        collect(self.adjacency, self.messages.lhs.at, &messages)
    }

    /// Gradient of `rhs`.
    pub fn of_rhs(&self) -> Vec<T> {
        let Messages { op, lhs, rhs, per_head, columns, .. } = self.messages;
        let gradient = self.gradient;
        let product = if per_head { EdgeOp::Dot } else { EdgeOp::Mul };
        let head_sums;
        let messages = match op {
            EdgeOp::Mul | EdgeOp::Div => {
                Messages { op: product, lhs: gradient, rhs: lhs, per_head: false, ..self.messages }
            }
            EdgeOp::Dot => Messages { op: EdgeOp::Mul, lhs, rhs: gradient, per_head: true, ..self.messages },
            _ if per_head => {
                head_sums = sums_of_heads(gradient.data, columns.width);
                let sums = Rows::new(&head_sums[..], gradient.at);
                Messages { columns: Columns::flat(columns.heads), ..self.copies(sums) }
            }
            _ => self.copies(gradient),
        };
        let mut out = collect(self.adjacency, rhs.at, &messages);
        match op {
            EdgeOp::Sub => map::<T>(&mut out, rhs.data, |gradient, _| T::Wide::default() - gradient),
            EdgeOp::Div => {
                map::<T>(&mut out, rhs.data, |gradient, divisor| T::Wide::default() - gradient / (divisor * divisor));
            }
            _ => {}
        }
        out
    }

    /// Copies of rows of all columns.
    fn copies<'b>(&self, rows: Rows<'b, T>) -> Messages<'b, T>
    where
        'a: 'b,
    {
        let Messages { columns, scale, .. } = self.messages;
        Messages { scale, ..Messages::copies(columns.total(), rows.data, rows.at) }
    }
}

/// Changes each of `values` with the operand's element at the same place.
fn map<T: Stored>(values: &mut [T], operand: &[T], change: impl Fn(T::Wide, T::Wide) -> T::Wide) {
    for (value, &operand) in values.iter_mut().zip(operand) {
        *value = T::narrow(change(value.widen(), operand.widen()));
    }
}

fn sums_of_heads<T: Stored>(rows: &[T], width: usize) -> Vec<T> {
    let sum = |head: &[T]| head.iter().fold(T::Wide::default(), |sum, value| sum + value.widen());
    rows.chunks_exact(width.max(1)).map(|head| T::narrow(sum(head))).collect()
}
