//! A thread's open spans, and where its events go: to its track, to its parent's ring, or to what is kept until there is a
//! session.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use gnntop_probe::after::{self, EndedStep};
use gnntop_probe::{BatchShape, Span, Track, TrackRole};

use crate::early::{EarlyEvent, EarlyEvents};
use crate::overdue;
use crate::session::{self, LostEvent, Status};
use crate::steps::Shape;
use crate::worker::AttachedThread;
use crate::{names, worker};

/// Most spans open on a thread at once.
const MAX_OPEN: usize = 64;
/// Most events that are kept back.
const MAX_HELD: usize = 64;
/// Slots for instants.
const SLOTS: usize = 16;
/// Most threads that get a track automatically.
const MAX_UNASKED: usize = 8;

static UNASKED: AtomicUsize = AtomicUsize::new(0);

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
    /// Whether the track is the training loop's.
    is_training: bool,
    ring: Option<AttachedThread>,
    early: Option<EarlyEvents>,
    /// Whether it has asked for a track by itself.
    has_asked: bool,
    /// Whether there may be room for early events.
    has_room: bool,
    /// What has ended while it is kept back, and whether more is.
    held: Vec<EarlyEvent>,
    is_holding: bool,
    slots: [u64; SLOTS],
    epoch: u64,
    batch: BatchShape,
    samples: Option<u64>,
    /// Whether a profiler slows down the step that ends next.
    is_traced: bool,
    /// When the current step began; 0 if unknown.
    step_began: u64,
}

impl Thread {
    fn new() -> Self {
        Self {
            open: Vec::new(),
            depth: 0,
            track: None,
            session: 0,
            is_training: false,
            ring: None,
            early: None,
            has_asked: false,
            has_room: true,
            held: Vec::new(),
            is_holding: false,
            slots: [0; SLOTS],
            epoch: 0,
            batch: BatchShape::default(),
            samples: None,
            is_traced: false,
            step_began: 0,
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
            _ => Destination::Nowhere,
        }
    }

    /// Opens a track for the calling thread; returns whether it records.
    pub(crate) fn track(&mut self, name: &str, role: TrackRole) -> bool {
        if self.ring.is_some() {
            return true;
        }
        let (status, number) = session::state();
        if status != Status::Publishing {
            return false;
        }
        let is_training = role == TrackRole::Training;
        if self.session != number || self.track.is_none() || is_training && !self.is_training {
            self.track_end();
            self.is_training = is_training;
            self.open.reserve_exact(MAX_OPEN);
            self.track = session::with_session(|session| session.track(name, role));
            self.session = number;
            self.write_early();
        }
        if is_training {
            after::begin_steps();
        }
        self.track.as_ref().is_some_and(Track::is_recording)
    }

    /// Writes the events kept while there was no session.
    fn write_early(&mut self) {
        let Some(mut early) = self.early.take() else { return };
        let begin = |event| if let EarlyEvent::Span { begin, .. } = event { Some(begin) } else { None };
        let events: Vec<EarlyEvent> = early.in_order().collect();
        self.step_began = events.iter().copied().filter_map(begin).min().unwrap_or(0);
        events.into_iter().for_each(EarlyEvent::record);
    }

