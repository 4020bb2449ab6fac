//! One PNA layer: the parameters, and the three chained operations that compute it.
//!
//! candle's custom operations take three tensors, a layer has seven. So the layer is a chain of three, each with one
//! weight and one bias: message and aggregation, post, last linear map. The first two pass on a one-element token,
//! which carries the order of the autograd graph, while the activations themselves stay in the layer's [`Call`], in
//! buffers from the workspace. As tensors they would pass through candle's gradient store, which allocates and adds
//! each of them again: the traffic of a `[nodes, 5 width]` matrix three times per layer.

use std::sync::Arc;

use candle_core::{DType, Result, Tensor, bail};
use candle_nn::{Init, VarBuilder};

use super::DegreeScalers;
use super::call::Call;
use super::linear::Linear;
use super::message::Message;
use super::post::Post;
use crate::kernels::{Element, Workspaces};
use gnntop_data::graph::Adjacency;

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
        if x.device().is_cuda() {
            return self.forward_on_device(x, adjacency, relu);
        }
        match x.dtype() {
            DType::F32 => self.chain::<f32>(x, adjacency, workspaces, relu),
            DType::F64 => self.chain::<f64>(x, adjacency, workspaces, relu),
            other => bail!("pna: only f32 and f64 are supported, not {other:?}"),
        }
    }

    fn chain<T: Element>(
        &self,
        x: &Tensor,
        adjacency: &Arc<Adjacency>,
        workspaces: &Workspaces,
        relu: bool,
    ) -> Result<Tensor> {
        let call = Arc::new(Call::<T>::new((self.input, self.output), self.scalers, adjacency, workspaces, relu));
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
