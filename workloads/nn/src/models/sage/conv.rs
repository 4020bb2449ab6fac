//! One layer: its parameters, and the plain form of its computation.

use std::sync::Arc;

use candle_core::{Result, Tensor};
use candle_nn::{Init, VarBuilder};

use crate::kernels::KernelFamily;
use gnntop_data::graph::{Adjacency, Reduce};

/// PyTorch Geometric's `SAGEConv` with mean aggregation: `W_l mean_j x_j + b + W_r x_i`. The mean over no in-neighbours
/// is 0. In a block the targets are the first of the sources.
#[derive(Debug, Clone)]
pub struct SageConv {
    pub(super) input: usize,
    pub(super) output: usize,
    /// `lin_l`, for the mean: weight `[output, input]` and bias `[output]`.
    pub(super) left: (Tensor, Tensor),
    /// `lin_r`, for the node itself: weight `[output, input]`.
    pub(super) right: Tensor,
}

impl SageConv {
    /// A layer from `input` to `output` features. Reads `lin_l.weight`, `lin_l.bias` and `lin_r.weight`; new ones are
    /// uniform within `1 / sqrt(input)`, as PyTorch's.
    ///
    /// # Errors
    /// A parameter is missing or has another shape.
    pub fn new(input: usize, output: usize, vb: VarBuilder<'_>) -> Result<Self> {
        let bound = 1.0 / (input as f64).sqrt();
        let init = Init::Uniform { lo: -bound, up: bound };
        let (left, right) = (vb.pp("lin_l"), vb.pp("lin_r"));
        let weight = left.get_with_hints((output, input), "weight", init)?;
        let bias = left.get_with_hints(output, "bias", init)?;
        let right = right.get_with_hints((output, input), "weight", init)?;
        Ok(Self { input, output, left: (weight, bias), right })
    }

    /// `[sources, input]` to `[targets, output]`, one operation after the other.
    ///
    /// # Errors
    /// `x` has another shape, number type or device than this layer and `adjacency` expect.
    pub fn forward(&self, x: &Tensor, adjacency: &Arc<Adjacency>, kernels: KernelFamily) -> Result<Tensor> {
        let mean = kernels.aggregate(adjacency, Reduce::Mean, x, None)?;
        let own = x.narrow(0, 0, adjacency.nodes())?;
        let left = mean.matmul(&self.left.0.t()?)?.broadcast_add(&self.left.1)?;
        left + own.matmul(&self.right.t()?)?
    }
}
