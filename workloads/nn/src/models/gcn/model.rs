//! The whole network.

use std::sync::Arc;

use candle_core::{DType, Device, Result, Tensor, bail};
use candle_nn::VarBuilder;

use super::conv::{GcnConv, NodeFeatures};
use super::finish::{Dropout, Finish};
use super::fused::Layer;
use super::normalise::Normalised;
use crate::kernels::{KernelFamily, Workspaces};
use crate::models::chain::Chain;
use gnntop_data::graph::SparseMatrix;

/// Seeds of dropout from one step to the next: more than there are layers.
pub const SEEDS_OF_STEP: u64 = 31;

/// Sizes and rates of a [`Gcn`].
#[derive(Debug, Clone, PartialEq)]
pub struct GcnConfig {
    /// Features of a node.
    pub in_features: usize,
    /// Width of the layers between.
    pub hidden: usize,
    /// The number of classes.
    pub classes: usize,
    /// Layers, at least 1.
    pub layers: usize,
    /// Dropout of every layer's input while training.
    pub dropout: f64,
}

impl GcnConfig {
    /// Study 1's model for this data: two layers, 16 between, no dropout.
    #[must_use]
    pub fn study(in_features: usize, classes: usize) -> Self {
        Self { in_features, hidden: 16, classes, layers: 2, dropout: 0.0 }
    }

    /// The published recipe's: the same with dropout 0.5 (Kipf and Welling, section 5.2).
    #[must_use]
    pub fn reference(in_features: usize, classes: usize) -> Self {
        Self { dropout: 0.5, ..Self::study(in_features, classes) }
    }

    /// Number of trainable values.
    #[must_use]
    pub fn parameters(&self) -> usize {
        (0..self.layers).map(|layer| self.widths(layer)).map(|(input, output)| output * (input + 1)).sum()
    }

    /// Input and output width of a layer.
    fn widths(&self, layer: usize) -> (usize, usize) {
        let input = if layer == 0 { self.in_features } else { self.hidden };
        let output = if layer + 1 == self.layers { self.classes } else { self.hidden };
        (input, output)
    }
}

/// How a forward pass is computed.
#[derive(Debug, Clone, Copy)]
pub struct Computation {
    /// Which kernels sum over the neighbours.
    pub family: KernelFamily,
    /// Number type of products and sums.
    pub precision: DType,
    /// Seed of this step's dropout; none outside training.
    pub dropout_seed: Option<u64>,
}

impl Computation {
    /// Without dropout, in f32.
    #[must_use]
    pub fn evaluation(family: KernelFamily) -> Self {
        Self { family, precision: DType::F32, dropout_seed: None }
    }
}

/// Study 1's network: graph convolutions with ReLU between.
#[derive(Debug, Clone)]
pub struct Gcn {
    layers: Vec<GcnConv>,
    dropout: f64,
    workspaces: Workspaces,
}

impl Gcn {
    /// Reads or makes the parameters `convs.<layer>.*`, see [`GcnConv::new`].
    ///
    /// # Errors
    /// A size of `config` is 0, the dropout is not a probability below 1, or a parameter is missing or has another
    /// shape.
    pub fn new(config: &GcnConfig, vb: VarBuilder<'_>) -> Result<Self> {
        if [config.in_features, config.hidden, config.classes, config.layers].contains(&0) {
            bail!("gcn: a size is 0 in {config:?}");
        }
        if !(0.0..1.0).contains(&config.dropout) {
            bail!("gcn: dropout must be at least 0 and below 1, not {}", config.dropout);
        }
        let layer = |index: usize| {
            let (input, output) = config.widths(index);
            GcnConv::new(input, output, vb.pp("convs").pp(index))
        };
        let layers = (0..config.layers).map(layer).collect::<Result<_>>()?;
        Ok(Self { layers, dropout: config.dropout, workspaces: Workspaces::default() })
    }

    /// Number of layers.
    #[must_use]
    pub fn layers(&self) -> usize {
        self.layers.len()
    }

