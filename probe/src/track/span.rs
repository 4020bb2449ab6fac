//! Spans: they last from a call to the drop of a guard.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use super::local::{self, Local, current, current_account, set_account, with_track};
use super::observer::{EndedSpan, NO_MARK};
use super::open_span::Open;
use super::shared::{RawEvent, Tag};
use crate::names::NameRef;
use crate::switch;

/// Begins a span on this thread's track; it ends when the result is dropped.
///
/// Does nothing if recording is off or this thread has no track. Never waits and never allocates.
#[inline(always)]
pub fn span(name: impl Into<NameRef>) -> Span {
    // Only this is compiled into the program's code: with recording off, a span is a load and two branches. Making the name
    // may run the program's code, which may open and end tracks, so it comes before the track is looked up.
    let begun = if switch::is_recording() { RunningSpan::begin(name.into()) } else { None };
    Span { begun, _on_its_thread: PhantomData }
}

/// A running span; see [`span`](fn@span). Bound to its thread.
#[must_use = "the span ends when this is dropped"]
pub struct Span {
    /// `None` when nothing is recorded.
    begun: Option<RunningSpan>,
    _on_its_thread: PhantomData<*const ()>,
}

/// What a span keeps from its begin.
struct RunningSpan {
    /// The track it began on. Only compared: the track may have ended.
    local: NonNull<Local>,
    start: u64,
    outer_since: u64,
    name: u32,
    outer_name: u32,
    /// The mark at its begin on the device's stream.
    device_mark: u32,
    outer_account: u8,
    account: u8,
}

impl Span {
    /// Ends the span without recording it. Returns its begin and its end in ticks, for [`after::span`](crate::after::span)
    /// later; `None` if nothing is recorded.
    pub fn take_back(mut self) -> Option<(u64, u64)> {
        let begun = self.begun.take()?;
        begun.end(false).map(|end| (begun.start, end))
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Span").field("is_recording", &self.begun.is_some()).finish_non_exhaustive()
    }
}

/// Begins a span with a name given in the source: `let _layer = span!("layer 1");`
///
/// The name is registered when this line first runs; after that it costs the same as [`span`](fn@crate::span).
///
/// ```
/// use gnntop_probe::span;
/// let _layer = span!("layer 1");
/// ```
#[macro_export]
macro_rules! span {
    ($name:literal) => {{
        static NAME: $crate::Name = $crate::Name::span($name);
        $crate::span(&NAME)
    }};
}

impl RunningSpan {
    /// Begins a span on the calling thread's track, if it has one.
    #[inline(never)]
    fn begin(name: NameRef) -> Option<Self> {
        match with_track(|track| track.observer.get().is_some())? {
            false => with_track(|track| Self::begin_on(track, name)),
            true => Self::begin_observed(name),
        }
    }

    #[inline]
    fn begin_on(track: &Local, name: NameRef) -> Self {
        let (id, account, outer_account) = (name.id().0, name.account(), current_account());
        if account != 0 {
            set_account(account);
        }
        let (outer_name, outer_since) = track.shared.open.get_from_own_thread();
        let start = track.clock.raw();
        track.shared.open.set(Open { name: id, since: start, step: track.step.get() });
        let local = NonNull::from(track);
        Self { local, start, outer_since, name: id, outer_name, device_mark: NO_MARK, outer_account, account }
    }

    /// An observer may run the program's code on both sides of the begin: this keeps the track alive meanwhile.
    #[inline(never)]
    fn begin_observed(name: NameRef) -> Option<Self> {
        let track = current()?;
        let observer = track.observer.get()?;
        let is_phase = name.account() != 0;
        observer.before_begin(is_phase && current_account() == 0, name.id().0);
        let mut begun = Self::begin_on(&track, name);
        begun.device_mark = observer.begin(is_phase);
        Some(begun)
    }

    /// Ends it on the calling thread's track. Returns when, in ticks; `None` if there is nowhere to record.
    #[inline(never)]
    fn end(&self, is_recorded: bool) -> Option<u64> {
        if self.account != 0 {
            set_account(self.outer_account);
        }
        // The track may have ended before its span: then there is nowhere to record.
        if !local::is_current(self.local.as_ptr()) {
            return None;
        }
        match with_track(|track| track.observer.get().is_some())? {
            false => with_track(|track| self.end_on(track, is_recorded).end),
            true => self.end_observed(is_recorded),
        }
    }

    #[inline]
    fn end_on(&self, track: &Local, is_recorded: bool) -> EndedSpan {
        let end = track.clock.raw();
        let step = track.step.get();
        if is_recorded {
            track.push(RawEvent { a: self.start, b: end, c: step, id: self.name, tag: Tag::Span, present: 0 });
        }
        track.shared.open.set(Open { name: self.outer_name, since: self.outer_since, step });
        EndedSpan { name: self.name, step, begin_mark: self.device_mark, begin: self.start, end }
    }

    /// As [`begin_observed`](Self::begin_observed).
    #[inline(never)]
    fn end_observed(&self, is_recorded: bool) -> Option<u64> {
        let track = current()?;
        let observer = track.observer.get()?;
        observer.before_end(self.is_outer_phase());
        let ended = self.end_on(&track, is_recorded);
        observer.end(self.is_outer_phase(), ended);
        Some(ended.end)
    }

    /// Whether it is a phase inside no other.
    fn is_outer_phase(&self) -> bool {
        self.account != 0 && self.outer_account == 0
    }
}

impl Drop for Span {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(begun) = &self.begun {
            begun.end(true);
        }
    }
}
