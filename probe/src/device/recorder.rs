//! The training thread's side: puts marks on the device's stream and records what they are for.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gnntop_wire::TrackRole;
use quanta::Clock;
use ringbuf::traits::{Consumer as _, Producer as _};

use super::records::{DeviceRecord, DeviceShared, MarkConsumer, RecordProducer};
use super::resolver::{Opening, open};
use super::stream::{Lost, Stream};
use crate::publisher::Publisher;
use crate::track::{EndedSpan, NO_MARK};

/// How often a mark is polled at the end of a step, when the clocks are to be compared again.
const MAX_POLLS: usize = 8;

/// Marks that this thread may use, and where its records go.
struct FreeMarks {
    free: MarkConsumer,
    records: RecordProducer,
    /// Marks of spans that could not be recorded; room for all is reserved.
    spare: Vec<u32>,
}

impl FreeMarks {
    fn take(&mut self) -> Option<u32> {
        self.spare.pop().or_else(|| self.free.try_pop())
    }

    fn put_back(&mut self, mark: u32) {
        if mark != NO_MARK && self.spare.len() < self.spare.capacity() {
            self.spare.push(mark);
        }
    }
}

/// Times the work that one thread submits to a stream.
pub(super) struct DeviceRecorder {
    stream: Arc<dyn Stream>,
    clock: Clock,
    shared: Arc<DeviceShared>,
    marks: RefCell<FreeMarks>,
    synchronise: bool,
    every_span: bool,
    is_lost: Cell<bool>,
}

impl DeviceRecorder {
    /// Opens the device's track; `None` if it cannot be published or the stream has too few marks to time anything.
    pub(super) fn open(
        publisher: &Arc<Publisher>,
        clock: &Clock,
        name: &str,
        role: TrackRole,
        stream: Arc<dyn Stream>,
        every_span: bool,
    ) -> Option<Self> {
        let opening = Opening { name, role, stream: Arc::clone(&stream), clock };
        let (shared, free, records) = open(publisher, opening)?;
        let spare = Vec::with_capacity(stream.marks() as usize);
        Some(Self {
            stream,
            clock: clock.clone(),
            is_lost: Cell::new(shared.lost.load(Ordering::Acquire)),
            shared,
            marks: RefCell::new(FreeMarks { free, records, spare }),
            synchronise: role == TrackRole::SynchronisedDevice,
            every_span,
        })
    }

    /// Waits for the device if the program asked for that at the ends of phases.
    pub(super) fn wait_if_synchronised(&self) {
        if self.synchronise && !self.is_lost() {
            self.stream.wait().unwrap_or_else(|lost| self.set_lost(lost));
        }
    }

    pub(super) fn begin(&self, is_phase: bool) -> u32 {
        if (!is_phase && !self.every_span) || self.is_lost() {
            return NO_MARK;
        }
        match self.mark() {
            Some(mark) => mark,
            None => {
                self.shared.count_drops(1);
                NO_MARK
            }
        }
    }

    pub(super) fn end(&self, span: &EndedSpan) {
        if span.begin_mark == NO_MARK {
            return;
        }
        let EndedSpan { name, step, begin_mark, begin, end } = *span;
        self.finish(DeviceRecord { name, step, begin: begin_mark, end: NO_MARK, issued: [begin, end], seen_ticks: 0 });
    }

    pub(super) fn end_step(&self, step: u64, begin: u64, end: u64) {
        if !self.is_lost() {
            self.finish(DeviceRecord {
                name: 0,
                step,
                begin: NO_MARK,
                end: NO_MARK,
                issued: [begin, end],
                seen_ticks: 0,
            });
        }
    }

    /// Marks the end of `record`'s span and hands the record to the drain thread, or counts it as dropped.
    fn finish(&self, mut record: DeviceRecord) {
        record.end = if self.is_lost() { NO_MARK } else { self.mark().unwrap_or(NO_MARK) };
        if record.end != NO_MARK && record.name == 0 && self.shared.wants_sight.swap(false, Ordering::Relaxed) {
            record.seen_ticks = self.poll_mark(record.end);
        }
        // No stream calls back into this; if one did, its span would go untimed.
        let Ok(mut marks) = self.marks.try_borrow_mut() else { return self.shared.count_drops(1) };
        if record.end == NO_MARK || marks.records.try_push(record).is_err() {
            marks.put_back(record.begin);
            marks.put_back(record.end);
            self.shared.count_drops(1);
        }
    }

    /// Puts a free mark on the stream.
    fn mark(&self) -> Option<u32> {
        let mark = self.marks.try_borrow_mut().ok()?.take()?;
        match self.stream.record(mark) {
            Ok(true) => return Some(mark),
            Ok(false) => self.marks.try_borrow_mut().ok()?.put_back(mark),
            Err(lost) => self.set_lost(lost),
        }
        None
    }

    /// Polls a few times whether the device has reached `mark`; returns the ticks at which it had, or 0.
    fn poll_mark(&self, mark: u32) -> u64 {
        for _ in 0..MAX_POLLS {
            match self.stream.is_reached(mark) {
                Ok(true) => return self.clock.raw(),
                Ok(false) => {}
                Err(_) => break,
            }
        }
        0
    }

    fn is_lost(&self) -> bool {
        self.is_lost.get()
    }

    /// Stops using the device.
    fn set_lost(&self, lost: Lost) {
        self.shared.set_lost(lost);
        self.is_lost.set(true);
    }
}

impl Drop for DeviceRecorder {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Release);
    }
}
