//! Mean, minimum, maximum and standard deviation over in-neighbours, fused, on a device, as a candle operation.

use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::NoUninit;
use candle_core::{CpuStorage, CudaStorage, CustomOp2, DType, Device, Layout, Result, Shape, Tensor, bail};

use super::edges::{Edges, Walk};
use super::kernel::{Address, Grid, Module, wide};
use super::machine::{Memory, View, launch};
use gnntop_data::graph::{AGGREGATORS, Adjacency};

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct AggregateArguments {
    start: Address,
    source: Address,
    part_node: Address,
    part_begin: Address,
    part_end: Address,
    hub_node: Address,
    hub_part: Address,
    own: Address,
    messages: Address,
    out: Address,
    centre: Address,
    holder: Address,
    partial: Address,
    partial_holder: Address,
    width: u64,
    nodes: u32,
    parts: u32,
    hubs: u32,
    hub_edges: u32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct AggregateGradientArguments {
    start: Address,
    source_start: Address,
    target: Address,
    edge: Address,
    part_node: Address,
    part_begin: Address,
    part_end: Address,
    hub_node: Address,
    hub_part: Address,
    messages: Address,
    centre: Address,
    holder: Address,
    aggregates: Address,
    gradient: Address,
    of_own: Address,
    of_messages: Address,
    partial: Address,
    width: u64,
    nodes: u32,
    parts: u32,
    hubs: u32,
    hub_edges: u32,
}

/// What the forward kernel leaves for the backward one: the mean of the messages into every node, and the edges that
/// hold minimum and maximum.
#[derive(Debug)]
pub(crate) struct SavedAggregates {
    centre: Tensor,
    holder: Tensor,
}

/// `mean | min | max | std` of `own_i + messages_j` over the in-neighbours j of every node i, `[nodes, 4 width]`.
pub(crate) fn aggregate(
    edges: &Edges,
    width: usize,
    own: View<'_>,
    messages: View<'_>,
) -> Result<(Memory, SavedAggregates)> {
    let (device, walk, dtype) = (&edges.device, &edges.incoming, messages.dtype());
    let (nodes, parts) = (walk.nodes, walk.part_count());
    let out = Memory::new(device, dtype, nodes * AGGREGATORS * width)?;
    let centre = Memory::new(device, wide(dtype), nodes * width)?;
    let holder = Memory::new(device, DType::U32, nodes * 2 * width)?;
    let partial = Memory::new(device, wide(dtype), parts * 4 * width)?;
    let partial_holder = Memory::new(device, DType::U32, parts * 2 * width)?;
    let arguments = AggregateArguments {
        start: edges.list(&walk.start)?,
        source: edges.list(&walk.other)?,
        part_node: edges.list(&walk.hubs.part_node)?,
        part_begin: edges.list(&walk.hubs.part_begin)?,
        part_end: edges.list(&walk.hubs.part_end)?,
        hub_node: edges.list(&walk.hubs.nodes)?,
        hub_part: edges.list(&walk.hubs.parts)?,
        own: own.address(dtype, nodes * width)?,
        messages: messages.address(dtype, walk.others * width)?,
        out: out.address(),
        centre: centre.address(),
        holder: holder.address(),
        partial: partial.address(),
        partial_holder: partial_holder.address(),
        width: width as u64,
        nodes: nodes as u32,
        parts: parts as u32,
        hubs: walk.hub_count() as u32,
        hub_edges: walk.hubs.hub_edges,
    };
    run(device, "aggregate", dtype, (nodes + parts) * width, &arguments)?;
    run(device, "join_aggregates", dtype, walk.hub_count() * width, &arguments)?;
    let kept =
        SavedAggregates { centre: centre.into_tensor((nodes, width)), holder: holder.into_tensor((nodes, 2 * width)) };
    Ok((out, kept))
}

fn run<A: NoUninit>(device: &Device, name: &str, dtype: DType, count: usize, arguments: &A) -> Result<()> {
    // SAFETY: the callers, in this file, checked that their arguments have a row for each node of the edges, and made
    // the results for them.
    unsafe { launch(device, &Module::Aggregate.kernel(name, dtype)?, Grid::over(count as u64), arguments) }
}

/// What the backward kernel reads besides [`SavedAggregates`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Returned<'a> {
    pub(crate) messages: View<'a>,
    /// As [`aggregate`] gave them.
    pub(crate) aggregates: View<'a>,
    /// What came back for them.
    pub(crate) gradient: View<'a>,
}

