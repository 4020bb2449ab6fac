//! g-SDDMM: one row for every edge from the rows at its ends (DGL's `gsddmm`), in parallel over the edges.

use std::sync::Arc;

use candle_core::{CpuStorage, CudaStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor, bail};

use super::Stored;
use super::gradient::{Backward, collect};
use super::message::{Messages, Rows, edge_rows};
use super::tensors::{
    check_rows, number_type, shape_of, slice, storage_of, tensor_of, trailing, with_slice, with_stored,
};
use crate::cuda::{self, Edges, Memory, View};
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
    let operation = EdgeMessages { adjacency: Arc::clone(adjacency), op, columns, lhs: lhs.at, rhs: rhs.at };
    lhs.rows.contiguous()?.apply_op2(&rhs.rows.contiguous()?, operation)
}

fn copy_to_edges(adjacency: &Arc<Adjacency>, operand: Operand<'_>) -> Result<Tensor> {
    if operand.at == Endpoint::Edge {
        return Ok(operand.rows.clone());
    }
    let total = trailing(operand.rows).iter().product();
    let operation = CopyToEdges { adjacency: Arc::clone(adjacency), at: operand.at, total };
    operand.rows.contiguous()?.apply_op1(operation)
}

struct CopyToEdges {
    adjacency: Arc<Adjacency>,
    at: Endpoint,
    total: usize,
}

impl CopyToEdges {
    fn forward<T: Stored>(&self, rows: &[T]) -> CpuStorage {
        let messages = Messages::copies(self.total, rows, self.at);
        storage_of(collect(&self.adjacency, Endpoint::Edge, &messages))
    }

    fn backward<T: Stored>(&self, rows: &Tensor, gradient: &[T]) -> Result<Tensor> {
        let messages = Messages::copies(self.total, gradient, Endpoint::Edge);
        tensor_of(collect(&self.adjacency, self.at, &messages), rows.shape().clone(), rows)
    }
}

/// The same on a GPU.
impl CopyToEdges {
    fn forward_on_device(&self, edges: &Edges, rows: View<'_>) -> Result<Memory> {
        cuda::edge_rows(edges, &cuda::Messages::copies(self.total, cuda::Operand { rows, at: self.at }), false)
    }

    fn backward_on_device(&self, rows: &Tensor, gradient: &Tensor) -> Result<Tensor> {
        let edges = Edges::of(&self.adjacency, rows.device())?;
        let messages =
            cuda::Messages::copies(self.total, cuda::Operand { rows: View::of(gradient)?, at: Endpoint::Edge });
        Ok(cuda::collect(&edges, self.at, &messages)?.into_tensor(rows.shape()))
    }
}

impl CustomOp1 for CopyToEdges {
    fn name(&self) -> &'static str {
        "gather"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let out = with_stored!(number_type(storage), |T| self.forward::<T>(slice(storage, layout)?));
        Ok((out, shape_of(self.adjacency.edges(), &layout.dims()[1..])))
    }

    fn cuda_fwd(&self, storage: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        let edges = Edges::of_storage(&self.adjacency, storage)?;
        let out = self.forward_on_device(&edges, View::of_storage(storage, layout)?)?;
        out.into_storage(shape_of(self.adjacency.edges(), &layout.dims()[1..]))
    }

    fn bwd(&self, rows: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        if rows.device().is_cuda() {
            return self.backward_on_device(rows, &gradient.contiguous()?).map(Some);
        }
        with_stored!(rows.dtype(), |T| with_slice::<T, _>(gradient, |gradient| self.backward(rows, gradient))).map(Some)
    }
}

struct EdgeMessages {
    adjacency: Arc<Adjacency>,
    op: EdgeOp,
    columns: Columns,
    lhs: Endpoint,
    rhs: Endpoint,
}

impl EdgeMessages {
    fn messages<'a, T: Stored>(&self, lhs: &'a [T], rhs: &'a [T]) -> Messages<'a, T> {
        let (lhs, rhs) = (Rows { data: lhs, at: self.lhs }, Rows { data: rhs, at: self.rhs });
        Messages { op: self.op, columns: self.columns, lhs, rhs, per_head: false, scale: None }
    }

