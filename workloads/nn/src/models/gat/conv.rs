//! One layer: its parameters, and the plain form of its computation.

use std::sync::Arc;

use candle_core::{Result, Tensor};
use candle_nn::{Init, VarBuilder};

use crate::kernels::{KernelFamily, dropout};
use gnntop_data::graph::{Adjacency, Reduce};

/// PyTorch Geometric's `GATConv` with heads side by side.
#[derive(Debug, Clone)]
pub struct GatConv {
    pub(super) input: usize,
    pub(super) heads: usize,
    pub(super) width: usize,
    pub(super) negative_slope: f64,
    /// `[heads width, input]`
    pub(super) weight: Tensor,
    /// Of the sources, `[1, heads, width]`.
    pub(super) source: Tensor,
    /// Of the targets, `[1, heads, width]`.
    pub(super) target: Tensor,
    /// `[heads width]`
    pub(super) bias: Tensor,
}

impl GatConv {
    /// A layer from `input` features to `heads` of `width`. Reads `lin.weight`, `att_src`, `att_dst` and `bias`; new
    /// ones are Glorot-uniform, the bias 0.
    ///
    /// # Errors
    /// A parameter is missing or has another shape.
    pub fn new(input: usize, heads: usize, width: usize, negative_slope: f64, vb: VarBuilder<'_>) -> Result<Self> {
        let glorot = |rows: usize, columns: usize| {
            let bound = (6.0 / (rows + columns) as f64).sqrt();
            Init::Uniform { lo: -bound, up: bound }
        };
        let attention = |name: &str| vb.get_with_hints((1, heads, width), name, glorot(heads, width));
        let weight = (heads * width, input);
        Ok(Self {
            input,
            heads,
            width,
            negative_slope,
            source: attention("att_src")?,
            target: attention("att_dst")?,
            bias: vb.get_with_hints(heads * width, "bias", Init::Const(0.0))?,
            weight: vb.pp("lin").get_with_hints(weight, "weight", glorot(weight.0, weight.1))?,
        })
    }

    /// `[sources, input]` to `[targets, heads width]`, one operation after the other, over the edges as they are.
    /// `drop_attention` is the probability and the seed of the dropout of attention weights.
    ///
    /// # Errors
    /// `x` has another shape, number type or device than this layer and `adjacency` expect.
    pub fn forward(
        &self,
        x: &Tensor,
        adjacency: &Arc<Adjacency>,
        kernels: KernelFamily,
        drop_attention: Option<(f64, u64)>,
    ) -> Result<Tensor> {
        let (sources, targets) = (adjacency.source_nodes(), adjacency.nodes());
        let h = x.matmul(&self.weight.t()?)?.reshape((sources, self.heads, self.width))?;
        let source_score = h.broadcast_mul(&self.source)?.sum(2)?;
        let target_score = h.narrow(0, 0, targets)?.broadcast_mul(&self.target)?.sum(2)?;
        let mut attention = kernels.attention(adjacency, &source_score, &target_score, self.negative_slope)?;
        if let Some((probability, seed)) = drop_attention {
            attention = dropout(&attention, probability, seed)?;
        }
        let out = kernels.aggregate(adjacency, Reduce::Sum, &h, Some(&attention))?;
        out.reshape((targets, self.heads * self.width))?.broadcast_add(&self.bias)
    }
}
