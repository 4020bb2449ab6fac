//! Records spans and steps after the fact: for programs observed from outside their loop, where a step's end or a phase is
//! only detected later.
//!
//! Times are ticks of [`ticks`]. A loop that you can instrument directly should use [`span`](fn@crate::span) and
//! [`step`](crate::step).

use std::sync::OnceLock;

use gnntop_wire::{BatchShape, StackThread};
use quanta::Clock;

use super::local::{current, record, with_track};
use super::point;
use super::shared::{RawEvent, Tag};
use super::step::{self, StepParts};
use crate::clock;
use crate::names::NameRef;
use crate::switch;

static CLOCK: OnceLock<Option<Clock>> = OnceLock::new();

fn clock() -> Option<&'static Clock> {
    CLOCK.get_or_init(clock::tick_counter).as_ref()
}

/// The clock that times spans, in ticks. A process's first call takes some milliseconds to calibrate the clock.
#[inline]
pub fn ticks() -> u64 {
    clock().map_or(0, Clock::raw)
}

/// Converts a number of ticks to nanoseconds.
pub fn ticks_ns(ticks: u64) -> u64 {
    clock().map_or(0, |clock| clock.delta_as_nanos(0, ticks))
}

/// Whether the calling thread's records go anywhere.
pub fn is_recording() -> bool {
    switch::is_recording() && with_track(|_| ()).is_some()
}

/// Records a span of the calling thread that began and ended at these ticks.
pub fn span(name: impl Into<NameRef>, begin: u64, end: u64) {
    let id = name.into().id().0;
    record(|track| {
        let (a, b, c) = (begin, end.max(begin), track.step.get());
        track.push(RawEvent { a, b, c, id, tag: Tag::Span, present: 0 });
    });
}

/// Records a counter's value at these ticks.
pub fn counter(name: impl Into<NameRef>, at: u64, value: f64) {
    let id = name.into().id().0;
    record(|track| {
        track.push(RawEvent { a: at, b: value.to_bits(), c: 0, id, tag: Tag::Counter, present: 1 });
    });
}

/// Records a mark at these ticks, with a value if it has one.
pub fn mark(name: impl Into<NameRef>, at: u64, value: Option<f64>) {
    let id = name.into().id().0;
    record(|track| {
        let (b, present) = (value.unwrap_or(0.0).to_bits(), u8::from(value.is_some()));
        track.push(RawEvent { a: at, b, c: 0, id, tag: Tag::Mark, present });
    });
}

/// Records a mark at the end of something that began and ended at these ticks.
pub fn timed_mark(name: impl Into<NameRef>, begin: u64, end: u64) {
    let id = name.into().id().0;
    record(|track| {
        track.push(RawEvent { a: begin, b: end.max(begin), c: 0, id, tag: Tag::TimedMark, present: 0 });
    });
}

/// Records a frame of a stack that was read at these ticks, with the number of frames inside it. A stack's frames follow
/// one another, innermost first, on a track of the role [`TrackRole::Stacks`](gnntop_wire::TrackRole::Stacks).
pub fn stack_frame(name: impl Into<NameRef>, at: u64, depth: u32, thread: StackThread) {
    let id = name.into().id().0;
    record(|track| {
        let (b, present) = (u64::from(depth), thread as u8);
        track.push(RawEvent { a: at, b, c: 0, id, tag: Tag::StackFrame, present });
    });
}

/// Records at these ticks how many samples of a stack there were since the session began, or a figure of the sampling;
/// `is_repeat` if nothing has changed since the last time. It belongs on a track of the role [`TrackRole::Samples`](gnntop_wire::TrackRole::Samples).
pub fn stack_sample(path: impl Into<NameRef>, at: u64, count: u64, is_repeat: bool) {
    let id = path.into().id().0;
    record(|track| {
        track.push(RawEvent { a: at, b: count, c: 0, id, tag: Tag::StackSample, present: u8::from(is_repeat) });
    });
}

/// Records a large allocation of `bytes` (negative: a release) and the live bytes after it, in the calling thread's open span.
pub fn allocation(bytes: i64, live_bytes: u64) {
    let open = with_track(|track| track.shared.open.get()).flatten();
    point::allocation(bytes, live_bytes, open.map_or(0, |open| open.name));
}

/// From here on the calling thread is always in a step; [`end_step`] ends each.
pub fn begin_steps() {
    // An `Rc`, since an observer runs the program's code, which may end the track.
    if let Some(track) = current().filter(|track| switch::is_recording() && track.step.get() == 0) {
        step::begin_next(&track);
    }
}

/// As [`begin_steps`], on a track that continues another one: its first step has the number after `last`.
pub fn continue_steps(last: u64) {
    with_track(|track| track.last_step.set(track.last_step.get().max(last)));
    begin_steps();
}

/// A step that has ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndedStep {
    /// Epoch, as the program counts.
    pub epoch: u64,
    /// The batch's size, as far as known.
    pub batch: BatchShape,
    /// When it began, in ticks.
    pub begin: u64,
    /// When it ended, in ticks.
    pub end: u64,
    /// Whether a profiler slowed it down.
    pub is_traced: bool,
}

/// Records the calling thread's step, which contains everything recorded since the previous one, and begins the next.
/// Returns its number, from 1; 0 without a track.
pub fn end_step(ended: &EndedStep) -> u64 {
    begin_steps();
    // An `Rc`, as above.
    let Some(track) = current() else { return 0 };
    if !switch::is_recording() {
        step::skip(&track);
        return 0;
    }
    let number = track.step.get();
    let EndedStep { epoch, batch, begin, end, is_traced } = *ended;
    step::end(&track, &StepParts { epoch, batch, loss: None, is_traced }, begin.min(end), end);
    begin_steps();
    number
}
