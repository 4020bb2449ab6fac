//! Gradients of summed, of extreme and of stored messages on a device, as [`kernels`](crate::kernels) derives them: the
//! incoming gradient belongs to the target (g-SpMM) or to the edge (g-SDDMM), and each operand collects it over the
//! edges at its own end. For an extremum only the edge that holds it collects.

use candle_core::{Result, Shape, Tensor};

use super::edges::Edges;
use super::messages::{Messages, Operand, collect, edge_rows};
use gnntop_data::graph::{EdgeOp, Endpoint};

/// Messages whose gradients are requested, and the incoming gradient.
#[derive(Clone, Copy)]
pub(crate) struct Backward<'a> {
    pub(crate) edges: &'a Edges,
    /// As in the forward pass, with both operands; with the factors of a mean as `scale`, with the `holders` of an
    /// extremum.
    pub(crate) messages: Messages<'a>,
    /// `[rows, heads * width]`, or `[rows, heads]` for [`EdgeOp::Dot`].
    pub(crate) gradient: Operand<'a>,
}

impl<'a> Backward<'a> {
    /// Gradient of `lhs`.
    pub(crate) fn of_lhs(&self, shape: &Shape) -> Result<Tensor> {
        let (messages, gradient) = (self.messages, self.gradient);
        let message = match messages.op {
            EdgeOp::Mul | EdgeOp::Div => Messages { lhs: gradient, ..messages },
            EdgeOp::Dot => self.dot_gradient(messages.rhs.unwrap_or(messages.lhs)),
            _ => Messages { op: EdgeOp::CopyLhs, lhs: gradient, rhs: None, per_head: false, ..messages },
        };
        Ok(collect(self.edges, messages.lhs.at, &message)?.into_tensor(shape))
    }

    /// Gradient of `rhs`, whose values are `operand`.
    pub(crate) fn of_rhs(&self, operand: &Tensor) -> Result<Tensor> {
        let (messages, gradient) = (self.messages, self.gradient);
        let at = messages.rhs.map_or(Endpoint::Edge, |rhs| rhs.at);
        let message = match messages.op {
            EdgeOp::Mul | EdgeOp::Div => {
                Messages { op: EdgeOp::Mul, lhs: gradient, rhs: Some(messages.lhs), per_head: false, ..messages }
            }
            EdgeOp::Dot => self.dot_gradient(messages.lhs),
            _ => Messages { op: EdgeOp::CopyLhs, lhs: gradient, rhs: None, per_head: false, ..messages },
        };
        // One value for each head is of an edge, and collects over the head's columns.
        let collected =
            if messages.per_head { edge_rows(self.edges, &message, true)? } else { collect(self.edges, at, &message)? };
        let collected = collected.into_tensor(operand.shape());
        match messages.op {
            EdgeOp::Sub => collected.neg(),
            EdgeOp::Div => (collected / operand.sqr()?)?.neg(),
            _ => Ok(collected),
        }
    }

    /// The other operand times the gradient of each head.
    fn dot_gradient(&self, other: Operand<'a>) -> Messages<'a> {
        Messages { op: EdgeOp::Mul, lhs: other, rhs: Some(self.gradient), per_head: true, ..self.messages }
    }
}
