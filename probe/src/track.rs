//! Tracks: what one thread of the program writes, and the guards with which it writes.
//!
//! A thread owns at most one track at a time; everything on the recording path reaches it through one
//! thread-local pointer, so that a library deep inside a model can record a span without being handed
//! anything. A guard ends on the thread where it began.

use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use gnntop_wire::{BatchShape, NameId};
use quanta::Clock;
use ringbuf::traits::Producer as _;

use crate::names::NameRef;
use crate::ring::{Producer, RawEvent, Tag};
use crate::session::Publisher;
use crate::usage;

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
        let start = track.clock.raw();
        shared.set_open(id, start, track.step.get());
        let _on_its_thread = PhantomData;
        Self { local, start, outer_since, name: id, outer_name, outer_account, account, _on_its_thread }
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
        let end = track.clock.raw();
        let step = track.step.get();
        track.push(RawEvent { a: self.start, b: end, c: step, id: self.name, tag: Tag::Span, present: 0 });
        track.shared.set_open(self.outer_name, self.outer_since, step);
    }
}

/// Begins the next step of this thread's training loop; it ends when the result is dropped.
///
/// Put the whole turn of the loop inside, waiting for data included: what is inside a step but in no phase,
/// and what lies between two steps, is shown as the gap.
#[inline]
pub fn step(epoch: u64) -> Step {
    let mut begun = Step { local: ptr::null(), start: 0, epoch, batch: BatchShape::default(), loss: None };
    with_track(|track| {
        begun.local = track;
        track.last_step.set(track.last_step.get() + 1);
        track.step.set(track.last_step.get());
        begun.start = track.clock.raw();
    });
    begun
}

/// A running step; see [`step`]. Tell it what is known of its batch.
#[must_use = "the step ends when this is dropped"]
pub struct Step {
    local: *const Local,
    start: u64,
    epoch: u64,
    batch: BatchShape,
    loss: Option<f64>,
}

impl Step {
    /// The size of the step's batch, as far as known.
    pub fn batch(&mut self, batch: BatchShape) {
        self.batch = batch;
    }

    /// The step's loss. On a GPU, reading it waits for the device: leave it out where that disturbs.
    pub fn loss(&mut self, loss: f64) {
        self.loss = Some(loss);
    }

    fn push_parts(&self, track: &Local, step: u64) {
        let part = |tag, present, a, b, c| RawEvent { a, b, c, id: step as u32, tag, present };
        let known = |value: Option<u64>, bit: u8| u8::from(value.is_some()) << bit;
        let BatchShape { graphs, nodes, edges, seeds } = self.batch;
        let present = known(graphs, 0) | known(nodes, 1) | known(edges, 2);
        if present != 0 {
            let value = |v: Option<u64>| v.unwrap_or(0);
            track.push(part(Tag::StepBatch, present, value(graphs), value(nodes), value(edges)));
        }
        let present = known(seeds, 0) | u8::from(self.loss.is_some()) << 1;
        let loss_bits = self.loss.unwrap_or(0.0).to_bits();
        track.push(part(Tag::StepRun, present, seeds.unwrap_or(0), loss_bits, self.epoch));
        if let Some((before, now)) = track.usage.get().zip(usage::of_this_thread()) {
            let [a, b] = now.since(before);
            track.push(part(Tag::StepUsage, 0, a, b, 0));
            track.usage.set(Some(now));
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if self.local.is_null() || !ptr::eq(self.local, CURRENT.get()) {
            return;
        }
        // SAFETY: it equals CURRENT, which is not null; as in `with_track`.
        let track = unsafe { &*self.local };
        let (end, step) = (track.clock.raw(), track.step.get());
        self.push_parts(track, step);
        track.push(RawEvent { a: self.start, b: end, c: step, id: 0, tag: Tag::Step, present: 0 });
        track.step.set(0);
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
