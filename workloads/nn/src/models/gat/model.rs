//! The whole model.

use std::sync::Arc;

use candle_core::{Result, Tensor};
use candle_nn::VarBuilder;

use super::{GatConfig, GatConv, SelfLoops, fused, on_device, with_self_loops};
use crate::cuda;
use crate::kernels::Lanes;
use crate::models::chain::ChainLayer;
use crate::models::layered::{Convolution, Evaluation, Layered, Stack, dropped};

/// A graph attention network.
pub type Gat = Layered<GatConv, GatConfig>;

impl Convolution<GatConfig> for GatConv {
    const NAME: &'static str = "gat";

    fn stack(config: &GatConfig) -> Result<Stack> {
        config.check()?;
        Ok(Stack { layers: config.layers, in_features: config.in_features, fused: config.fused() })
    }

    fn make(config: &GatConfig, index: usize, vb: VarBuilder<'_>) -> Result<Self> {
        let (input, heads, width) = config.widths(index);
        Self::new(input, heads, width, config.negative_slope, vb)
    }

    fn plain(&self, at: &Evaluation<'_, GatConfig>, x: &Tensor) -> Result<Tensor> {
        let x = dropped(x.clone(), at.drop_features(at.index))?;
        let edges = match at.config.self_loops {
            SelfLoops::Replaced => with_self_loops(at.edges)?,
            SelfLoops::AsGiven => Arc::clone(at.edges),
        };
        let x = self.forward(&x, &edges, at.config.kernels, at.drop_attention())?;
        if at.is_inner { x.elu(1.0) } else { Ok(x) }
    }

    fn fused<T: Lanes>(&self, at: &Evaluation<'_, GatConfig>) -> Result<Box<dyn ChainLayer<T>>> {
        Ok(Box::new(fused::Layer::new(self, at)?))
    }

    fn on_device(&self, at: &Evaluation<'_, GatConfig>) -> Result<Box<dyn cuda::ChainLayer>> {
        at.config.matmul_precision.check_is_f32("the form for GPUs")?;
        Ok(Box::new(on_device::Layer::new(self, at)?))
    }
}
