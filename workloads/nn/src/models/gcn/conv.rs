//! One graph convolution.

use std::sync::Arc;

use candle_core::{DType, Result, Tensor};
use candle_nn::{Init, VarBuilder};

use super::finish::{Dropout, Finish, finish};
use super::normalise::Normalised;
use crate::kernels::{KernelFamily, dropout, sparse_linear, sparse_linear_dropout};
use gnntop_data::graph::Reduce;
use gnntop_data::graph::SparseMatrix;

/// Features of the nodes as a layer takes them.
#[derive(Debug, Clone)]
pub enum NodeFeatures {
    /// `[nodes, features]`.
    Dense(Tensor),
    /// The same with its zeros left out; takes no gradient.
    Sparse(Arc<SparseMatrix>),
}

impl NodeFeatures {
    /// These features with some values dropped, times `weight`, `[out, features]`, transposed.
    fn linear(&self, weight: &Tensor, drop: Option<Dropout>) -> Result<Tensor> {
        let Dropout { p, seed } = drop.unwrap_or(Dropout { p: 0.0, seed: 0 });
        match self {
            Self::Dense(x) => dropout(x, p, seed)?.to_dtype(weight.dtype())?.matmul(&weight.t()?),
            Self::Sparse(x) if p == 0.0 => sparse_linear(x, weight),
            Self::Sparse(x) => sparse_linear_dropout(x, weight, p, seed),
        }
    }
}

/// PyTorch Geometric's `GCNConv`: `S X W^T + b` with the normalised adjacency `S`.
#[derive(Debug, Clone)]
pub struct GcnConv {
    /// `[output, input]`
    pub(super) weight: Tensor,
    /// `[output]`
    pub(super) bias: Tensor,
}

impl GcnConv {
    /// Reads or makes `lin.weight`, `[output, input]`, Glorot-uniform, and `bias`, `[output]`, 0.
    ///
    /// # Errors
    /// A parameter is missing or has another shape.
    pub fn new(input: usize, output: usize, vb: VarBuilder<'_>) -> Result<Self> {
        let bound = (6.0 / (input + output) as f64).sqrt();
        let init = Init::Uniform { lo: -bound, up: bound };
        Ok(Self {
            weight: vb.get_with_hints((output, input), "lin.weight", init)?,
            bias: vb.get_with_hints(output, "bias", Init::Const(0.0))?,
        })
    }

    /// `[nodes, input]`, some of it dropped, to `[nodes, output]`, finished for the next layer. The product and the sum over neighbours are done in `precision`, which
    /// is what PyTorch's autocast does; the parameters stay as they are.
    ///
    /// # Errors
    /// Shapes or number types do not fit.
    pub fn forward(
        &self,
        x: &NodeFeatures,
        input_dropout: Option<Dropout>,
        finished: Finish,
        graph: &Normalised,
        family: KernelFamily,
        precision: DType,
    ) -> Result<Tensor> {
        let weight = self.weight.to_dtype(precision)?;
        let projected = x.linear(&weight, input_dropout)?;
        let summed = family.aggregate(&graph.adjacency, Reduce::Sum, &projected, Some(&graph.weight))?;
        finish(&summed, &self.bias.to_dtype(precision)?, finished)
    }
}
