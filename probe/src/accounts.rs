//! What each phase allocates and frees, in tables that any thread may write to without a lock.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Phases with a memory account of their own; account 0 is "outside every phase".
pub(crate) const PHASE_ACCOUNTS: usize = 32;

/// Allocations of at least this size are recorded as events of their own, unless set otherwise.
const DEFAULT_EVENT_BYTES: usize = 1 << 20;

static EVENT_BYTES: AtomicUsize = AtomicUsize::new(DEFAULT_EVENT_BYTES);
static COUNTED: AtomicBool = AtomicBool::new(false);
/// Live bytes. May briefly be negative while threads race.
static LIVE: AtomicI64 = AtomicI64::new(0);
static ACCOUNTS: [Account; PHASE_ACCOUNTS] = [const { Account::new() }; PHASE_ACCOUNTS];

/// One phase's totals, on their own cache line because threads in different phases write at once.
#[derive(Debug)]
#[repr(align(128))]
struct Account {
    allocated_bytes: AtomicU64,
    allocated_count: AtomicU64,
    freed_bytes: AtomicU64,
    freed_count: AtomicU64,
    peak_bytes: AtomicI64,
    /// The phase's name id, so that writing an event needs no look-up.
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

/// A single allocation or release, large enough for an event of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LargeAllocation {
    /// Live bytes after it.
    pub(crate) live_bytes: u64,
    /// Id of its phase's name; 0 outside every phase.
    pub(crate) phase: u32,
}

/// Counts an allocation in an account.
#[inline]
pub(crate) fn allocated(account: u8, bytes: usize) -> Option<LargeAllocation> {
    if !COUNTED.load(Relaxed) {
        COUNTED.store(true, Relaxed);
    }
    let live = LIVE.fetch_add(bytes as i64, Relaxed) + bytes as i64;
    let account = account_at(usize::from(account));
    account.allocated_bytes.fetch_add(bytes as u64, Relaxed);
    account.allocated_count.fetch_add(1, Relaxed);
    // Load first: the peak rarely changes, and a load is cheaper than a read-modify-write.
    if account.peak_bytes.load(Relaxed) < live {
        account.peak_bytes.fetch_max(live, Relaxed);
    }
    account.large(bytes, live)
}

/// Counts a release in an account.
#[inline]
pub(crate) fn freed(account: u8, bytes: usize) -> Option<LargeAllocation> {
    let live = LIVE.fetch_sub(bytes as i64, Relaxed) - bytes as i64;
    let account = account_at(usize::from(account));
    account.freed_bytes.fetch_add(bytes as u64, Relaxed);
    account.freed_count.fetch_add(1, Relaxed);
    account.large(bytes, live)
}

impl Account {
    #[inline]
    fn large(&self, bytes: usize, live: i64) -> Option<LargeAllocation> {
        let is_large = bytes >= EVENT_BYTES.load(Relaxed);
        is_large.then(|| LargeAllocation { live_bytes: live.max(0) as u64, phase: self.name.load(Relaxed) })
    }
}

#[inline]
fn account_at(account: usize) -> &'static Account {
    &ACCOUNTS[account % PHASE_ACCOUNTS]
}

/// Live bytes now.
pub(crate) fn live_bytes() -> u64 {
    LIVE.load(Relaxed).max(0) as u64
}

/// Whether anything was counted, that is, whether the program has a tracking allocator.
pub(crate) fn is_counted() -> bool {
    COUNTED.load(Relaxed)
}

/// Sets the size from which single allocations are recorded.
pub(crate) fn set_event_bytes(bytes: usize) {
    EVENT_BYTES.store(bytes.max(1), Relaxed);
}

/// Sets the id of the name of an account's phase.
pub(crate) fn set_name(account: u8, name: u32) {
    account_at(usize::from(account)).name.store(name, Relaxed);
}

pub(crate) fn totals(account: usize) -> AccountTotals {
    let account = account_at(account);
    AccountTotals {
        allocated_bytes: account.allocated_bytes.load(Relaxed),
        allocated_count: account.allocated_count.load(Relaxed),
        freed_bytes: account.freed_bytes.load(Relaxed),
        freed_count: account.freed_count.load(Relaxed),
        peak_bytes: account.peak_bytes.load(Relaxed).max(0) as u64,
    }
}
