//! The two families of kernels behind one switch, equal in outputs and gradients.

use std::sync::Arc;

use candle_core::{D, Result, Tensor, bail};

use super::spmm::reduce_copies;
use super::{Operand, sddmm, softmax, spmm};
use gnntop_data::graph::{Adjacency, EdgeOp, Endpoint, Reduce};

/// How a layer computes its aggregation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelFamily {
    /// Gather the rows of the sources to the edges, compute there, scatter to the targets: messages of
    /// `[edges, features]` are stored, as PyTorch Geometric does.
    Scatter,
    /// g-SpMM and g-SDDMM: nothing edge-wise is stored, as in DGL.
    Spmm,
}

/// Rows of the sources or targets for every edge, `[edges, ...]`, in the order of [`Adjacency::sources`].
///
/// # Errors
/// `x` does not have one row for each node there, is not a float, or is not in host memory.
pub fn gather(adjacency: &Arc<Adjacency>, x: &Tensor, at: Endpoint) -> Result<Tensor> {
    sddmm(adjacency, EdgeOp::CopyLhs, Operand { rows: x, at }, None)
}

/// Reduces `messages`, `[edges, ...]`, into the target of each edge, `[targets, ...]`. A target without edges gets 0.
///
/// # Errors
/// `messages` does not have one row for each edge, is not a float, or is not in host memory.
pub fn scatter(adjacency: &Arc<Adjacency>, messages: &Tensor, reduce: Reduce) -> Result<Tensor> {
    reduce_copies(adjacency, reduce, messages, Endpoint::Edge)
}

impl KernelFamily {
    /// Reduces the rows of the sources over the edges into each target, each times the weight of its edge where there
    /// are weights.
    ///
    /// `x` is `[sources, F]`, with weights `[edges]` or `[edges, 1]`; or `[sources, heads, F]`, with weights
    /// `[edges, heads]` or `[edges, heads, 1]`. The result is `[targets, F]` or `[targets, heads, F]`.
    ///
    /// # Errors
    /// As [`spmm`].
    pub fn aggregate(
        self,
        adjacency: &Arc<Adjacency>,
        reduce: Reduce,
        x: &Tensor,
        edge_weight: Option<&Tensor>,
    ) -> Result<Tensor> {
        match (self, edge_weight) {
            (Self::Spmm, None) => spmm(adjacency, EdgeOp::CopyLhs, reduce, Some(x), None),
            (Self::Spmm, Some(weight)) => spmm(adjacency, EdgeOp::Mul, reduce, Some(x), Some(weight)),
            (Self::Scatter, weight) => {
                let mut messages = gather(adjacency, x, Endpoint::Source)?;
                if let Some(weight) = weight {
                    messages = messages.broadcast_mul(&weight_for(weight, &messages)?)?;
                }
                scatter(adjacency, &messages, reduce)
            }
        }
    }

    /// Attention of a graph attention layer: the softmax over the edges into each target of
    /// `leaky_relu(source_score[u] + target_score[v])`, `[edges, heads]`, from `[sources, heads]` and
    /// `[targets, heads]`.
    ///
    /// # Errors
    /// The scores do not have one row for each node, are not alike in heads and number type, are not floats, or are not
    /// in host memory.
    pub fn attention(
        self,
        adjacency: &Arc<Adjacency>,
        source_score: &Tensor,
        target_score: &Tensor,
        negative_slope: f64,
    ) -> Result<Tensor> {
        match self {
            Self::Spmm => softmax::attention(adjacency, source_score, target_score, negative_slope),
            Self::Scatter => {
                let of_sources = gather(adjacency, source_score, Endpoint::Source)?;
                let logits = (of_sources + gather(adjacency, target_score, Endpoint::Destination)?)?;
                let logits = candle_nn::ops::leaky_relu(&logits, negative_slope)?;
                let highest = scatter(adjacency, &logits.detach(), Reduce::Max)?;
                let exponentials = (logits - gather(adjacency, &highest, Endpoint::Destination)?)?.exp()?;
                let sums = scatter(adjacency, &exponentials, Reduce::Sum)?;
                exponentials / gather(adjacency, &sums, Endpoint::Destination)?
            }
        }
    }
}

/// Weights with the dimensions of the messages that they multiply.
fn weight_for(weight: &Tensor, messages: &Tensor) -> Result<Tensor> {
    let weight = if weight.rank() + 1 == messages.rank() { weight.unsqueeze(D::Minus1)? } else { weight.clone() };
    let fits = |(&weight, &message): (&usize, &usize)| weight == message || weight == 1;
    let same_rank = weight.rank() == messages.rank();
    if !same_rank
        || weight.dims().first() != messages.dims().first()
        || !weight.dims().iter().zip(messages.dims()).all(fits)
    {
        bail!("edge weights {:?} do not fit messages {:?}", weight.dims(), messages.dims());
    }
    Ok(weight)
}
