//! Sizes of the model, as presets: a small one for a CPU of two cores, and the study's.

use candle_core::{Result, bail};

/// Sizes of a [`Pna`](super::Pna).
#[derive(Debug, Clone, PartialEq)]
pub struct PnaConfig {
    /// Features per node.
    pub in_features: usize,
    /// Width between layers.
    pub hidden: usize,
    /// Number of layers; the last one maps to `out_features`.
    pub layers: usize,
    /// Predictions per graph.
    pub out_features: usize,
    /// Mean of `ln(d + 1)` over the training set's nodes, d being the in-degree: `delta` of the degree scalers.
    /// Set it with [`with_degrees`](Self::with_degrees).
    pub average_log_degree: f64,
    /// Compute every layer edge by edge instead of fused: the same results, slower, as a control.
    pub plain: bool,
}

impl Default for PnaConfig {
    /// Small enough for steps of about 50 ms on two CPU cores, with the default batch.
    fn default() -> Self {
        Self { hidden: 64, layers: 8, ..Self::study() }
    }
}

impl PnaConfig {
    /// The study's model: 64 layers of 64, 4,096,110 parameters.
    #[must_use]
    pub fn study() -> Self {
        Self {
            in_features: 9,
            hidden: 64,
            layers: 64,
            out_features: 1,
            average_log_degree: MOLECULE_LOG_DEGREE,
            plain: false,
        }
    }

    /// The same sizes with the degree scalers set from an in-degree histogram: entry `d` counts the nodes with `d`
    /// incoming edges. A histogram without edges is ignored.
    #[must_use]
    pub fn with_degrees(self, histogram: &[u64]) -> Self {
        let nodes: u64 = histogram.iter().sum();
        let logs = histogram.iter().enumerate().map(|(degree, &count)| count as f64 * (degree as f64).ln_1p());
        let average = logs.sum::<f64>() / nodes as f64;
        if average > 0.0 { Self { average_log_degree: average, ..self } } else { self }
    }

    /// Input and output width of layer `layer`.
    #[must_use]
    pub fn widths(&self, layer: usize) -> (usize, usize) {
        let input = if layer == 0 { self.in_features } else { self.hidden };
        let output = if layer + 1 == self.layers { self.out_features } else { self.hidden };
        (input, output)
    }

    /// Number of trainable values.
    #[must_use]
    pub fn parameters(&self) -> usize {
        let layer = |(input, output): (usize, usize)| {
            (2 * input + 1) * input + (13 * input + 1) * output + (output + 1) * output
        };
        (0..self.layers).map(|index| layer(self.widths(index))).sum()
    }

    /// # Errors
    /// A size is 0, or the average degree is not a positive number.
    pub(super) fn check(&self) -> Result<()> {
        if [self.in_features, self.hidden, self.layers, self.out_features].contains(&0) {
            bail!("pna: features, hidden width, layers and outputs must be at least 1: {self:?}");
        }
        if !(self.average_log_degree > 0.0 && self.average_log_degree.is_finite()) {
            bail!("pna: the average log degree must be positive, not {}", self.average_log_degree);
        }
        Ok(())
    }
}

/// Mean of `ln(d + 1)` over the atoms of small organic molecules, until the training set's own is set.
const MOLECULE_LOG_DEGREE: f64 = 1.09;

/// PNA's degree scalers, for a given mean `delta` of `ln(d + 1)` over the training set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DegreeScalers {
    /// `delta`.
    pub average_log_degree: f64,
}

impl DegreeScalers {
    /// `ln(d + 1) / delta`; 0 for a node without incoming edges.
    #[must_use]
    pub fn amplification(self, degree: usize) -> f64 {
        (degree as f64).ln_1p() / self.average_log_degree
    }

    /// `delta / ln(max(d, 1) + 1)`.
    #[must_use]
    pub fn attenuation(self, degree: usize) -> f64 {
        self.average_log_degree / (degree.max(1) as f64).ln_1p()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_study_has_its_published_number_of_parameters() {
        assert_eq!(PnaConfig::study().parameters(), 4_096_110);
    }

    #[test]
    fn the_average_log_degree_comes_from_the_histogram() {
        let config = PnaConfig::default().with_degrees(&[1, 0, 3]);
        assert!((config.average_log_degree - 0.75 * 3f64.ln()).abs() < 1e-15);
        assert_eq!(PnaConfig::default().with_degrees(&[]), PnaConfig::default());
        assert_eq!(PnaConfig::default().with_degrees(&[7]), PnaConfig::default());
    }

    #[test]
    fn scalers_of_an_isolated_node_are_finite() {
        let scalers = DegreeScalers { average_log_degree: 2.0 };
        assert_eq!(scalers.amplification(0), 0.0);
        assert_eq!(scalers.attenuation(0), scalers.attenuation(1));
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(PnaConfig { layers: 0, ..PnaConfig::default() }.check().is_err());
        assert!(PnaConfig { average_log_degree: f64::NAN, ..PnaConfig::default() }.check().is_err());
        assert!(PnaConfig::study().check().is_ok());
    }
}