/// Gradients of `own` and of `messages`, both `[nodes, width]`.
pub(crate) fn gradients(
    edges: &Edges,
    width: usize,
    kept: &SavedAggregates,
    back: &Returned<'_>,
) -> Result<(Memory, Memory)> {
    let (device, dtype) = (&edges.device, back.messages.dtype());
    let (incoming, outgoing) = (&edges.incoming, &edges.outgoing);
    let (nodes, parts, wide_row) = (incoming.nodes, outgoing.part_count(), AGGREGATORS * width);
    let of_own = Memory::new(device, dtype, nodes * width)?;
    let of_messages = Memory::new(device, dtype, outgoing.nodes * width)?;
    let partial = Memory::new(device, wide(dtype), parts * width)?;
    let arguments = AggregateGradientArguments {
        start: edges.list(&incoming.start)?,
        source_start: edges.list(&outgoing.start)?,
        target: edges.list(&outgoing.other)?,
        edge: edges.list(&numbers(outgoing))?,
        part_node: edges.list(&outgoing.hubs.part_node)?,
        part_begin: edges.list(&outgoing.hubs.part_begin)?,
        part_end: edges.list(&outgoing.hubs.part_end)?,
        hub_node: edges.list(&outgoing.hubs.nodes)?,
        hub_part: edges.list(&outgoing.hubs.parts)?,
        messages: back.messages.address(dtype, outgoing.nodes * width)?,
        centre: View::new(&kept.centre)?.address(wide(dtype), nodes * width)?,
        holder: View::new(&kept.holder)?.address(DType::U32, nodes * 2 * width)?,
        aggregates: back.aggregates.address(dtype, nodes * wide_row)?,
        gradient: back.gradient.address(dtype, nodes * wide_row)?,
        of_own: of_own.address(),
        of_messages: of_messages.address(),
        partial: partial.address(),
        width: width as u64,
        nodes: nodes as u32,
        parts: parts as u32,
        hubs: outgoing.hub_count() as u32,
        hub_edges: outgoing.hubs.hub_edges,
    };
    run(device, "aggregate_own_gradient", dtype, nodes * width, &arguments)?;
    run(device, "aggregate_messages_gradient", dtype, (outgoing.nodes + parts) * width, &arguments)?;
    run(device, "join_messages_gradient", dtype, outgoing.hub_count() * width, &arguments)?;
    Ok((of_own, of_messages))
}

fn numbers(walk: &Walk) -> std::ops::Range<usize> {
    walk.number.clone().unwrap_or(0..0)
}

/// `mean | min | max | std` of `own_i + messages_j` over the in-neighbours, `[nodes, 4 width]`, from two `[nodes, width]`
/// on a CUDA device. Semantics and gradients are those of [`kernels::aggregate`](crate::kernels::aggregate).
///
/// # Errors
/// The shapes do not fit the graph, number types differ, or the tensors are not on a CUDA device.
pub(crate) fn fused_aggregates(adjacency: &Arc<Adjacency>, own: &Tensor, messages: &Tensor) -> Result<Tensor> {
    let nodes = adjacency.nodes();
    if own.dims2()?.0 != nodes || messages.dims() != own.dims() || adjacency.source_nodes() != nodes {
        bail!("aggregate: rows {:?} and {:?} for {nodes} nodes", own.dims(), messages.dims());
    }
    let operation = FusedAggregates { adjacency: Arc::clone(adjacency), kept: Mutex::default() };
    own.contiguous()?.apply_op2(&messages.contiguous()?, operation)
}

struct FusedAggregates {
    adjacency: Arc<Adjacency>,
    /// Written by the forward pass.
    kept: Mutex<Option<SavedAggregates>>,
}

impl FusedAggregates {
    fn forward(&self, edges: &Edges, own: &Layout, views: (View<'_>, View<'_>)) -> Result<(Memory, Shape)> {
        let (nodes, width) = own.shape().dims2()?;
        let (out, kept) = aggregate(edges, width, views.0, views.1)?;
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
        Ok((out, Shape::from((nodes, AGGREGATORS * width))))
    }
}

impl CustomOp2 for FusedAggregates {
    fn name(&self) -> &'static str {
        "aggregate"
    }

    fn cpu_fwd(
        &self,
        own: &CpuStorage,
        own_layout: &Layout,
        messages: &CpuStorage,
        messages_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let edges = Edges::new(&self.adjacency, &Device::Cpu)?;
        let views = (View::of_host(own, own_layout)?, View::of_host(messages, messages_layout)?);
        let (out, shape) = self.forward(&edges, own_layout, views)?;
        out.into_host(shape)
    }

    fn cuda_fwd(
        &self,
        own: &CudaStorage,
        own_layout: &Layout,
        messages: &CudaStorage,
        messages_layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let edges = Edges::of_storage(&self.adjacency, own)?;
        let views = (View::of_storage(own, own_layout)?, View::of_storage(messages, messages_layout)?);
        let (out, shape) = self.forward(&edges, own_layout, views)?;
        out.into_storage(shape)
    }

    fn bwd(
        &self,
        own: &Tensor,
        messages: &Tensor,
        result: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let edges = Edges::new(&self.adjacency, own.device())?;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(kept) = &*kept else { bail!("the aggregates ran backward before forward") };
        let gradient = gradient.contiguous()?;
        let (messages_view, aggregates) = (View::new(messages)?, View::new(result)?);
        let back = Returned { messages: messages_view, aggregates, gradient: View::new(&gradient)? };
        let (of_own, of_messages) = gradients(&edges, own.dim(1)?, kept, &back)?;
        Ok((Some(of_own.into_tensor(own.shape())), Some(of_messages.into_tensor(messages.shape()))))
    }
}
