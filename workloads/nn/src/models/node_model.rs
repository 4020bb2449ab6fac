//! A model that classifies nodes, as a trainer and a benchmark drive it.

use std::sync::Arc;

use candle_core::{Result, Tensor, bail};
use candle_nn::VarBuilder;

use super::FeatureRows;
use crate::kernels::MatmulPrecision;
use gnntop_data::graph::Adjacency;

/// The purpose of a forward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// To judge: no dropout.
    Evaluate,
    /// Training: dropout with masks that follow from `seed`. Use another seed for every step.
    Train {
        /// Where the masks of this step come from.
        seed: u64,
    },
}

impl Pass {
    /// Probability and seed of one of a model's dropouts in this pass, or `None` if it drops nothing. `stream` is the
    /// number of the dropout, counted over the whole model.
    #[must_use]
    pub fn dropout(self, probability: f64, stream: usize) -> Option<(f64, u64)> {
        match self {
            // An odd multiplier is a bijection, so that no two steps share the seed of one stream.
            Self::Train { seed } if probability != 0.0 => {
                let stream = (stream as u64).wrapping_mul(0xd134_2543_de82_ef95);
                Some((probability, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ stream))
            }
            _ => None,
        }
    }
}

/// A model that gives every node of a graph, or of the last block of a sample, one number per class.
pub trait NodeModel: Sized {
    /// Its sizes, its variant, and the form in which it is computed.
    type Config;

    /// Reads or makes the parameters `convs.<layer>.*`.
    ///
    /// # Errors
    /// `config` is impossible, or a parameter is missing or has another shape.
    fn new(config: &Self::Config, vb: VarBuilder<'_>) -> Result<Self>;

    /// Number of layers.
    fn layers(&self) -> usize;

    /// Whether it reads features where they are, see [`FeatureRows::InPlace`], and as products of which precision take them.
    fn reads_in_place(&self) -> Option<MatmulPrecision>;

    /// `features`, `[sources of the first layer, in_features]`, to logits, `[targets of the last layer, classes]`.
    ///
    /// `layers` are the edges: one adjacency that every layer runs on (a whole graph, or a sample as one subgraph), or
    /// one for each layer, the outermost hop first (blocks). `enter` is called with a layer's number before it, and what
    /// it returns is dropped after it: a profiler's span fits.
    ///
    /// # Errors
    /// Features and edges do not fit each other or the parameters.
    fn forward_with<'a, G>(
        &self,
        features: impl Into<FeatureRows<'a>>,
        layers: &[Arc<Adjacency>],
        pass: Pass,
        enter: impl FnMut(usize) -> G,
    ) -> Result<Tensor>;

    /// [`forward_with`](Self::forward_with) without guards.
    ///
    /// # Errors
    /// As [`forward_with`](Self::forward_with).
    fn forward<'a>(
        &self,
        features: impl Into<FeatureRows<'a>>,
        layers: &[Arc<Adjacency>],
        pass: Pass,
    ) -> Result<Tensor> {
        self.forward_with(features, layers, pass, |_| ())
    }
}

/// The edges that layer `layer` runs on.
pub(super) fn edges_of(layers: &[Arc<Adjacency>], layer: usize) -> &Arc<Adjacency> {
    &layers[layer.min(layers.len() - 1)]
}

/// Whether `features` have this width and as many rows as the edges say, and each layer's edges start where the layer
/// before ends.
pub(super) fn check_nodes(
    features: FeatureRows<'_>,
    width: usize,
    layers: &[Arc<Adjacency>],
    count: usize,
) -> Result<()> {
    if layers.len() != 1 && layers.len() != count {
        bail!("{} adjacencies for {count} layers; give one for all or one for each", layers.len());
    }
    let (mut rows, columns) = features.shape()?;
    if columns != width {
        bail!("expected features [nodes, {width}], got [{rows}, {columns}]");
    }
    for layer in 0..count {
        let edges = edges_of(layers, layer);
        let (sources, targets) = (edges.source_nodes(), edges.nodes());
        if sources != rows || targets > rows {
            bail!("layer {layer} has {rows} rows, but edges from {sources} nodes to {targets} of them");
        }
        rows = targets;
    }
    if rows == 0 {
        bail!("the sample has no nodes; there is nothing to compute");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_and_stream_has_its_own_mask() {
        let seeds: std::collections::HashSet<u64> = (0..100)
            .flat_map(|seed| (0..8).map(move |stream| Pass::Train { seed }.dropout(0.5, stream).unwrap().1))
            .collect();
        assert_eq!(seeds.len(), 800);
        assert_eq!(Pass::Evaluate.dropout(0.5, 0), None);
        assert_eq!(Pass::Train { seed: 1 }.dropout(0.0, 0), None);
    }
}
