//! Records at an instant: counters, marks, allocations, sensor readings.

use std::time::Duration;

use super::local::record;
use super::peaks::Peak;
use super::shared::{RawEvent, Tag};
use crate::names::NameRef;
use crate::switch;

/// Sets the step that this thread's next records belong to, for threads that prepare a batch ahead of its step. 0 means none.
pub fn set_step(step: u64) {
    record(|track| track.step.set(step));
}

/// Records a counter's new value, such as the depth of a queue.
#[inline]
pub fn counter(name: impl Into<NameRef>, value: f64) {
    now(name, Tag::Counter, Some(value));
}

/// Records a mark, with a value if it has one.
#[inline]
pub fn mark(name: impl Into<NameRef>, value: Option<f64>) {
    now(name, Tag::Mark, value);
}

/// Records a mark at the end of something that took so long, such as a checkpoint.
pub fn timed_mark(name: impl Into<NameRef>, took: Duration) {
    if !switch::is_recording() {
        return;
    }
    let id = name.into().id().0;
    record(|track| {
        let (a, c) = (track.clock.raw(), u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        track.push(RawEvent { a, b: a, c, id, tag: Tag::TimedMark, present: 1 });
    });
}

#[inline]
fn now(name: impl Into<NameRef>, tag: Tag, value: Option<f64>) {
    if !switch::is_recording() {
        return;
    }
    // This runs the program's code, so it comes before the track is looked up.
    let id = name.into().id().0;
    record(|track| {
        let (a, b) = (track.clock.raw(), value.unwrap_or(0.0).to_bits());
        track.push(RawEvent { a, b, c: 0, id, tag, present: u8::from(value.is_some()) });
    });
}

/// Records a large allocation of `bytes` (negative: a release) in the current phase. The allocator calls this, so it must
/// not allocate.
pub(crate) fn allocation(bytes: i64, live_bytes: u64, phase: u32) {
    record(|track| {
        let a = track.clock.raw();
        let tag = Tag::Allocation;
        track.push(RawEvent { a, b: bytes as u64, c: live_bytes, id: phase, tag, present: 0 });
    });
}

/// Records the peak device memory in a phase, as a counter named after the phase. The drain thread makes that name.
pub(crate) fn phase_peak(phase: u32, peak: Peak, bytes: u64) {
    record(|track| {
        let (a, b) = (track.clock.raw(), (bytes as f64).to_bits());
        track.push(RawEvent { a, b, c: 0, id: phase, tag: Tag::PhasePeak, present: peak as u8 });
    });
}

/// Records that another program uses this many cores; no `pid` for several processes.
pub(crate) fn rival(command: NameRef, pid: Option<u32>, cores: f64) {
    record(|track| {
        let (a, b, c) = (track.clock.raw(), cores.to_bits(), u64::from(pid.unwrap_or(0)));
        track.push(RawEvent { a, b, c, id: command.id().0, tag: Tag::Rival, present: 0 });
    });
}

/// Records a sensor reading at this time of `CLOCK_MONOTONIC`.
pub(crate) fn sample(signal: u32, t_ns: u64, value: i64) {
    record(|track| {
        track.push(RawEvent { a: t_ns, b: value as u64, c: 0, id: signal, tag: Tag::Sample, present: 0 });
    });
}

/// Records that a signal cannot be read.
pub(crate) fn absent(signal: u32, t_ns: u64, reason: NameRef) {
    record(|track| {
        let b = u64::from(reason.id().0);
        track.push(RawEvent { a: t_ns, b, c: 0, id: signal, tag: Tag::Absent, present: 0 });
    });
}
