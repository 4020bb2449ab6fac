//! What a session's threads share: the program's threads, which open tracks, the sensor thread and the drain thread.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use gnntop_wire::{BlockEncoder, Definition, Fact, TrackId};
use quanta::Clock;

use crate::source::Source;
use crate::switch;

/// Most tracks of a session; further threads record nothing.
const MAX_TRACKS: u32 = 1024;
/// What the fact about further ones is about.
const NO_TRACK: &str = "threads beyond the table of tracks";
/// The drain thread's own track.
pub(crate) const OWN_TRACK: TrackId = TrackId(0);

/// The publisher of the session that was started last.
static LATEST: Mutex<Weak<Publisher>> = Mutex::new(Weak::new());

/// One session's shared state. It knows nothing of its writers and readers.
pub(crate) struct Publisher {
    pub(crate) id: u128,
    pub(crate) clock: Clock,
    /// The publishing process. A forked child has a copy of this that is never drained.
    pid: u32,
    next_track: AtomicU32,
    /// Whether it publishes into a recording, whose blocks are packed.
    is_recording: bool,
    /// Tracks opened since the drain thread last looked.
    opened: Mutex<Vec<Box<dyn Source>>>,
    /// Facts that the program has given since then.
    facts: Mutex<Vec<Fact>>,
    /// Definitions of signals, once the sensors are open.
    signals: Mutex<Vec<Definition>>,
    /// Segments begun so far: the sensor thread repeats every value in each.
    segments: AtomicUsize,
    /// Flushes asked for so far, and how many of them are done.
    requested: AtomicU64,
    flushed: AtomicU64,
    stopping: AtomicBool,
}

impl Publisher {
    /// Begins a session, which becomes the latest.
    pub(crate) fn start(clock: Clock, is_recording: bool) -> Arc<Self> {
        let publisher = Arc::new(Self {
            id: random_id(&clock),
            clock,
            pid: std::process::id(),
            next_track: AtomicU32::new(OWN_TRACK.0 + 1),
            is_recording,
            opened: Mutex::default(),
            facts: Mutex::default(),
            signals: Mutex::default(),
            segments: AtomicUsize::new(0),
            requested: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
        });
        *lock(&LATEST) = Arc::downgrade(&publisher);
        publisher
    }

    /// The session started last, while it lasts.
    pub(crate) fn latest() -> Option<Arc<Self>> {
        lock(&LATEST).upgrade()
    }

    /// Whether this process started the session, rather than being forked from the one that did.
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.pid == std::process::id()
    }

    /// The id for a track about to be opened; `None` if it cannot be recorded.
    pub(crate) fn next_track_id(&self) -> Option<TrackId> {
        // Tracks open even while nothing can be published: they are recorded once there is room.
        if !switch::has_session() || !self.is_of_this_process() || self.is_stopping() {
            return None;
        }
        let id = self.next_track.fetch_add(1, Ordering::Relaxed);
        let beyond = id.saturating_sub(MAX_TRACKS);
        if beyond.is_power_of_two() {
            let (what, amount) = (NO_TRACK.to_owned(), format!("{beyond} or more"));
            self.add_fact(Fact::NotRecorded { what, amount });
        }
        (beyond == 0).then_some(TrackId(id))
    }

    /// An encoder for a track's blocks.
    pub(crate) fn encoder(&self, id: TrackId) -> BlockEncoder {
        if self.is_recording { BlockEncoder::packed(id) } else { BlockEncoder::new(id) }
    }

    /// Hands a new track to the drain thread.
    pub(crate) fn open(&self, source: Box<dyn Source>) {
        lock(&self.opened).push(source);
    }

    /// The tracks opened since the last call.
    pub(crate) fn take_opened(&self) -> Vec<Box<dyn Source>> {
        std::mem::take(&mut *lock(&self.opened))
    }

    pub(crate) fn add_fact(&self, fact: Fact) {
        lock(&self.facts).push(fact);
    }

    /// The facts given since the last call.
    pub(crate) fn take_facts(&self) -> Vec<Fact> {
        std::mem::take(&mut *lock(&self.facts))
    }

    pub(crate) fn define_signals(&self, signals: impl IntoIterator<Item = Definition>) {
        lock(&self.signals).extend(signals);
    }

    /// Signals defined after the first `known`.
    pub(crate) fn signals_after(&self, known: usize) -> Vec<Definition> {
        lock(&self.signals).get(known..).unwrap_or_default().to_vec()
    }

    pub(crate) fn count_segment(&self) {
        self.segments.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn segments(&self) -> usize {
        self.segments.load(Ordering::Relaxed)
    }

    /// Asks the drain thread to write out what was recorded until now. Returns the number of this flush.
    pub(crate) fn request_flush(&self) -> u64 {
        self.requested.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Flushes asked for so far.
    pub(crate) fn requested_flushes(&self) -> u64 {
        self.requested.load(Ordering::Acquire)
    }

    /// The first `number` flushes are done.
    pub(crate) fn note_flushed(&self, number: u64) {
        self.flushed.store(number, Ordering::Release);
    }

    /// Whether flush `number` is done.
    pub(crate) fn is_flushed(&self, number: u64) -> bool {
        self.flushed.load(Ordering::Acquire) >= number
    }

    /// Has the session's threads finish.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}

/// Keeps the latest publisher from changing while this is held.
pub(crate) struct LatestLock(#[expect(dead_code, reason = "held, not looked at")] MutexGuard<'static, Weak<Publisher>>);

/// See [`LatestLock`].
pub(crate) fn lock_latest() -> LatestLock {
    LatestLock(lock(&LATEST))
}

/// Locks a mutex. No holder leaves it half-changed, so a panic elsewhere does not matter.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An id that no other session has, from the standard library's random hash keys, the time and the process id.
pub(crate) fn random_id(clock: &Clock) -> u128 {
    use std::hash::{BuildHasher, RandomState};
    let half = || RandomState::new().hash_one((clock.raw(), std::process::id()));
    u128::from(half()) << 64 | u128::from(half())
}
