//! A device that the training thread hands its work to: when it did that work, by its own clock, and what memory that took.
//!
//! A GPU runs behind the thread that feeds it, so a span on the host says when work was handed over, not when it was done.
//! Waiting at every span would tell, and would slow the training. Instead the thread puts a *mark* on the device's stream at
//! both ends of a phase, which costs it about a microsecond, and the drain thread asks later, without waiting, which marks
//! the device has reached.
//!
//! ```text
//! training thread ──record──▶ stream of the device
//!        └─ marks and hand-over times ─▶ ring ─▶ drain thread: reached? ─▶ device clock ─▶ device spans
//!        ◀──────────────── marks to use again ─ ring ─┘
//! ```
//!
//! All marks are made at the start. Where none is free, or the device is lost, spans go untimed and are counted as dropped
//! on the device's track. `DeviceClock` in `clock` says how the device's clock is laid over the host's, and how
//! far that may be off.
//!
//! [`Pool`] is the same for memory: read at the edges of phases, ten times a second at most.

mod clock;
mod memory;
mod recorder;
mod resolver;

use std::cell::RefCell;
use std::sync::Arc;

use gnntop_wire::TrackRole;

use crate::track;

pub use memory::{Holdings, MemoryReport, Pool, PoolUse};
pub(crate) use recorder::{Ended, NO_MARK};
pub(crate) use resolver::{OpenedDevice, Resolver};

use recorder::Recorder;

/// One stream of a device: it does what it is given in the order in which it was given it, and has a clock of its own.
///
/// Marks are numbered from 0. One thread records; another asks, about marks that were recorded.
pub trait Stream: Send + Sync {
    /// Marks that there are. They are made when the stream is opened, never later.
    fn marks(&self) -> u32;

    /// Puts a mark behind all work handed over so far; one that is already on the stream moves there. Never waits. `false`
    /// where the stream takes no marks just now, as while a graph is captured on it.
    ///
    /// # Errors
    /// The device is lost.
    fn record(&self, mark: u32) -> Result<bool, Lost>;

    /// Whether the device has reached a mark, where it was last recorded. Never waits. A no may be older than the question
    /// by [`ANSWER_LAG_NS`].
    ///
    /// # Errors
    /// The device is lost.
    fn is_reached(&self, mark: u32) -> Result<bool, Lost>;

    /// Nanoseconds from one mark to a later one by the device's clock; both have been reached.
    ///
    /// # Errors
    /// The device is lost.
    fn between_ns(&self, from: u32, to: u32) -> Result<f64, Lost>;

    /// How finely [`between_ns`](Self::between_ns) counts, in nanoseconds. CUDA documents half a microsecond.
    fn resolution_ns(&self) -> f64 {
        500.0
    }

    /// Waits until the device has done everything. Only called where a program asks for it ([`Attach::synchronise`]).
    ///
    /// # Errors
    /// The device is lost.
    fn wait(&self) -> Result<(), Lost>;
}

/// The host sees what a device has done when the device's write has come to it: by so much a no may be out of date.
pub const ANSWER_LAG_NS: u64 = 20_000;

/// Why a device can no longer be asked, in words for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Lost(pub String);

/// What of a device is to be observed; [`start`](Attach::start) begins it for the calling thread.
#[must_use = "nothing is observed before start"]
pub struct Attach {
    name: String,
    stream: Option<Arc<dyn Stream>>,
    pool: Option<Box<dyn Pool>>,
    synchronise: bool,
    every_span: bool,
}

