//! The whole model.

use std::sync::Arc;

use candle_core::{Result, Tensor};
use candle_nn::VarBuilder;

use super::dropouts::Dropouts;
use super::fused;
use super::on_device;
use super::{GatConfig, GatConv, SelfLoops, with_self_loops};
use crate::kernels::{Lanes, Workspaces, dropout};
use crate::models::layered::{self, LayeredModel, Stack};
use crate::models::{NodeModel, Pass};
use gnntop_data::graph::Adjacency;

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

    /// Whether ELU follows a layer.
    fn is_inner(&self, layer: usize) -> bool {
        layer + 1 < self.convs.len()
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

    /// All dropouts of a layer of the fused form.
    fn dropouts(&self, pass: Pass, layer: usize) -> Dropouts {
        Dropouts {
            input: if layer == 0 { self.drop_features(pass, 0) } else { None },
            attention: self.drop_attention(pass, layer),
            output: if self.is_inner(layer) { self.drop_features(pass, layer + 1) } else { None },
        }
    }
}

impl LayeredModel for Gat {
    const NAME: &'static str = "gat";
    type Fused<T: Lanes> = fused::Layer<T>;
    type OnDevice = on_device::Layer;

    fn stack(&self) -> Stack<'_> {
        Stack {
            layers: self.convs.len(),
            in_features: self.config.in_features,
            is_fused: self.config.fused(),
            workspaces: &self.workspaces,
        }
    }

    fn plain_layer(&self, index: usize, x: &Tensor, edges: &Arc<Adjacency>, pass: Pass) -> Result<Tensor> {
        let x = match self.drop_features(pass, index) {
            Some((probability, seed)) => &dropout(x, probability, seed)?,
            None => x,
        };
        let edges = match self.config.self_loops {
            SelfLoops::Replaced => with_self_loops(edges)?,
            SelfLoops::AsGiven => Arc::clone(edges),
        };
        let x = self.convs[index].forward(x, &edges, self.config.kernels, self.drop_attention(pass, index))?;
        if self.is_inner(index) { x.elu(1.0) } else { Ok(x) }
    }

    fn fused_layer<T: Lanes>(
        &self,
        index: usize,
        edges: &Arc<Adjacency>,
        pass: Pass,
        _with_input: bool,
    ) -> Result<fused::Layer<T>> {
        let dropouts = (self.is_inner(index), self.dropouts(pass, index));
        fused::Layer::new(&self.convs[index], edges, self.config.self_loops, dropouts, &self.workspaces)
    }

    fn layer_on_device(
        &self,
        index: usize,
        edges: &Arc<Adjacency>,
        pass: Pass,
        _with_input: bool,
    ) -> Result<on_device::Layer> {
        let dropouts = (self.is_inner(index), self.dropouts(pass, index));
        on_device::Layer::new(&self.convs[index], edges, self.config.self_loops, dropouts)
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
        layered::forward(self, features, layers, pass, enter)
    }
}
