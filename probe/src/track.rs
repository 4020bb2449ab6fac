//! Tracks: what one thread of the program writes, and the guards with which it writes.
//!
//! A thread owns at most one track at a time; everything on the recording path reaches it through one
//! thread-local pointer, so that a library deep inside a model can record a span without being handed
//! anything. A guard ends on the thread where it began.

pub mod after;
mod step;

use std::cell::{Cell, OnceCell, UnsafeCell};
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use gnntop_wire::NameId;
use quanta::Clock;
use ringbuf::traits::Producer as _;

use crate::device::{Attached, Ended, NO_MARK};
use crate::names::NameRef;
use crate::ring::{Producer, RawEvent, Tag};
use crate::session::Publisher;
use crate::usage;

pub use step::{Step, step};

/// Whether anything is recorded at all: off under `GNNTOP=0`, before the first session, after the last, and in
/// a forked child. The one thing that every span looks at first.
static RECORDING: AtomicBool = AtomicBool::new(false);

pub(crate) fn set_recording(on: bool) {
    RECORDING.store(on, Ordering::Relaxed);
}

#[inline]
pub(crate) fn is_recording() -> bool {
    RECORDING.load(Ordering::Relaxed)
}

thread_local! {
    /// This thread's track, null without one. Set and cleared by [`Track`] alone.
    static CURRENT: Cell<*const Local> = const { Cell::new(ptr::null()) };
    /// Memory account of the phase this thread is in.
    static ACCOUNT: Cell<u8> = const { Cell::new(0) };
}

/// The memory account of the phase that the calling thread is in.
#[inline]
pub(crate) fn current_account() -> u8 {
    ACCOUNT.get()
}

/// A track's state on its own thread.
pub(crate) struct Local {
    producer: UnsafeCell<Producer>,
    clock: Clock,
    shared: Arc<Shared>,
    publisher: Weak<Publisher>,
    step: Cell<u64>,
    last_step: Cell<u64>,
    usage: Cell<Option<usage::Totals>>,
    /// What is observed of the device that this thread works on; set once.
    device: OnceCell<Box<Attached>>,
}

/// What a track's thread and the drain thread both see.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) dropped: AtomicU64,
    /// Ticks at which the innermost open span began; 0 for none, and while `open_name` changes.
    open_since: AtomicU64,
    open_name: AtomicU32,
    open_step: AtomicU64,
    /// The thread has given its track up; what is in the ring is the last of it.
    pub(crate) closed: AtomicBool,
}

impl Shared {
    fn set_open(&self, name: u32, since: u64, step: u64) {
        self.open_since.store(0, Ordering::Release);
        self.open_name.store(name, Ordering::Release);
        self.open_step.store(step, Ordering::Release);
        self.open_since.store(since, Ordering::Release);
    }

    /// Name, start ticks and step of the innermost open span; `None` also when it is changing just now.
    pub(crate) fn open(&self) -> Option<(NameId, u64, u64)> {
        let since = self.open_since.load(Ordering::Acquire);
        let name = self.open_name.load(Ordering::Acquire);
        let step = self.open_step.load(Ordering::Acquire);
        let unchanged = self.open_since.load(Ordering::Acquire) == since;
        (since != 0 && unchanged).then_some((NameId(name), since, step))
    }
}

impl Local {
    /// Records an event, or counts it as dropped when the ring is full.
    #[inline]
    fn push(&self, event: RawEvent) {
        // SAFETY: only this track's thread reaches `producer` (through its own CURRENT), and `try_push` runs no
        // code that could come back here: it neither allocates nor calls out.
        let producer = unsafe { &mut *self.producer.get() };
        if producer.try_push(event).is_err() {
            self.count_drop();
        }
    }

    #[cold]
    fn count_drop(&self) {
        // Only this thread writes the count: no read-modify-write needed.
        let dropped = self.shared.dropped.load(Ordering::Relaxed);
        self.shared.dropped.store(dropped + 1, Ordering::Relaxed);
    }
}

