//! Batch, epochs and learning rate, as presets.

/// How a [`Vig`](gnntop_nn::models::vig::Vig) or a [`PatchVig`](gnntop_nn::models::vig::patches::PatchVig) is trained.
#[derive(Debug, Clone, PartialEq)]
pub struct VigTraining {
    /// Images in a full batch.
    pub batch_images: usize,
    /// Epochs.
    pub epochs: usize,
    /// Learning rate, constant.
    pub learning_rate: f64,
}

impl Default for VigTraining {
    /// A batch for steps of about 100 ms with the default [`VigConfig`](gnntop_nn::models::vig::VigConfig) on two CPU cores.
    fn default() -> Self {
        Self { batch_images: 20, epochs: 10, learning_rate: 1e-4 }
    }
}

impl VigTraining {
    /// The study's settings: batches of 1,000, two epochs, Adam with a rate of 1e-4.
    #[must_use]
    pub fn study() -> Self {
        Self { batch_images: 1000, epochs: 2, learning_rate: 1e-4 }
    }

    /// For the small network on patches, in steps of about 100 ms on two CPU cores.
    #[must_use]
    pub fn patches() -> Self {
        Self { batch_images: 50, epochs: 10, learning_rate: 2e-3 }
    }
}