    pub(crate) fn track_end(&mut self) {
        self.release(u64::MAX);
        self.open.clear();
        self.depth = 0;
        self.track = None;
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
        if depth == 0 && self.is_training {
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

    /// Opens a track for a thread that begins a span while a session is open, unless too many threads have one.
    #[cold]
    fn ask_for_track(&mut self) -> Destination {
        if session::state().0 == Status::Publishing {
            self.has_asked = true;
            if UNASKED.fetch_add(1, Ordering::Relaxed) < MAX_UNASKED {
                // A new track ends all spans; those that are on none stay open.
                let (depth, mut open) = (self.depth, std::mem::take(&mut self.open));
                open.retain(|span| matches!(span, ThreadSpan::Kept { .. }));
                self.track(&thread_name(), TrackRole::Other);
                self.open.extend(open);
                self.depth = depth;
            }
        }
        self.destination()
    }

    #[inline]
    pub(crate) fn end(&mut self) {
        let Some(depth) = self.depth.checked_sub(1) else { return };
        self.depth = depth;
        if depth == 0 && self.is_training {
            overdue::enter(0);
        }
        match if depth < self.open.len() { self.open.pop() } else { None } {
            Some(ThreadSpan::Kept { name, begin }) if name != 0 => {
                self.record(EarlyEvent::Span { name, begin, end: after::ticks() });
            }
            Some(ThreadSpan::Live { name, span }) if self.is_holding => {
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

    /// From now on, keeps back what is recorded, as far as there is room: what will be recorded next has ended before it.
    pub(crate) fn hold(&mut self) {
        self.held.reserve_exact(MAX_HELD.saturating_sub(self.held.len()));
        self.is_holding = true;
    }

    /// Records what was kept back and had ended by then; after [`u64::MAX`], keeps no more.
    pub(crate) fn release(&mut self, until: u64) {
        self.is_holding &= until < u64::MAX;
        let ended = self.held.iter().take_while(|event| event.ended() <= until).count();
        for at in 0..ended {
            self.record_now(self.held[at]);
        }
        self.held.drain(..ended);
    }

    /// Records an event, or keeps it back.
    pub(crate) fn record(&mut self, event: EarlyEvent) {
        if self.is_holding {
            if self.held.len() < MAX_HELD {
                return self.held.push(event);
            }
            self.release(u64::MAX);
        }
        self.record_now(event);
    }

    /// Records an event before those that are kept back.
    pub(crate) fn record_now(&mut self, event: EarlyEvent) {
        match self.destination() {
            Destination::Track => event.record(),
            Destination::Ring => {
                if let Some(ring) = &mut self.ring {
                    ring.record(event);
                }
            }
            Destination::Early => self.keep(event),
            Destination::Nowhere => count_lost(),
        }
    }

    fn keep(&mut self, event: EarlyEvent) {
        if self.early.is_none() && self.has_room {
            self.early = EarlyEvents::new();
            self.has_room = self.early.is_some();
        }
        if let Some(early) = &mut self.early {
            early.push(event);
        } else {
            session::count_lost(LostEvent::Thread);
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

    /// Sets nodes, edges, graphs, seeds and samples of batches; below 0 if unknown.
    pub(crate) fn set_shape(&mut self, shape: Shape) {
        let [nodes, edges, graphs, seeds, samples] = shape.map(|size| u64::try_from(size).ok());
        self.batch = BatchShape { graphs, nodes, edges, seeds };
        self.samples = samples;
    }

    /// Notes that a profiler slows down the step that ends next.
    pub(crate) fn set_traced(&mut self) {
        self.is_traced = true;
    }

    /// Ends a step that began at `begin` or, without that, at the end of the previous one.
    pub(crate) fn end_step(&mut self, begin: Option<u64>, end: u64) -> i32 {
        self.release(u64::MAX);
        let (batch, samples) = (self.batch, self.samples);
        if self.destination() != Destination::Track {
            return 0;
        }
        if let Some(samples) = samples {
            after::counter(&SAMPLES, end, samples as f64);
        }
        let known = Some(self.step_began).filter(|began| *began != 0);
        let begin = begin.or(known).unwrap_or(end);
        self.step_began = end;
        let is_traced = std::mem::take(&mut self.is_traced);
        let number = after::end_step(&EndedStep { epoch: self.epoch, batch, begin, end, is_traced });
        i32::try_from(number).unwrap_or(i32::MAX)
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

/// Rows of a step's batch, if it is not a graph.
static SAMPLES: gnntop_probe::Name = gnntop_probe::Name::reported(gnntop_probe::Reported::Samples);

/// Opens the session, and makes it drain the rings of existing workers.
pub(crate) fn open_session(name: &str, facts: &str) -> bool {
    let is_open = session::open(name, facts);
    if is_open {
        worker::drain_into_session();
    }
    is_open
}

/// The system's name of the calling thread.
fn thread_name() -> String {
    let mut name = [0_u8; 16];
    #[cfg(target_os = "linux")]
    // SAFETY: the call writes at most 16 bytes, the NUL included.
    unsafe {
        libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr());
    }
    let len = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..len]).into_owned()
}
