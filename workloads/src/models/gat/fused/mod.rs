//! The fused form: layers as candle operations whose activations stay in buffers from the workspace.
//!
//! As in GraphSAGE ([`sage`](crate::models::sage)) a layer is two operations, because candle's take three tensors: [`Parameters`]
//! stands for three of the four parameters, [`Attention`] computes. Between layers only tokens pass. Of every edge and
//! head two numbers are kept, the weight before and after dropout; nothing as wide as a feature is stored per edge.
//! Self-loops that the layer adds or leaves out need no other adjacency: the loops over the edges know of them.

mod backward;
mod forward;
mod products;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::{CpuStorage, CustomOp3, Device, Layout, Result, Shape, Tensor, bail};

use super::{GatConv, SelfLoops};
use crate::graph::{Adjacency, DropMask};
use crate::kernels::{Buffer, Lanes, Workspaces, cpu_slice, host_slice};

/// Probability and seed of each dropout of a layer, where there is one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dropouts {
    /// Of the features that it reads. Only of the first layer: of others it is the output's of the layer below.
    pub(super) input: Option<(f64, u64)>,
    pub(super) attention: Option<(f64, u64)>,
    /// Of the result, after ELU.
    pub(super) output: Option<(f64, u64)>,
}

/// The layers so far.
pub(super) struct Chain<T> {
    /// Features, a token, or after the last layer its result.
    x: Tensor,
    below: Option<Arc<Layer<T>>>,
    workspaces: Workspaces,
}

impl<T: Lanes> Chain<T> {
    pub(super) fn start(features: &Tensor, workspaces: &Workspaces) -> Result<Self> {
        Ok(Self { x: features.contiguous()?, below: None, workspaces: workspaces.clone() })
    }

    /// One more layer; an `inner` one has ELU behind it.
    pub(super) fn layer(
        self,
        conv: &GatConv,
        adjacency: &Arc<Adjacency>,
        self_loops: SelfLoops,
        inner: bool,
        dropouts: Dropouts,
    ) -> Result<Self> {
        let mask = |dropout: Option<(f64, u64)>| dropout.map(|(p, seed)| DropMask::new(p, seed)).transpose();
        let layer = Arc::new(Layer {
            adjacency: Arc::clone(adjacency),
            self_loops,
            input: conv.input,
            heads: conv.heads,
            width: conv.width,
            negative_slope: T::from_f64(conv.negative_slope),
            inner,
            input_mask: mask(dropouts.input)?,
            attention_mask: mask(dropouts.attention)?,
            output_mask: mask(dropouts.output)?,
            parameters: [conv.weight.contiguous()?, conv.source.contiguous()?, conv.target.contiguous()?],
            below: self.below,
            workspaces: self.workspaces.clone(),
            state: Mutex::default(),
        });
        let [weight, source, target] = &layer.parameters;
        let token = weight.apply_op3(source, target, Parameters(Arc::clone(&layer)))?;
        let x = self.x.apply_op3(&token, &conv.bias.contiguous()?, Attention(Arc::clone(&layer)))?;
        Ok(Self { x, below: Some(layer), workspaces: self.workspaces })
    }

    /// What the last layer gave.
    pub(super) fn finish(self) -> Result<Tensor> {
        Ok(self.x)
    }
}

/// One evaluation of a layer: what its two operations and the layer above share.
struct Layer<T> {
    adjacency: Arc<Adjacency>,
    self_loops: SelfLoops,
    input: usize,
    heads: usize,
    /// Of one head.
    width: usize,
    negative_slope: T,
    /// Whether ELU follows.
    inner: bool,
    input_mask: Option<DropMask>,
    attention_mask: Option<DropMask>,
    output_mask: Option<DropMask>,
    /// `W`, `a_src`, `a_dst`.
    parameters: [Tensor; 3],
    below: Option<Arc<Layer<T>>>,
    workspaces: Workspaces,
    state: Mutex<State<T>>,
}

/// What the forward pass leaves to the backward pass.
struct Activations<T> {
    /// `[sources, heads width]`: the projected features.
    projected: Buffer<T>,
    /// `[sources, heads]` and `[targets, heads]`.
    source_score: Buffer<T>,
    target_score: Buffer<T>,
    /// `[edges + loops, heads]`: the softmax. The loops that the layer adds, one for each target, come after the edges;
    /// an edge that the layer leaves out has 0.
    attention: Buffer<T>,
    /// The same after dropout.
    weight: Buffer<T>,
    /// `[targets, heads width]`: derivative of the result with respect to what comes before ELU; empty without ELU.
    slope: Buffer<T>,
}

