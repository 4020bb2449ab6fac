//! GIN, the graph isomorphism network (Xu et al., *How powerful are graph neural networks?*, 2019, equation 4.1), for nodes.
//!
//! Layer l computes `MLP((1 + eps) x_i + sum_j x_j)` over the in-neighbours j, with eps = 0 and an MLP of two linear layers
//! with ReLU between; then ReLU and dropout except after the last layer. Parameters have PyTorch Geometric's names and
//! shapes (`GINConv` around `Sequential(Linear, ReLU, Linear)`), so its checkpoints load.
//!
//! There is one form, operation by operation: most of its time is in matrix products, which fusing would not change.

use std::sync::Arc;

use candle_core::{Result, Tensor, bail};
use candle_nn::{Init, Linear, Module, VarBuilder};

use super::layered::{Convolution, Evaluation, Layered, Stack, dropped};
use crate::kernels::KernelFamily;
use gnntop_data::graph::{Adjacency, Reduce};

/// Sizes of a [`Gin`].
#[derive(Debug, Clone, PartialEq)]
pub struct GinConfig {
    /// Features per node.
    pub in_features: usize,
    /// Width between layers, and inside every MLP.
    pub hidden: usize,
    /// Classes: numbers that the last layer gives for a node.
    pub classes: usize,
    /// Number of layers, one for each hop of a sample.
    pub layers: usize,
    /// Probability of dropout after every layer but the last.
    pub dropout: f64,
    /// Kernels that sum over neighbours.
    pub kernels: KernelFamily,
}

impl GinConfig {
    /// Input and output width of layer `layer`.
    fn widths(&self, layer: usize) -> (usize, usize) {
        let input = if layer == 0 { self.in_features } else { self.hidden };
        let output = if layer + 1 == self.layers { self.classes } else { self.hidden };
        (input, output)
    }

    /// Number of trainable values.
    #[must_use]
    pub fn parameters(&self) -> usize {
        let of_layer = |(input, output)| (input + 1) * self.hidden + (self.hidden + 1) * output;
        (0..self.layers).map(|layer| of_layer(self.widths(layer))).sum()
    }

    /// # Errors
    /// A size is 0, or the dropout is not a probability below 1.
    fn check(&self) -> Result<()> {
        if [self.in_features, self.hidden, self.classes, self.layers].contains(&0) {
            bail!("gin: features, hidden width, classes and layers must be at least 1: {self:?}");
        }
        if !(0.0..1.0).contains(&self.dropout) {
            bail!("gin: dropout must be at least 0 and below 1, not {}", self.dropout);
        }
        Ok(())
    }
}

/// The MLP of a layer: its two linear layers.
#[derive(Debug, Clone)]
pub struct GinConv([Linear; 2]);

impl GinConv {
    /// Reads `nn.0.*` and `nn.2.*`, as `Sequential(Linear, ReLU, Linear)` names them.
    fn new((input, output): (usize, usize), hidden: usize, vb: &VarBuilder<'_>) -> Result<Self> {
        let nn = vb.pp("nn");
        Ok(Self([linear(input, hidden, &nn.pp(0))?, linear(hidden, output, &nn.pp(2))?]))
    }

    /// `[sources, input]` to `[targets, output]`. In a block the targets are the first of the sources.
    fn forward(&self, x: &Tensor, edges: &Arc<Adjacency>, kernels: KernelFamily) -> Result<Tensor> {
        let sum = kernels.aggregate(edges, Reduce::Sum, x, None)?;
        let own = x.narrow(0, 0, edges.nodes())?;
        self.0[1].forward(&self.0[0].forward(&(sum + own)?)?.relu()?)
    }
}

/// New parameters are uniform within `1 / sqrt(input)`, as PyTorch's.
fn linear(input: usize, output: usize, vb: &VarBuilder<'_>) -> Result<Linear> {
    let bound = 1.0 / (input as f64).sqrt();
    let init = Init::Uniform { lo: -bound, up: bound };
    let weight = vb.get_with_hints((output, input), "weight", init)?;
    Ok(Linear::new(weight, Some(vb.get_with_hints(output, "bias", init)?)))
}

/// The graph isomorphism network.
pub type Gin = Layered<GinConv, GinConfig>;

impl Convolution<GinConfig> for GinConv {
    const NAME: &'static str = "gin";

    fn stack(config: &GinConfig) -> Result<Stack> {
        config.check()?;
        Ok(Stack { layers: config.layers, in_features: config.in_features, fused: None })
    }

    fn make(config: &GinConfig, index: usize, vb: VarBuilder<'_>) -> Result<Self> {
        Self::new(config.widths(index), config.hidden, &vb)
    }

    fn plain(&self, at: &Evaluation<'_, GinConfig>, x: &Tensor) -> Result<Tensor> {
        let x = self.forward(x, at.edges, at.config.kernels)?;
        if !at.is_inner {
            return Ok(x);
        }
        dropped(x.relu()?, at.pass.dropout(at.config.dropout, at.index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: GinConfig =
        GinConfig { in_features: 13, hidden: 16, classes: 5, layers: 3, dropout: 0.5, kernels: KernelFamily::Spmm };

    #[test]
    fn parameters_are_counted_by_hand() {
        let (first, inner, last) = (14 * 16 + 17 * 16, 17 * 16 + 17 * 16, 17 * 16 + 17 * 5);
        assert_eq!(SMALL.parameters(), first + inner + last);
    }

    #[test]
    fn impossible_settings_are_refused() {
        assert!(SMALL.check().is_ok());
        assert!(GinConfig { layers: 0, ..SMALL }.check().is_err());
        assert!(GinConfig { dropout: 1.0, ..SMALL }.check().is_err());
    }
}
