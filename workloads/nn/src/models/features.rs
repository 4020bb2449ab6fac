//! The features of a batch's nodes as a model takes them.

use std::sync::Arc;

use candle_core::{Device, Result, Tensor, bail};
use half::bf16;

use crate::kernels::{Lanes, MatmulPrecision, Selected, Stored, Values};
use gnntop_data::nodes::Features;
use gnntop_data::sampling::gather_features;

/// The dense features of all nodes of a graph, in host memory, as a model in f32 reads them in place.
#[derive(Debug, Clone)]
pub enum FeatureTable {
    /// As they are.
    Exact(Arc<Features>),
    /// As products of bf16 take them: half the memory to read.
    Rounded {
        /// `[nodes, width]`
        values: Arc<[bf16]>,
        /// Features per node.
        width: usize,
    },
}

impl FeatureTable {
    /// Of `features`, as products of this precision take them; `None` if they are not dense.
    #[must_use]
    pub fn new(features: &Arc<Features>, precision: MatmulPrecision) -> Option<Self> {
        let (values, width) = features.dense()?;
        Some(match precision {
            MatmulPrecision::F32 => Self::Exact(Arc::clone(features)),
            MatmulPrecision::Bf16 => {
                Self::Rounded { values: values.iter().map(|&value| bf16::narrow(value)).collect(), width }
            }
        })
    }

    /// Features per node.
    fn width(&self) -> usize {
        match self {
            Self::Exact(features) => features.width(),
            Self::Rounded { width, .. } => *width,
        }
    }

    /// Nodes.
    fn rows(&self) -> usize {
        match self {
            Self::Exact(features) => features.rows(),
            Self::Rounded { values, width } => values.len() / (*width).max(1),
        }
    }

    /// The rows of these nodes.
    ///
    /// # Errors
    /// The model is not in f32, or the features are not dense.
    pub(super) fn selected<'a, T: Lanes>(&'a self, nodes: &'a [u32]) -> Result<Selected<'a, T>> {
        let values = match self {
            Self::Exact(features) => features.dense().and_then(|(values, _)| T::of_singles(values)).map(Values::Exact),
            Self::Rounded { values, .. } => T::of_halves(values).map(Values::Rounded),
        };
        match values {
            Some(values) => Ok(Selected::some(values, self.width(), nodes)),
            None => bail!("features can be read in place only where they are dense and the model is in f32"),
        }
    }

    /// A copy of the rows of these nodes.
    fn gathered(&self, nodes: &[u32]) -> Vec<f32> {
        match self {
            Self::Exact(features) => {
                let mut rows = Vec::new();
                gather_features(features, nodes, &mut rows, true);
                rows
            }
            Self::Rounded { values, width } => {
                let row = |&node: &u32| values[node as usize * width..][..*width].iter().map(|value| value.widen());
                nodes.iter().flat_map(row).collect()
            }
        }
    }
}

/// The features of a batch's nodes.
#[derive(Debug, Clone, Copy)]
pub enum FeatureRows<'a> {
    /// A row for each node, `[nodes, in_features]`.
    Gathered(&'a Tensor),
    /// Where they lie among those of all nodes of the graph, in host memory: the fused forms read dense ones there, so
    /// that nothing is gathered; for the others they are gathered now.
    InPlace {
        /// Of all nodes.
        table: &'a FeatureTable,
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
                Tensor::from_vec(table.gathered(nodes), (nodes.len(), table.width()), &Device::Cpu)
            }
        }
    }
}
