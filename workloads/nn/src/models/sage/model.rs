//! The whole model.

use std::sync::Arc;

use candle_core::{Result, Tensor};
use candle_nn::VarBuilder;

use super::fused;
use super::on_device;
use super::{SageConfig, SageConv};
use crate::kernels::{Lanes, Workspaces, dropout};
use crate::models::layered::{self, LayeredModel, Stack};
use crate::models::{NodeModel, Pass};
use gnntop_data::graph::Adjacency;

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

    /// Whether ReLU and dropout follow a layer.
    fn is_inner(&self, layer: usize) -> bool {
        layer + 1 < self.convs.len()
    }

    /// Probability and seed of the dropout after a layer.
    fn dropout(&self, pass: Pass, layer: usize) -> Option<(f64, u64)> {
        if self.is_inner(layer) { pass.dropout(self.config.dropout, layer) } else { None }
    }
}

impl LayeredModel for Sage {
    const NAME: &'static str = "sage";
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
        let x = self.convs[index].forward(x, edges, self.config.kernels)?;
        let x = if self.is_inner(index) { x.relu()? } else { x };
        match self.dropout(pass, index) {
            Some((probability, seed)) => dropout(&x, probability, seed),
            None => Ok(x),
        }
    }

    fn fused_layer<T: Lanes>(
        &self,
        index: usize,
        edges: &Arc<Adjacency>,
        pass: Pass,
        with_input: bool,
    ) -> Result<fused::Layer<T>> {
        let (conv, drop) = (&self.convs[index], self.dropout(pass, index));
        fused::Layer::new(conv, edges, (self.is_inner(index), drop), with_input, &self.workspaces)
    }

    fn layer_on_device(
        &self,
        index: usize,
        edges: &Arc<Adjacency>,
        pass: Pass,
        with_input: bool,
    ) -> Result<on_device::Layer> {
        on_device::Layer::new(&self.convs[index], edges, (self.is_inner(index), self.dropout(pass, index)), with_input)
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
        layered::forward(self, features, layers, pass, enter)
    }
}
