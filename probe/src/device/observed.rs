//! What is observed of one thread's device: the times of its stream, and its memory.

use std::cell::{Cell, RefCell};

use super::memory_watch::MemoryWatch;
use super::pool::{Holdings, MemoryReport};
use super::recorder::DeviceRecorder;
use crate::track::{EndedSpan, NO_MARK, Observer};

/// See the [module](self).
pub(super) struct Observed {
    timing: Option<DeviceRecorder>,
    memory: Option<RefCell<MemoryWatch>>,
    holdings: Cell<Option<Holdings>>,
    /// Whether code of a `Stream` or `Pool` is running. What that code records is not observed, or it would call itself.
    is_busy: Cell<bool>,
}

/// Until this is dropped, the thread's records are not observed.
struct Busy<'a>(&'a Cell<bool>);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl Observed {
    pub(super) fn new(timing: Option<DeviceRecorder>, memory: Option<MemoryWatch>) -> Self {
        Self { timing, memory: memory.map(RefCell::new), holdings: Cell::new(None), is_busy: Cell::new(false) }
    }

    pub(super) fn set_holdings(&self, holdings: Holdings) {
        self.holdings.set(Some(holdings));
    }

    pub(super) fn memory_report(&self) -> Option<MemoryReport> {
        let _busy = self.begin_call()?;
        self.memory.as_ref()?.borrow_mut().report()
    }

    /// To be called before running the program's code; `None` if that code is the caller.
    fn begin_call(&self) -> Option<Busy<'_>> {
        (!self.is_busy.replace(true)).then(|| Busy(&self.is_busy))
    }

    /// Calls `f` with the memory watch if there is a pool. Only after [`begin_call`](Self::begin_call), while its
    /// result lives, so that nothing else borrows the watch.
    fn watch(&self, f: impl FnOnce(&mut MemoryWatch)) {
        if let Some(memory) = &self.memory {
            f(&mut memory.borrow_mut());
        }
    }

    fn wait_if_synchronised(&self) {
        if let Some(timing) = &self.timing {
            timing.wait_if_synchronised();
        }
    }
}

impl Observer for Observed {
    fn before_begin(&self, is_outer_phase: bool, name: u32) {
        let Some(_busy) = self.begin_call().filter(|_| is_outer_phase) else { return };
        self.watch(|memory| memory.begin_phase(name));
        self.wait_if_synchronised();
    }

    fn begin(&self, is_phase: bool) -> u32 {
        let Some(_busy) = self.begin_call() else { return NO_MARK };
        self.timing.as_ref().map_or(NO_MARK, |timing| timing.begin(is_phase))
    }

    fn before_end(&self, is_outer_phase: bool) {
        let Some(_busy) = self.begin_call().filter(|_| is_outer_phase) else { return };
        self.wait_if_synchronised();
    }

    fn end(&self, is_outer_phase: bool, span: EndedSpan) {
        let Some(_busy) = self.begin_call() else { return };
        if let Some(timing) = &self.timing {
            timing.end(&span);
        }
        if is_outer_phase {
            self.watch(|memory| memory.end_phase(span.name));
        }
    }

    fn begin_step(&self, step: u64) {
        let Some(_busy) = self.begin_call() else { return };
        self.watch(|memory| memory.begin_step(step));
    }

    fn end_step(&self, step: u64, begin: u64, end: u64) {
        let Some(_busy) = self.begin_call() else { return };
        if let Some(timing) = &self.timing {
            timing.end_step(step, begin, end);
        }
        self.watch(|memory| memory.end_step(self.holdings.get()));
    }
}