    fn forward<T: Stored>(&self, lhs: &[T], rhs: &[T]) -> CpuStorage {
        let width = if self.op == EdgeOp::Dot { self.columns.heads } else { self.columns.total() };
        let mut out = vec![T::default(); self.adjacency.edges() * width];
        edge_rows(&self.adjacency, &self.messages(lhs, rhs), &mut out);
        storage_of(out)
    }

    fn backward<T: Stored>(&self, lhs: &Tensor, rhs: &Tensor, gradient: &[T]) -> Result<[Option<Tensor>; 2]> {
        let (of_lhs, of_rhs) = with_slice::<T, _>(lhs, |left| {
            with_slice::<T, _>(rhs, |right| {
                let (messages, gradient) = (self.messages(left, right), Rows { data: gradient, at: Endpoint::Edge });
                let backward = Backward { adjacency: &self.adjacency, messages, gradient };
                let of_lhs = lhs.track_op().then(|| backward.of_lhs());
                Ok((of_lhs, rhs.track_op().then(|| backward.of_rhs())))
            })
        })?;
        let tensor = |data: Option<Vec<T>>, like: &Tensor| {
            data.map(|data| tensor_of(data, like.shape().clone(), like)).transpose()
        };
        Ok([tensor(of_lhs, lhs)?, tensor(of_rhs, rhs)?])
    }

    fn shape(&self, trailing: &[usize]) -> Shape {
        let edges = self.adjacency.edges();
        match (self.op, trailing) {
            (EdgeOp::Dot, [] | [_]) => shape_of(edges, &[1]),
            (EdgeOp::Dot, [heads @ .., _]) => shape_of(edges, heads),
            _ => shape_of(edges, trailing),
        }
    }
}

/// The same on a GPU.
impl EdgeMessages {
    fn messages_on_device<'a>(&self, lhs: View<'a>, rhs: View<'a>) -> cuda::Messages<'a> {
        cuda::Messages {
            op: self.op,
            columns: self.columns,
            lhs: cuda::Operand { rows: lhs, at: self.lhs },
            rhs: Some(cuda::Operand { rows: rhs, at: self.rhs }),
            per_head: false,
            scale: None,
            holders: None,
        }
    }

    fn forward_on_device(&self, edges: &Edges, lhs: View<'_>, rhs: View<'_>) -> Result<Memory> {
        cuda::edge_rows(edges, &self.messages_on_device(lhs, rhs), self.op == EdgeOp::Dot)
    }

    /// Gradients of those operands that lead to a variable.
    fn backward_on_device(
        &self,
        lhs: &Tensor,
        rhs: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let edges = Edges::of(&self.adjacency, lhs.device())?;
        let messages = self.messages_on_device(View::of(lhs)?, View::of(rhs)?);
        let gradient = cuda::Operand { rows: View::of(gradient)?, at: Endpoint::Edge };
        let backward = cuda::Backward { edges: &edges, messages, gradient };
        let of_lhs = lhs.track_op().then(|| backward.of_lhs(lhs.shape())).transpose()?;
        Ok((of_lhs, rhs.track_op().then(|| backward.of_rhs(rhs)).transpose()?))
    }
}

impl CustomOp2 for EdgeMessages {
    fn name(&self) -> &'static str {
        "sddmm"
    }

    fn cpu_fwd(
        &self,
        lhs: &CpuStorage,
        left: &Layout,
        rhs: &CpuStorage,
        right: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let out = with_stored!(number_type(lhs), |T| self.forward::<T>(slice(lhs, left)?, slice(rhs, right)?));
        Ok((out, self.shape(&left.dims()[1..])))
    }

    fn cuda_fwd(
        &self,
        lhs: &CudaStorage,
        left: &Layout,
        rhs: &CudaStorage,
        right: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let edges = Edges::of_storage(&self.adjacency, lhs)?;
        let out = self.forward_on_device(&edges, View::of_storage(lhs, left)?, View::of_storage(rhs, right)?)?;
        out.into_storage(self.shape(&left.dims()[1..]))
    }

    fn bwd(
        &self,
        lhs: &Tensor,
        rhs: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        if lhs.device().is_cuda() {
            return self.backward_on_device(lhs, rhs, &gradient.contiguous()?);
        }
        let backward = |gradient: &Tensor| {
            with_stored!(lhs.dtype(), |T| with_slice::<T, _>(gradient, |data| self.backward(lhs, rhs, data)))
        };
        backward(gradient).map(|[lhs, rhs]| (lhs, rhs))
    }
}

#[cfg(test)]
mod tests;
