//! What a track's thread and the drain thread both see, beside the ring.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::open_span::OpenSpan;

/// What a track's thread and the drain thread both see.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Events lost to a full ring.
    dropped: AtomicU64,
    pub(super) open: OpenSpan,
    /// The thread has given its track up; what is in the ring is the last of it.
    closed: AtomicBool,
}

impl Shared {
    /// Only the track's own thread counts.
    #[cold]
    pub(super) fn count_drop(&self) {
        // One writer: no read-modify-write needed.
        self.dropped.store(self.dropped() + 1, Ordering::Relaxed);
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// The last that the track's thread says.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Whether nothing comes into the ring any more.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}
