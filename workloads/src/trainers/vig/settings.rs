//! Batch, epochs and learning rate, as presets; how the model is cut into stages and batches into micro-batches.

use std::ops::Range;

use crate::launch::RankOptions;
use crate::parallel::pipeline::Schedule;

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

/// A pipeline: its stages, its copies, and how a batch goes through them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stages {
    pub(crate) count: usize,
    /// As requested; if MPI started the ranks, as many as fill them.
    pub(crate) copies: usize,
    pub(crate) micro_batches: usize,
    pub(crate) schedule: Schedule,
    /// Recompute activations instead of keeping them.
    pub(crate) recompute: bool,
    /// The blocks of each stage; `None` to balance them.
    pub(crate) parts: Option<Vec<Range<usize>>>,
}

impl Stages {
    /// The number of ranks it needs, with the other options of `ranks`.
    pub(crate) fn ranks(&self, ranks: &RankOptions) -> RankOptions {
        RankOptions { ranks: self.count * self.copies, ..ranks.clone() }
    }

    /// The header's description, for `copies` copies.
    pub(crate) fn describe(&self, copies: usize) -> String {
        let count = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        let order = if self.count == 1 { String::new() } else { format!(" ({})", self.schedule.name()) };
        let recompute = if self.recompute { ", activations recomputed" } else { "" };
        format!(
            "{} of {}, {}{order}{recompute}",
            count(copies, "copy", "copies"),
            count(self.count, "stage", "stages"),
            count(self.micro_batches, "micro-batch", "micro-batches"),
        )
    }
}
