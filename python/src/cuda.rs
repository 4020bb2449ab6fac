//! Times a program's work on an NVIDIA GPU, by events on the stream that it uses.
//!
//! The driver is the one that the program itself has loaded; nothing of CUDA is linked or opened here. PyTorch's own events
//! would work too, but behind Python and its lock.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::ptr;
use std::sync::Arc;

use gnntop_probe::device::{Attach, Lost, Stream};

/// Number of events, created at the start: enough for the phases of some fifty steps.
const EVENTS: u32 = 512;
const SUCCESS: c_int = 0;
const NOT_READY: c_int = 600;
/// The driver's error codes while a graph is being captured.
const CAPTURING: std::ops::RangeInclusive<c_int> = 900..=908;
/// Queries of this thread do not end another thread's capture.
const RELAXED: c_int = 2;

type Handle = *mut c_void;

/// The driver functions that are used.
#[derive(Clone, Copy)]
struct Driver {
    current: unsafe extern "C" fn(*mut Handle) -> c_int,
    push: unsafe extern "C" fn(Handle) -> c_int,
    pop: unsafe extern "C" fn(*mut Handle) -> c_int,
    exchange_capture_mode: unsafe extern "C" fn(*mut c_int) -> c_int,
    is_capturing: unsafe extern "C" fn(Handle, *mut c_int) -> c_int,
    create: unsafe extern "C" fn(*mut Handle, c_uint) -> c_int,
    destroy: unsafe extern "C" fn(Handle) -> c_int,
    record: unsafe extern "C" fn(Handle, Handle) -> c_int,
    query: unsafe extern "C" fn(Handle) -> c_int,
    elapsed: unsafe extern "C" fn(*mut f32, Handle, Handle) -> c_int,
    synchronize: unsafe extern "C" fn(Handle) -> c_int,
}

impl Driver {
    /// The loaded driver; `None` if there is none, or it lacks a function.
    fn find() -> Option<Self> {
        // SAFETY: the name is a C string; with NOLOAD nothing new is opened, so none of its code runs now.
        let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
        if library.is_null() {
            return None;
        }
        let find = |name: &CStr| {
            // SAFETY: the library is open, and is never closed here.
            let found = unsafe { libc::dlsym(library, name.as_ptr()) };
            (!found.is_null()).then_some(found)
        };
        // SAFETY: each symbol is the function with this name in CUDA's driver API, and `Driver` has its C type.
        unsafe {
            Some(Self {
                current: std::mem::transmute::<Handle, unsafe extern "C" fn(*mut Handle) -> c_int>(find(
                    c"cuCtxGetCurrent",
                )?),
                push: std::mem::transmute::<Handle, unsafe extern "C" fn(Handle) -> c_int>(find(
                    c"cuCtxPushCurrent_v2",
                )?),
                pop: std::mem::transmute::<Handle, unsafe extern "C" fn(*mut Handle) -> c_int>(find(
                    c"cuCtxPopCurrent_v2",
                )?),
                exchange_capture_mode: std::mem::transmute::<Handle, unsafe extern "C" fn(*mut c_int) -> c_int>(find(
                    c"cuThreadExchangeStreamCaptureMode",
                )?),
                is_capturing: std::mem::transmute::<Handle, unsafe extern "C" fn(Handle, *mut c_int) -> c_int>(find(
                    c"cuStreamIsCapturing",
                )?),
                create: std::mem::transmute::<Handle, unsafe extern "C" fn(*mut Handle, c_uint) -> c_int>(find(
                    c"cuEventCreate",
                )?),
                destroy: std::mem::transmute::<Handle, unsafe extern "C" fn(Handle) -> c_int>(find(
                    c"cuEventDestroy_v2",
                )?),
                record: std::mem::transmute::<Handle, unsafe extern "C" fn(Handle, Handle) -> c_int>(find(
                    c"cuEventRecord",
                )?),
                query: std::mem::transmute::<Handle, unsafe extern "C" fn(Handle) -> c_int>(find(c"cuEventQuery")?),
                elapsed: std::mem::transmute::<Handle, unsafe extern "C" fn(*mut f32, Handle, Handle) -> c_int>(find(
                    c"cuEventElapsedTime",
                )?),
                synchronize: std::mem::transmute::<Handle, unsafe extern "C" fn(Handle) -> c_int>(find(
                    c"cuStreamSynchronize",
                )?),
            })
        }
    }
}

/// Events on one stream of one context.
struct StreamEvents {
    driver: Driver,
    context: Handle,
    stream: Handle,
    events: Vec<Handle>,
}

// SAFETY: the driver's functions may be called from any thread, with handles of any thread.
unsafe impl Send for StreamEvents {}
// SAFETY: as above; `events` does not change once it is created.
unsafe impl Sync for StreamEvents {}

