//! What the training thread and the drain thread both know of a device: records of what is on its stream, and its state.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::stream::Lost;

/// A span or step whose marks are on the stream. Times are ticks of the host's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// 0 for a step.
    pub(super) name: u32,
    pub(super) step: u64,
    /// `NO_MARK` for a step.
    pub(super) begin: u32,
    pub(super) end: u32,
    pub(super) issued: [u64; 2],
    /// When the training thread itself saw that the end was reached; 0 where it did not look.
    pub(super) seen: u64,
}

/// What both threads see.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Spans that went untimed because no mark was free, or the stream took none.
    pub(super) dropped: AtomicU64,
    /// The thread has given its track up.
    pub(super) closed: AtomicBool,
    /// The drain thread wants to know a mark that was seen at once.
    pub(super) wants_sight: AtomicBool,
    /// The device is gone.
    pub(super) lost: AtomicBool,
    pub(super) reason: OnceLock<String>,
}

impl Shared {
    pub(super) fn lose(&self, lost: Lost) {
        // Who loses it first says why.
        let _ = self.reason.set(lost.0);
        self.lost.store(true, Ordering::Release);
    }

    pub(super) fn count_drops(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }
}
