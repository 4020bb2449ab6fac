//! The whole model.

use candle_core::{Result, Tensor};
use candle_nn::VarBuilder;

use super::{SageConfig, SageConv, fused, on_device};
use crate::cuda;
use crate::kernels::Lanes;
use crate::models::chain::ChainLayer;
use crate::models::layered::{Convolution, Evaluation, Layered, Stack, dropped};

/// GraphSAGE.
pub type Sage = Layered<SageConv, SageConfig>;

impl Evaluation<'_, SageConfig> {
    /// Probability and seed of the dropout after the layer.
    pub(super) fn dropout(&self) -> Option<(f64, u64)> {
        if self.is_inner { self.pass.dropout(self.config.dropout, self.index) } else { None }
    }
}

impl Convolution<SageConfig> for SageConv {
    const NAME: &'static str = "sage";

    fn stack(config: &SageConfig) -> Result<Stack> {
        config.check()?;
        Ok(Stack { layers: config.layers, in_features: config.in_features, fused: config.fused() })
    }

    fn make(config: &SageConfig, index: usize, vb: VarBuilder<'_>) -> Result<Self> {
        let (input, output) = config.widths(index);
        Self::new(input, output, vb)
    }

    fn plain(&self, at: &Evaluation<'_, SageConfig>, x: &Tensor) -> Result<Tensor> {
        let x = self.forward(x, at.edges, at.config.kernels)?;
        dropped(if at.is_inner { x.relu()? } else { x }, at.dropout())
    }

    fn fused<T: Lanes>(&self, at: &Evaluation<'_, SageConfig>) -> Result<Box<dyn ChainLayer<T>>> {
        Ok(Box::new(fused::Layer::new(self, at)?))
    }

    fn on_device(&self, at: &Evaluation<'_, SageConfig>) -> Result<Box<dyn cuda::ChainLayer>> {
        at.config.matmul_precision.check_is_f32("the form for GPUs")?;
        Ok(Box::new(on_device::Layer::new(self, at)?))
    }
}