impl StreamEvents {
    fn open(driver: Driver, stream: Handle) -> Option<Self> {
        let mut context = ptr::null_mut();
        // SAFETY: the context is written during the call.
        if unsafe { (driver.current)(&raw mut context) } != SUCCESS || context.is_null() {
            return None;
        }
        let mut opened = Self { driver, context, stream, events: Vec::with_capacity(EVENTS as usize) };
        for _ in 0..EVENTS {
            let mut event = ptr::null_mut();
            // SAFETY: the event is written during the call; the flags are those of a timing event.
            if unsafe { (driver.create)(&raw mut event, 0) } != SUCCESS {
                return None;
            }
            opened.events.push(event);
        }
        Some(opened)
    }

    fn event(&self, mark: u32) -> Result<Handle, Lost> {
        self.events.get(mark as usize).copied().ok_or_else(|| Lost(format!("there is no event {mark}")))
    }

    /// Runs `f` with the stream's context current on the calling thread, and then restores the thread's own context.
    fn in_context<T>(&self, f: impl FnOnce() -> Result<T, Lost>) -> Result<T, Lost> {
        let mut current = ptr::null_mut();
        // SAFETY: the context is written during the call.
        lost(unsafe { (self.driver.current)(&raw mut current) })?;
        if current == self.context {
            return f();
        }
        // SAFETY: the program keeps its context alive as long as its stream.
        lost(unsafe { (self.driver.push)(self.context) })?;
        let result = f();
        // SAFETY: what was pushed is popped; the context is written during the call.
        lost(unsafe { (self.driver.pop)(&raw mut current) })?;
        result
    }

    /// Like [`Self::in_context`], without ending another thread's capture.
    fn asking<T>(&self, f: impl FnOnce() -> Result<T, Lost>) -> Result<T, Lost> {
        let mut mode = RELAXED;
        // SAFETY: the mode is the calling thread's, read and written during the call.
        lost(unsafe { (self.driver.exchange_capture_mode)(&raw mut mode) })?;
        let result = self.in_context(f);
        // SAFETY: as above; this restores the thread's own mode.
        lost(unsafe { (self.driver.exchange_capture_mode)(&raw mut mode) })?;
        result
    }
}

impl Stream for StreamEvents {
    fn marks(&self) -> u32 {
        EVENTS
    }

    fn record(&self, mark: u32) -> Result<bool, Lost> {
        let event = self.event(mark)?;
        self.in_context(|| {
            let mut status = 0;
            // SAFETY: the program's stream is alive; the status is written during the call.
            match unsafe { (self.driver.is_capturing)(self.stream, &raw mut status) } {
                SUCCESS if status == 0 => {}
                SUCCESS => return Ok(false),
                code if CAPTURING.contains(&code) => return Ok(false),
                code => lost(code)?,
            }
            // SAFETY: event and stream are alive and of one context.
            lost(unsafe { (self.driver.record)(event, self.stream) }).map(|()| true)
        })
    }

    fn is_reached(&self, mark: u32) -> Result<bool, Lost> {
        let event = self.event(mark)?;
        // SAFETY: the event is alive.
        self.asking(|| match unsafe { (self.driver.query)(event) } {
            NOT_READY => Ok(false),
            code => lost(code).map(|()| true),
        })
    }

    fn between_ns(&self, from: u32, to: u32) -> Result<f64, Lost> {
        let (from, to) = (self.event(from)?, self.event(to)?);
        let mut milliseconds = 0.0;
        // SAFETY: both events are alive, of this context and recorded on its stream; the time is written during the call.
        self.asking(|| lost(unsafe { (self.driver.elapsed)(&raw mut milliseconds, from, to) }))?;
        Ok(f64::from(milliseconds) * 1e6)
    }

    fn wait(&self) -> Result<(), Lost> {
        // SAFETY: the stream is alive.
        self.in_context(|| lost(unsafe { (self.driver.synchronize)(self.stream) }))
    }
}

impl Drop for StreamEvents {
    fn drop(&mut self) {
        for event in self.events.drain(..) {
            // SAFETY: the event was created in `open` and is not used any more. At the process's end the driver reports
            // that it is gone.
            unsafe { (self.driver.destroy)(event) };
        }
    }
}

fn lost(code: c_int) -> Result<(), Lost> {
    if code == SUCCESS { Ok(()) } else { Err(Lost(format!("CUDA error {code}"))) }
}

/// Times the calling thread's phases on this stream; returns whether that works.
pub(crate) fn attach(device: i32, stream: u64) -> bool {
    let Ok(stream) = usize::try_from(stream) else { return false };
    let stream = ptr::with_exposed_provenance_mut(stream);
    let Some(events) = Driver::find().and_then(|driver| StreamEvents::open(driver, stream)) else { return false };
    Attach::new(format!("cuda:{device}")).stream(Arc::new(events)).start()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_driver_nothing_is_timed() {
        // No test of this crate loads one.
        assert!(Driver::find().is_none());
        assert!(!attach(0, 0));
    }
}
