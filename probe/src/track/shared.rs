//! What a track's thread and the drain thread share: a ring of small, plain events, and what is beside it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::open_span::OpenSpan;
use crate::ring;

/// Events that a ring holds: 512 KiB a track, enough for 800,000 events a second with a drain every 20 ms.
pub(super) const RING_EVENTS: usize = 1 << 14;
/// Those of them that only steps and their parts may take, so that a flood of marks costs no step.
pub(super) const STEP_EVENTS: usize = 1 << 10;

pub(super) type Producer = ring::Producer<RawEvent, RING_EVENTS>;
pub(super) type Consumer = ring::Consumer<RawEvent, RING_EVENTS>;

/// An empty ring's two ends.
pub(super) fn ring() -> (Producer, Consumer) {
    ring::ring(RawEvent::EMPTY)
}

/// A thread's event, in 32 bytes. [`Tag`] says what `a`, `b` and `c` mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawEvent {
    pub(super) a: u64,
    pub(super) b: u64,
    pub(super) c: u64,
    pub(super) id: u32,
    pub(super) tag: Tag,
    /// Which fields are known, for the parts of a step.
    pub(super) present: u8,
}

/// Meaning of a [`RawEvent`]. Times are clock ticks unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Tag {
    /// `id` name, `a` start, `b` end, `c` step.
    Span,
    /// Part of the step whose low 32 bits are `id`: `a` graphs, `b` nodes, `c` edges.
    StepBatch,
    /// Likewise: `a` seeds, `b` bits of the loss, `c` epoch.
    StepRun,
    /// Likewise: `a` minor and major faults, `b` voluntary and involuntary switches, in the high and low half.
    StepUsage,
    /// `a` start, `b` end, `c` step, `id` epoch, unless [`LONG_EPOCH`] says that a part has it; completes the parts before it.
    Step,
    /// `id` name, `a` time, `b` bits of the value.
    Counter,
    /// `id` name, `a` time, `b` bits of the value, `present` 1 if it has one.
    Mark,
    /// `id` name, `a` begin and `b` end of what ends at the mark; if `present` is 1, `c` nanoseconds that it took.
    TimedMark,
    /// `id` name, `a` time, `b` depth, `present` the thread.
    StackFrame,
    /// `id` path, `a` time, `b` count, `present` 1 if it is only repeated.
    StackSample,
    /// `id` command, `a` time, `b` bits of the cores, `c` pid or 0.
    Rival,
    /// `id` phase, `a` time, `b` bits of the value, `present` the number of a peak.
    PhasePeak,
    /// `id` phase, `a` time, `b` signed bytes, `c` live bytes.
    Allocation,
    /// `id` signal, `a` nanoseconds of `CLOCK_MONOTONIC`, `b` signed value.
    Sample,
    /// `id` signal, `a` nanoseconds of `CLOCK_MONOTONIC`, `b` id of the reason's name.
    Absent,
}

/// Bit of `present` of a step: a part has its epoch.
pub(super) const LONG_EPOCH: u8 = 1;
/// Bit of `present` of a step: a deep trace slowed it down.
pub(super) const IS_TRACED: u8 = 2;

impl RawEvent {
    const EMPTY: Self = Self { a: 0, b: 0, c: 0, id: u32::MAX, tag: Tag::Span, present: 0 };
}

/// What a track's thread and the drain thread share, besides the ring.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_event_size_is_bounded() {
        assert_eq!(size_of::<RawEvent>(), 32);
    }
}
