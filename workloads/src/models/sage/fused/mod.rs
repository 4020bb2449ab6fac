//! The fused form: layers as candle operations whose activations stay in buffers from the workspace.
//!
//! candle's custom operations take three tensors, a layer has four: features, two weights and a bias. So a layer is two
//! operations. [`Parameters`] takes the three parameters and gives a one-element token; [`Convolution`] takes what lies
//! below and that token, and computes. Backward, candle comes to the convolution first: it computes everything and
//! leaves the parameters' gradients for the other to hand over. Between layers as well only tokens pass: as tensors the
//! activations would go through candle's gradient store, which allocates and adds each of them anew.
//!
//! Mean and projection commute. A layer that aggregates first makes products for its targets, one that projects first
//! for its sources but with narrower rows along the edges; [`Order`] says which is less work.

mod backward;
mod forward;
mod products;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::{CpuStorage, CustomOp2, CustomOp3, Device, Layout, Result, Shape, Tensor, bail};

use super::SageConv;
use crate::graph::{Adjacency, DropMask};
use crate::kernels::{Buffer, Lanes, Workspaces, cpu_slice, host_slice};

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

    /// One more layer; an `inner` one has ReLU behind it, and dropout of this probability and seed.
    pub(super) fn layer(
        self,
        conv: &SageConv,
        adjacency: &Arc<Adjacency>,
        inner: bool,
        dropout: Option<(f64, u64)>,
    ) -> Result<Self> {
        let with_input = self.below.is_some() || self.x.track_op();
        let layer = Arc::new(Layer {
            adjacency: Arc::clone(adjacency),
            order: Order::of(adjacency, conv.input, conv.output, with_input),
            input: conv.input,
            output: conv.output,
            inner,
            mask: dropout.map(|(probability, seed)| DropMask::new(probability, seed)).transpose()?,
            parameters: [conv.left.0.contiguous()?, conv.left.1.contiguous()?, conv.right.contiguous()?],
            below: self.below,
            workspaces: self.workspaces.clone(),
            state: Mutex::default(),
        });
        let [left, bias, right] = &layer.parameters;
        let token = left.apply_op3(bias, right, Parameters(Arc::clone(&layer)))?;
        let x = self.x.apply_op2(&token, Convolution(Arc::clone(&layer)))?;
        Ok(Self { x, below: Some(layer), workspaces: self.workspaces })
    }

    /// What the last layer gave.
    pub(super) fn finish(self) -> Result<Tensor> {
        Ok(self.x)
    }
}

/// Whether the mean is taken before or after the projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    AggregateFirst,
    ProjectFirst,
}

impl Order {
    /// The cheaper one for a training step: multiplications at the rate of a matrix product, and bytes along the edges
    /// at the rate of memory, as a CPU core has them (about 100 GFLOP/s and 10 GB/s: 10 multiply-adds take as long as 2
    /// bytes). A GPU's are both faster by about the same factor.
    pub(super) fn of(adjacency: &Adjacency, input: usize, output: usize, with_input: bool) -> Self {
        let passes = if with_input { 3 } else { 2 };
        let products = |rows: usize| passes * (rows + adjacency.nodes()) * input * output;
        let edges = |width: usize, passes: usize| 20 * passes * adjacency.edges() * width;
        let aggregate = products(adjacency.nodes()) + edges(input, passes - 1);
        let project = products(adjacency.source_nodes()) + edges(output, 2);
        if project < aggregate { Self::ProjectFirst } else { Self::AggregateFirst }
    }
}

/// One evaluation of a layer: what its two operations and the layer above share.
struct Layer<T> {
    adjacency: Arc<Adjacency>,
    order: Order,
    input: usize,
    output: usize,
    /// Whether ReLU and dropout follow.
    inner: bool,
    mask: Option<DropMask>,
    /// `W_l`, `b`, `W_r`.
    parameters: [Tensor; 3],
    below: Option<Arc<Layer<T>>>,
    workspaces: Workspaces,
    state: Mutex<State<T>>,
}

