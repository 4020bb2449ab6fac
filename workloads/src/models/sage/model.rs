//! The whole model.

use std::sync::Arc;

use candle_core::{DType, Result, Tensor, bail};
use candle_nn::VarBuilder;

use super::fused::Chain;
use super::{SageConfig, SageConv};
use crate::graph::Adjacency;
use crate::kernels::{Lanes, Workspaces, dropout};
use crate::models::{NodeModel, Pass, check_nodes, edges_of};

/// GraphSAGE.
#[derive(Debug, Clone)]
pub struct Sage {
    config: SageConfig,
    convs: Vec<SageConv>,
    workspaces: Workspaces,
}

impl Sage {
    /// The settings it was made with.
    #[must_use]
    pub fn config(&self) -> &SageConfig {
        &self.config
    }

    fn plain<G>(
        &self,
        features: &Tensor,
        layers: &[Arc<Adjacency>],
        pass: Pass,
        mut enter: impl FnMut(usize) -> G,
    ) -> Result<Tensor> {
        let mut x = features.clone();
        for (index, conv) in self.convs.iter().enumerate() {
            let _guard = enter(index);
            x = conv.forward(&x, edges_of(layers, index), self.config.kernels)?;
            if index + 1 < self.convs.len() {
                x = x.relu()?;
                if let Some((probability, seed)) = pass.dropout(self.config.dropout, index) {
                    x = dropout(&x, probability, seed)?;
                }
            }
        }
        Ok(x)
    }

    fn fused<T: Lanes, G>(
        &self,
        features: &Tensor,
        layers: &[Arc<Adjacency>],
        pass: Pass,
        mut enter: impl FnMut(usize) -> G,
    ) -> Result<Tensor> {
        let mut chain = Chain::<T>::start(features, &self.workspaces)?;
        for (index, conv) in self.convs.iter().enumerate() {
            let _guard = enter(index);
            let inner = index + 1 < self.convs.len();
            let drop = if inner { pass.dropout(self.config.dropout, index) } else { None };
            chain = chain.layer(conv, edges_of(layers, index), inner, drop)?;
        }
        chain.finish()
    }

    /// The fused form with the kernels of a GPU, in any number type.
    pub(super) fn fused_on_device<G>(
        &self,
        features: &Tensor,
        layers: &[Arc<Adjacency>],
        pass: Pass,
        mut enter: impl FnMut(usize) -> G,
    ) -> Result<Tensor> {
        let mut chain = crate::cuda::Chain::start(features)?;
        for (index, conv) in self.convs.iter().enumerate() {
            let _guard = enter(index);
            let inner = index + 1 < self.convs.len();
            let drop = if inner { pass.dropout(self.config.dropout, index) } else { None };
            chain = super::on_device::push(chain, conv, edges_of(layers, index), inner, drop)?;
        }
        Ok(chain.finish())
    }
}

impl NodeModel for Sage {
    type Config = SageConfig;

    fn new(config: &SageConfig, vb: VarBuilder<'_>) -> Result<Self> {
        config.check()?;
        let conv = |layer: usize| {
            let (input, output) = config.widths(layer);
            SageConv::new(input, output, vb.pp("convs").pp(layer))
        };
        let convs = (0..config.layers).map(conv).collect::<Result<_>>()?;
        Ok(Self { config: config.clone(), convs, workspaces: Workspaces::default() })
    }

    fn layers(&self) -> usize {
        self.convs.len()
    }

    fn forward_with<G>(
        &self,
        features: &Tensor,
        layers: &[Arc<Adjacency>],
        pass: Pass,
        enter: impl FnMut(usize) -> G,
    ) -> Result<Tensor> {
        check_nodes(features, self.config.in_features, layers, self.convs.len())?;
        if self.config.fused() && features.device().is_cuda() {
            return self.fused_on_device(features, layers, pass, enter);
        }
        match (self.config.fused() && features.device().is_cpu(), features.dtype()) {
            (false, _) => self.plain(features, layers, pass, enter),
            (true, DType::F32) => self.fused::<f32, G>(features, layers, pass, enter),
            (true, DType::F64) => self.fused::<f64, G>(features, layers, pass, enter),
            (true, other) => {
                bail!("sage: the fused form takes f32 or f64 features, not {other:?}; take the plain form")
            }
        }
    }
}
