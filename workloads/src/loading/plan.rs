//! What every worker knows: the settings, which batch has which number, and the order of each epoch.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

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
}

impl Default for LoaderSettings {
    /// Batches of 512, two workers two batches ahead (PyTorch's default), shuffled with the seed of the study.
    fn default() -> Self {
        Self { batch_size: 512, workers: 2, prefetch: 2, seed: 1234, shuffle: true }
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
        for (setting, value) in [("batch_size", settings.batch_size), ("prefetch", settings.prefetch)] {
            if value == 0 {
                return Err(LoaderError::ZeroSetting { setting });
            }
        }
        let batches_per_epoch = count.div_ceil(settings.batch_size) as u64;
        Ok(Self { settings, batches_per_epoch, items: count, orders: Mutex::new(Vec::new()) })
    }

    pub fn id(&self, number: u64) -> BatchId {
        BatchId { epoch: number / self.batches_per_epoch, index: number % self.batches_per_epoch }
    }

    /// The items of a batch, given the order of its epoch.
    pub fn members<'a>(&self, order: &'a [u32], index: u64) -> &'a [u32] {
        let size = self.settings.batch_size;
        let first = index as usize * size;
        &order[first..order.len().min(first.saturating_add(size))]
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
    order.into()
}
