//! Sizes of the model, its variants, and how it is computed.

use candle_core::{Result, bail};

use crate::kernels::{KernelFamily, MatmulPrecision};

/// How edges from a node to itself are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelfLoops {
    /// As PyTorch Geometric: existing ones do not count, and every target attends to itself once.
    Replaced,
    /// As DGL: a node attends to itself if the graph, or its sample, has such an edge. A target without any edge gets
    /// only the bias.
    AsGiven,
}

/// Probabilities of dropout.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GatDropout {
    /// Of the features that the first layer reads.
    pub input: f64,
    /// Of the input of the other layers, after ELU.
    pub hidden: f64,
    /// Of the attention weights in all layers but the last.
    pub attention: f64,
    /// Of the attention weights in the last layer.
    pub last_attention: f64,
}

/// Sizes of a [`Gat`](super::Gat), its variant, and the form in which it is computed. All forms give the same numbers,
/// up to the order of summation, with the same dropout masks.
#[derive(Debug, Clone, PartialEq)]
pub struct GatConfig {
    /// Features per node.
    pub in_features: usize,
    /// Width of one head in all layers but the last.
    pub hidden: usize,
    /// Heads in all layers but the last, side by side in the result.
    pub heads: usize,
    /// Heads of the last layer, side by side as well: 1 in a classifier.
    pub last_heads: usize,
    /// Classes: numbers that each head of the last layer gives for a node.
    pub classes: usize,
    /// Number of layers, one for each hop of a sample.
    pub layers: usize,
    /// Slope of the leaky ReLU for negative scores.
    pub negative_slope: f64,
    /// Dropout in training.
    pub dropout: GatDropout,
    /// What becomes of self-loops.
    pub self_loops: SelfLoops,
    /// Kernels that the plain form aggregates with.
    pub kernels: KernelFamily,
    /// One operation after the other, as the formula reads. Otherwise the fused form runs, with [`KernelFamily::Spmm`].
    pub plain: bool,
    /// What the fused form on the CPU multiplies in its products with weights.
    pub matmul_precision: MatmulPrecision,
}

impl Default for GatConfig {
    /// [`pyg`](Self::pyg).
    fn default() -> Self {
        Self::pyg()
    }
}

impl GatConfig {
    /// Study 2's model on Reddit as its PyTorch Geometric program has it: 10,763 parameters; attention dropped in the
    /// first two layers, activations after each ELU, the features not; self-loops replaced.
    #[must_use]
    pub fn pyg() -> Self {
        Self {
            in_features: 602,
            hidden: 16,
            heads: 1,
            last_heads: 1,
            classes: 41,
            layers: 3,
            negative_slope: 0.2,
            dropout: GatDropout { input: 0.0, hidden: 0.6, attention: 0.6, last_attention: 0.0 },
            self_loops: SelfLoops::Replaced,
            kernels: KernelFamily::Spmm,
            plain: false,
            matmul_precision: MatmulPrecision::F32,
        }
    }

    /// Study 2's model as its DGL program has it: input features and attention dropped in all three layers; self-loops
    /// only where the graph has them.
    #[must_use]
    pub fn dgl() -> Self {
        let dropout = GatDropout { input: 0.6, hidden: 0.6, attention: 0.6, last_attention: 0.6 };
        Self { dropout, self_loops: SelfLoops::AsGiven, ..Self::pyg() }
    }

    /// The published model for Cora and its like: two layers, 8 heads of 8, everything dropped with 0.6. It is trained
    /// on the whole graph with row-normalised features, Adam at 0.005 and weight decay 5e-4.
    #[must_use]
    pub fn cora(in_features: usize, classes: usize) -> Self {
        let dropout = GatDropout { input: 0.6, hidden: 0.6, attention: 0.6, last_attention: 0.6 };
        Self { in_features, hidden: 8, heads: 8, classes, layers: 2, dropout, ..Self::pyg() }
    }

    /// Input width, heads and width of a head of layer `layer`.
    #[must_use]
    pub fn widths(&self, layer: usize) -> (usize, usize, usize) {
        let input = if layer == 0 { self.in_features } else { self.heads * self.hidden };
        if layer + 1 == self.layers { (input, self.last_heads, self.classes) } else { (input, self.heads, self.hidden) }
    }

    /// Number of trainable values.
    #[must_use]
    pub fn parameters(&self) -> usize {
        let layer = |(input, heads, width): (usize, usize, usize)| (input + 3) * heads * width;
        (0..self.layers).map(|index| layer(self.widths(index))).sum()
    }

    /// Probability with which the attention of a layer is dropped.
    pub(super) fn attention_dropout(&self, layer: usize) -> f64 {
        if layer + 1 == self.layers { self.dropout.last_attention } else { self.dropout.attention }
    }

    /// What the products of the fused form multiply, if it runs.
    pub(super) fn fused(&self) -> Option<MatmulPrecision> {
        (!self.plain && self.kernels == KernelFamily::Spmm).then_some(self.matmul_precision)
    }

    /// # Errors
    /// A size is 0, a dropout is not a probability below 1, the slope is not a number, or form or
    /// processor lack the precision.
    pub(super) fn check(&self) -> Result<()> {
        if [self.in_features, self.hidden, self.heads, self.last_heads, self.classes, self.layers].contains(&0) {
            bail!("gat: features, hidden width, heads, classes and layers must be at least 1: {self:?}");
        }
        let GatDropout { input, hidden, attention, last_attention } = self.dropout;
        if [input, hidden, attention, last_attention].iter().any(|dropout| !(0.0..1.0).contains(dropout)) {
            bail!("gat: every dropout must be at least 0 and below 1: {:?}", self.dropout);
        }
        if !self.negative_slope.is_finite() {
            bail!("gat: the slope of the leaky relu must be a number, not {}", self.negative_slope);
        }
        if self.fused().is_none() {
            self.matmul_precision.check_is_f32("the plain form")?;
        }
        self.matmul_precision.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_models_have_their_published_numbers_of_parameters() {
        assert_eq!(GatConfig::pyg().parameters(), 10_763);
        assert_eq!(GatConfig::dgl().parameters(), 10_763);
        assert_eq!(GatConfig::cora(1433, 7).parameters(), 92_373);
    }

    #[test]
    fn impossible_settings_are_refused() {
        assert!(GatConfig { heads: 0, ..GatConfig::pyg() }.check().is_err());
        assert!(GatConfig { negative_slope: f64::NAN, ..GatConfig::pyg() }.check().is_err());
        let dropout = GatDropout { last_attention: 1.0, ..GatConfig::pyg().dropout };
        assert!(GatConfig { dropout, ..GatConfig::pyg() }.check().is_err());
        assert!(GatConfig::dgl().check().is_ok());
    }
}
