//! Regression: the scale of the targets, its loss, and the learning rate over a training.

use std::f64::consts::PI;

use candle_core::{Result, Tensor};

/// Mean and standard deviation of the targets over the training set; the model predicts `(y - mean) / deviation`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TargetScale {
    /// Mean.
    pub mean: f64,
    /// Standard deviation (n - 1 in the denominator, as PyTorch), 1 where it is 0 or unknown.
    pub deviation: f64,
}

impl TargetScale {
    /// From the targets of the training set.
    #[must_use]
    pub fn new(targets: impl IntoIterator<Item = f32>) -> Self {
        let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
        for target in targets {
            // Welford's recurrence: stable in one pass.
            let distance = f64::from(target) - mean;
            count += 1.0;
            mean += distance / count;
            squares += distance * (f64::from(target) - mean);
        }
        let deviation = (squares / (count - 1.0)).sqrt();
        Self { mean, deviation: if deviation > 0.0 { deviation } else { 1.0 } }
    }

    /// Mean of `|prediction - (y - mean) / deviation|` over a batch, a scalar.
    ///
    /// # Errors
    /// There is not one prediction for each target.
    pub fn loss(&self, predictions: &Tensor, targets: &Tensor) -> Result<Tensor> {
        let scaled = targets.affine(1.0 / self.deviation, -self.mean / self.deviation)?;
        (predictions.flatten_all()? - scaled)?.abs()?.mean_all()
    }
}

/// Cosine annealing stepped at every batch: `initial (1 + cos(pi (e - 1 + i / n) / T)) / 2`, with epochs `e` counted
/// from 1, batches `i` of `n` counted from 0, and `T` epochs in all.
#[must_use]
pub fn cosine_learning_rate(initial: f64, epochs: usize, epoch: usize, batch: usize, batches: usize) -> f64 {
    let progress = epoch.saturating_sub(1) as f64 + batch as f64 / batches.max(1) as f64;
    initial * (1.0 + (PI * progress / epochs.max(1) as f64).cos()) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosine_falls_from_the_initial_rate_to_nothing() {
        assert_eq!(cosine_learning_rate(0.1, 4, 1, 0, 10), 0.1);
        assert!((cosine_learning_rate(0.1, 4, 3, 0, 10) - 0.05).abs() < 1e-15);
        assert!((cosine_learning_rate(0.1, 4, 2, 5, 10) - 0.1 * (1.0 + (0.375 * PI).cos()) / 2.0).abs() < 1e-15);
        assert!(cosine_learning_rate(0.1, 4, 4, 10, 10) < 1e-15);
    }
}
