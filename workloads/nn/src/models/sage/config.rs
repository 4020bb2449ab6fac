//! Sizes of the model and how it is computed.

use candle_core::{Result, bail};

use crate::kernels::{KernelFamily, MatmulPrecision};

/// Sizes of a [`Sage`](super::Sage), and the form in which it is computed. All forms give the same numbers, up to the
/// order of summation, with the same dropout masks.
#[derive(Debug, Clone, PartialEq)]
pub struct SageConfig {
    /// Features per node.
    pub in_features: usize,
    /// Width between layers.
    pub hidden: usize,
    /// Classes: numbers that the last layer gives for a node.
    pub classes: usize,
    /// Number of layers, one for each hop of a sample.
    pub layers: usize,
    /// Probability of dropout after every layer but the last.
    pub dropout: f64,
    /// Kernels that the plain form aggregates with.
    pub kernels: KernelFamily,
    /// One operation after the other, as the formula reads. Otherwise the fused form runs, with [`KernelFamily::Spmm`].
    pub plain: bool,
    /// What the fused form on the CPU multiplies in its products with weights.
    pub matmul_precision: MatmulPrecision,
}

impl Default for SageConfig {
    /// Study 2's model on Reddit: 460,841 parameters.
    fn default() -> Self {
        Self {
            in_features: 602,
            hidden: 256,
            classes: 41,
            layers: 3,
            dropout: 0.5,
            kernels: KernelFamily::Spmm,
            plain: false,
            matmul_precision: MatmulPrecision::F32,
        }
    }
}

impl SageConfig {
    /// Input and output width of layer `layer`.
    #[must_use]
    pub fn widths(&self, layer: usize) -> (usize, usize) {
        let input = if layer == 0 { self.in_features } else { self.hidden };
        let output = if layer + 1 == self.layers { self.classes } else { self.hidden };
        (input, output)
    }

    /// Number of trainable values.
    #[must_use]
    pub fn parameters(&self) -> usize {
        (0..self.layers).map(|layer| self.widths(layer)).map(|(input, output)| (2 * input + 1) * output).sum()
    }

    /// What the products of the fused form multiply, if it runs.
    pub(super) fn fused(&self) -> Option<MatmulPrecision> {
        (!self.plain && self.kernels == KernelFamily::Spmm).then_some(self.matmul_precision)
    }

    /// # Errors
    /// A size is 0, the dropout is not a probability below 1, or form or
    /// processor lack the precision.
    pub(super) fn check(&self) -> Result<()> {
        if [self.in_features, self.hidden, self.classes, self.layers].contains(&0) {
            bail!("sage: features, hidden width, classes and layers must be at least 1: {self:?}");
        }
        if !(0.0..1.0).contains(&self.dropout) {
            bail!("sage: dropout must be at least 0 and below 1, not {}", self.dropout);
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
    fn the_study_has_its_published_number_of_parameters() {
        assert_eq!(SageConfig::default().parameters(), 460_841);
    }

    #[test]
    fn impossible_settings_are_refused() {
        assert!(SageConfig { layers: 0, ..SageConfig::default() }.check().is_err());
        assert!(SageConfig { dropout: 1.0, ..SageConfig::default() }.check().is_err());
        assert!(SageConfig { dropout: f64::NAN, ..SageConfig::default() }.check().is_err());
        assert!(SageConfig::default().check().is_ok());
    }
}
