//! The whole model.

use std::sync::Arc;

use candle_core::{DType, Result, Tensor, bail};
use candle_nn::VarBuilder;

use super::fused::{Chain, Dropouts};
use super::{GatConfig, GatConv, SelfLoops, with_self_loops};
use crate::graph::Adjacency;
use crate::kernels::{Lanes, Workspaces, dropout};
use crate::models::{NodeModel, Pass, check_nodes, edges_of};

/// A graph attention network.
#[derive(Debug, Clone)]
pub struct Gat {
    config: GatConfig,
    convs: Vec<GatConv>,
    workspaces: Workspaces,
}

impl Gat {
    /// The settings it was made with.
    #[must_use]
    pub fn config(&self) -> &GatConfig {
        &self.config
    }

    /// Probability and seed of the dropout of what layer `layer` reads.
    fn drop_features(&self, pass: Pass, layer: usize) -> Option<(f64, u64)> {
        let probability = if layer == 0 { self.config.dropout.input } else { self.config.dropout.hidden };
        pass.dropout(probability, 2 * layer)
    }

    /// The same of its attention.
    fn drop_attention(&self, pass: Pass, layer: usize) -> Option<(f64, u64)> {
        pass.dropout(self.config.attention_dropout(layer), 2 * layer + 1)
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
            if let Some((probability, seed)) = self.drop_features(pass, index) {
                x = dropout(&x, probability, seed)?;
            }
            let edges = match self.config.self_loops {
                SelfLoops::Replaced => with_self_loops(edges_of(layers, index))?,
                SelfLoops::AsGiven => Arc::clone(edges_of(layers, index)),
            };
            x = conv.forward(&x, &edges, self.config.kernels, self.drop_attention(pass, index))?;
            if index + 1 < self.convs.len() {
                x = x.elu(1.0)?;
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
            let dropouts = self.dropouts(pass, index);
            chain = chain.layer(conv, edges_of(layers, index), self.config.self_loops, inner, dropouts)?;
        }
        chain.finish()
    }

    /// All dropouts of a layer of the fused form.
    fn dropouts(&self, pass: Pass, layer: usize) -> Dropouts {
        let inner = layer + 1 < self.convs.len();
        Dropouts {
            input: if layer == 0 { self.drop_features(pass, 0) } else { None },
            attention: self.drop_attention(pass, layer),
            output: if inner { self.drop_features(pass, layer + 1) } else { None },
        }
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
            let (inner, dropouts) = (index + 1 < self.convs.len(), self.dropouts(pass, index));
            let edges = edges_of(layers, index);
            chain = super::on_device::push(chain, conv, edges, self.config.self_loops, inner, dropouts)?;
        }
        Ok(chain.finish())
    }
}

impl NodeModel for Gat {
    type Config = GatConfig;

    fn new(config: &GatConfig, vb: VarBuilder<'_>) -> Result<Self> {
        config.check()?;
        let conv = |layer: usize| {
            let (input, heads, width) = config.widths(layer);
            GatConv::new(input, heads, width, config.negative_slope, vb.pp("convs").pp(layer))
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
            (true, other) => bail!("gat: the fused form takes f32 or f64 features, not {other:?}; take the plain form"),
        }
    }
}
