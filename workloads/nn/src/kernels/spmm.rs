//! g-SpMM: messages along the edges, reduced into every target, without storing a message (DGL's `gspmm`).
//!
//! `z_v = reduce over the edges (u, e, v) of op(x_u, y_e)`. Gradients: that of a sum goes back by the same kernel over
//! the reversed edges, or, to an edge operand, by g-SDDMM; that of a maximum or minimum goes to the first edge that
//! holds it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::{CpuStorage, CudaStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor, bail};

use super::Stored;
use super::gradient::{Backward, collect, inverse_degrees};
use super::message::{ExtremeGradient, Messages, NOBODY, Rows, extreme_rows, sum_rows};
use super::tensors::{
    check_rows, number_type, shape_of, slice, storage_of, tensor_of, trailing, with_slice, with_stored,
};
use crate::cuda::{self, Edges, Memory, SavedTensor, View};
use gnntop_data::graph::{Adjacency, Columns, Direction, EdgeOp, Endpoint, Extreme, Reduce};

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
    let operation = ReduceCopies { adjacency: Arc::clone(adjacency), reduce, at, total, holders: Holders::default() };
    rows.contiguous()?.apply_op1(operation)
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
    let adjacency = Arc::clone(adjacency);
    let operation = ReduceMessages { adjacency, op, reduce, columns, per_head, holders: Holders::default() };
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

/// The edges that hold the extrema, `[targets, columns]`; written by the forward pass.
#[derive(Debug, Default)]
struct Holders {
    on_host: Mutex<Vec<u32>>,
    on_device: SavedTensor,
}

impl Holders {
    /// Locks even after a panic: the numbers are only ever replaced as a whole.
    fn lock(&self) -> MutexGuard<'_, Vec<u32>> {
        self.on_host.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reduced messages, `[targets, columns]`.
fn reduced<T: Stored>(adjacency: &Adjacency, reduce: Reduce, messages: &Messages<'_, T>, holders: &Holders) -> Vec<T> {
    let mut out = vec![T::default(); adjacency.nodes() * messages.columns.total()];
    let extreme = match reduce {
        Reduce::Sum | Reduce::Mean => {
            sum_rows(adjacency, Direction::Incoming, messages, reduce == Reduce::Mean, &mut out);
            return out;
        }
        Reduce::Max => Extreme::Max,
        Reduce::Min => Extreme::Min,
    };
    let mut found = vec![NOBODY; out.len()];
    extreme_rows(adjacency, messages, extreme, &mut out, &mut found);
    *holders.lock() = found;
    out
}

/// The factors with which a mean passes its gradient on; nothing for the others.
fn scale_of<T: Stored>(adjacency: &Adjacency, reduce: Reduce) -> Option<Vec<T::Wide>> {
    (reduce == Reduce::Mean).then(|| inverse_degrees::<T>(adjacency))
}

fn is_extreme(reduce: Reduce) -> bool {
    matches!(reduce, Reduce::Max | Reduce::Min)
}

/// [`reduced`] on a GPU.
fn reduced_on_device(
    edges: &Edges,
    reduce: Reduce,
    messages: &cuda::Messages<'_>,
    holders: &Holders,
) -> Result<Memory> {
    let extreme = match reduce {
        Reduce::Sum | Reduce::Mean => {
            return cuda::sum_rows(edges, Direction::Incoming, messages, reduce == Reduce::Mean);
        }
        Reduce::Max => Extreme::Max,
        Reduce::Min => Extreme::Min,
    };
    let (out, found) = cuda::extreme_rows(edges, messages, extreme)?;
    holders.on_device.set(found.into_tensor(edges.targets_times(messages.columns.total())));
    Ok(out)
}

/// The factors of a mean and the holders of an extremum, which a gradient needs on a GPU.
struct SavedOnDevice {
    scale: Option<Tensor>,
    holders: Option<Tensor>,
}

impl SavedOnDevice {
    fn of(edges: &Edges, reduce: Reduce, holders: &Holders, like: &Tensor) -> Result<Self> {
        let scale = (reduce == Reduce::Mean).then(|| edges.inverse_degrees(like.dtype())).transpose()?;
        Ok(Self { scale, holders: is_extreme(reduce).then(|| holders.on_device.get()).transpose()? })
    }