/// Activations that the backward pass needs, and gradients on their way back.
struct State<T> {
    /// `[targets, input]`: the mean over the in-neighbours, where it is taken first.
    mean: Option<Buffer<T>>,
    /// `[targets, output]`: the result of an inner layer.
    result: Option<Buffer<T>>,
    /// Its gradient, left by the layer above.
    result_gradient: Option<Buffer<T>>,
    /// Gradients of `W_l`, `b`, `W_r`, left for [`Parameters`].
    parameter_gradients: Option<[Vec<T>; 3]>,
}

impl<T> Default for State<T> {
    fn default() -> Self {
        Self { mean: None, result: None, result_gradient: None, parameter_gradients: None }
    }
}

/// The parameters as slices.
#[derive(Clone, Copy)]
struct Weights<'a, T> {
    left: &'a [T],
    bias: &'a [T],
    right: &'a [T],
}

impl<T: Lanes> Layer<T> {
    fn take(&self, length: usize) -> Buffer<T> {
        T::workspace(&self.workspaces).take(length)
    }

    /// Locks even after a panic: what it guards is then merely incomplete, which [`held`] reports.
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `work` with the parameters.
    fn with_weights<R>(&self, work: impl FnOnce(Weights<'_, T>) -> Result<R>) -> Result<R> {
        let [left, bias, right] = self.parameters.each_ref().map(Tensor::storage_and_layout);
        let (left, bias) = (host_slice(&left.0, left.1)?, host_slice(&bias.0, bias.1)?);
        work(Weights { left, bias, right: host_slice(&right.0, right.1)? })
    }
}

/// A buffer that an earlier operation must have left.
fn held<T>(slot: Option<&Buffer<T>>) -> Result<&[T]> {
    match slot {
        Some(buffer) => Ok(buffer),
        None => bail!("sage: the layers' operations ran out of order"),
    }
}

/// The one-element result of an operation whose real result stays in the [`Layer`].
fn token<T: Lanes>() -> (CpuStorage, Shape) {
    (T::to_cpu_storage_owned(vec![T::zero()]), Shape::from(1))
}

/// Stands for the three parameters of a layer in the order of the autograd graph.
struct Parameters<T>(Arc<Layer<T>>);

impl<T: Lanes> CustomOp3 for Parameters<T> {
    fn name(&self) -> &'static str {
        "sage-parameters"
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
        left: &Tensor,
        bias: &Tensor,
        right: &Tensor,
        _: &Tensor,
        _: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let Some([of_left, of_bias, of_right]) = self.0.state().parameter_gradients.take() else {
            bail!("sage: the layers' operations ran out of order");
        };
        let tensor = |values, like: &Tensor| Tensor::from_vec(values, like.shape(), &Device::Cpu).map(Some);
        Ok((tensor(of_left, left)?, tensor(of_bias, bias)?, tensor(of_right, right)?))
    }
}

/// Computes a layer. Its first argument is the features, or the token of the layer below.
struct Convolution<T>(Arc<Layer<T>>);

impl<T: Lanes> CustomOp2 for Convolution<T> {
    fn name(&self) -> &'static str {
        "sage-convolution"
    }

    fn cpu_fwd(&self, x: &CpuStorage, x_layout: &Layout, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        let layer = &*self.0;
        let result = match &layer.below {
            None => layer.forward(cpu_slice(x, x_layout)?)?,
            Some(below) => layer.forward(held(below.state().result.as_ref())?)?,
        };
        if layer.inner {
            layer.state().result = Some(result);
            return Ok(token::<T>());
        }
        let shape = Shape::from((layer.adjacency.nodes(), layer.output));
        Ok((T::to_cpu_storage_owned(result.to_vec()), shape))
    }

    fn bwd(
        &self,
        x: &Tensor,
        token: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let layer = &*self.0;
        let gradient = layer.upstream(gradient)?;
        let token = Some(token.zeros_like()?);
        let Some(below) = &layer.below else {
            let (storage, layout) = x.storage_and_layout();
            let of_x = layer.backward(host_slice(&storage, layout)?, gradient, x.track_op())?;
            let of_x = of_x.map(|of_x| Tensor::from_vec(of_x.to_vec(), x.shape(), x.device())).transpose()?;
            return Ok((of_x, token));
        };
        let mut state = below.state();
        let of_below = layer.backward(held(state.result.as_ref())?, gradient, true)?;
        state.result_gradient = of_below;
        Ok((Some(x.zeros_like()?), token))
    }
}
