//! g-SDDMM: one row for every edge from the rows at its ends (DGL's `gsddmm`), in parallel over the edges.

use std::sync::Arc;

use candle_core::{Result, Tensor, bail};

use super::operation::{EdgeOperation, Holders};
use super::tensors::{check_rows, trailing};
use gnntop_data::graph::{Adjacency, Columns, EdgeOp, Endpoint};

/// An operand of [`sddmm`]: rows, and whose they are.
#[derive(Debug, Clone, Copy)]
pub struct Operand<'a> {
    /// `[count, F]` or `[count, heads, F]`, contiguous or not.
    pub rows: &'a Tensor,
    /// Whether `count` is that of the sources, the targets or the edges.
    pub at: Endpoint,
}

impl<'a> Operand<'a> {
    /// Rows of the source nodes.
    #[must_use]
    pub fn source(rows: &'a Tensor) -> Self {
        Self { rows, at: Endpoint::Source }
    }

    /// Rows of the target nodes.
    #[must_use]
    pub fn destination(rows: &'a Tensor) -> Self {
        Self { rows, at: Endpoint::Destination }
    }

    /// Rows of the edges, in the order of [`Adjacency::sources`].
    #[must_use]
    pub fn edge(rows: &'a Tensor) -> Self {
        Self { rows, at: Endpoint::Edge }
    }
}

/// `op(lhs, rhs)` for every edge: `[edges, F]` or `[edges, heads, F]`. [`EdgeOp::Dot`] sums over the last dimension:
/// `[edges, 1]` for rows without heads, `[edges, heads]` for rows with them. [`EdgeOp::CopyLhs`] takes no `rhs`.
///
/// # Errors
/// An operand is missing or one too many, `op` is [`EdgeOp::CopyRhs`] (give the operand as `lhs`), shapes or number
/// types differ or do not fit, or a tensor is not in host memory.
pub fn sddmm(adjacency: &Arc<Adjacency>, op: EdgeOp, lhs: Operand<'_>, rhs: Option<Operand<'_>>) -> Result<Tensor> {
    check_rows(adjacency, lhs.rows, lhs.at, "lhs of sddmm")?;
    let rhs = match (op, rhs) {
        (EdgeOp::CopyLhs, None) => return copy_to_edges(adjacency, lhs),
        (EdgeOp::CopyLhs, Some(_)) => bail!("sddmm: CopyLhs takes no rhs"),
        (EdgeOp::CopyRhs, _) => bail!("sddmm: give the operand to copy as lhs, with CopyLhs"),
        (_, None) => bail!("sddmm: {op:?} takes lhs and rhs"),
        (_, Some(rhs)) => rhs,
    };
    check_rows(adjacency, rhs.rows, rhs.at, "rhs of sddmm")?;
    if trailing(lhs.rows) != trailing(rhs.rows) || lhs.rows.dtype() != rhs.rows.dtype() {
        let [left, right] = [lhs.rows, rhs.rows].map(|rows| (rows.dims(), rows.dtype()));
        bail!("sddmm: rows of lhs {left:?} and rhs {right:?} must have the same shape and number type");
    }
    let columns = match (op, trailing(lhs.rows)) {
        (EdgeOp::Dot, [heads @ .., width]) => Columns { heads: heads.iter().product(), width: *width },
        (EdgeOp::Dot, []) => Columns::flat(1),
        (_, trailing) => Columns::flat(trailing.iter().product()),
    };
    let operation = EdgeOperation {
        adjacency: Arc::clone(adjacency),
        op,
        columns,
        lhs: lhs.at,
        rhs: rhs.at,
        per_head: false,
        reduce: None,
        holders: Holders::default(),
    };
    lhs.rows.contiguous()?.apply_op2(&rhs.rows.contiguous()?, operation)
}

fn copy_to_edges(adjacency: &Arc<Adjacency>, operand: Operand<'_>) -> Result<Tensor> {
    if operand.at == Endpoint::Edge {
        return Ok(operand.rows.clone());
    }
    let total = trailing(operand.rows).iter().product();
    operand.rows.contiguous()?.apply_op1(EdgeOperation::copies(adjacency, operand.at, total, None))
}

#[cfg(test)]
mod tests;
