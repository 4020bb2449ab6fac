//! What is known only after the fact: for programs that are watched from outside their loop, where it shows late that a
//! step has ended or that a phase has run.
//!
//! Times are ticks of [`ticks`]. A loop that can be marked as it runs has [`span`](fn@crate::span) and
//! [`step`](crate::step).

use std::sync::OnceLock;

use gnntop_wire::BatchShape;
use quanta::Clock;

use super::local::{current, record, with_track};
use super::point;
use super::raw_event::{RawEvent, Tag};
use super::step::{self, Parts};
use crate::names::NameRef;
use crate::switch;

static CLOCK: OnceLock<Clock> = OnceLock::new();

fn clock() -> &'static Clock {
    CLOCK.get_or_init(Clock::new)
}

/// The clock that spans are timed by, in ticks. The first call of a process takes some milliseconds to get to know the clock.
#[inline]
pub fn ticks() -> u64 {
    clock().raw()
}

/// Nanoseconds that so many ticks take.
pub fn ticks_ns(ticks: u64) -> u64 {
    clock().delta_as_nanos(0, ticks)
}

/// Whether what the calling thread records goes anywhere.
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

/// Records a counter's value as it was at these ticks.
pub fn counter(name: impl Into<NameRef>, at: u64, value: f64) {
    let id = name.into().id().0;
    record(|track| {
        track.push(RawEvent { a: at, b: value.to_bits(), c: 0, id, tag: Tag::Counter, present: 1 });
    });
}

/// Records an instant worth naming, with a number where there is one, as of these ticks.
pub fn mark(name: impl Into<NameRef>, at: u64, value: Option<f64>) {
    let id = name.into().id().0;
    record(|track| {
        let (b, present) = (value.unwrap_or(0.0).to_bits(), u8::from(value.is_some()));
        track.push(RawEvent { a: at, b, c: 0, id, tag: Tag::Mark, present });
    });
}

/// Records a large allocation of `bytes` (negative: a release) with the bytes live after it, in the span that is open on
/// the calling thread.
pub fn allocation(bytes: i64, live_bytes: u64) {
    let open = with_track(|track| track.shared.open.get()).flatten();
    point::allocation(bytes, live_bytes, open.map_or(0, |open| open.name));
}

/// From here on the calling thread is always in a step, which [`end_step`] ends.
pub fn begin_steps() {
    // Kept alive: an observer runs the program's code.
    if let Some(track) = current().filter(|track| switch::is_recording() && track.step.get() == 0) {
        step::begin_next(&track);
    }
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
    /// When it ended.
    pub end: u64,
}

/// Records the calling thread's step, in which all is that was recorded since the one before, and begins the next. Returns
/// its number, from 1; 0 without a track.
pub fn end_step(ended: &EndedStep) -> u64 {
    begin_steps();
    // Kept alive, as above.
    let Some(track) = current().filter(|_| switch::is_recording()) else { return 0 };
    let number = track.step.get();
    let EndedStep { epoch, batch, begin, end } = *ended;
    step::end(&track, &Parts { epoch, batch, loss: None }, begin.min(end), end);
    begin_steps();
    number
}
