//! Buffers that live from one step to the next.
//!
//! A fresh large vector costs page faults at every step. Activations and temporaries of the fused operations come
//! from this pool instead and go back to it when dropped. Contents of a taken buffer are unspecified (stale).

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A pool of vectors of one element type, shared by clones.
#[derive(Debug)]
pub struct Workspace<T> {
    free: Arc<Mutex<Vec<Vec<T>>>>,
}

impl<T> Clone for Workspace<T> {
    fn clone(&self) -> Self {
        Self { free: Arc::clone(&self.free) }
    }
}

impl<T> Default for Workspace<T> {
    fn default() -> Self {
        Self { free: Arc::default() }
    }
}

impl<T: Copy + Default> Workspace<T> {
    /// A buffer of `length` elements with unspecified values.
    #[must_use]
    pub fn take(&self, length: usize) -> Buffer<T> {
        let mut data = self.reuse(length).unwrap_or_else(|| Vec::with_capacity(with_slack(length)));
        data.resize(length, T::default());
        Buffer { data, home: Arc::clone(&self.free) }
    }

    /// The smallest free vector that holds `length` elements without wasting half of itself. If there is none, one that
    /// is a little too small is dropped: its successor is about to be made, and the pool must not keep both.
    fn reuse(&self, length: usize) -> Option<Vec<T>> {
        let mut free = lock(&self.free);
        let capacities = || free.iter().map(Vec::capacity).enumerate();
        let fits = |&(_, capacity): &(usize, usize)| capacity >= length && capacity / 2 <= length;
        if let Some((best, _)) = capacities().filter(fits).min_by_key(|&(_, capacity)| capacity) {
            return Some(free.swap_remove(best));
        }
        let outgrown = capacities().find(|&(_, capacity)| capacity < length && capacity >= length / 2);
        if let Some((index, _)) = outgrown {
            free.swap_remove(index);
        }
        None
    }
}

/// One pool for each element type that the operations use. Clones share the pools.
#[derive(Debug, Clone, Default)]
pub struct Workspaces {
    pub(crate) single: Workspace<f32>,
    pub(super) double: Workspace<f64>,
    /// Node and edge numbers.
    pub indices: Workspace<u32>,
}

/// Capacity to allocate for `length`: an eighth more, so that the next, slightly larger batch fits as well.
fn with_slack(length: usize) -> usize {
    length + length / 8
}

/// A buffer on loan from a [`Workspace`]; a slice of the requested length.
#[derive(Debug)]
pub struct Buffer<T> {
    data: Vec<T>,
    home: Arc<Mutex<Vec<Vec<T>>>>,
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.data
    }
}

impl<T> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.data
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        lock(&self.home).push(std::mem::take(&mut self.data));
    }
}

/// Locks even after a panic elsewhere: the pool holds plain vectors, which a panic cannot leave half-made.
fn lock<T>(free: &Mutex<Vec<Vec<T>>>) -> MutexGuard<'_, Vec<Vec<T>>> {
    free.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_buffer_is_handed_out_again() {
        let workspace = Workspace::<f32>::default();
        let first = workspace.take(1000);
        let address = first.as_ptr();
        assert_eq!(first.len(), 1000);
        drop(first);
        let again = workspace.take(1100);
        assert_eq!((again.as_ptr(), again.len()), (address, 1100));
        let other = workspace.take(1000);
        assert_ne!(other.as_ptr(), address);
    }

    #[test]
    fn growing_requests_do_not_pile_up_buffers() {
        let workspace = Workspace::<f32>::default();
        for length in (1000..4000).step_by(100) {
            drop(workspace.take(length));
        }
        assert!(lock(&workspace.free).len() <= 2);
    }

    #[test]
    fn a_much_larger_buffer_is_not_wasted_on_a_small_request() {
        let workspace = Workspace::<u32>::default();
        let large = workspace.take(10_000);
        let address = large.as_ptr();
        drop(large);
        assert_ne!(workspace.take(100).as_ptr(), address);
    }
}
