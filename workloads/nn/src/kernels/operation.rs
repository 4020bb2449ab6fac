//! The candle operation of both kinds of kernel: messages along the edges, stored one by one (g-SDDMM) or reduced into
//! their targets (g-SpMM), from one operand or two, with exact gradients, on the CPU and on a GPU.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::{CpuStorage, CudaStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor};

use super::Stored;
use super::gradient::{Backward, collect, inverse_degrees};
use super::message::{ExtremeGradient, Messages, NOBODY, Rows, extreme_rows, sum_rows};
use super::tensors::{number_type, shape_of, slice, storage_of, tensor_of, with_slice, with_stored};
use crate::cuda::{self, Edges, Memory, SavedTensor, View};
use gnntop_data::graph::{Adjacency, Columns, Direction, EdgeOp, Endpoint, Extreme, Reduce};

/// Messages, and what becomes of them.
pub(super) struct EdgeOperation {
    pub(super) adjacency: Arc<Adjacency>,
    /// How the operands are combined; [`EdgeOp::CopyLhs`] for one operand.
    pub(super) op: EdgeOp,
    pub(super) columns: Columns,
    /// Whose rows the operands are.
    pub(super) lhs: Endpoint,
    pub(super) rhs: Endpoint,
    /// Whether `rhs` has one value for all columns of a head.
    pub(super) per_head: bool,
    /// How the messages into a target are reduced; they are stored for each edge without.
    pub(super) reduce: Option<Reduce>,
    pub(super) holders: Holders,
}

/// The edges that hold the extrema, `[targets, columns]`; written by the forward pass.
#[derive(Debug, Default)]
pub(super) struct Holders {
    on_host: Mutex<Vec<u32>>,
    on_device: SavedTensor,
}

impl Holders {
    /// Locks even after a panic: the numbers are only ever replaced as a whole.
    fn lock(&self) -> MutexGuard<'_, Vec<u32>> {
        self.on_host.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EdgeOperation {
    /// The rows of one operand as messages.
    pub(super) fn copies(adjacency: &Arc<Adjacency>, at: Endpoint, total: usize, reduce: Option<Reduce>) -> Self {
        Self {
            adjacency: Arc::clone(adjacency),
            op: EdgeOp::CopyLhs,
            columns: Columns::flat(total),
            lhs: at,
            rhs: at,
            per_head: false,
            reduce,
            holders: Holders::default(),
        }
    }

    /// Whose rows the result has.
    fn end(&self) -> Endpoint {
        if self.reduce.is_some() { Endpoint::Destination } else { Endpoint::Edge }
    }

    /// The extremum that the messages are reduced to, if it is one.
    fn extreme(&self) -> Option<Extreme> {
        match self.reduce {
            Some(Reduce::Max) => Some(Extreme::Max),
            Some(Reduce::Min) => Some(Extreme::Min),
            _ => None,
        }
    }

    fn is_mean(&self) -> bool {
        self.reduce == Some(Reduce::Mean)
    }

    /// The shape of the result, from that of `lhs`.
    fn shape(&self, lhs: &Layout) -> Shape {
        let (rows, trailing) = (self.end().rows(&self.adjacency), &lhs.dims()[1..]);
        match (self.op, trailing) {
            (EdgeOp::Dot, [] | [_]) => shape_of(rows, &[1]),
            (EdgeOp::Dot, [heads @ .., _]) => shape_of(rows, heads),
            _ => shape_of(rows, trailing),
        }
    }
}

/// On the CPU.
impl EdgeOperation {
    fn messages<'a, T: Stored>(&self, lhs: &'a [T], rhs: &'a [T]) -> Messages<'a, T> {
        let (lhs, rhs) = (Rows::new(lhs, self.lhs), Rows::new(rhs, self.rhs));
        Messages { op: self.op, columns: self.columns, lhs, rhs, per_head: self.per_head, scale: None }
    }

    fn forward<T: Stored>(&self, lhs: &[T], rhs: &[T]) -> CpuStorage {
        let (adjacency, messages) = (&*self.adjacency, self.messages(lhs, rhs));
        if self.reduce.is_none() {
            return storage_of(collect(adjacency, Endpoint::Edge, &messages));
        }
        let mut out = vec![T::default(); adjacency.nodes() * self.columns.total()];
        match self.extreme() {
            Some(extreme) => {
                let mut found = vec![NOBODY; out.len()];
                extreme_rows(adjacency, &messages, extreme, &mut out, &mut found);
                *self.holders.lock() = found;
            }
            None => sum_rows(adjacency, Direction::Incoming, &messages, self.is_mean(), &mut out),
        }
        storage_of(out)
    }

    /// Gradients of those operands that are asked for.
    fn gradients<T: Stored>(
        &self,
        messages: &Messages<'_, T>,
        gradient: &[T],
        [of_lhs, of_rhs]: [bool; 2],
    ) -> [Option<Vec<T>>; 2] {
        let adjacency = &*self.adjacency;
        if self.extreme().is_some() {
            let holders = self.holders.lock();
            let held = ExtremeGradient { adjacency, messages, holders: &holders, gradient };
            let of = |at: Endpoint| if at == Endpoint::Edge { held.of_edges() } else { held.of_sources() };
            return [of_lhs.then(|| of(self.lhs)), of_rhs.then(|| of(self.rhs))];
        }
        // The factors with which a mean passes its gradient on.
        let scale = self.is_mean().then(|| inverse_degrees::<T>(adjacency));
        let messages = Messages { scale: scale.as_deref(), ..*messages };
        let backward = Backward { adjacency, messages, gradient: Rows::new(gradient, self.end()) };
        [of_lhs.then(|| backward.of_lhs()), of_rhs.then(|| backward.of_rhs())]
    }