    fn views(&self) -> Result<(Option<View<'_>>, Option<View<'_>>)> {
        Ok((self.scale.as_ref().map(View::of).transpose()?, self.holders.as_ref().map(View::of).transpose()?))
    }
}

struct ReduceCopies {
    adjacency: Arc<Adjacency>,
    reduce: Reduce,
    at: Endpoint,
    total: usize,
    holders: Holders,
}

impl ReduceCopies {
    fn forward<T: Stored>(&self, rows: &[T]) -> CpuStorage {
        let messages = Messages::copies(self.total, rows, self.at);
        storage_of(reduced(&self.adjacency, self.reduce, &messages, &self.holders))
    }

    fn backward<T: Stored>(&self, rows: &Tensor, gradient: &[T]) -> Result<Tensor> {
        let adjacency = &*self.adjacency;
        let out = if is_extreme(self.reduce) {
            let messages = &Messages::copies(self.total, &[], self.at);
            let holders = self.holders.lock();
            let held = ExtremeGradient { adjacency, messages, holders: &holders, gradient };
            if self.at == Endpoint::Edge { held.of_edges() } else { held.of_sources() }
        } else {
            let scale = scale_of::<T>(adjacency, self.reduce);
            let copies = Messages::copies(self.total, gradient, Endpoint::Destination);
            collect(adjacency, self.at, &Messages { scale: scale.as_deref(), ..copies })
        };
        tensor_of(out, rows.shape().clone(), rows)
    }
}

/// The same on a GPU.
impl ReduceCopies {
    fn forward_on_device(&self, edges: &Edges, rows: View<'_>) -> Result<Memory> {
        let messages = cuda::Messages::copies(self.total, cuda::Operand { rows, at: self.at });
        reduced_on_device(edges, self.reduce, &messages, &self.holders)
    }

    fn backward_on_device(&self, rows: &Tensor, gradient: &Tensor) -> Result<Tensor> {
        let edges = Edges::of(&self.adjacency, rows.device())?;
        let saved = SavedOnDevice::of(&edges, self.reduce, &self.holders, rows)?;
        cuda::of_copies(&edges, self.at, self.total, View::of(gradient)?, saved.views()?, rows.shape())
    }
}

impl CustomOp1 for ReduceCopies {
    fn name(&self) -> &'static str {
        "spmm-copy"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let out = with_stored!(number_type(storage), |T| self.forward::<T>(slice(storage, layout)?));
        Ok((out, shape_of(self.adjacency.nodes(), &layout.dims()[1..])))
    }

    fn cuda_fwd(&self, storage: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        let edges = Edges::of_storage(&self.adjacency, storage)?;
        let out = self.forward_on_device(&edges, View::of_storage(storage, layout)?)?;
        out.into_storage(shape_of(self.adjacency.nodes(), &layout.dims()[1..]))
    }

    fn bwd(&self, rows: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        if rows.device().is_cuda() {
            return self.backward_on_device(rows, &gradient.contiguous()?).map(Some);
        }
        with_stored!(rows.dtype(), |T| with_slice::<T, _>(gradient, |gradient| self.backward(rows, gradient))).map(Some)
    }
}

struct ReduceMessages {
    adjacency: Arc<Adjacency>,
    op: EdgeOp,
    reduce: Reduce,
    columns: Columns,
    per_head: bool,
    holders: Holders,
}

impl ReduceMessages {
    fn messages<'a, T: Stored>(&self, lhs: &'a [T], rhs: &'a [T]) -> Messages<'a, T> {
        Messages {
            op: self.op,
            columns: self.columns,
            lhs: Rows { data: lhs, at: Endpoint::Source },
            rhs: Rows { data: rhs, at: Endpoint::Edge },
            per_head: self.per_head,
            scale: None,
        }
    }

    fn forward<T: Stored>(&self, lhs: &[T], rhs: &[T]) -> CpuStorage {
        storage_of(reduced(&self.adjacency, self.reduce, &self.messages(lhs, rhs), &self.holders))
    }

