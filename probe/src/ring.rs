//! Rings between two threads: preallocated queues with one producer and one consumer. A full ring rejects the newest item;
//! neither end ever waits.

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

use ringbuf::SharedRb;
use ringbuf::storage::Storage;
use ringbuf::traits::Split;
use ringbuf::wrap::caching::{CachingCons, CachingProd};

/// The end that adds items, at most `N`.
pub(crate) type Producer<T, const N: usize> = CachingProd<Arc<SharedRb<Slots<T, N>>>>;
/// The end that removes items.
pub(crate) type Consumer<T, const N: usize> = CachingCons<Arc<SharedRb<Slots<T, N>>>>;

/// Both ends of an empty ring. All of its memory is written with `empty`, not only reserved, so that the program's threads
/// never fault a page in.
///
/// `N` is a power of two known to the compiler, so that index arithmetic uses masks: `ringbuf` divides by the length four
/// times per item.
pub(crate) fn ring<T: Copy + Send, const N: usize>(empty: T) -> (Producer<T, N>, Consumer<T, N>) {
    const { assert!(N.is_power_of_two(), "a ring's length is a power of two") };
    // SAFETY: the storage is freshly allocated and no slot is marked as occupied (read and write index are equal).
    let ring = unsafe { SharedRb::from_raw_parts(Slots::new(empty), 0, 0) };
    Arc::new(ring).split()
}

/// A ring's memory: a heap array whose length the compiler knows.
pub(crate) struct Slots<T, const N: usize> {
    slots: NonNull<[MaybeUninit<T>; N]>,
}

impl<T: Copy, const N: usize> Slots<T, N> {
    fn new(empty: T) -> Self {
        let slots = vec![MaybeUninit::new(empty); N].into_boxed_slice();
        let first = NonNull::from(Box::leak(slots)).cast();
        Self { slots: first }
    }
}

impl<T, const N: usize> Drop for Slots<T, N> {
    fn drop(&mut self) {
        // SAFETY: `slots` came from leaking a boxed slice of exactly N elements in `new` and is released only here; an
        // array and a boxed slice of its length have the same layout.
        drop(unsafe { Box::from_raw(self.slots.as_ptr()) });
    }
}

// SAFETY: `Slots` owns its memory, and its items may move between threads.
unsafe impl<T: Send, const N: usize> Send for Slots<T, N> {}
// SAFETY: all access goes through raw pointers; `SharedRb` gives each slot to one side at a time.
unsafe impl<T: Send, const N: usize> Sync for Slots<T, N> {}

// SAFETY: `as_mut_ptr` always points to the same `N` allocated elements, and `len` returns `N`.
unsafe impl<T, const N: usize> Storage for Slots<T, N> {
    type Item = T;

    #[inline]
    fn as_mut_ptr(&self) -> *mut MaybeUninit<T> {
        self.slots.as_ptr().cast()
    }

    #[inline]
    fn len(&self) -> usize {
        N
    }
}

#[cfg(test)]
mod tests {
    use ringbuf::traits::{Consumer as _, Producer as _};

    use super::ring;

    const LEN: usize = 1 << 10;

    #[test]
    fn a_full_ring_refuses_the_newest_and_keeps_order() {
        let (mut producer, mut consumer) = ring::<u64, LEN>(0);
        for round in 0..3 {
            for i in 0..LEN as u64 {
                assert!(producer.try_push(i).is_ok(), "round {round}");
            }
            assert!(producer.try_push(u64::MAX).is_err());
            assert!(consumer.pop_iter().eq(0..LEN as u64));
        }
    }

    #[test]
    fn items_cross_threads() {
        let (mut producer, mut consumer) = ring::<u64, LEN>(0);
        let writer = std::thread::spawn(move || {
            for item in 0..100_000 {
                while producer.try_push(item).is_err() {
                    std::thread::yield_now();
                }
            }
        });
        for expected in 0..100_000 {
            let item = loop {
                if let Some(item) = consumer.try_pop() {
                    break item;
                }
                std::thread::yield_now();
            };
            assert_eq!(item, expected);
        }
        writer.join().unwrap();
    }
}
