//! Batch, epochs and learning rate, as presets.

/// How a [`Pna`](gnntop_nn::models::pna::Pna) is trained.
#[derive(Debug, Clone, PartialEq)]
pub struct PnaTraining {
    /// Graphs in a full batch.
    pub batch_graphs: usize,
    /// Epochs, also the period of the cosine schedule.
    pub epochs: usize,
    /// Learning rate at the start.
    pub learning_rate: f64,
    /// L2 penalty, added to the gradient.
    pub weight_decay: f64,
}

impl Default for PnaTraining {
    /// A batch for steps of about 50 ms with the default [`PnaConfig`](gnntop_nn::models::pna::PnaConfig).
    fn default() -> Self {
        Self { batch_graphs: 256, epochs: 100, learning_rate: 3e-4, weight_decay: 0.0 }
    }
}

impl PnaTraining {
    /// The study's settings at batch 512: 15 epochs, Adam with a rate of 1e-6.
    #[must_use]
    pub fn study() -> Self {
        Self { batch_graphs: 512, epochs: 15, learning_rate: 1e-6, weight_decay: 0.0 }
    }
}
