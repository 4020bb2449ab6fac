//! Allocations by phase, with the tracking allocator installed as a program would.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod reading;

use std::alloc::System;
use std::hint::black_box;

use gnntop_probe::{Session, TrackRole, TrackingAllocator, phase, span, step};
use gnntop_wire::{Allocation, Event, PhaseMemory};
use reading::RecordedStream;

#[global_allocator]
static ALLOCATOR: TrackingAllocator<System> = TrackingAllocator::new(System);

const LARGE: usize = 3 << 20;
const SMALL: usize = 1000;

fn last_memory(stream: &RecordedStream, phase: &str) -> PhaseMemory {
    let of_phase = |e| if let Event::PhaseMemory(m) = e { Some(m) } else { None };
    stream.events().filter_map(of_phase).filter(|m| stream.name(m.phase) == phase).last().expect("totals of the phase")
}

#[test]
fn allocated_bytes_count_for_their_phase() {
    let temp = tempfile::tempdir().unwrap();
    let session = Session::builder("allocates").directory(temp.path()).sensors(None).start();
    let dir = session.dir().unwrap().to_owned();
    let track = session.track("train", TrackRole::Training);
    let mut kept = Vec::with_capacity(100);
    for _ in 0..10 {
        let _step = step(0);
        {
            let _forward = span(&phase::FORWARD);
            kept.extend((0..10).map(|_| black_box(vec![1u8; SMALL])));
            drop(black_box(vec![0u8; LARGE]));
        }
        let _backward = span(&phase::BACKWARD);
        kept.clear();
    }
    drop((track, session));

    let stream = RecordedStream::from_session(&dir);
    let (forward, backward) = (last_memory(&stream, "forward"), last_memory(&stream, "backward"));
    assert_eq!((forward.allocated_count, forward.freed_count), (110, 10));
    assert_eq!(forward.allocated_bytes, 10 * (10 * SMALL + LARGE) as u64);
    assert_eq!((backward.allocated_count, backward.freed_count), (0, 100));
    assert_eq!(backward.freed_bytes, 100 * SMALL as u64);
    assert!(forward.peak_bytes >= LARGE as u64 && forward.live_bytes > 0);
    assert!(backward.peak_bytes == 0, "no allocation in backward, so no peak was taken there");

    let large: Vec<Allocation> = stream
        .events()
        .filter_map(|e| if let Event::Allocation(a) = e { Some(a) } else { None })
        .filter(|a| stream.name(a.phase) == "forward")
        .collect();
    let bytes: Vec<i64> = large.iter().map(|a| a.bytes).collect();
    assert_eq!(bytes, [LARGE as i64, -(LARGE as i64)].repeat(10));
}
