//! The ring between one thread of the program and the drain thread: a preallocated single-producer
//! single-consumer queue of small, plain events. A full ring refuses the newest event; it never waits.

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

use ringbuf::SharedRb;
use ringbuf::storage::Storage;
use ringbuf::traits::Split;
use ringbuf::wrap::caching::{CachingCons, CachingProd};

/// Events that a ring holds: 512 KiB a track, enough for 800,000 events a second at a drain every 20 ms.
/// A power of two known to the compiler, so that the ring's index arithmetic is masks, not divisions.
pub(super) const RING_EVENTS: usize = 1 << 14;

pub(super) type Producer = CachingProd<Arc<SharedRb<Slots>>>;
pub(super) type Consumer = CachingCons<Arc<SharedRb<Slots>>>;

/// An empty ring's two ends.
pub(super) fn ring() -> (Producer, Consumer) {
    // SAFETY: the storage is freshly allocated and no slot is marked as occupied (read and write index are equal).
    let ring = unsafe { SharedRb::from_raw_parts(Slots::new(), 0, 0) };
    Arc::new(ring).split()
}

/// What a thread says to the drain thread, in 32 bytes. `a`, `b` and `c` mean what [`Tag`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawEvent {
    pub(super) a: u64,
    pub(super) b: u64,
    pub(super) c: u64,
    pub(super) id: u32,
    pub(super) tag: Tag,
    /// Which of the fields are known, for the parts of a step.
    pub(super) present: u8,
}

/// Meaning of a [`RawEvent`]. Times are clock ticks except where said.
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
    /// `a` start, `b` end, `c` step; takes up the parts before it.
    Step,
    /// `id` name, `a` time, `b` bits of the value.
    Counter,
    /// `id` name, `a` time, `b` bits of the value, `present` 1 where there is one.
    Mark,
    /// `id` phase, `a` time, `b` bits of the value, `present` the number of a peak.
    PhasePeak,
    /// `id` phase, `a` time, `b` signed bytes, `c` live bytes.
    Allocation,
    /// `id` signal, `a` nanoseconds of `CLOCK_MONOTONIC`, `b` signed value.
    Sample,
    /// `id` signal, `a` nanoseconds of `CLOCK_MONOTONIC`, `b` id of the reason's name.
    Absent,
}

impl RawEvent {
    const EMPTY: Self = Self { a: 0, b: 0, c: 0, id: u32::MAX, tag: Tag::Span, present: 0 };
}

/// The ring's memory: a heap array whose length the compiler knows.
pub(super) struct Slots {
    slots: NonNull<[MaybeUninit<RawEvent>; RING_EVENTS]>,
}

impl Slots {
    fn new() -> Self {
        // Written, not only reserved, so that the program's threads never fault a page in.
        let slots = vec![MaybeUninit::new(RawEvent::EMPTY); RING_EVENTS].into_boxed_slice();
        let first = NonNull::from(Box::leak(slots)).cast();
        Self { slots: first }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // SAFETY: `slots` came from leaking a boxed slice of exactly RING_EVENTS elements in `new` and is
        // released only here; an array and a boxed slice of its length have the same layout.
        drop(unsafe { Box::from_raw(self.slots.as_ptr()) });
    }
}

// SAFETY: `Slots` owns its memory, and `RawEvent` is plain data that may move between threads.
unsafe impl Send for Slots {}
// SAFETY: all access goes through raw pointers; `SharedRb` hands every slot to one side at a time.
unsafe impl Sync for Slots {}

// SAFETY: `as_mut_ptr` always points to the same `RING_EVENTS` allocated elements, and `len` says so.
unsafe impl Storage for Slots {
    type Item = RawEvent;

    #[inline]
    fn as_mut_ptr(&self) -> *mut MaybeUninit<RawEvent> {
        self.slots.as_ptr().cast()
    }

    #[inline]
    fn len(&self) -> usize {
        RING_EVENTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringbuf::traits::{Consumer as _, Producer as _};

    #[test]
    fn an_event_is_small() {
        assert_eq!(size_of::<RawEvent>(), 32);
    }

    #[test]
    fn a_full_ring_refuses_the_newest_and_keeps_order() {
        let (mut producer, mut consumer) = ring();
        let event = |a| RawEvent { a, ..RawEvent::EMPTY };
        for round in 0..3 {
            for i in 0..RING_EVENTS as u64 {
                assert!(producer.try_push(event(i)).is_ok(), "round {round}");
            }
            assert!(producer.try_push(event(u64::MAX)).is_err());
            let times: Vec<u64> = consumer.pop_iter().map(|e| e.a).collect();
            assert_eq!(times, (0..RING_EVENTS as u64).collect::<Vec<_>>());
        }
    }

    #[test]
    fn events_cross_threads() {
        let (mut producer, mut consumer) = ring();
        let writer = std::thread::spawn(move || {
            for a in 0..100_000 {
                while producer.try_push(RawEvent { a, ..RawEvent::EMPTY }).is_err() {
                    std::thread::yield_now();
                }
            }
        });
        for expected in 0..100_000 {
            let event = loop {
                if let Some(event) = consumer.try_pop() {
                    break event;
                }
                std::thread::yield_now();
            };
            assert_eq!(event.a, expected);
        }
        writer.join().unwrap();
    }
}
