//! How batches are made.

use super::Delay;

/// How batches are made.
#[derive(Debug, Clone)]
pub struct LoaderSettings {
    /// Items in a batch (graphs, training nodes, images), at least 1. The last batch of an epoch has the rest.
    pub batch_size: usize,
    /// Worker threads; 0 assembles in the consumer.
    pub workers: usize,
    /// Finished batches each worker may keep ready, at least 1.
    pub prefetch: usize,
    /// Seed of the order. An epoch's order depends only on this and the epoch.
    pub seed: u64,
    /// Whether each epoch has its own order; otherwise the items come as they are.
    pub shuffle: bool,
    /// Which part of every batch is loaded.
    pub part: LoaderShard,
    /// How much longer every batch takes, to try out a slow loader; usually zero.
    pub delay: Delay,
}

/// One of several equal parts of every batch: what one of several ranks trains on. All ranks have the same order, so
/// that `of` ranks with batches of `n` load what one rank would load with batches of `of * n`. In the last batch of an
/// epoch the parts stay equal: if its items do not divide, the first items of the epoch's order are repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoaderShard {
    /// Which part, from 0.
    pub number: usize,
    /// Parts in all, at least 1.
    pub of: usize,
}

impl LoaderShard {
    /// Everything.
    pub const WHOLE: Self = Self { number: 0, of: 1 };

    /// Items that come twice in an epoch of `items`, so that the parts of its last batch are equal.
    #[must_use]
    pub fn padding(self, items: usize) -> usize {
        items.next_multiple_of(self.of.max(1)) - items
    }
}

impl Default for LoaderSettings {
    /// Batches of 512, two workers two batches ahead (PyTorch's default), shuffled with the seed of the study.
    fn default() -> Self {
        Self {
            batch_size: 512,
            workers: 2,
            prefetch: 2,
            seed: 1234,
            shuffle: true,
            part: LoaderShard::WHOLE,
            delay: Delay::default(),
        }
    }
}

impl LoaderSettings {
    /// Batches in an epoch of `items`, the partial last one counted.
    #[must_use]
    pub fn batches_per_epoch(&self, items: usize) -> u64 {
        items.div_ceil(self.batch_size.max(1).saturating_mul(self.part.of.max(1))) as u64
    }
}
