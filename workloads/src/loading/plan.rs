//! What every worker knows: the settings, which batch has which number, and the order of each epoch.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use thiserror::Error;

use super::BatchId;

/// How batches are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoaderSettings {
    /// Items in a batch (graphs, training nodes, images), at least 1. The last batch of an epoch has what is left.
    pub batch_size: usize,
    /// Worker threads; 0 assembles in the consumer.
    pub workers: usize,
    /// Finished batches each worker may keep ready, at least 1.
    pub prefetch: usize,
    /// Seed of the order. An epoch's order depends on this and on the epoch alone.
    pub seed: u64,
    /// Whether each epoch has an order of its own; otherwise the items come as they are.
    pub shuffle: bool,
    /// Which part of every batch is loaded.
    pub part: Part,
    /// By how much longer every batch is to take, for trying out what a slow loader does; usually nothing.
    pub delay: Duration,
}

/// One of several equal parts of every batch: what one of several ranks trains on. All ranks have the same order, so that
/// `of` ranks with batches of `n` load what one would with batches of `of * n`. In the last batch of an epoch the parts
/// stay equal: where its items do not divide, the first items of the epoch's order come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Which part, from 0.
    pub number: usize,
    /// Parts in all, at least 1.
    pub of: usize,
}

impl Part {
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
            part: Part::WHOLE,
            delay: Duration::ZERO,
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

/// Why there is no batch.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoaderError {
    /// There is nothing to load.
    #[error("there are no {items} to load")]
    Empty {
        /// What is missing.
        items: &'static str,
    },
    /// More items than 32-bit numbers count.
    #[error("there are {count} {items}; at most {} can be loaded", u32::MAX)]
    TooMany {
        /// How many there are.
        count: usize,
        /// Of what.
        items: &'static str,
    },
    /// A setting is 0 that must not be.
    #[error("{setting} is 0; it must be at least 1")]
    ZeroSetting {
        /// Its name in [`LoaderSettings`].
        setting: &'static str,
    },
    /// There are not so many parts.
    #[error("there is no part {number} of {of}")]
    NoSuchPart {
        /// The part, from 0.
        number: usize,
        /// Parts in all.
        of: usize,
    },
    /// The system refused a thread.
    #[error("cannot start loader thread {worker}; use fewer workers: {source}")]
    Spawn {
        /// The worker, from 0.
        worker: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// The items of a batch do not fit together. The batches after it still come.
    #[error("batch {} of epoch {} cannot be assembled: {source}", batch.index, batch.epoch)]
    Assemble {
        /// The batch.
        batch: BatchId,
        /// What is wrong; positions are those within the batch.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A worker ended before its time: it panicked, or a hook of the observer did not call its work.
    #[error("loader thread {worker} has stopped")]
    WorkerStopped {
        /// The worker, from 0.
        worker: usize,
    },
}

/// Batches by number, through all epochs.
#[derive(Debug)]
pub(super) struct Plan {
    pub settings: LoaderSettings,
    pub batches_per_epoch: u64,
    items: usize,
    /// Orders of the epochs in work, newest last, computed by the first who asks.
    orders: Mutex<Vec<(u64, Arc<[u32]>)>>,
}

impl Plan {
    /// For `count` items, called `items` in messages.
    pub fn new(count: usize, items: &'static str, settings: LoaderSettings) -> Result<Self, LoaderError> {
        if count == 0 {
            return Err(LoaderError::Empty { items });
        }
        if count > u32::MAX as usize {
            return Err(LoaderError::TooMany { count, items });
        }
        let Part { number, of } = settings.part;
        if number >= of {
            return Err(LoaderError::NoSuchPart { number, of });
        }
        for (setting, value) in [("batch_size", settings.batch_size), ("prefetch", settings.prefetch)] {
            if value == 0 {
                return Err(LoaderError::ZeroSetting { setting });
            }
        }
        let batches_per_epoch = settings.batches_per_epoch(count);
        Ok(Self { settings, batches_per_epoch, items: count, orders: Mutex::new(Vec::new()) })
    }

    pub fn id(&self, number: u64) -> BatchId {
        BatchId { epoch: number / self.batches_per_epoch, index: number % self.batches_per_epoch }
    }

    /// The items of a batch, given the order of its epoch.
    pub fn members<'a>(&self, order: &'a [u32], index: u64) -> &'a [u32] {
        let Part { number, of } = self.settings.part;
        // Of all parts together. The order ends with the padding, so that what is left divides.
        let whole = self.settings.batch_size.saturating_mul(of);
        let first = index as usize * whole;
        let size = (order.len() - first).min(whole) / of;
        &order[first + number * size..first + (number + 1) * size]
    }

    /// The order of an epoch. Two are kept, for workers at the end of one and at the start of the next; where the
    /// queues hold more epochs than that, an order is computed again.
    pub fn order(&self, epoch: u64) -> Arc<[u32]> {
        const KEPT: usize = 2;
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, order)) = orders.iter().find(|(kept, _)| *kept == epoch) {
            return Arc::clone(order);
        }
        let order = epoch_order(self.items, self.settings, epoch);
        if orders.len() == KEPT {
            orders.remove(0);
        }
        orders.push((epoch, Arc::clone(&order)));
        order
    }
}

fn epoch_order(items: usize, settings: LoaderSettings, epoch: u64) -> Arc<[u32]> {
    let mut order: Vec<u32> = (0..items as u32).collect();
    if settings.shuffle {
        // Multiplying by an odd constant keeps (seed, epoch) and (seed + 1, epoch - 1) apart.
        let seed = settings.seed ^ epoch.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        order.shuffle(&mut StdRng::seed_from_u64(seed));
    }
    // More parts than items take the same ones round and round.
    let padding: Vec<u32> = order.iter().copied().cycle().take(settings.part.padding(items)).collect();
    order.extend(padding);
    order.into()
}