    /// Scores of the classes before the softmax, `[nodes, classes]`, f32 or f64.
    ///
    /// # Errors
    /// The features, graph and parameters do not fit together.
    pub fn forward(&self, x: &NodeFeatures, graph: &Normalised, pass: Computation) -> Result<Tensor> {
        self.forward_with(x, graph, pass, |_| ())
    }

    /// [`forward`](Self::forward), with a guard held while each layer runs, see [`crate::models::pna::Pna::forward_with`].
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn forward_with<G>(
        &self,
        x: &NodeFeatures,
        graph: &Normalised,
        pass: Computation,
        enter: impl FnMut(usize) -> G,
    ) -> Result<Tensor> {
        let is_constant = !graph.weight.track_op() && graph.weight.device().is_cpu();
        match x {
            NodeFeatures::Sparse(x)
                if is_constant && (pass.family, pass.precision) == (KernelFamily::Spmm, DType::F32) =>
            {
                self.forward_fused(x, graph, pass, enter)
            }
            _ => self.forward_plain(x, graph, pass, enter),
        }
    }

    /// Layer by layer in buffers from a workspace, without tensors in between.
    fn forward_fused<G>(
        &self,
        x: &Arc<SparseMatrix>,
        graph: &Normalised,
        pass: Computation,
        mut enter: impl FnMut(usize) -> G,
    ) -> Result<Tensor> {
        let neighbours = graph.to_dtype(DType::F32)?.matrix()?;
        if (x.rows(), x.columns()) != (neighbours.rows(), self.layers[0].weight.dim(1)?) {
            bail!("gcn: features of [{}, {}] fit neither the graph nor the first layer", x.rows(), x.columns());
        }
        let nothing = Tensor::zeros(0, DType::F32, &Device::Cpu)?;
        let mut chain = Chain::<f32>::start((&nothing).into(), &self.workspaces)?;
        for (index, layer) in self.layers.iter().enumerate() {
            let _guard = enter(index);
            let features = (index == 0).then(|| (x, self.input_dropout(pass, 0)));
            let finish = self.finish(pass, index);
            let fused = Layer::new(layer, features, Arc::clone(&neighbours), finish, &self.workspaces)?;
            chain = chain.push(Box::new(fused), !finish.relu)?;
        }
        Ok(chain.finish())
    }

    /// One operation after the other.
    pub(super) fn forward_plain<G>(
        &self,
        x: &NodeFeatures,
        graph: &Normalised,
        pass: Computation,
        mut enter: impl FnMut(usize) -> G,
    ) -> Result<Tensor> {
        let graph = &graph.to_dtype(pass.precision)?;
        let mut x = x.clone();
        for (index, layer) in self.layers.iter().enumerate() {
            let _guard = enter(index);
            let drop = if index == 0 { self.input_dropout(pass, 0) } else { None };
            let finish = self.finish(pass, index);
            let out = layer.forward(&x, drop, finish, graph, pass.family, pass.precision)?;
            if !finish.relu {
                return if pass.precision == DType::F64 { Ok(out) } else { out.to_dtype(DType::F32) };
            }
            x = NodeFeatures::Dense(out);
        }
        bail!("gcn: there are no layers")
    }

    /// What follows the sums of a layer: the dropout of every layer's input but the first's is done where that input is
    /// finished.
    fn finish(&self, pass: Computation, layer: usize) -> Finish {
        let is_inner = layer + 1 < self.layers.len();
        Finish { relu: is_inner, dropout: if is_inner { self.input_dropout(pass, layer + 1) } else { None } }
    }

    /// Each layer of each step drops other values.
    fn input_dropout(&self, pass: Computation, layer: usize) -> Option<Dropout> {
        let seed = pass.dropout_seed?.wrapping_mul(SEEDS_OF_STEP).wrapping_add(layer as u64);
        (self.dropout > 0.0).then_some(Dropout { p: self.dropout, seed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_study_has_23063_parameters_on_cora() {
        assert_eq!(GcnConfig::study(1433, 7).parameters(), 23_063);
        assert_eq!(GcnConfig::reference(1433, 7).dropout, 0.5);
    }
}
