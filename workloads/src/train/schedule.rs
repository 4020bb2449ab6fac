//! Learning rate over a training run.

use std::f64::consts::PI;

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
    fn it_falls_from_the_initial_rate_to_nothing() {
        assert_eq!(cosine_learning_rate(0.1, 4, 1, 0, 10), 0.1);
        assert!((cosine_learning_rate(0.1, 4, 3, 0, 10) - 0.05).abs() < 1e-15);
        assert!((cosine_learning_rate(0.1, 4, 2, 5, 10) - 0.1 * (1.0 + (0.375 * PI).cos()) / 2.0).abs() < 1e-15);
        assert!(cosine_learning_rate(0.1, 4, 4, 10, 10) < 1e-15);
    }
}
