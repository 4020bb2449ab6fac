//! The calling thread's track: how it is opened, found and ended. Threads that are not handed a session open it with an
//! [`Opener`].

use std::cell::{Cell, OnceCell, UnsafeCell};
use std::ptr;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use gnntop_wire::{Definition, TrackRole};
use quanta::Clock;
use ringbuf::traits::{Observer as _, Producer as _};

use super::observer::Observer;
use super::reader::RingReader;
use super::shared::{self, Producer, RING_EVENTS, RawEvent, STEP_EVENTS, TrackShared};
use crate::publisher::Publisher;
use crate::switch;
use crate::usage::UsageSnapshot;

thread_local! {
    /// This thread's track, null without one: the head of a list of all its tracks, linked by [`Local::outer`]. Each
    /// pointer comes from `Rc::into_raw` and is alive: [`Track`] holds the count and unlinks before releasing it.
    static CURRENT: Cell<*const Local> = const { Cell::new(ptr::null()) };
    /// Memory account of the phase this thread is in.
    static ACCOUNT: Cell<u8> = const { Cell::new(0) };
}

/// The memory account of the phase that the calling thread is in.
#[inline]
pub(crate) fn current_account() -> u8 {
    ACCOUNT.get()
}

#[inline]
pub(super) fn set_account(account: u8) {
    ACCOUNT.set(account);
}

/// A track's state on its own thread.
pub(super) struct Local {
    producer: UnsafeCell<Producer>,
    /// Events that are no steps for which the ring surely has room.
    room: Cell<usize>,
    pub(super) clock: Clock,
    pub(super) shared: Arc<TrackShared>,
    publisher: Weak<Publisher>,
    /// The step that records belong to; 0 for none.
    pub(super) step: Cell<u64>,
    /// Number of the step that began last.
    pub(super) last_step: Cell<u64>,
    /// Page faults and context switches up to the last step that reported them.
    pub(super) charged: Cell<Option<UsageSnapshot>>,
    /// Observer of spans and steps; set once.
    pub(super) observer: OnceCell<Rc<dyn Observer>>,
    /// The thread's track before this one.
    outer: Cell<*const Local>,
}

impl Local {
    /// Records an event that is no step, or counts it as dropped when the ring has only the places of steps left.
    #[inline]
    pub(super) fn push(&self, event: RawEvent) {
        if self.room.get() == 0 && !self.has_room() {
            return self.shared.count_drop();
        }
        self.put(event);
    }

    /// Records a step or a part of it, or counts it as dropped when the ring is full.
    #[inline]
    pub(super) fn push_step(&self, event: RawEvent) {
        self.put(event);
    }

    #[inline]
    fn put(&self, event: RawEvent) {
        self.room.set(self.room.get().saturating_sub(1));
        // SAFETY: only this track's thread reaches `producer`, since neither `Rc<Local>` nor a reference leaves it.
        // `try_push` cannot come back here: it neither allocates nor calls out.
        let producer = unsafe { &mut *self.producer.get() };
        if producer.try_push(event).is_err() {
            self.shared.count_drop();
        }
    }

    /// Asks the ring for its room.
    #[cold]
    fn has_room(&self) -> bool {
        // SAFETY: as in `put`.
        let producer = unsafe { &*self.producer.get() };
        self.room.set(producer.vacant_len().saturating_sub(STEP_EVENTS));
        self.room.get() > 0
    }
}

/// Runs `f` with the calling thread's track, if it has one. `f` must not run the program's code, which could end the track;
/// use [`current`] for that.
#[inline]
pub(super) fn with_track<T>(f: impl FnOnce(&Local) -> T) -> Option<T> {
    let local = CURRENT.get();
    if local.is_null() {
        return None;
    }
    // SAFETY: what CURRENT points to is alive and stays so while `f` runs, since only dropping a `Track` on this thread
    // ends it. A release of memory in `f` may come back here through the tracking allocator, but only to push an event.
    Some(f(unsafe { &*local }))
}

/// Runs `f` with the calling thread's track, if it has one and recording is on; see [`with_track`].
#[inline]
pub(super) fn record(f: impl FnOnce(&Local)) {
    if switch::is_recording() {
        with_track(f);
    }
}

/// The calling thread's track. The result keeps it alive, so the program's code may run meanwhile and end the track.
pub(super) fn current() -> Option<Rc<Local>> {
    let local = CURRENT.get();
    if local.is_null() {
        return None;
    }
    // SAFETY: the pointer is alive and from `Rc::into_raw`; the new count belongs to the result.
    Some(unsafe {
        Rc::increment_strong_count(local);
        Rc::from_raw(local)
    })
}

/// Whether this is the calling thread's track. Never reads through the pointer, whose track may have ended.
#[inline]
pub(super) fn is_current(local: *const Local) -> bool {
    ptr::eq(local, CURRENT.get())
}

/// The session that the calling thread records to.
fn current_publisher() -> Option<Weak<Publisher>> {
    with_track(|track| track.publisher.clone())
}