    fn backward<T: Stored>(&self, lhs: &Tensor, rhs: &Tensor, gradient: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let wanted = [lhs.track_op(), rhs.track_op()];
        let [of_lhs, of_rhs] = with_slice::<T, _>(lhs, |left| {
            with_slice::<T, _>(rhs, |right| {
                with_slice(gradient, |gradient| Ok(self.gradients(&self.messages(left, right), gradient, wanted)))
            })
        })?;
        let tensor = |data: Option<Vec<T>>, like: &Tensor| {
            data.map(|data| tensor_of(data, like.shape().clone(), like)).transpose()
        };
        Ok([tensor(of_lhs, lhs)?, tensor(of_rhs, rhs)?])
    }
}

/// On a GPU.
impl EdgeOperation {
    fn messages_on_device<'a>(&self, lhs: View<'a>, rhs: Option<View<'a>>) -> cuda::Messages<'a> {
        cuda::Messages {
            op: self.op,
            columns: self.columns,
            lhs: cuda::Operand { rows: lhs, at: self.lhs },
            rhs: rhs.map(|rows| cuda::Operand { rows, at: self.rhs }),
            per_head: self.per_head,
            scale: None,
            holders: None,
        }
    }

    pub(super) fn forward_on_device(&self, edges: &Edges, lhs: View<'_>, rhs: Option<View<'_>>) -> Result<Memory> {
        let messages = self.messages_on_device(lhs, rhs);
        if self.reduce.is_none() {
            return cuda::edge_rows(edges, &messages, self.op == EdgeOp::Dot);
        }
        let Some(extreme) = self.extreme() else {
            return cuda::sum_rows(edges, Direction::Incoming, &messages, self.is_mean());
        };
        let (out, found) = cuda::extreme_rows(edges, &messages, extreme)?;
        self.holders.on_device.set(found.into_tensor(edges.targets_times(self.columns.total())));
        Ok(out)
    }

    /// Gradients of those operands that lead to a variable.
    pub(super) fn backward_on_device(
        &self,
        lhs: &Tensor,
        rhs: Option<&Tensor>,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let edges = Edges::new(&self.adjacency, lhs.device())?;
        let scale = self.is_mean().then(|| edges.inverse_degrees(lhs.dtype())).transpose()?;
        let scale = scale.as_ref().map(View::new).transpose()?;
        let holders = self.extreme().map(|_| self.holders.on_device.get()).transpose()?;
        let messages = cuda::Messages {
            scale: scale.map(|rows| cuda::Operand { rows, at: Endpoint::Destination }),
            holders: holders.as_ref().map(View::new).transpose()?,
            ..self.messages_on_device(View::new(lhs)?, rhs.map(View::new).transpose()?)
        };
        let gradient = gradient.contiguous()?;
        let gradient = cuda::Operand { rows: View::new(&gradient)?, at: self.end() };
        let backward = cuda::Backward { edges: &edges, messages, gradient };
        let of_lhs = lhs.track_op().then(|| backward.of_lhs(lhs.shape())).transpose()?;
        let of_rhs = rhs.filter(|rhs| rhs.track_op()).map(|rhs| backward.of_rhs(rhs)).transpose()?;
        Ok((of_lhs, of_rhs))
    }
}

impl CustomOp1 for EdgeOperation {
    fn name(&self) -> &'static str {
        if self.reduce.is_some() { "spmm-copy" } else { "gather" }
    }

    fn cpu_fwd(&self, rows: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let out = with_stored!(number_type(rows), |T| self.forward::<T>(slice(rows, layout)?, &[]));
        Ok((out, self.shape(layout)))
    }

    fn cuda_fwd(&self, rows: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        let edges = Edges::of_storage(&self.adjacency, rows)?;
        self.forward_on_device(&edges, View::of_storage(rows, layout)?, None)?.into_storage(self.shape(layout))
    }

    fn bwd(&self, rows: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        if rows.device().is_cuda() {
            return Ok(self.backward_on_device(rows, None, gradient)?.0);
        }
        with_stored!(rows.dtype(), |T| {
            let messages = self.messages::<T>(&[], &[]);
            let [of_rows, _] = with_slice(gradient, |gradient| Ok(self.gradients(&messages, gradient, [true, false])))?;
            of_rows.map(|data| tensor_of(data, rows.shape().clone(), rows)).transpose()
        })
    }
}

impl CustomOp2 for EdgeOperation {
    fn name(&self) -> &'static str {
        if self.reduce.is_some() { "spmm" } else { "sddmm" }
    }

    fn cpu_fwd(
        &self,
        lhs: &CpuStorage,
        left: &Layout,
        rhs: &CpuStorage,
        right: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let out = with_stored!(number_type(lhs), |T| self.forward::<T>(slice(lhs, left)?, slice(rhs, right)?));
        Ok((out, self.shape(left)))
    }

    fn cuda_fwd(
        &self,
        lhs: &CudaStorage,
        left: &Layout,
        rhs: &CudaStorage,
        right: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let edges = Edges::of_storage(&self.adjacency, lhs)?;
        let (lhs, rhs) = (View::of_storage(lhs, left)?, View::of_storage(rhs, right)?);
        self.forward_on_device(&edges, lhs, Some(rhs))?.into_storage(self.shape(left))
    }

    fn bwd(
        &self,
        lhs: &Tensor,
        rhs: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        if lhs.device().is_cuda() {
            return self.backward_on_device(lhs, Some(rhs), gradient);
        }
        with_stored!(lhs.dtype(), |T| self.backward::<T>(lhs, rhs, gradient)).map(|[lhs, rhs]| (lhs, rhs))
    }
}
