//! Which batch has which number, and the order of each epoch, as every worker knows them.

use std::sync::{Arc, Mutex, PoisonError};

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::{BatchId, LoaderError, LoaderSettings, LoaderShard};

/// Batches by number, through all epochs.
#[derive(Debug)]
pub(super) struct BatchOrder {
    pub settings: LoaderSettings,
    pub batches_per_epoch: u64,
    items: usize,
    /// Orders of the epochs in work, newest last, computed for the first worker that asks.
    orders: Mutex<Vec<(u64, Arc<[u32]>)>>,
}

impl BatchOrder {
    /// For `count` items, called `items` in messages.
    pub fn new(count: usize, items: &'static str, settings: LoaderSettings) -> Result<Self, LoaderError> {
        if count == 0 {
            return Err(LoaderError::Empty { items });
        }
        if count > u32::MAX as usize {
            return Err(LoaderError::TooMany { count, items });
        }
        let LoaderShard { number, of } = settings.part;
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
        let LoaderShard { number, of } = self.settings.part;
        // Of all parts together. The order ends with the padding, so that the rest divides.
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
        let order = epoch_order(self.items, &self.settings, epoch);
        if orders.len() == KEPT {
            orders.remove(0);
        }
        orders.push((epoch, Arc::clone(&order)));
        order
    }
}

fn epoch_order(items: usize, settings: &LoaderSettings, epoch: u64) -> Arc<[u32]> {
    let mut order: Vec<u32> = (0..items as u32).collect();
    if settings.shuffle {
        // Multiplying by an odd constant keeps (seed, epoch) and (seed + 1, epoch - 1) apart.
        let seed = settings.seed ^ epoch.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        order.shuffle(&mut StdRng::seed_from_u64(seed));
    }
    // With more parts than items, the same items are taken in turn.
    let padding: Vec<u32> = order.iter().copied().cycle().take(settings.part.padding(items)).collect();
    order.extend(padding);
    order.into()
}
