//! What the training thread and the drain thread share about a device: records of the work on its stream, and its state.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::stream::Lost;
use crate::ring::{self, Consumer, Producer};
use crate::track::NO_MARK;

/// Most marks used; more would only take memory.
pub(super) const MAX_MARKS: usize = 1 << 12;

/// A ring of marks and a ring of records. A record has at least one mark, so neither ring is ever too small.
pub(super) type MarkProducer = Producer<u32, MAX_MARKS>;
pub(super) type MarkConsumer = Consumer<u32, MAX_MARKS>;
pub(super) type RecordProducer = Producer<DeviceRecord, MAX_MARKS>;
pub(super) type RecordConsumer = Consumer<DeviceRecord, MAX_MARKS>;

/// An empty ring of marks.
pub(super) fn mark_ring() -> (MarkProducer, MarkConsumer) {
    ring::ring(NO_MARK)
}

/// An empty ring of records.
pub(super) fn record_ring() -> (RecordProducer, RecordConsumer) {
    ring::ring(DeviceRecord { name: 0, step: 0, begin: NO_MARK, end: NO_MARK, issued: [0; 2], seen_ticks: 0 })
}

/// A span or step whose marks are on the stream. Times are ticks of the host's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceRecord {
    /// 0 for a step.
    pub(super) name: u32,
    pub(super) step: u64,
    /// `NO_MARK` for a step.
    pub(super) begin: u32,
    pub(super) end: u32,
    pub(super) issued: [u64; 2],
    /// When the training thread saw that the end was reached; 0 if it did not look.
    pub(super) seen_ticks: u64,
}

/// State that both threads see.
#[derive(Debug, Default)]
pub(super) struct DeviceShared {
    /// Spans that went untimed because no mark was free or the stream took none.
    pub(super) dropped: AtomicU64,
    /// The thread has closed its track.
    pub(super) closed: AtomicBool,
    /// The drain thread asks for a mark that is polled until it is reached.
    pub(super) wants_sight: AtomicBool,
    /// The device is gone.
    pub(super) lost: AtomicBool,
    pub(super) reason: OnceLock<String>,
}

impl DeviceShared {
    pub(super) fn set_lost(&self, lost: Lost) {
        // The first thread to report the loss gives the reason.
        let _ = self.reason.set(lost.0);
        self.lost.store(true, Ordering::Release);
    }

    pub(super) fn count_drops(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }
}