/// Runs `f` with the calling thread's track, if it has one and recording is on.
#[inline]
fn with_track(f: impl FnOnce(&Local)) {
    if !is_recording() {
        return;
    }
    let local = CURRENT.get();
    if !local.is_null() {
        // SAFETY: a non-null CURRENT points to the `Local` of a live `Track` of this thread (see `Track::drop`).
        f(unsafe { &*local });
    }
}

/// The session that the calling thread records to.
pub(crate) fn current_publisher() -> Option<Weak<Publisher>> {
    let local = CURRENT.get();
    // SAFETY: as in `with_track`.
    (!local.is_null()).then(|| unsafe { &*local }.publisher.clone())
}

/// Has `open` attach a device to the calling thread's track; whether it did. A track takes one.
pub(crate) fn attach(open: impl FnOnce(&Arc<Publisher>, &Clock) -> Option<Attached>) -> bool {
    let mut is_attached = false;
    with_track(|track| {
        let publisher = track.publisher.upgrade().filter(|_| track.device.get().is_none());
        if let Some(attached) = publisher.and_then(|publisher| open(&publisher, &track.clock)) {
            is_attached = track.device.set(Box::new(attached)).is_ok();
        }
    });
    is_attached
}

/// Runs `f` with what is observed of the calling thread's device, if anything is.
pub(crate) fn with_attached(f: impl FnOnce(&Attached)) {
    with_track(|track| {
        if let Some(device) = track.device.get() {
            f(device);
        }
    });
}

/// A thread's right to record. While it lives, [`span`](crate::span), [`step`](crate::step) and the others on
/// this thread go to this track. One that could not be opened (publishing is off) records nothing.
#[must_use = "the track ends when this is dropped"]
pub struct Track {
    local: Option<Box<Local>>,
    outer: *const Local,
}

impl Track {
    pub(crate) fn inert() -> Self {
        Self { local: None, outer: ptr::null() }
    }

    pub(crate) fn open(producer: Producer, clock: Clock, shared: Arc<Shared>, publisher: Weak<Publisher>) -> Self {
        let local = Box::new(Local {
            producer: UnsafeCell::new(producer),
            clock,
            shared,
            publisher,
            step: Cell::new(0),
            last_step: Cell::new(0),
            usage: Cell::new(usage::of_this_thread()),
            device: OnceCell::new(),
        });
        let outer = CURRENT.replace(&raw const *local);
        Self { local: Some(local), outer }
    }

    /// Whether what is recorded goes anywhere.
    pub fn is_recording(&self) -> bool {
        self.local.is_some() && is_recording()
    }
}

impl Drop for Track {
    fn drop(&mut self) {
        let Some(local) = self.local.take() else { return };
        local.shared.closed.store(true, Ordering::Release);
        if ptr::eq(CURRENT.get(), &raw const *local) {
            CURRENT.set(self.outer);
        } else {
            // A track opened later on this thread still lives and will make this one current again: keep its
            // memory for ever rather than leave it a pointer to nothing.
            Box::leak(local);
        }
    }
}

/// Begins a span on this thread's track; it ends when the result is dropped.
///
/// With recording off or no track on this thread it does nothing. It never waits and never allocates.
#[inline]
pub fn span(name: impl Into<NameRef>) -> Span {
    if !is_recording() {
        return Span::INERT;
    }
    let local = CURRENT.get();
    if local.is_null() {
        return Span::INERT;
    }
    // SAFETY: as in `with_track`.
    let track = unsafe { &*local };
    Span::begin(local, track, name.into())
}

/// A running span; see [`span`]. Bound to its thread.
#[must_use = "the span ends when this is dropped"]
pub struct Span {
    /// The track it began on, null when nothing is recorded.
    local: *const Local,
    start: u64,
    outer_since: u64,
    name: u32,
    outer_name: u32,
    /// Where its begin is marked on the device's stream.
    device_mark: u32,
    outer_account: u8,
    account: u8,
    _on_its_thread: PhantomData<*const ()>,
}

impl Span {
    const INERT: Self = Self {
        local: ptr::null(),
        start: 0,
        outer_since: 0,
        name: 0,
        outer_name: 0,
        device_mark: NO_MARK,
        outer_account: 0,
        account: 0,
        _on_its_thread: PhantomData,
    };