impl Attach {
    /// Nothing yet of the device with this name, such as `cuda:0`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), stream: None, pool: None, synchronise: false, every_span: false }
    }

    /// Times the phases of the thread on this stream, which the thread hands all its work to.
    pub fn stream(mut self, stream: Arc<dyn Stream>) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Times every span, not only phases: two more marks a span, about a microsecond each.
    pub fn every_span(mut self, on: bool) -> Self {
        self.every_span = on;
        self
    }

    /// Waits for the device at both ends of every phase, so that the host's clock shows the device's time too: a control,
    /// which slows the training. The session says so.
    pub fn synchronise(mut self, on: bool) -> Self {
        self.synchronise = on;
        self
    }

    /// Reads this pool at the edges of phases.
    pub fn pool(mut self, pool: Box<dyn Pool>) -> Self {
        self.pool = Some(pool);
        self
    }

    /// Observes the device for as long as the calling thread's track lives. Asks the stream a few times for its clock, for
    /// some milliseconds at most. Returns whether anything is observed: not without a track, and not twice on one.
    pub fn start(self) -> bool {
        track::attach(|publisher, clock| {
            let timing = self.stream.and_then(|stream| {
                let role = if self.synchronise { TrackRole::SynchronisedDevice } else { TrackRole::Device };
                Recorder::open(publisher, clock, &self.name, role, stream, self.every_span)
            });
            let memory = self.pool.map(|pool| RefCell::new(memory::Watch::new(pool)));
            (timing.is_some() || memory.is_some()).then_some(Attached { timing, memory })
        })
    }
}

/// What is observed of a device on one thread.
pub(crate) struct Attached {
    timing: Option<Recorder>,
    memory: Option<RefCell<memory::Watch>>,
}

impl Attached {
    /// A span is about to begin. Before the host's clock is read: what this takes lies outside the span.
    pub(crate) fn before_begin(&self, is_outer_phase: bool, name: u32) {
        if let Some(memory) = self.memory.as_ref().filter(|_| is_outer_phase) {
            memory.borrow_mut().begin_phase(name);
        }
        if let Some(timing) = self.timing.as_ref().filter(|_| is_outer_phase) {
            timing.wait_if_asked();
        }
    }

    /// A span has begun: the mark at its begin, [`NO_MARK`] where it is not timed.
    #[inline]
    pub(crate) fn begin(&self, is_phase: bool) -> u32 {
        self.timing.as_ref().map_or(NO_MARK, |timing| timing.begin(is_phase))
    }

    /// A span's end is about to be read from the host's clock.
    #[inline]
    pub(crate) fn before_end(&self, is_outer_phase: bool) {
        if let Some(timing) = self.timing.as_ref().filter(|_| is_outer_phase) {
            timing.wait_if_asked();
        }
    }

    /// A span has ended.
    pub(crate) fn end(&self, is_outer_phase: bool, span: Ended) {
        if let Some(timing) = &self.timing {
            timing.end(&span);
        }
        if let Some(memory) = self.memory.as_ref().filter(|_| is_outer_phase) {
            memory.borrow_mut().end_phase(span.name);
        }
    }

    /// A step has begun.
    pub(crate) fn begin_step(&self, step: u64) {
        if let Some(memory) = &self.memory {
            memory.borrow_mut().begin_step(step);
        }
    }

    /// A step has ended, whose times on the host are these ticks.
    pub(crate) fn end_step(&self, step: u64, begin: u64, end: u64) {
        if let Some(timing) = &self.timing {
            timing.end_step(step, begin, end);
        }
        if let Some(memory) = &self.memory {
            memory.borrow_mut().end_step();
        }
    }
}

/// Says how much memory the training holds for what; from then on the device's memory is told by kind. Nothing where the
/// calling thread has no [`Pool`] attached.
pub fn holds(holdings: Holdings) {
    track::with_attached(|attached| {
        if let Some(memory) = &attached.memory {
            memory.borrow_mut().set_holdings(holdings);
        }
    });
}

/// The memory of the calling thread's device now and at its peak, with what is known of who holds it: what to say when it
/// has run out. `None` without a [`Pool`], or where that cannot be read.
pub fn memory() -> Option<MemoryReport> {
    let mut report = None;
    track::with_attached(|attached| {
        report = attached.memory.as_ref().and_then(|memory| memory.borrow_mut().report());
    });
    report
}
