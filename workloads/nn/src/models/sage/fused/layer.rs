//! One evaluation of a layer: what it is made of, and what its forward pass leaves for the backward one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::{Result, Tensor};

use crate::kernels::{Buffer, Lanes, MatmulPrecision, Selected, Workspaces, host_slice};
use crate::models::chain::{ChainLayer, LayerGradients};
use crate::models::layered::Evaluation;
use crate::models::sage::order::Order;
use crate::models::sage::{SageConfig, SageConv};
use gnntop_data::graph::{Adjacency, DropMask};

/// One evaluation of a layer.
pub(crate) struct Layer<T> {
    pub(super) adjacency: Arc<Adjacency>,
    pub(super) order: Order,
    pub(super) input: usize,
    pub(super) output: usize,
    /// Whether ReLU and dropout follow.
    pub(super) inner: bool,
    pub(super) mask: Option<DropMask>,
    pub(super) precision: MatmulPrecision,
    /// `W_l` and `W_r`.
    weights: [Tensor; 2],
    bias: Tensor,
    pub(super) workspaces: Workspaces,
    /// `[targets, input]`: the mean over the in-neighbours, where it is taken first.
    mean: Mutex<Option<Buffer<T>>>,
}

/// The weights as slices.
#[derive(Clone, Copy)]
pub(super) struct Weights<'a, T> {
    pub(super) left: &'a [T],
    pub(super) right: &'a [T],
}

impl<T: Lanes> Layer<T> {
    pub(in crate::models::sage) fn new(conv: &SageConv, at: &Evaluation<'_, SageConfig>) -> Result<Self> {
        Ok(Self {
            adjacency: Arc::clone(at.edges),
            order: Order::new(at.edges, conv.input, conv.output, at.with_input),
            input: conv.input,
            output: conv.output,
            inner: at.is_inner,
            mask: at.dropout().map(|(probability, seed)| DropMask::new(probability, seed)).transpose()?,
            precision: at.config.matmul_precision,
            weights: [conv.left.0.contiguous()?, conv.right.contiguous()?],
            bias: conv.left.1.clone(),
            workspaces: at.workspaces.clone(),
            mean: Mutex::default(),
        })
    }

    pub(super) fn take(&self, length: usize) -> Buffer<T> {
        T::workspace(&self.workspaces).take(length)
    }

    /// Locks even after a panic: the mean is there or it is not.
    pub(super) fn mean(&self) -> MutexGuard<'_, Option<Buffer<T>>> {
        self.mean.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `work` with the weights.
    pub(super) fn with_weights<R>(&self, work: impl FnOnce(Weights<'_, T>) -> Result<R>) -> Result<R> {
        let [left, right] = self.weights.each_ref().map(Tensor::storage_and_layout);
        work(Weights { left: host_slice(&left.0, left.1)?, right: host_slice(&right.0, right.1)? })
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
        (self.adjacency.nodes(), self.output)
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
        result: Option<&[T]>,
        gradient: Buffer<T>,
        with_input: bool,
    ) -> Result<LayerGradients<T>> {
        self.gradients(x, result, gradient, with_input)
    }
}