    #[inline]
    fn begin(local: *const Local, track: &Local, name: NameRef) -> Self {
        let shared = &track.shared;
        let (id, account, outer_account) = (name.id().0, name.account(), ACCOUNT.get());
        if account != 0 {
            ACCOUNT.set(account);
        }
        let outer_since = shared.open_since.load(Ordering::Relaxed);
        let outer_name = shared.open_name.load(Ordering::Relaxed);
        let device = track.device.get();
        if let Some(device) = device {
            device.before_begin(account != 0 && outer_account == 0, id);
        }
        let start = track.clock.raw();
        shared.set_open(id, start, track.step.get());
        let device_mark = device.map_or(NO_MARK, |device| device.begin(account != 0));
        let _on_its_thread = PhantomData;
        Self { local, start, outer_since, name: id, outer_name, device_mark, outer_account, account, _on_its_thread }
    }

    /// Whether it is a phase that lies in no other.
    fn is_outer_phase(&self) -> bool {
        self.account != 0 && self.outer_account == 0
    }
}

impl Drop for Span {
    #[inline]
    fn drop(&mut self) {
        if self.local.is_null() {
            return;
        }
        if self.account != 0 {
            ACCOUNT.set(self.outer_account);
        }
        // The track may have ended before its span: then there is nowhere to record to.
        if !ptr::eq(self.local, CURRENT.get()) {
            return;
        }
        // SAFETY: it equals CURRENT, which is not null; as in `with_track`.
        let track = unsafe { &*self.local };
        let device = track.device.get();
        if let Some(device) = device {
            device.before_end(self.is_outer_phase());
        }
        let end = track.clock.raw();
        let step = track.step.get();
        track.push(RawEvent { a: self.start, b: end, c: step, id: self.name, tag: Tag::Span, present: 0 });
        track.shared.set_open(self.outer_name, self.outer_since, step);
        if let Some(device) = device {
            let ended = Ended { name: self.name, step, begin_mark: self.device_mark, begin: self.start, end };
            device.end(self.is_outer_phase(), ended);
        }
    }
}

/// Says which step what follows on this thread belongs to, for threads that prepare a batch ahead of its step.
/// 0 is "none".
pub fn set_step(step: u64) {
    with_track(|track| track.step.set(step));
}

/// Records a counter's new value, such as the depth of a queue.
#[inline]
pub fn counter(name: impl Into<NameRef>, value: f64) {
    with_track(|track| {
        let (a, b) = (track.clock.raw(), value.to_bits());
        track.push(RawEvent { a, b, c: 0, id: name.into().id().0, tag: Tag::Counter, present: 1 });
    });
}

/// Records an instant worth naming, with a number where there is one.
#[inline]
pub fn mark(name: impl Into<NameRef>, value: Option<f64>) {
    with_track(|track| {
        let (a, b) = (track.clock.raw(), value.unwrap_or(0.0).to_bits());
        let present = u8::from(value.is_some());
        track.push(RawEvent { a, b, c: 0, id: name.into().id().0, tag: Tag::Mark, present });
    });
}

/// Records a large allocation of `bytes` (negative: a release) in the current phase. Called by the allocator:
/// it must not allocate.
pub(crate) fn allocation(bytes: i64, live_bytes: u64, phase: u32) {
    with_track(|track| {
        let a = track.clock.raw();
        let tag = Tag::Allocation;
        track.push(RawEvent { a, b: bytes as u64, c: live_bytes, id: phase, tag, present: 0 });
    });
}

/// Records a sensor reading of this instant of `CLOCK_MONOTONIC`.
pub(crate) fn sample(signal: u32, t_ns: u64, value: i64) {
    with_track(|track| {
        track.push(RawEvent { a: t_ns, b: value as u64, c: 0, id: signal, tag: Tag::Sample, present: 0 });
    });
}

/// Records that a signal cannot be read.
pub(crate) fn absent(signal: u32, t_ns: u64, reason: NameRef) {
    with_track(|track| {
        let b = u64::from(reason.id().0);
        track.push(RawEvent { a: t_ns, b, c: 0, id: signal, tag: Tag::Absent, present: 0 });
    });
}