/// Activations, and gradients on their way back.
struct State<T> {
    activations: Option<Activations<T>>,
    /// `[targets, heads width]`: the result of an inner layer.
    result: Option<Buffer<T>>,
    /// Its gradient, left by the layer above.
    result_gradient: Option<Buffer<T>>,
    /// Gradients of `W`, `a_src`, `a_dst`, left for [`Parameters`].
    parameter_gradients: Option<[Vec<T>; 3]>,
}

impl<T> Default for State<T> {
    fn default() -> Self {
        Self { activations: None, result: None, result_gradient: None, parameter_gradients: None }
    }
}

/// The parameters as slices.
#[derive(Clone, Copy)]
struct Weights<'a, T> {
    weight: &'a [T],
    source: &'a [T],
    target: &'a [T],
}

impl<T: Lanes> Layer<T> {
    fn take(&self, length: usize) -> Buffer<T> {
        T::workspace(&self.workspaces).take(length)
    }

    /// Columns of the result.
    fn columns(&self) -> usize {
        self.heads * self.width
    }

    /// Rows of the numbers that are kept of every edge and of every loop that the layer adds.
    fn edge_rows(&self) -> usize {
        let loops = if self.replaces_loops() { self.adjacency.nodes() } else { 0 };
        self.adjacency.edges() + loops
    }

    fn replaces_loops(&self) -> bool {
        self.self_loops == SelfLoops::Replaced
    }

    /// Locks even after a panic: what it guards is then merely incomplete, which is reported.
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `work` with the parameters.
    fn with_weights<R>(&self, work: impl FnOnce(Weights<'_, T>) -> Result<R>) -> Result<R> {
        let [weight, source, target] = self.parameters.each_ref().map(Tensor::storage_and_layout);
        let (weight, source) = (host_slice(&weight.0, weight.1)?, host_slice(&source.0, source.1)?);
        work(Weights { weight, source, target: host_slice(&target.0, target.1)? })
    }
}

/// Something that an earlier operation must have left.
fn held<B>(slot: Option<B>) -> Result<B> {
    match slot {
        Some(value) => Ok(value),
        None => bail!("gat: the layers' operations ran out of order"),
    }
}

/// The one-element result of an operation whose real result stays in the [`Layer`].
fn token<T: Lanes>() -> (CpuStorage, Shape) {
    (T::to_cpu_storage_owned(vec![T::zero()]), Shape::from(1))
}

/// Stands for three parameters of a layer in the order of the autograd graph.
struct Parameters<T>(Arc<Layer<T>>);

impl<T: Lanes> CustomOp3 for Parameters<T> {
    fn name(&self) -> &'static str {
        "gat-parameters"
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        Ok(token::<T>())
    }

    fn bwd(
        &self,
        weight: &Tensor,
        source: &Tensor,
        target: &Tensor,
        _: &Tensor,
        _: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let [of_weight, of_source, of_target] = held(self.0.state().parameter_gradients.take())?;
        let tensor = |values, like: &Tensor| Tensor::from_vec(values, like.shape(), &Device::Cpu).map(Some);
        Ok((tensor(of_weight, weight)?, tensor(of_source, source)?, tensor(of_target, target)?))
    }
}

/// Computes a layer. Its first argument is the features, or the token of the layer below.
struct Attention<T>(Arc<Layer<T>>);

impl<T: Lanes> CustomOp3 for Attention<T> {
    fn name(&self) -> &'static str {
        "gat-attention"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        _: &CpuStorage,
        _: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (layer, bias) = (&*self.0, cpu_slice(bias, bias_layout)?);
        let result = match &layer.below {
            None => layer.forward(cpu_slice(x, x_layout)?, bias)?,
            Some(below) => layer.forward(held(below.state().result.as_deref())?, bias)?,
        };
        if layer.inner {
            layer.state().result = Some(result);
            return Ok(token::<T>());
        }
        let shape = Shape::from((layer.adjacency.nodes(), layer.columns()));
        Ok((T::to_cpu_storage_owned(result.to_vec()), shape))
    }

    fn bwd(
        &self,
        x: &Tensor,
        token: &Tensor,
        bias: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let layer = &*self.0;
        let gradient = layer.upstream(gradient)?;
        let (of_x, of_bias) = match &layer.below {
            None => {
                let (storage, layout) = x.storage_and_layout();
                let (of_x, of_bias) = layer.backward(host_slice(&storage, layout)?, gradient, x.track_op())?;
                let of_x = of_x.map(|of_x| Tensor::from_vec(of_x.to_vec(), x.shape(), x.device()));
                (of_x.transpose()?, of_bias)
            }
            Some(below) => {
                let mut state = below.state();
                let (of_below, of_bias) = layer.backward(held(state.result.as_deref())?, gradient, true)?;
                state.result_gradient = of_below;
                (Some(x.zeros_like()?), of_bias)
            }
        };
        Ok((of_x, Some(token.zeros_like()?), Some(Tensor::from_vec(of_bias, bias.shape(), &Device::Cpu)?)))
    }
}