    /// Gradients of those operands that lead to a variable.
    fn backward<T: Stored>(&self, lhs: &Tensor, rhs: &Tensor, gradient: &[T]) -> Result<[Option<Tensor>; 2]> {
        let (of_lhs, of_rhs) = with_slice::<T, _>(lhs, |left| {
            with_slice::<T, _>(rhs, |right| {
                let messages = self.messages(left, right);
                Ok(self.gradients(&messages, gradient, [lhs.track_op(), rhs.track_op()]))
            })
        })?;
        let tensor = |data: Option<Vec<T>>, like: &Tensor| {
            data.map(|data| tensor_of(data, like.shape().clone(), like)).transpose()
        };
        Ok([tensor(of_lhs, lhs)?, tensor(of_rhs, rhs)?])
    }

    fn gradients<T: Stored>(
        &self,
        messages: &Messages<'_, T>,
        gradient: &[T],
        [of_lhs, of_rhs]: [bool; 2],
    ) -> (Option<Vec<T>>, Option<Vec<T>>) {
        let adjacency = &*self.adjacency;
        if is_extreme(self.reduce) {
            let holders = self.holders.lock();
            let held = ExtremeGradient { adjacency, messages, holders: &holders, gradient };
            return (of_lhs.then(|| held.of_sources()), of_rhs.then(|| held.of_edges()));
        }
        let scale = scale_of::<T>(adjacency, self.reduce);
        let messages = Messages { scale: scale.as_deref(), ..*messages };
        let gradient = Rows { data: gradient, at: Endpoint::Destination };
        let backward = Backward { adjacency, messages, gradient };
        (of_lhs.then(|| backward.of_lhs()), of_rhs.then(|| backward.of_rhs()))
    }
}

/// The same on a GPU.
impl ReduceMessages {
    fn messages_on_device<'a>(&self, lhs: View<'a>, rhs: View<'a>) -> cuda::Messages<'a> {
        cuda::Messages {
            op: self.op,
            columns: self.columns,
            lhs: cuda::Operand { rows: lhs, at: Endpoint::Source },
            rhs: Some(cuda::Operand { rows: rhs, at: Endpoint::Edge }),
            per_head: self.per_head,
            scale: None,
            holders: None,
        }
    }

    fn forward_on_device(&self, edges: &Edges, lhs: View<'_>, rhs: View<'_>) -> Result<Memory> {
        reduced_on_device(edges, self.reduce, &self.messages_on_device(lhs, rhs), &self.holders)
    }

    /// Gradients of those operands that lead to a variable.
    fn backward_on_device(
        &self,
        lhs: &Tensor,
        rhs: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let edges = Edges::of(&self.adjacency, lhs.device())?;
        let saved = SavedOnDevice::of(&edges, self.reduce, &self.holders, lhs)?;
        let (scale, holders) = saved.views()?;
        let scale = scale.map(|rows| cuda::Operand { rows, at: Endpoint::Destination });
        let messages = cuda::Messages { scale, holders, ..self.messages_on_device(View::of(lhs)?, View::of(rhs)?) };
        let gradient = cuda::Operand { rows: View::of(gradient)?, at: Endpoint::Destination };
        let backward = cuda::Backward { edges: &edges, messages, gradient };
        let of_lhs = lhs.track_op().then(|| backward.of_lhs(lhs.shape())).transpose()?;
        Ok((of_lhs, rhs.track_op().then(|| backward.of_rhs(rhs)).transpose()?))
    }
}

impl CustomOp2 for ReduceMessages {
    fn name(&self) -> &'static str {
        "spmm"
    }

    fn cpu_fwd(
        &self,
        lhs: &CpuStorage,
        left: &Layout,
        rhs: &CpuStorage,
        right: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let out = with_stored!(number_type(lhs), |T| self.forward::<T>(slice(lhs, left)?, slice(rhs, right)?));
        Ok((out, shape_of(self.adjacency.nodes(), &left.dims()[1..])))
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
        out.into_storage(shape_of(self.adjacency.nodes(), &left.dims()[1..]))
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
