//! How a program attaches a device to be observed.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

use gnntop_wire::TrackRole;

use super::memory_watch::MemoryWatch;
use super::observed::Observed;
use super::pool::{Holdings, MemoryReport, Pool};
use super::recorder::DeviceRecorder;
use super::stream::Stream;
use crate::track::{self, Observer};

/// What to observe of a device. [`start`](Attach::start) begins observing for the calling thread.
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
    /// Observes nothing yet of the device with this name, such as `cuda:0`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), stream: None, pool: None, synchronise: false, every_span: false }
    }

    /// Times the thread's phases on this stream, to which the thread must submit all its work.
    pub fn stream(mut self, stream: Arc<dyn Stream>) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Times every span, not only phases. This costs two more marks per span, about a microsecond each.
    pub fn every_span(mut self, on: bool) -> Self {
        self.every_span = on;
        self
    }

    /// Waits for the device at both ends of every phase, so that the host's clock shows the device's time too. This is a
    /// control experiment: it slows the training. The session records that it is on.
    pub fn synchronise(mut self, on: bool) -> Self {
        self.synchronise = on;
        self
    }

    /// Reads this pool at the start and end of each phase.
    pub fn pool(mut self, pool: Box<dyn Pool>) -> Self {
        self.pool = Some(pool);
        self
    }

    /// Observes the device for as long as the calling thread's track lives. First reads the stream's clock a few times, for
    /// some milliseconds at most. Returns whether anything is observed: `false` without a track, or if the track already
    /// observes a device.
    pub fn start(self) -> bool {
        track::attach(|publisher, clock| {
            let timing = self.stream.and_then(|stream| {
                let role = if self.synchronise { TrackRole::SynchronisedDevice } else { TrackRole::Device };
                DeviceRecorder::open(publisher, clock, &self.name, role, stream, self.every_span)
            });
            let memory = self.pool.map(MemoryWatch::new);
            let is_observed = timing.is_some() || memory.is_some();
            is_observed.then(|| Rc::new(Observed::new(timing, memory)) as Rc<dyn Observer>)
        })
    }
}

/// The calling thread's observed device.
fn observed() -> Option<Rc<Observed>> {
    let observer: Rc<dyn Any> = track::observer()?;
    observer.downcast().ok()
}

/// Reports how much memory the training holds, by purpose. From then on the device's memory is split by kind. Does nothing
/// if the calling thread has no [`Pool`] attached.
pub fn report_holdings(holdings: Holdings) {
    if let Some(observed) = observed() {
        observed.set_holdings(holdings);
    }
}

/// The memory of the calling thread's device, now and at its peak, and what is known of its use: for the message when
/// memory has run out. `None` without a [`Pool`], if the pool cannot be read, and inside a [`Pool`]'s own code.
pub fn memory() -> Option<MemoryReport> {
    observed()?.memory_report()
}
