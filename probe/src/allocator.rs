//! Counts a program's allocations by phase, without locking and without allocating.

use std::alloc::{GlobalAlloc, Layout};

use crate::{accounts, track};

/// Wraps a global allocator and counts, for each phase, the bytes and the number of allocations and releases, and the peak
/// of the process's live bytes while a thread was in the phase. Single allocations above a threshold are recorded as events.
///
/// ```
/// use std::alloc::System;
/// #[global_allocator]
/// static ALLOCATOR: gnntop_probe::TrackingAllocator<System> = gnntop_probe::TrackingAllocator::new(System);
/// # fn main() { drop(vec![0u8; 100]); }
/// ```
#[derive(Debug)]
pub struct TrackingAllocator<A> {
    inner: A,
}

impl<A> TrackingAllocator<A> {
    /// Wraps `inner`.
    pub const fn new(inner: A) -> Self {
        Self { inner }
    }
}

#[inline]
fn allocated(bytes: usize) {
    if let Some(large) = accounts::allocated(track::current_account(), bytes) {
        track::allocation(bytes as i64, large.live_bytes, large.phase);
    }
}

#[inline]
fn freed(bytes: usize) {
    if let Some(large) = accounts::freed(track::current_account(), bytes) {
        track::allocation(-(bytes as i64), large.live_bytes, large.phase);
    }
}

// SAFETY: every call passes the caller's arguments to `inner` and returns its answer. Counting touches only atomics, plain
// thread-locals without destructors and the thread's preallocated ring, and neither allocates nor unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for TrackingAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds `alloc`'s contract.
        let memory = unsafe { self.inner.alloc(layout) };
        if !memory.is_null() {
            allocated(layout.size());
        }
        memory
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds `alloc_zeroed`'s contract.
        let memory = unsafe { self.inner.alloc_zeroed(layout) };
        if !memory.is_null() {
            allocated(layout.size());
        }
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds `dealloc`'s contract.
        unsafe { self.inner.dealloc(memory, layout) };
        freed(layout.size());
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller upholds `realloc`'s contract.
        let moved = unsafe { self.inner.realloc(memory, layout, new_size) };
        if !moved.is_null() {
            freed(layout.size());
            allocated(new_size);
        }
        moved
    }
}
