//! Counts what a program allocates, by phase, without a lock and without an allocation of its own.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::names::PHASE_ACCOUNTS;
use crate::track;

/// Wraps a global allocator and keeps, for each phase: bytes and number allocated and freed, and the most
/// bytes live in the process while a thread was in the phase; single allocations from a threshold on are
/// recorded as events of their own.
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

/// Allocations from this size on are events of their own, unless set otherwise.
const DEFAULT_EVENT_BYTES: usize = 1 << 20;

static EVENT_BYTES: AtomicUsize = AtomicUsize::new(DEFAULT_EVENT_BYTES);
static INSTALLED: AtomicBool = AtomicBool::new(false);
/// Live bytes, which may dip below zero for an instant while threads race.
static LIVE: AtomicI64 = AtomicI64::new(0);
static ACCOUNTS: [Account; PHASE_ACCOUNTS] = [const { Account::new() }; PHASE_ACCOUNTS];

/// One phase's totals; on a cache line of its own, since threads in different phases write at once.
#[derive(Debug)]
#[repr(align(128))]
struct Account {
    allocated_bytes: AtomicU64,
    allocated_count: AtomicU64,
    freed_bytes: AtomicU64,
    freed_count: AtomicU64,
    peak_bytes: AtomicI64,
    /// The phase's name id, so that an event can be written without a look-up.
    name: AtomicU32,
}

impl Account {
    const fn new() -> Self {
        Self {
            allocated_bytes: AtomicU64::new(0),
            allocated_count: AtomicU64::new(0),
            freed_bytes: AtomicU64::new(0),
            freed_count: AtomicU64::new(0),
            peak_bytes: AtomicI64::new(0),
            name: AtomicU32::new(0),
        }
    }
}

/// A phase's totals at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccountTotals {
    pub(crate) allocated_bytes: u64,
    pub(crate) allocated_count: u64,
    pub(crate) freed_bytes: u64,
    pub(crate) freed_count: u64,
    pub(crate) peak_bytes: u64,
}

/// Bytes live now.
pub(crate) fn live_bytes() -> u64 {
    LIVE.load(Relaxed).max(0) as u64
}

/// Whether a [`TrackingAllocator`] has counted anything.
pub(crate) fn is_installed() -> bool {
    INSTALLED.load(Relaxed)
}

/// Sets the size from which single allocations are recorded.
pub(crate) fn set_event_bytes(bytes: usize) {
    EVENT_BYTES.store(bytes.max(1), Relaxed);
}

/// Tells an account the id of its phase's name.
pub(crate) fn set_account_name(account: u8, name: u32) {
    ACCOUNTS[usize::from(account) % PHASE_ACCOUNTS].name.store(name, Relaxed);
}

pub(crate) fn totals(account: usize) -> AccountTotals {
    let account = &ACCOUNTS[account % PHASE_ACCOUNTS];
    AccountTotals {
        allocated_bytes: account.allocated_bytes.load(Relaxed),
        allocated_count: account.allocated_count.load(Relaxed),
        freed_bytes: account.freed_bytes.load(Relaxed),
        freed_count: account.freed_count.load(Relaxed),
        peak_bytes: account.peak_bytes.load(Relaxed).max(0) as u64,
    }
}

impl<A> TrackingAllocator<A> {
    /// Counts on top of `inner`.
    pub const fn new(inner: A) -> Self {
        Self { inner }
    }
}

#[inline]
fn allocated(bytes: usize) {
    if !INSTALLED.load(Relaxed) {
        INSTALLED.store(true, Relaxed);
    }
    let live = LIVE.fetch_add(bytes as i64, Relaxed) + bytes as i64;
    let account = &ACCOUNTS[usize::from(track::current_account()) % PHASE_ACCOUNTS];
    account.allocated_bytes.fetch_add(bytes as u64, Relaxed);
    account.allocated_count.fetch_add(1, Relaxed);
    // A plain look first: the peak moves rarely, and a read is cheaper than a read-modify-write.
    if account.peak_bytes.load(Relaxed) < live {
        account.peak_bytes.fetch_max(live, Relaxed);
    }
    if bytes >= EVENT_BYTES.load(Relaxed) {
        track::allocation(bytes as i64, live.max(0) as u64, account.name.load(Relaxed));
    }
}

#[inline]
fn freed(bytes: usize) {
    let live = LIVE.fetch_sub(bytes as i64, Relaxed) - bytes as i64;
    let account = &ACCOUNTS[usize::from(track::current_account()) % PHASE_ACCOUNTS];
    account.freed_bytes.fetch_add(bytes as u64, Relaxed);
    account.freed_count.fetch_add(1, Relaxed);
    if bytes >= EVENT_BYTES.load(Relaxed) {
        track::allocation(-(bytes as i64), live.max(0) as u64, account.name.load(Relaxed));
    }
}

// SAFETY: every call goes to `inner` with the caller's arguments and gives back its answer; counting touches
// only atomics, plain thread-locals without destructors and the thread's preallocated ring, and neither
// allocates nor unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for TrackingAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps `alloc`'s contract.
        let memory = unsafe { self.inner.alloc(layout) };
        if !memory.is_null() {
            allocated(layout.size());
        }
        memory
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps `alloc_zeroed`'s contract.
        let memory = unsafe { self.inner.alloc_zeroed(layout) };
        if !memory.is_null() {
            allocated(layout.size());
        }
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `dealloc`'s contract.
        unsafe { self.inner.dealloc(memory, layout) };
        freed(layout.size());
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller keeps `realloc`'s contract.
        let moved = unsafe { self.inner.realloc(memory, layout, new_size) };
        if !moved.is_null() {
            freed(layout.size());
            allocated(new_size);
        }
        moved
    }
}
