//! When a GPU does the work that the training thread submits: CUDA events on the one stream that everything runs on.
//!
//! cudarc's own methods take an error that a freed tensor left behind in the context and return it from the next call.
//! An observing call must not be that call, so the driver's functions are called here.

use std::cell::Cell;
use std::sync::Arc;

use candle_core::Result;
use candle_core::cuda_backend::WrapErr;
use candle_core::cuda_backend::cudarc::driver::{CudaEvent, CudaStream, DriverError, result, sys};
use gnntop_nn::cuda::{bind, one_line};
use gnntop_probe::device::{Lost, Stream};

/// Number of events made at the start: enough for over a hundred steps of phases before the oldest must be reached.
const EVENTS: u32 = 1024;

/// Events on a device's stream.
pub(super) struct Events {
    stream: Arc<CudaStream>,
    events: Vec<CudaEvent>,
}

impl Events {
    /// # Errors
    /// The driver refuses.
    pub(super) fn new(stream: Arc<CudaStream>) -> Result<Self> {
        // cudarc's default is an event without a time.
        let timed = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        let events = (0..EVENTS).map(|_| stream.context().new_event(timed));
        Ok(Self { events: events.collect::<std::result::Result<_, _>>().w()?, stream })
    }

    fn event(&self, mark: u32) -> std::result::Result<sys::CUevent, Lost> {
        let event = self.events.get(mark as usize).ok_or_else(|| Lost(format!("there is no event {mark}")))?;
        Ok(event.cu_event())
    }

    /// Makes the context this thread's, and lets this thread query without ending another's capture.
    fn bind(&self) -> std::result::Result<(), Lost> {
        bind(&self.stream).map_err(lost)?;
        thread_local!(static IS_RELAXED: Cell<bool> = const { Cell::new(false) });
        if !IS_RELAXED.replace(true) {
            let mut mode = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_RELAXED;
            // SAFETY: the mode is written and read during the call, and belongs to the calling thread.
            unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) }.result().map_err(lost)?;
        }
        Ok(())
    }

    fn is_capturing(&self) -> std::result::Result<bool, DriverError> {
        let mut status = sys::CUstreamCaptureStatus_enum::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the stream is alive; the status is written during the call.
        unsafe { sys::cuStreamIsCapturing(self.stream.cu_stream(), &raw mut status) }.result()?;
        Ok(status != sys::CUstreamCaptureStatus_enum::CU_STREAM_CAPTURE_STATUS_NONE)
    }
}

impl Stream for Events {
    fn marks(&self) -> u32 {
        EVENTS
    }

    fn record(&self, mark: u32) -> std::result::Result<bool, Lost> {
        let event = self.event(mark)?;
        bind(&self.stream).map_err(lost)?;
        // An event captured into a graph is never reached by itself.
        if self.is_capturing().map_err(lost)? {
            return Ok(false);
        }
        // SAFETY: event and stream are alive and of one context.
        unsafe { result::event::record(event, self.stream.cu_stream()) }.map_err(lost)?;
        Ok(true)
    }

    fn is_reached(&self, mark: u32) -> std::result::Result<bool, Lost> {
        let event = self.event(mark)?;
        self.bind()?;
        // SAFETY: the event is alive.
        match unsafe { result::event::query(event) } {
            Ok(()) => Ok(true),
            Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            Err(error) => Err(lost(error)),
        }
    }

    fn between_ns(&self, from: u32, to: u32) -> std::result::Result<f64, Lost> {
        let (from, to) = (self.event(from)?, self.event(to)?);
        self.bind()?;
        // SAFETY: both events are alive, of this context and recorded on its one stream.
        let milliseconds = unsafe { result::event::elapsed(from, to) }.map_err(lost)?;
        Ok(f64::from(milliseconds) * 1e6)
    }

    fn wait(&self) -> std::result::Result<(), Lost> {
        bind(&self.stream).map_err(lost)?;
        // SAFETY: the stream is alive.
        unsafe { result::stream::synchronize(self.stream.cu_stream()) }.map_err(lost)
    }
}

