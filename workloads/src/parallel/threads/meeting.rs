//! Where threads wait for each other, or learn that one of them will never come.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::parallel::CollectiveError;

/// How often a waiting thread checks the meeting's number before it sleeps: about 20 us, the cost of waking up.
const SPINS: usize = 4_000;

/// A reusable meeting point of a fixed number of threads.
#[derive(Debug)]
pub(super) struct Meeting {
    members: usize,
    /// Whether a waiting thread has a core to itself.
    spins: usize,
    arrived: Mutex<usize>,
    /// Meetings so far. Changes with `arrived` locked.
    number: AtomicU64,
    turned: Condvar,
    gone: OnceLock<CollectiveError>,
}

impl Meeting {
    /// A meeting point of `threads` threads. `has_cores`: each of them has a core, so that polling is cheaper than
    /// sleeping.
    pub(super) fn new(members: usize, has_cores: bool) -> Self {
        let spins = if has_cores { SPINS } else { 0 };
        let number = AtomicU64::new(0);
        Self { members, spins, arrived: Mutex::new(0), number, turned: Condvar::new(), gone: OnceLock::new() }
    }

    /// Returns when all threads have called it, or with an error when one never will.
    pub(super) fn wait(&self) -> Result<(), CollectiveError> {
        self.arrive(true)
    }

    /// Returns when all threads have called it. For the end of work that all began together and none can leave early.
    pub(super) fn wait_for_all(&self) {
        // An error is possible only if missing threads are heeded.
        let _ = self.arrive(false);
    }

    /// Releases all threads that wait here, now or later, with this error. The first one counts.
    pub(super) fn break_off(&self, error: CollectiveError) {
        let _arrived = self.lock();
        // A second reason follows from the first.
        let _ = self.gone.set(error);
        self.turned.notify_all();
    }

    /// Why no thread can meet here any more.
    pub(super) fn gone(&self) -> Result<(), CollectiveError> {
        self.gone.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    fn arrive(&self, heeds_gone: bool) -> Result<(), CollectiveError> {
        let mut arrived = self.lock();
        if heeds_gone {
            self.gone()?;
        }
        let number = self.number.load(Ordering::Relaxed);
        *arrived += 1;
        if *arrived == self.members {
            *arrived = 0;
            self.number.store(number + 1, Ordering::Release);
            self.turned.notify_all();
            return Ok(());
        }
        drop(arrived);
        if self.spin_past(number) {
            return Ok(());
        }
        let mut arrived = self.lock();
        while self.number.load(Ordering::Acquire) == number {
            if heeds_gone && let Err(error) = self.gone() {
                *arrived -= 1;
                return Err(error);
            }
            arrived = self.turned.wait(arrived).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    /// Whether the meeting took place during the polling.
    fn spin_past(&self, number: u64) -> bool {
        for _ in 0..self.spins {
            if self.number.load(Ordering::Acquire) != number {
                return true;
            }
            std::hint::spin_loop();
        }
        false
    }

    /// Locks even after a panic: the count is changed by whole arrivals.
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
