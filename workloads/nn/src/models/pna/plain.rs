//! One layer in the plain form, as PyTorch Geometric computes it: a message for every edge, every aggregate and every
//! scaled copy of it as its own tensor. The control for the fused form: slower, with the same results.

use std::sync::Arc;

use candle_core::{Result, Tensor};

use super::PnaConv;
use crate::kernels::{gather, scatter};
use gnntop_data::graph::{Adjacency, Endpoint, Reduce};

/// Below this variance the standard deviation counts as 0.
const SMALLEST_VARIANCE: f64 = 1e-5;

impl PnaConv {
    /// [`forward`](Self::forward) edge by edge.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn forward_plain(&self, x: &Tensor, adjacency: &Arc<Adjacency>, relu: bool) -> Result<Tensor> {
        let targets = gather(adjacency, x, Endpoint::Destination)?;
        let sources = gather(adjacency, x, Endpoint::Source)?;
        let messages = linear(&Tensor::cat(&[targets, sources], 1)?, &self.pre)?;
        let aggregates = aggregates(adjacency, &messages)?;
        let amplification = of_degree(x, adjacency, |degree| self.scalers.amplification(degree))?;
        let attenuation = of_degree(x, adjacency, |degree| self.scalers.attenuation(degree))?;
        let amplified = aggregates.broadcast_mul(&amplification)?;
        let attenuated = aggregates.broadcast_mul(&attenuation)?;
        let hidden = linear(&Tensor::cat(&[x, &aggregates, &amplified, &attenuated], 1)?, &self.post)?;
        let out = linear(&hidden, &self.lin)?;
        if relu { out.relu() } else { Ok(out) }
    }
}

fn linear(x: &Tensor, (weight, bias): &(Tensor, Tensor)) -> Result<Tensor> {
    x.matmul(&weight.t()?)?.broadcast_add(bias)
}

/// `mean | min | max | std` of the messages into each node, `[nodes, 4 width]`.
fn aggregates(adjacency: &Arc<Adjacency>, messages: &Tensor) -> Result<Tensor> {
    let mean = scatter(adjacency, messages, Reduce::Mean)?;
    let min = scatter(adjacency, messages, Reduce::Min)?;
    let max = scatter(adjacency, messages, Reduce::Max)?;
    let variance = (scatter(adjacency, &messages.sqr()?, Reduce::Mean)? - mean.sqr()?)?;
    let clamped = variance.maximum(SMALLEST_VARIANCE)?.sqrt()?;
    let counts = variance.gt(SMALLEST_VARIANCE)?;
    let std = counts.where_cond(&clamped, &clamped.zeros_like()?)?;
    Tensor::cat(&[mean, min, max, std], 1)
}

/// A factor for each node that depends on its in-degree, `[nodes, 1]`.
fn of_degree(x: &Tensor, adjacency: &Adjacency, factor: impl Fn(usize) -> f64) -> Result<Tensor> {
    let factors: Vec<f64> = (0..adjacency.nodes()).map(|node| factor(adjacency.in_degree(node))).collect();
    Tensor::from_vec(factors, (adjacency.nodes(), 1), x.device())?.to_dtype(x.dtype())
}