/// Attaches the observer that `open` makes to the calling thread's track. `false` if it has none or has an observer.
pub(crate) fn attach(open: impl FnOnce(&Arc<Publisher>, &Clock) -> Option<Rc<dyn Observer>>) -> bool {
    let Some(track) = current().filter(|track| switch::is_recording() && track.observer.get().is_none()) else {
        return false;
    };
    let Some(publisher) = track.publisher.upgrade() else { return false };
    open(&publisher, &track.clock).is_some_and(|observer| track.observer.set(observer).is_ok())
}

/// The observer of the calling thread's track.
pub(crate) fn observer() -> Option<Rc<dyn Observer>> {
    with_track(|track| track.observer.get().cloned()).flatten()
}

/// A thread's recording track. While it lives, [`span`](fn@crate::span), [`step`](crate::step) and the other functions
/// record on it when called on this thread. If it could not be opened (publishing is off), it records nothing.
#[must_use = "the track ends when this is dropped"]
pub struct Track {
    /// From `Rc::into_raw`; this holds the count. Null if nothing is recorded.
    local: *const Local,
}

impl std::fmt::Debug for Track {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Track").field("is_recording", &!self.local.is_null()).finish()
    }
}

impl Track {
    pub(crate) fn inert() -> Self {
        Self { local: ptr::null() }
    }

    /// Opens a track on a session for the calling thread.
    pub(crate) fn open(publisher: &Arc<Publisher>, name: &str, role: TrackRole) -> Self {
        let Some(id) = publisher.next_track_id() else { return Self::inert() };
        let (producer, consumer) = shared::ring();
        let shared = Arc::new(TrackShared::default());
        let definition = Definition::Track { id, role, thread_id: thread_id(), text: name.to_owned() };
        publisher.open(Box::new(RingReader::new(definition, publisher.encoder(id), consumer, Arc::clone(&shared))));
        let local = Rc::new(Local {
            producer: UnsafeCell::new(producer),
            room: Cell::new(RING_EVENTS - STEP_EVENTS),
            clock: publisher.clock.clone(),
            shared,
            publisher: Arc::downgrade(publisher),
            step: Cell::new(0),
            last_step: Cell::new(0),
            charged: Cell::new(UsageSnapshot::now(&publisher.clock)),
            observer: OnceCell::new(),
            outer: Cell::new(CURRENT.get()),
        });
        let local = Rc::into_raw(local);
        CURRENT.set(local);
        Self { local }
    }

    /// Whether this track's records go anywhere.
    pub fn is_recording(&self) -> bool {
        !self.local.is_null() && switch::is_recording()
    }
}

impl Drop for Track {
    fn drop(&mut self) {
        if self.local.is_null() {
            return;
        }
        // SAFETY: the pointer is from `Rc::into_raw`, and only this releases its count.
        let local = unsafe { Rc::from_raw(self.local) };
        local.shared.close();
        unlink(self.local, local.outer.get());
    }
}

/// Removes a track from the thread's list. It need not be the head: tracks may end in any order.
fn unlink(gone: *const Local, outer: *const Local) {
    if is_current(gone) {
        return CURRENT.set(outer);
    }
    let mut inner = CURRENT.get();
    // SAFETY: all tracks in the list are alive.
    while let Some(track) = unsafe { inner.as_ref() } {
        if ptr::eq(track.outer.get(), gone) {
            return track.outer.set(outer);
        }
        inner = track.outer.get();
    }
}

/// The calling thread, as the system numbers it.
fn thread_id() -> u64 {
    #[cfg(target_os = "linux")]
    return u64::from(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs());
    #[cfg(not(target_os = "linux"))]
    return 0;
}

/// Opens tracks on one session from any thread; give one to the threads that a rank starts. See [`opener`].
#[derive(Clone)]
pub struct Opener {
    publisher: Weak<Publisher>,
}

impl Opener {
    /// Opens a track for the calling thread, like [`Session::track`](crate::Session::track): on this session, or if that
    /// has ended, on the one started last. Records nothing without a session.
    pub fn track(&self, name: &str, role: TrackRole) -> Track {
        // In a forked child, this session is the parent's.
        let own = self.publisher.upgrade().filter(|publisher| publisher.is_of_this_process());
        own.or_else(Publisher::latest).map_or_else(Track::inert, |publisher| Track::open(&publisher, name, role))
    }
}

impl std::fmt::Debug for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opener").field("is_publishing", &(self.publisher.strong_count() > 0)).finish()
    }
}

/// An [`Opener`] for the session that the calling thread records to. Without one, it uses the session started last at the
/// time when a track is opened.
pub fn opener() -> Opener {
    Opener { publisher: current_publisher().unwrap_or_default() }
}

/// Opens a track on the session that [`opener`] finds: for libraries and worker threads that are not handed a
/// [`Session`](crate::Session). Records nothing without a session.
pub fn track(name: &str, role: TrackRole) -> Track {
    opener().track(name, role)
}