fn lost(error: DriverError) -> Lost {
    Lost(one_line(&error))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use candle_core::cuda_backend::cudarc::driver::CudaContext;
    use gnntop_nn::cuda::{keep_freed_memory, let_others_use};
    use gnntop_probe::device::{Attach, Pool};
    use gnntop_probe::{Session, TrackRole, phase, span, step};
    use gnntop_wire::{Event, Item, NameId, StreamReader};

    use super::super::pool::DriverPool;
    use super::*;

    #[test]
    fn events_and_pool_work_on_a_driver_that_is_none() {
        gnntop_nn::cuda::fake::run_alone("gpu::events::tests::on_a_driver_that_is_none", &[]);
    }

    #[test]
    #[ignore = "run by the test above, in its own process"]
    fn on_a_driver_that_is_none() {
        let context = CudaContext::new(0).unwrap();
        let stream = context.new_stream().unwrap();
        let events = Events::new(Arc::clone(&stream)).unwrap();
        assert_eq!(events.marks(), EVENTS);
        // The fake driver takes a millisecond for each recorded event.
        assert_eq!(events.record(0), Ok(true));
        assert_eq!(events.record(1), Ok(true));
        assert_eq!(events.is_reached(1), Ok(false), "asking does not wait");
        assert!(events.between_ns(0, 1).is_err(), "nor does this");
        events.wait().unwrap();
        assert_eq!((events.is_reached(0), events.is_reached(1)), (Ok(true), Ok(true)));
        assert_eq!(events.between_ns(0, 1), Ok(1e6));
        assert!(events.record(EVENTS).is_err());
        // From another thread, as the drain thread asks.
        assert_eq!(std::thread::scope(|scope| scope.spawn(|| events.is_reached(1)).join().unwrap()), Ok(true));

        let mut pool = DriverPool(Arc::clone(&stream));
        keep_freed_memory(&stream).unwrap();
        let before = pool.read().unwrap();
        // SAFETY: the memory is given back below and never read.
        let memory = unsafe { stream.alloc::<u8>(3 << 20) }.unwrap();
        let with = pool.read().unwrap();
        assert_eq!(with.used - before.used, 3 << 20);
        drop(memory);
        let after = pool.read().unwrap();
        assert_eq!((after.used, after.used_peak, after.reserved), (before.used, with.used, with.reserved));
        pool.reset_peaks();
        assert_eq!(pool.read().unwrap().used_peak, before.used);
        assert_eq!((after.free + after.reserved, after.allocations), (after.total, None));
        // SAFETY: nothing is allocated if there is less memory.
        let refused = unsafe { stream.alloc::<u8>(1 << 40) }.unwrap_err();
        assert!(format!("{refused:?}").contains("CUDA_ERROR_OUT_OF_MEMORY"), "{refused:?}");
        assert!(pool.read().is_some());

        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(1) {}
        assert_eq!(events.record(2), Ok(true), "marks are used again and again");
        a_training_is_timed(&stream);
        others_may_use_it(&stream);
    }

    /// The fake driver has two more devices, of which the second cannot reach the first.
    fn others_may_use_it(stream: &CudaStream) {
        // SAFETY: the context is that of an open device and this thread's.
        let pool = unsafe { result::device::get_mem_pool(stream.context().cu_device()) }.unwrap();
        let may = || {
            [0, 1, 2].map(|device| {
                let (mut flags, location) = (sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE, [1, device]);
                // SAFETY: the flags are written during the call; a location is two numbers.
                unsafe { sys::cuMemPoolGetAccess(&raw mut flags, pool, location.as_ptr().cast_mut().cast()) }
                    .result()
                    .unwrap();
                flags as u32
            })
        };
        assert_eq!(may(), [3, 0, 0]);
        let_others_use(stream, &[0, 1, 2]).unwrap();
        assert_eq!(may(), [3, 3, 0]);
    }

    /// End to end: a session that times a phase by the driver's events, read back.
    fn a_training_is_timed(stream: &Arc<CudaStream>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("timed.gnntop");
        let session = Session::builder("timed").record_to(&file).sensors(None).start();
        let track = session.track("train", TrackRole::Training);
        let events = Arc::new(Events::new(Arc::clone(stream)).unwrap());
        let attach = Attach::new("none").stream(events.clone()).pool(Box::new(DriverPool(Arc::clone(stream))));
        assert!(attach.start());
        for _ in 0..20 {
            let _step = step(0);
            let _forward = span(&phase::FORWARD);
        }
        events.wait().unwrap();
        std::thread::sleep(Duration::from_millis(60));
        drop((track, session));
        let mut reader = StreamReader::new();
        reader.fill(&std::fs::read(&file).unwrap());
        let (mut spans, mut peaks) = (Vec::new(), 0);
        while let Some(item) = reader.next() {
            let Item::Block(_, events) = item else { continue };
            for event in events {
                match event {
                    Event::DeviceSpan(span) if span.name != NameId::NONE => spans.push(span),
                    Event::Counter(counter) => peaks += usize::from(counter.value >= f64::from(3 << 20)),
                    _ => {}
                }
            }
        }
        assert_eq!(spans.len(), 20);
        for span in &spans {
            let took = span.end_ns - span.start_ns;
            assert!(took.abs_diff(1_000_000) < 3_000, "a phase is a millisecond of the fake driver: {span:?}");
            assert!(span.end_ns + span.error_ns >= span.issued_end_ns, "done after it was submitted: {span:?}");
        }
        assert!(peaks > 0, "the pool's counters are there: it keeps what was taken before");
    }
}
