//! A thread's open spans, and where its events go: to its track, to its parent's ring, or to what is kept until there is a
//! session. `track` opens and ends its track and its steps, `kept` has what is kept back.

mod deferred;
mod kept;
mod track;
mod waits;

use std::cell::RefCell;

use gnntop_probe::after;
use gnntop_probe::{BatchShape, Span, Track};

use crate::early::{EarlyEvent, EarlyEvents};
use crate::overdue;
use crate::session::{self, LostEvent, Status};
use crate::slots::Slot;
use crate::steps::Shape;
use crate::worker::AttachedThread;
use crate::{names, worker};
use deferred::Deferred;
use waits::DeviceWaits;

/// Most spans open on a thread at once.
const MAX_OPEN: usize = 64;
/// Slots for instants.
const SLOTS: usize = 16;
thread_local! {
    static THREAD: RefCell<Thread> = RefCell::new(Thread::new());
}

/// Runs `f` with the calling thread's state; returns `otherwise` at the thread's very end.
#[inline]
pub(crate) fn with<T>(otherwise: T, f: impl FnOnce(&mut Thread) -> T) -> T {
    let run = |thread: &RefCell<Thread>| thread.try_borrow_mut().ok().map(|mut thread| f(&mut thread));
    THREAD.try_with(run).ok().flatten().unwrap_or(otherwise)
}

/// An open span.
enum ThreadSpan {
    /// The probe has it, on this thread's track.
    Live { name: i32, span: Span },
    /// Where it goes is decided at its end.
    Kept { name: i32, begin: u64 },
}

/// Where events go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Destination {
    Track,
    Ring,
    Early,
    Nowhere,
}

/// State of one thread. Spans are dropped before the track that they are on.
pub(crate) struct Thread {
    open: Vec<ThreadSpan>,
    /// Number of open spans, including those too deep to be recorded.
    depth: usize,
    track: Option<Track>,
    /// The session of the track.
    session: u32,
    /// For the track of a training loop, its place among those of other threads, and its name as it was given.
    slot: Option<Slot>,
    loop_name: String,
    /// Whether it trains: it may have a track for that before.
    is_busy: bool,
    /// Whether this thread's stacks are taken when a phase is overdue.
    is_watched: bool,
    /// Whether what is recorded now is of a loop that may train, and is kept until it does.
    pub(crate) is_candidate: bool,
    ring: Option<AttachedThread>,
    early: Option<EarlyEvents>,
    /// Whether it has asked for a track by itself.
    has_asked: bool,
    /// Whether there may be room for early events.
    has_room: bool,
    /// What has ended while it is kept back, and whether more is.
    held: Vec<EarlyEvent>,
    is_holding: bool,
    /// What has ended while it is not sure where steps end.
    deferred: Option<Box<Deferred>>,
    slots: [u64; SLOTS],
    epoch: u64,
    batch: BatchShape,
    samples: Option<u64>,
    tokens: Option<u64>,
    /// Whether a profiler slows down the step that ends next.
    is_traced: bool,
    /// When the current step began; 0 if unknown.
    step_began: u64,
    /// Its waits for devices in the current step.
    pub(crate) waits: DeviceWaits,
}

impl Thread {
    fn new() -> Self {
        Self {
            open: Vec::new(),
            depth: 0,
            track: None,
            session: 0,
            slot: None,
            loop_name: String::new(),
            is_busy: false,
            is_watched: false,
            is_candidate: false,
            ring: None,
            early: None,
            has_asked: false,
            has_room: true,
            held: Vec::new(),
            is_holding: false,
            deferred: None,
            slots: [0; SLOTS],
            epoch: 0,
            batch: BatchShape::default(),
            samples: None,
            tokens: None,
            is_traced: false,
            step_began: 0,
            waits: DeviceWaits::default(),
        }
    }

    /// Where events go now. Opens nothing.
    #[inline]
    fn destination(&mut self) -> Destination {
        if self.ring.is_some() {
            return Destination::Ring;
        }
        match session::state() {
            (Status::Publishing, number) if number == self.session && self.track.is_some() => Destination::Track,
            (Status::NotOpen, _) => Destination::Early,
            (Status::Publishing, _) if self.is_candidate => Destination::Early,
            _ => Destination::Nowhere,
        }
    }

    /// Records to the ring with this address from now on. Its reader may then read the stack of the thread with this state.
    pub(crate) fn attach(&mut self, address: &str, state: Option<usize>) -> bool {
        if self.ring.is_some() {
            return false;
        }
        let Some(ring) = AttachedThread::new(address, state) else { return false };
        self.track_end();
        self.early = None;
        self.ring = Some(ring);
        true
    }

