//! What a recorder is to record, and how long its chunks are.

use std::ops::RangeInclusive;

/// Which part of a stream to record, and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecorderOptions {
    /// First and last instant, by the publisher's clock in nanoseconds.
    pub window_ns: RangeInclusive<u64>,
    /// Maximum size of the recording in bytes.
    pub max_bytes: u64,
    /// After this many bytes it writes a summary of everything so far, so that it can be opened there; never with
    /// `u64::MAX`.
    pub chunk_bytes: u64,
    /// It also does so after this many events, or after more if the summary would be large compared with them.
    pub chunk_events: u64,
    /// Number of slowest steps that the summary has with all their spans.
    pub slowest: usize,
}

/// More bytes than this are written out.
const WRITE_LEN: u64 = 1 << 20;
/// As much as a replay can read before it shows anything: bytes if events are sparse, events if they are dense.
const CHUNK_BYTES: u64 = 8 << 20;
const CHUNK_EVENTS: u64 = 500_000;

impl RecorderOptions {
    /// Whether this many bytes are written out: no chunk gets much longer than it should.
    pub(super) fn is_worth_writing(&self, len: usize) -> bool {
        len as u64 > WRITE_LEN.min(self.chunk_bytes)
    }
}

impl Default for RecorderOptions {
    fn default() -> Self {
        let window_ns = 0..=u64::MAX;
        Self { window_ns, max_bytes: u64::MAX, chunk_bytes: CHUNK_BYTES, chunk_events: CHUNK_EVENTS, slowest: 0 }
    }
}
