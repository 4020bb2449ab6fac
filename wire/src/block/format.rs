//! What a block says of itself, and its bounds.

use crate::ids::TrackId;

/// A block's events take at most this many bytes before compression: some ten thousand spans. LZ4 sees no
/// further back, and what a writer or a reader needs for a track stays small.
pub const MAX_BLOCK_LEN: usize = 1 << 16;

/// What a block says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockInfo {
    /// The track all events belong to.
    pub track: TrackId,
    /// Number of the first event on this track, counting all that were ever written to it.
    pub first_seq: u64,
    /// Events in the block.
    pub count: u64,
    /// Events lost on this track since the start because its ring was full.
    pub dropped: u64,
    /// Time from which the first event's time is counted, in nanoseconds.
    pub base_ns: u64,
}