    pub(crate) fn is_worker(&self) -> bool {
        self.ring.is_some()
    }

    pub(crate) fn begin(&mut self, name: i32) -> i32 {
        let depth = self.depth;
        self.depth += 1;
        if depth == 0 && self.is_watched {
            overdue::enter(name);
        }
        if depth == self.open.len() && depth < MAX_OPEN {
            let span = self.open_span(name);
            self.open.push(span);
        } else {
            session::count_lost(LostEvent::Deep);
        }
        i32::try_from(depth).unwrap_or(i32::MAX)
    }

    #[inline]
    fn open_span(&mut self, name: i32) -> ThreadSpan {
        if self.step_began == 0 && self.slot.is_some() {
            self.step_began = after::ticks(); // the first step's: the track was opened before the loop
        }
        let mut way = self.destination();
        if way == Destination::Nowhere && !self.has_asked {
            way = self.ask_for_track();
        }
        match names::get(name) {
            Some(named) if way == Destination::Track => {
                ThreadSpan::Live { name, span: gnntop_probe::span(named.probe()) }
            }
            Some(_) if way != Destination::Nowhere => ThreadSpan::Kept { name, begin: after::ticks() },
            _ => {
                count_lost();
                ThreadSpan::Kept { name: 0, begin: 0 }
            }
        }
    }

    #[inline]
    pub(crate) fn end(&mut self) {
        let Some(depth) = self.depth.checked_sub(1) else { return };
        self.depth = depth;
        if depth == 0 && self.is_watched {
            overdue::enter(0);
        }
        match if depth < self.open.len() { self.open.pop() } else { None } {
            Some(ThreadSpan::Kept { name, begin }) if name != 0 => {
                self.record(EarlyEvent::Span { name, begin, end: after::ticks() });
            }
            Some(ThreadSpan::Live { name, span }) if self.is_holding || self.deferred.is_some() => {
                if let Some((begin, end)) = span.take_back() {
                    self.record(EarlyEvent::Span { name, begin, end });
                }
            }
            _ => {} // a live span is recorded when it is dropped
        }
    }

    /// Number of open spans.
    pub(crate) fn depth(&self) -> i32 {
        i32::try_from(self.depth).unwrap_or(i32::MAX)
    }

    pub(crate) fn end_to(&mut self, depth: i32) {
        let depth = usize::try_from(depth).unwrap_or(0);
        while self.depth > depth {
            self.end();
        }
    }

    pub(crate) fn stamp(&mut self, slot: i32) {
        if let Some(slot) = usize::try_from(slot).ok().and_then(|slot| self.slots.get_mut(slot)) {
            *slot = after::ticks();
        }
    }

    /// The stamped time, or now for a slot below 0; `None` for a slot that was never stamped.
    pub(crate) fn stamped(&self, slot: i32) -> Option<u64> {
        match usize::try_from(slot) {
            Ok(slot) => self.slots.get(slot).copied().filter(|ticks| *ticks != 0),
            Err(_) => Some(after::ticks()),
        }
    }

    pub(crate) fn set_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
    }

    /// Sets nodes, edges, graphs, seeds, samples and tokens of batches; below 0 if unknown.
    pub(crate) fn set_shape(&mut self, shape: Shape) {
        let [nodes, edges, graphs, seeds, samples, tokens] = shape.map(|size| u64::try_from(size).ok());
        self.batch = BatchShape { graphs, nodes, edges, seeds };
        (self.samples, self.tokens) = (samples, tokens);
    }

    /// Notes that a profiler slows down the step that ends next.
    pub(crate) fn set_traced(&mut self) {
        self.is_traced = true;
    }

    /// Records a large allocation.
    pub(crate) fn allocation(&mut self, bytes: i64, live_bytes: u64) {
        if self.destination() == Destination::Track {
            after::allocation(bytes, live_bytes);
        }
    }
}

/// Counts an event of a thread that has no track in an open session.
#[cold]
fn count_lost() {
    if session::state().0 == Status::Publishing {
        session::count_lost(LostEvent::Thread);
    }
}

/// Opens the session, and makes it drain the rings of existing workers.
pub(crate) fn open_session(name: &str, facts: &str) -> bool {
    let is_open = session::open(name, facts);
    if is_open {
        worker::drain_into_session();
    }
    is_open
}

/// The system's name of the calling thread.
pub(crate) fn name() -> String {
    let mut name = [0_u8; 16];
    #[cfg(target_os = "linux")]
    // SAFETY: the call writes at most 16 bytes, the NUL included.
    unsafe {
        libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr());
    }
    let len = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..len]).into_owned()
}
