//! One PNA layer: the parameters, and the three chained operations that compute it.
//!
//! candle's custom operations take three tensors, a layer has seven. So the layer is a chain of three, each with one
//! weight and one bias: message and aggregation, post, last linear map. The first two hand on a one-element token,
//! which carries the order of the autograd graph, while the activations themselves stay in the layer's [`Call`], in
//! buffers from the workspace. As tensors they would pass through candle's gradient store, which allocates and adds
//! each of them anew: the traffic of a `[nodes, 5 width]` matrix three times per layer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::{CpuStorage, DType, Device, Result, Shape, Tensor, bail};
use candle_nn::{Init, VarBuilder};

use super::DegreeScalers;
use super::linear::Linear;
use super::message::Message;
use super::post::Post;
use crate::kernels::{AGGREGATORS, Adjacency, Buffer, Element, SectionLayout, Workspaces};

/// PyTorch Geometric's `PNAConv` with mean, min, max, std and identity, amplification, attenuation; one tower, one
/// pre and one post layer, no edge features.
#[derive(Debug, Clone)]
pub struct PnaConv {
    input: usize,
    output: usize,
    pub(super) scalers: DegreeScalers,
    pub(super) pre: (Tensor, Tensor),
    pub(super) post: (Tensor, Tensor),
    pub(super) lin: (Tensor, Tensor),
}

impl PnaConv {
    /// A layer from `input` to `output` features. Reads `pre_nns.0.0.{weight,bias}`, weight `[input, 2 input]`;
    /// `post_nns.0.0`, `[output, 13 input]`; and `lin`, `[output, output]`.
    ///
    /// # Errors
    /// A parameter is missing or has another shape.
    pub fn new(input: usize, output: usize, scalers: DegreeScalers, vb: VarBuilder<'_>) -> Result<Self> {
        Ok(Self {
            input,
            output,
            scalers,
            pre: linear(2 * input, input, vb.pp("pre_nns.0.0"))?,
            post: linear(13 * input, output, vb.pp("post_nns.0.0"))?,
            lin: linear(output, output, vb.pp("lin"))?,
        })
    }

    /// `[nodes, input]` to `[nodes, output]`, followed by ReLU where `relu`. Any numbering of the nodes is correct;
    /// one by degree is fast.
    ///
    /// # Errors
    /// `x` has another shape or device than this layer and `adjacency` expect, or is neither f32 nor f64.
    pub fn forward(
        &self,
        x: &Tensor,
        adjacency: &Arc<Adjacency>,
        workspaces: &Workspaces,
        relu: bool,
    ) -> Result<Tensor> {
        if x.dims() != [adjacency.nodes(), self.input] || adjacency.nodes() == 0 {
            bail!("pna: expected features [{}, {}], got {:?}", adjacency.nodes(), self.input, x.dims());
        }
        #[cfg(feature = "cuda")]
        if x.device().is_cuda() {
            return self.forward_on_device(x, adjacency, relu);
        }
        match x.dtype() {
            DType::F32 => self.chain(x, Call::<f32>::new(self, adjacency, workspaces, relu)),
            DType::F64 => self.chain(x, Call::<f64>::new(self, adjacency, workspaces, relu)),
            other => bail!("pna: only f32 and f64 are supported, not {other:?}"),
        }
    }

    fn chain<T: Element>(&self, x: &Tensor, call: Call<T>) -> Result<Tensor> {
        let call = Arc::new(call);
        let aggregated = x.contiguous()?.apply_op3(&self.pre.0, &self.pre.1, Message(Arc::clone(&call)))?;
        let hidden = aggregated.apply_op3(&self.post.0, &self.post.1, Post(Arc::clone(&call)))?;
        hidden.apply_op3(&self.lin.0, &self.lin.1, Linear(call))
    }
}

/// Weight `[output, input]` and bias `[output]` of a linear map, with PyTorch's initial distribution.
fn linear(input: usize, output: usize, vb: VarBuilder<'_>) -> Result<(Tensor, Tensor)> {
    let bound = 1.0 / (input as f64).sqrt();
    let init = Init::Uniform { lo: -bound, up: bound };
    Ok((vb.get_with_hints((output, input), "weight", init)?, vb.get_with_hints(output, "bias", init)?))
}

/// One evaluation of a layer: what its three operations share.
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
    fn new(conv: &PnaConv, adjacency: &Arc<Adjacency>, workspaces: &Workspaces, relu: bool) -> Self {
        Self {
            adjacency: Arc::clone(adjacency),
            scalers: conv.scalers,
            input: conv.input,
            output: conv.output,
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

    /// Locks even after a panic: what it guards is then merely incomplete, which [`held`] reports.
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
