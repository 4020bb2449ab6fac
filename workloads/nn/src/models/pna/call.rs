//! One evaluation of a layer: the state that its three operations share, and their common helpers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::{CpuStorage, Device, Result, Shape, Tensor, bail};

use super::DegreeScalers;
use crate::kernels::{Buffer, Element, SectionLayout, Workspaces};
use gnntop_data::graph::{AGGREGATORS, Adjacency};

/// One evaluation of a layer.
pub(super) struct Call<T> {
    pub(super) adjacency: Arc<Adjacency>,
    pub(super) scalers: DegreeScalers,
    pub(super) input: usize,
    pub(super) output: usize,
    pub(super) relu: bool,
    pub(super) workspaces: Workspaces,
    activations: Mutex<Activations<T>>,
}

/// Activations that the backward pass needs, and the gradients on their way back. Each is set by one operation and
/// read by its neighbour in the chain.
pub(super) struct Activations<T> {
    /// `[nodes, 5 input]`: `x | mean | min | max | std`.
    pub(super) rows: Option<Buffer<T>>,
    /// `[nodes, input]`: the sources' part of the messages.
    pub(super) messages: Option<Buffer<T>>,
    /// `[nodes, input]`: mean of `messages` over the in-neighbours.
    pub(super) centre: Option<Buffer<T>>,
    /// `[nodes, 2 input]`: edges that hold minimum and maximum.
    pub(super) holders: Option<Buffer<u32>>,
    /// `[nodes, output]`: result of the post layer.
    pub(super) hidden: Option<Buffer<T>>,
    /// Gradient of `hidden`.
    pub(super) hidden_gradient: Option<Buffer<T>>,
    /// Gradient of `rows`.
    pub(super) rows_gradient: Option<Buffer<T>>,
}

impl<T> Default for Activations<T> {
    fn default() -> Self {
        Self {
            rows: None,
            messages: None,
            centre: None,
            holders: None,
            hidden: None,
            hidden_gradient: None,
            rows_gradient: None,
        }
    }
}

impl<T: Element> Call<T> {
    /// Of a layer from `input` to `output` features.
    pub(super) fn new(
        (input, output): (usize, usize),
        scalers: DegreeScalers,
        adjacency: &Arc<Adjacency>,
        workspaces: &Workspaces,
        relu: bool,
    ) -> Self {
        Self {
            adjacency: Arc::clone(adjacency),
            scalers,
            input,
            output,
            relu,
            workspaces: workspaces.clone(),
            activations: Mutex::default(),
        }
    }

    /// Columns of `rows`: the features and the four aggregates.
    pub(super) fn row_width(&self) -> usize {
        (1 + AGGREGATORS) * self.input
    }

    pub(super) fn sections(&self) -> SectionLayout {
        SectionLayout { width: self.input, offset: self.input, stride: self.row_width() }
    }

    pub(super) fn take(&self, length: usize) -> Buffer<T> {
        T::workspace(&self.workspaces).take(length)
    }

    /// Locks even after a panic: the content is then merely incomplete, which [`held`] reports.
    pub(super) fn activations(&self) -> MutexGuard<'_, Activations<T>> {
        self.activations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer that an earlier operation of the chain must have left.
pub(super) fn held<T>(slot: Option<&Buffer<T>>) -> Result<&[T]> {
    match slot {
        Some(buffer) => Ok(buffer),
        None => bail!("pna: the layer's operations ran out of order"),
    }
}

/// The one-element result of an operation whose real result stays in the [`Call`].
pub(super) fn token<T: Element>() -> (CpuStorage, Shape) {
    (T::to_cpu_storage_owned(vec![T::zero()]), Shape::from(1))
}

/// Gradients of a weight and a bias, as tensors.
pub(super) fn parameter_gradients<T: Element>(weight: Vec<T>, bias: Vec<T>) -> Result<(Tensor, Tensor)> {
    let outputs = bias.len();
    let inputs = weight.len() / outputs.max(1);
    let weight = Tensor::from_vec(weight, (outputs, inputs), &Device::Cpu)?;
    Ok((weight, Tensor::from_vec(bias, outputs, &Device::Cpu)?))
}

/// Sums the parts of `length` that the tasks of a parallel region left one after the other, in their order, so that
/// the result does not depend on timing.
pub(super) fn sum_parts<T: Element>(mut parts: Vec<T>, length: usize) -> Vec<T> {
    let (sum, rest) = parts.split_at_mut(length);
    for part in rest.chunks_exact(length.max(1)) {
        for (sum, &value) in sum.iter_mut().zip(part) {
            *sum += value;
        }
    }
    parts.truncate(length);
    parts
}
