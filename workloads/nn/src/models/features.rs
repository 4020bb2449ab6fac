//! The features of a batch's nodes as a model takes them.

use std::sync::Arc;

use candle_core::{Device, Result, Tensor, bail};

use gnntop_data::nodes::Features;
use gnntop_data::sampling::gather_features;

/// The features of a batch's nodes.
#[derive(Debug, Clone, Copy)]
pub enum FeatureRows<'a> {
    /// A row for each node, `[nodes, in_features]`.
    Gathered(&'a Tensor),
    /// Where they lie among those of all nodes of the graph, in host memory: the fused forms read dense ones there, so
    /// that nothing is gathered; for the others they are gathered now.
    InPlace {
        /// Of all nodes.
        table: &'a Arc<Features>,
        /// The nodes of the batch.
        nodes: &'a [u32],
    },
}

impl<'a> From<&'a Tensor> for FeatureRows<'a> {
    fn from(features: &'a Tensor) -> Self {
        Self::Gathered(features)
    }
}

impl FeatureRows<'_> {
    /// Rows and columns.
    ///
    /// # Errors
    /// A tensor is no matrix, or a node has no features.
    pub(super) fn shape(&self) -> Result<(usize, usize)> {
        match self {
            Self::Gathered(features) => features.dims2(),
            Self::InPlace { table, nodes } => {
                let last = nodes.iter().max().map_or(0, |&node| node as usize + 1);
                if last > table.rows() {
                    bail!("there are features for {} nodes, and none for node {}", table.rows(), last - 1);
                }
                Ok((nodes.len(), table.width()))
            }
        }
    }

    /// As a tensor, for which features in place are copied.
    ///
    /// # Errors
    /// candle refuses.
    pub(super) fn gathered(&self) -> Result<Tensor> {
        match self {
            Self::Gathered(features) => Ok((*features).clone()),
            Self::InPlace { table, nodes } => {
                let mut rows = Vec::new();
                gather_features(table, nodes, &mut rows, true);
                Tensor::from_vec(rows, (nodes.len(), table.width()), &Device::Cpu)
            }
        }
    }
}
