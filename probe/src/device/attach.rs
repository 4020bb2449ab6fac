//! How a program has its device observed.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

use gnntop_wire::TrackRole;

use super::memory_watch::MemoryWatch;
use super::observed::Observed;
use super::pool::{Holdings, MemoryReport, Pool};
use super::recorder::Recorder;
use super::stream::Stream;
use crate::track::{self, Observer};

/// What of a device is to be observed; [`start`](Attach::start) begins it for the calling thread.
#[must_use = "nothing is observed before start"]
pub struct Attach {
    name: String,
    stream: Option<Arc<dyn Stream>>,
    pool: Option<Box<dyn Pool>>,
    synchronise: bool,
    every_span: bool,
}

impl std::fmt::Debug for Attach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = f.debug_struct("Attach");
        text.field("name", &self.name).field("times_phases", &self.stream.is_some());
        text.field("watches_memory", &self.pool.is_some()).finish_non_exhaustive()
    }
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
            let memory = self.pool.map(MemoryWatch::new);
            let is_observed = timing.is_some() || memory.is_some();
            is_observed.then(|| Rc::new(Observed::new(timing, memory)) as Rc<dyn Observer>)
        })
    }
}

/// What is observed of the calling thread's device.
fn observed() -> Option<Rc<Observed>> {
    let observer: Rc<dyn Any> = track::observer()?;
    observer.downcast().ok()
}

/// Says how much memory the training holds for what; from then on the device's memory is told by kind. Nothing where the
/// calling thread has no [`Pool`] attached.
pub fn holds(holdings: Holdings) {
    if let Some(observed) = observed() {
        observed.set_holdings(holdings);
    }
}

/// The memory of the calling thread's device now and at its peak, with what is known of who holds it: what to say when it
/// has run out. `None` without a [`Pool`], where that cannot be read, and within a [`Pool`]'s own code.
pub fn memory() -> Option<MemoryReport> {
    observed()?.memory_report()
}
