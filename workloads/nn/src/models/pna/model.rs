//! The whole model: layers, then the maximum over each graph's nodes.

use std::sync::Arc;

use candle_core::{Result, Tensor};
use candle_nn::VarBuilder;

use super::{DegreeScalers, DeviceBatch, PnaConfig, PnaConv};
use crate::kernels::{Workspaces, segment_max};

/// Study 0's model. It has neither normalisation nor skip connections, and no head after the pooling.
#[derive(Debug, Clone)]
pub struct Pna {
    layers: Vec<PnaConv>,
    workspaces: Arc<Workspaces>,
    plain: bool,
}

impl Pna {
    /// Reads or makes the parameters `convs.<layer>.*`, see [`PnaConv::new`].
    ///
    /// # Errors
    /// A size of `config` is 0, or a parameter is missing or has another shape.
    pub fn new(config: &PnaConfig, vb: VarBuilder<'_>) -> Result<Self> {
        config.check()?;
        let scalers = DegreeScalers { average_log_degree: config.average_log_degree };
        let layer = |index: usize| {
            let (input, output) = config.widths(index);
            PnaConv::new(input, output, scalers, vb.pp("convs").pp(index))
        };
        Ok(Self {
            layers: (0..config.layers).map(layer).collect::<Result<_>>()?,
            workspaces: Arc::default(),
            plain: config.plain,
        })
    }

    /// Number of layers.
    #[must_use]
    pub fn layers(&self) -> usize {
        self.layers.len()
    }

    /// Predictions, `[graphs, out_features]`, in the order of the batch.
    ///
    /// # Errors
    /// The batch has another number of features, number type or device than the parameters.
    pub fn forward(&self, batch: &DeviceBatch) -> Result<Tensor> {
        self.forward_with(batch, |_| ())
    }

    /// [`forward`](Self::forward), with a guard held while each layer runs: `enter` is called with the layer's number
    /// before it, and what it returns is dropped after it. A profiler's span fits.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn forward_with<G>(&self, batch: &DeviceBatch, mut enter: impl FnMut(usize) -> G) -> Result<Tensor> {
        let mut x = batch.features().clone();
        for (index, layer) in self.layers.iter().enumerate() {
            let _guard = enter(index);
            let last = index + 1 == self.layers.len();
            x = match self.plain {
                true => layer.forward_plain(&x, batch.adjacency(), !last)?,
                false => layer.forward(&x, batch.adjacency(), &self.workspaces, !last)?,
            };
        }
        segment_max(&x, batch.segments())
    }
}
