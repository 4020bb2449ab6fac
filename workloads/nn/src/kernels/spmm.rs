//! g-SpMM: messages along the edges, reduced into every target, without storing a message (DGL's `gspmm`).
//!
//! `z_v = reduce over the edges (u, e, v) of op(x_u, y_e)`. Gradients: that of a sum goes back by the same kernel over
//! the reversed edges, or, to an edge operand, by g-SDDMM; that of a maximum or minimum goes to the first edge that
//! holds it.

use std::sync::Arc;

use candle_core::{Result, Tensor, bail};

use super::operation::{EdgeOperation, Holders};
use super::tensors::{check_rows, trailing};
use gnntop_data::graph::{Adjacency, Columns, EdgeOp, Endpoint, Reduce};

/// Reduces `op(lhs, rhs)` over the edges into every target, to `[targets, F]` or `[targets, heads, F]`. A target
/// without edges gets 0.
///
/// `lhs` holds a row for each source, `[sources, F]` or `[sources, heads, F]`. `rhs` holds a row for each edge, in the
/// order of [`Adjacency::sources`]: as wide as those of `lhs`, or one value for each edge and head (`[edges, 1]` or
/// `[edges]`; `[edges, heads, 1]` or `[edges, heads]`). [`EdgeOp::CopyLhs`] takes no `rhs`, [`EdgeOp::CopyRhs`] no
/// `lhs`.
///
/// # Errors
/// An operand is missing or one too many, `op` is [`EdgeOp::Dot`], a shape does not fit, number types differ or are no
/// float, or a tensor is not in host memory.
pub fn spmm(
    adjacency: &Arc<Adjacency>,
    op: EdgeOp,
    reduce: Reduce,
    lhs: Option<&Tensor>,
    rhs: Option<&Tensor>,
) -> Result<Tensor> {
    match (op, lhs, rhs) {
        (EdgeOp::CopyLhs, Some(lhs), None) => reduce_copies(adjacency, reduce, lhs, Endpoint::Source),
        (EdgeOp::CopyRhs, None, Some(rhs)) => reduce_copies(adjacency, reduce, rhs, Endpoint::Edge),
        (EdgeOp::Add | EdgeOp::Sub | EdgeOp::Mul | EdgeOp::Div, Some(lhs), Some(rhs)) => {
            reduce_messages(adjacency, op, reduce, lhs, rhs)
        }
        (EdgeOp::Dot, ..) => bail!("spmm: Dot is an operator of sddmm; spmm takes the others"),
        _ => {
            bail!("spmm: {op:?} got other operands than it takes; CopyLhs takes only lhs, CopyRhs only rhs")
        }
    }
}

/// Reduces rows of the sources or of the edges.
pub(super) fn reduce_copies(adjacency: &Arc<Adjacency>, reduce: Reduce, rows: &Tensor, at: Endpoint) -> Result<Tensor> {
    check_rows(adjacency, rows, at, "the operand of spmm")?;
    let total = trailing(rows).iter().product();
    rows.contiguous()?.apply_op1(EdgeOperation::copies(adjacency, at, total, Some(reduce)))
}

fn reduce_messages(
    adjacency: &Arc<Adjacency>,
    op: EdgeOp,
    reduce: Reduce,
    lhs: &Tensor,
    rhs: &Tensor,
) -> Result<Tensor> {
    check_rows(adjacency, lhs, Endpoint::Source, "lhs of spmm")?;
    check_rows(adjacency, rhs, Endpoint::Edge, "rhs of spmm")?;
    if lhs.dtype() != rhs.dtype() {
        bail!("spmm: lhs is {:?} and rhs {:?}; convert one of them", lhs.dtype(), rhs.dtype());
    }
    let (columns, per_head) = broadcast(lhs, rhs)?;
    let operation = EdgeOperation {
        adjacency: Arc::clone(adjacency),
        op,
        columns,
        lhs: Endpoint::Source,
        rhs: Endpoint::Edge,
        per_head,
        reduce: Some(reduce),
        holders: Holders::default(),
    };
    lhs.contiguous()?.apply_op2(&rhs.contiguous()?, operation)
}

/// The columns of the messages, and whether `rhs` has one value for each head.
fn broadcast(lhs: &Tensor, rhs: &Tensor) -> Result<(Columns, bool)> {
    let (left, right) = (trailing(lhs), trailing(rhs));
    if left == right {
        return Ok((Columns::flat(left.iter().product()), false));
    }
    if let Some((&width, heads)) = left.split_last() {
        let one_each = right == heads || right.split_last() == Some((&1, heads));
        if one_each {
            return Ok((Columns { heads: heads.iter().product(), width }, true));
        }
    }
    bail!("spmm: rhs {:?} is neither as wide as lhs {:?} nor one value for each edge and head", rhs.dims(), lhs.dims())
}

#[cfg(test)]
mod tests;
