//! The calling thread's track: how it begins, how it is found, and how it ends.

use std::cell::{Cell, OnceCell, UnsafeCell};
use std::ptr;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use gnntop_wire::{Definition, TrackRole};
use quanta::Clock;
use ringbuf::traits::Producer as _;

use super::observer::Observer;
use super::raw_event::{self, Producer, RawEvent};
use super::reader::RingReader;
use super::shared::Shared;
use crate::publisher::Publisher;
use crate::switch;
use crate::usage::Charged;

thread_local! {
    /// This thread's track, null without one: the head of a list of all its tracks, linked by [`Local::outer`]. Each
    /// pointer comes from `Rc::into_raw` and is alive: [`Track`], which holds the count, unlinks it before giving that back.
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
    pub(super) clock: Clock,
    pub(super) shared: Arc<Shared>,
    publisher: Weak<Publisher>,
    /// The step that what is recorded belongs to, 0 for none.
    pub(super) step: Cell<u64>,
    /// Number of the step that began last.
    pub(super) last_step: Cell<u64>,
    /// Page faults and context switches by the end of the step that last told them.
    pub(super) charged: Cell<Option<Charged>>,
    /// Who wants to know of spans and steps; set once.
    pub(super) observer: OnceCell<Rc<dyn Observer>>,
    /// The track that was this thread's before.
    outer: Cell<*const Local>,
}

impl Local {
    /// Records an event, or counts it as dropped when the ring is full.
    #[inline]
    pub(super) fn push(&self, event: RawEvent) {
        // SAFETY: only this track's thread reaches `producer`, since neither `Rc<Local>` nor a reference leaves it, and
        // `try_push` runs no code that could come back here: it neither allocates nor calls out.
        let producer = unsafe { &mut *self.producer.get() };
        if producer.try_push(event).is_err() {
            self.shared.count_drop();
        }
    }
}

/// Runs `f` with the calling thread's track, if it has one. `f` runs none of the program's code, which could end the track:
/// see [`current`] for that.
#[inline]
pub(super) fn with_track<T>(f: impl FnOnce(&Local) -> T) -> Option<T> {
    let local = CURRENT.get();
    if local.is_null() {
        return None;
    }
    // SAFETY: what CURRENT points to is alive, and stays so while `f` runs, since only the drop of a `Track` on this thread
    // ends it: a release of memory in `f` may come back here through the tracking allocator, but only to push an event.
    Some(f(unsafe { &*local }))
}

/// Runs `f` with the calling thread's track, if it has one and recording is on; see [`with_track`].
#[inline]
pub(super) fn record(f: impl FnOnce(&Local)) {
    if switch::is_recording() {
        with_track(f);
    }
}

/// The calling thread's track; kept alive by the result, so that the program's code may run meanwhile and end it.
pub(super) fn current() -> Option<Rc<Local>> {
    let local = CURRENT.get();
    if local.is_null() {
        return None;
    }
    // SAFETY: it is alive and from `Rc::into_raw`; the count is the result's.
    Some(unsafe {
        Rc::increment_strong_count(local);
        Rc::from_raw(local)
    })
}

/// Whether this is the calling thread's track. Nothing is read through the pointer, which may be to a track that has ended.
#[inline]
pub(super) fn is_current(local: *const Local) -> bool {
    ptr::eq(local, CURRENT.get())
}

/// The session that the calling thread records to.
pub(crate) fn current_publisher() -> Option<Weak<Publisher>> {
    with_track(|track| track.publisher.clone())
}

/// Has `open` begin to observe the calling thread's track; whether it did. A track takes one observer.
pub(crate) fn attach(open: impl FnOnce(&Arc<Publisher>, &Clock) -> Option<Rc<dyn Observer>>) -> bool {
    let Some(track) = current().filter(|track| switch::is_recording() && track.observer.get().is_none()) else {
        return false;
    };
    let Some(publisher) = track.publisher.upgrade() else { return false };
    open(&publisher, &track.clock).is_some_and(|observer| track.observer.set(observer).is_ok())
}

/// Who observes the calling thread's track.
pub(crate) fn observer() -> Option<Rc<dyn Observer>> {
    with_track(|track| track.observer.get().cloned()).flatten()
}

/// A thread's right to record. While it lives, [`span`](fn@crate::span), [`step`](crate::step) and the others on
/// this thread go to this track. One that could not be opened (publishing is off) records nothing.
#[must_use = "the track ends when this is dropped"]
pub struct Track {
    /// From `Rc::into_raw`, whose count this holds; null where nothing is recorded.
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
        let (producer, consumer) = raw_event::ring();
        let shared = Arc::new(Shared::default());
        let definition = Definition::Track { id, role, thread_id: thread_id(), text: name.to_owned() };
        publisher.open(Box::new(RingReader::new(definition, publisher.encoder(id), consumer, Arc::clone(&shared))));
        let local = Rc::new(Local {
            producer: UnsafeCell::new(producer),
            clock: publisher.clock.clone(),
            shared,
            publisher: Arc::downgrade(publisher),
            step: Cell::new(0),
            last_step: Cell::new(0),
            charged: Cell::new(Charged::by_now(&publisher.clock)),
            observer: OnceCell::new(),
            outer: Cell::new(CURRENT.get()),
        });
        let local = Rc::into_raw(local);
        CURRENT.set(local);
        Self { local }
    }

    /// Whether what is recorded goes anywhere.
    pub fn is_recording(&self) -> bool {
        !self.local.is_null() && switch::is_recording()
    }
}

impl Drop for Track {
    fn drop(&mut self) {
        if self.local.is_null() {
            return;
        }
        // SAFETY: it is from `Rc::into_raw`, and the count is given back only here.
        let local = unsafe { Rc::from_raw(self.local) };
        local.shared.close();
        unlink(self.local, local.outer.get());
    }
}

/// Takes a track out of the thread's list, of which it need not be the head: tracks may end in any order.
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
