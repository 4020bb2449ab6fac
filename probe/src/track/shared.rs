//! What a track's thread and the drain thread share, besides the ring.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::open_span::OpenSpan;

/// What a track's thread and the drain thread share.
#[derive(Debug, Default)]
pub(super) struct TrackShared {
    /// Events lost to a full ring.
    dropped: AtomicU64,
    pub(super) open: OpenSpan,
    /// The thread has closed its track; nothing follows what is in the ring.
    closed: AtomicBool,
}

impl TrackShared {
    /// Counts a drop. Only the track's own thread may call this.
    #[cold]
    pub(super) fn count_drop(&self) {
        // One writer: no read-modify-write needed.
        self.dropped.store(self.dropped() + 1, Ordering::Relaxed);
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// The last call of the track's thread.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Whether nothing more comes into the ring.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}
