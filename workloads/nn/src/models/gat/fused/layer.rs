//! One evaluation of a layer: what it is made of, and what its forward pass leaves for the backward one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::{Result, Tensor};

use crate::kernels::{Buffer, Lanes, MatmulPrecision, Selected, Workspaces, host_slice};
use crate::models::chain::{ChainLayer, LayerGradients};
use crate::models::gat::dropouts::Masks;
use crate::models::gat::{GatConfig, GatConv, SelfLoops};
use crate::models::layered::Evaluation;
use gnntop_data::graph::{Adjacency, DropMask};

/// One evaluation of a layer.
pub(crate) struct Layer<T> {
    pub(super) adjacency: Arc<Adjacency>,
    self_loops: SelfLoops,
    pub(super) input: usize,
    pub(super) heads: usize,
    /// Of one head.
    pub(super) width: usize,
    pub(super) negative_slope: T,
    /// Whether ELU follows.
    pub(super) inner: bool,
    pub(super) input_mask: Option<DropMask>,
    pub(super) attention_mask: Option<DropMask>,
    pub(super) output_mask: Option<DropMask>,
    pub(super) precision: MatmulPrecision,
    /// `W`, `a_src`, `a_dst`.
    weights: [Tensor; 3],
    bias: Tensor,
    pub(super) workspaces: Workspaces,
    activations: Mutex<Option<Activations<T>>>,
}

/// What the forward pass leaves to the backward pass.
pub(super) struct Activations<T> {
    /// `[sources, heads width]`: the projected features.
    pub(super) projected: Buffer<T>,
    /// `[sources, heads]` and `[targets, heads]`.
    pub(super) source_score: Buffer<T>,
    pub(super) target_score: Buffer<T>,
    /// `[edges + loops, heads]`: the softmax. The loops that the layer adds, one for each target, come after the edges;
    /// an edge that the layer leaves out has 0.
    pub(super) attention: Buffer<T>,
    /// The same after dropout.
    pub(super) weight: Buffer<T>,
    /// `[targets, heads width]`: derivative of the result with respect to the values before ELU; empty without ELU.
    pub(super) slope: Buffer<T>,
}

/// The parameters as slices.
#[derive(Clone, Copy)]
pub(super) struct Weights<'a, T> {
    pub(super) weight: &'a [T],
    pub(super) source: &'a [T],
    pub(super) target: &'a [T],
}

impl<T: Lanes> Layer<T> {
    pub(in crate::models::gat) fn new(conv: &GatConv, at: &Evaluation<'_, GatConfig>) -> Result<Self> {
        let Masks { input, attention, output } = at.masks()?;
        Ok(Self {
            adjacency: Arc::clone(at.edges),
            self_loops: at.config.self_loops,
            input: conv.input,
            heads: conv.heads,
            width: conv.width,
            negative_slope: T::from_f64(conv.negative_slope),
            inner: at.is_inner,
            input_mask: input,
            attention_mask: attention,
            output_mask: output,
            precision: at.config.matmul_precision,
            weights: [conv.weight.contiguous()?, conv.source.contiguous()?, conv.target.contiguous()?],
            bias: conv.bias.clone(),
            workspaces: at.workspaces.clone(),
            activations: Mutex::default(),
        })
    }

    pub(super) fn take(&self, length: usize) -> Buffer<T> {
        T::workspace(&self.workspaces).take(length)
    }

    /// Columns of the result.
    pub(super) fn columns(&self) -> usize {
        self.heads * self.width
    }

    /// Rows of the numbers that are kept of every edge and of every loop that the layer adds.
    pub(super) fn edge_rows(&self) -> usize {
        let loops = if self.replaces_loops() { self.adjacency.nodes() } else { 0 };
        self.adjacency.edges() + loops
    }

    pub(super) fn replaces_loops(&self) -> bool {
        self.self_loops == SelfLoops::Replaced
    }

    /// Locks even after a panic: they are there or they are not.
    pub(super) fn activations(&self) -> MutexGuard<'_, Option<Activations<T>>> {
        self.activations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `work` with the parameters.
    pub(super) fn with_weights<R>(&self, work: impl FnOnce(Weights<'_, T>) -> Result<R>) -> Result<R> {
        let [weight, source, target] = self.weights.each_ref().map(Tensor::storage_and_layout);
        let (weight, source) = (host_slice(&weight.0, weight.1)?, host_slice(&source.0, source.1)?);
        work(Weights { weight, source, target: host_slice(&target.0, target.1)? })
    }
}

impl<T: Lanes> ChainLayer<T> for Layer<T> {
    fn weights(&self) -> &[Tensor] {
        &self.weights
    }

    fn bias(&self) -> &Tensor {
        &self.bias
    }

    fn shape(&self) -> (usize, usize) {
        (self.adjacency.nodes(), self.columns())
    }

    fn input(&self) -> usize {
        self.input
    }

    fn forward(&self, x: Selected<'_, T>, bias: &[T]) -> Result<Buffer<T>> {
        self.computed(x, bias)
    }

    fn backward(
        &self,
        x: Selected<'_, T>,
        _: Option<&[T]>,
        gradient: Buffer<T>,
        with_input: bool,
    ) -> Result<LayerGradients<T>> {
        self.gradients(x, gradient, with_input)
    }
}
