//! The drain thread's side: polls which marks were reached, and writes what the device did when.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gnntop_wire::{BlockEncoder, Definition, DeviceSpan, Event, Mark, NameId, NameKind, StepId, TrackRole};
use quanta::Clock;
use ringbuf::traits::{Consumer as _, Producer as _};

use super::clock::DeviceClock;
use super::records::{
    self, DeviceRecord, DeviceShared, MAX_MARKS, MarkConsumer, MarkProducer, RecordConsumer, RecordProducer,
};
use super::stream::{ANSWER_LAG_NS, Lost, Stream};
use crate::clock::ClockMap;
use crate::names;
use crate::publisher::Publisher;
use crate::source::Source;
use crate::track::NO_MARK;

/// Fewer marks than this cannot time a step and also keep a reference mark.
const MARKS_LEAST: u32 = 16;
/// Clock comparisons at the start, and the longest time for each.
const COMPARISONS: u32 = 8;
const MAX_COMPARISON: Duration = Duration::from_millis(2);
/// The reference mark is at most this old: CUDA reports times as 32-bit floats of milliseconds.
const REFERENCE_NS: f64 = 1e9;
/// While the offset is this uncertain, the drain thread polls closely to see a mark as it is reached: so often and so long.
const POLL_EVERY_NS: u64 = 1_000_000_000;
const POLLS: u32 = 100;
const POLL_PAUSE: Duration = Duration::from_micros(50);
const POLL_FROM_NS: f64 = 50_000.0;

/// A device to be observed.
pub(super) struct Opening<'a> {
    pub(super) name: &'a str,
    pub(super) role: TrackRole,
    pub(super) stream: Arc<dyn Stream>,
    pub(super) clock: &'a Clock,
}

/// The first reference mark, with ticks before it was recorded and after it was seen.
#[derive(Clone, Copy)]
struct FirstComparison {
    mark: u32,
    ticks: [u64; 2],
}

type RecorderEnds = (Arc<DeviceShared>, MarkConsumer, RecordProducer);

/// Opens a track for the device and compares the clocks.
pub(super) fn open(publisher: &Arc<Publisher>, opening: Opening<'_>) -> Option<RecorderEnds> {
    let Opening { name, role, stream, clock } = opening;
    let marks = stream.marks().min(MAX_MARKS as u32);
    let id = publisher.next_track_id()?;
    if marks < MARKS_LEAST {
        return None;
    }
    let (mut free, taken) = records::mark_ring();
    let (handed, records) = records::record_ring();
    let shared = Arc::new(DeviceShared::default());
    let first = compare(&*stream, clock, &shared);
    let kept = first.map_or(NO_MARK, |first| first.mark);
    (0..marks).filter(|mark| *mark != kept).for_each(|mark| _ = free.try_push(mark));
    publisher.open(Box::new(Resolver {
        definition: Some(Definition::Track { id, role, thread_id: 0, text: format!("stream of {name}") }),
        encoder: publisher.encoder(id),
        clock: DeviceClock::new(stream.resolution_ns()),
        pending: VecDeque::with_capacity(marks as usize),
        reference: first.map(|first| (first.mark, 0.0)),
        first,
        stream,
        records,
        free,
        shared: Arc::clone(&shared),
        unreached: 0,
        polled_ns: 0,
        last_step: None,
        first_begin: None,
        is_over: false,
    }));
    Some((shared, taken, handed))
}

/// Records some marks and polls how soon each is reached; keeps the most exact one.
fn compare(stream: &dyn Stream, clock: &Clock, shared: &DeviceShared) -> Option<FirstComparison> {
    let mut best: Option<(u64, FirstComparison)> = None;
    for mark in 0..COMPARISONS {
        match compare_once(stream, clock, mark) {
            Ok(Some(ticks)) => {
                let took = ticks[1].saturating_sub(ticks[0]);
                if best.is_none_or(|(least, _)| took < least) {
                    best = Some((took, FirstComparison { mark, ticks }));
                }
            }
            // Busy with other work: later marks will do.
            Ok(None) => break,
            Err(lost) => {
                shared.set_lost(lost);
                return None;
            }
        }
    }
    best.map(|(_, first)| first)
}

fn compare_once(stream: &dyn Stream, clock: &Clock, mark: u32) -> Result<Option<[u64; 2]>, Lost> {
    let begun = std::time::Instant::now();
    let before = clock.raw();
    if !stream.record(mark)? {
        return Ok(None);
    }
    while begun.elapsed() < MAX_COMPARISON {
        if stream.is_reached(mark)? {
            return Ok(Some([before, clock.raw()]));
        }
    }
    Ok(None)
}

/// A device as the drain thread sees it.
struct Resolver {
    /// `None` once written.
    definition: Option<Definition>,
    stream: Arc<dyn Stream>,
    records: RecordConsumer,
    free: MarkProducer,
    shared: Arc<DeviceShared>,
    encoder: BlockEncoder,
    clock: DeviceClock,
    /// Records on the stream, in order. At most one for each mark; room for them is reserved.
    pending: VecDeque<DeviceRecord>,
    /// The reference mark that times are counted from, and its time.
    reference: Option<(u32, f64)>,
    first: Option<FirstComparison>,
    /// Ticks at which the oldest pending end was last polled and not yet reached; 0 for never.
    unreached: u64,
    polled_ns: u64,
    /// The last step that ended, and when.
    last_step: Option<(u64, f64)>,
    /// The step of the current spans, and when the first of them began.
    first_begin: Option<(u64, f64)>,
    is_over: bool,
}

impl Resolver {
    fn count_unreached(&mut self) -> usize {
        let unreached = self.pending.len();
        self.shared.count_drops(unreached as u64);
        self.pending.clear();
        unreached
    }

    fn reached(&mut self, map: &ClockMap, ticks: &Clock, out: &mut Vec<u8>) -> Result<(), Option<Lost>> {
        let mut looks = self.polls(map.ns(ticks.raw()));
        while let Some(record) = self.pending.front().copied() {
            let asked = ticks.raw();
            if self.stream.is_reached(record.end)? {
                let seen = ticks.raw();
                self.resolve(&record, seen, map, out)?;
                self.pending.pop_front();
                self.unreached = 0;
            } else if looks > 0 {
                looks -= 1;
                self.unreached = asked;
                std::thread::sleep(POLL_PAUSE);
            } else {
                self.unreached = asked;
                break;
            }
        }
        Ok(())
    }

    /// How often to poll closely now: on a device that is always busy, nothing else sees a mark as it is reached.
    fn polls(&mut self, now_ns: u64) -> u32 {
        let is_due = now_ns.saturating_sub(self.polled_ns) >= POLL_EVERY_NS;
        if !is_due {
            return 0;
        }
        self.polled_ns = now_ns;
        self.shared.wants_sight.store(true, Ordering::Relaxed);
        if self.clock.uncertainty_ns().is_none_or(|ns| ns > POLL_FROM_NS) { POLLS } else { 0 }
    }

    fn resolve(&mut self, record: &DeviceRecord, seen: u64, map: &ClockMap, out: &mut Vec<u8>) -> Result<(), Lost> {
        let (end, begin) = self.times(record)?;
        self.compare_first(map);
        let [issued_start, issued_end] = record.issued;
        let seen = if record.seen_ticks == 0 { seen } else { record.seen_ticks.min(seen) };
        let (issued_start_ns, issued_end_ns, seen_ns) = (map.ns(issued_start), map.ns(issued_end), map.ns(seen));
        if let Some(begin) = begin {
            self.clock.observe(begin, issued_start_ns, seen_ns);
        }
        // If an earlier poll had not found it, it was reached after that poll.
        let after = if self.unreached == 0 {
            issued_end_ns
        } else {
            issued_end_ns.max(map.ns(self.unreached).saturating_sub(ANSWER_LAG_NS))
        };
        self.clock.observe(end, after.min(seen_ns), seen_ns);
        let start = begin.unwrap_or_else(|| self.start_of_step(record.step, end));
        let (from, to) = (self.clock.map(start), self.clock.map(end));
        self.push(
            out,
            &Event::DeviceSpan(DeviceSpan {
                name: NameId(record.name),
                start_ns: from.ns,
                end_ns: to.ns,
                error_ns: from.error_ns.max(to.error_ns),
                issued_start_ns,
                issued_end_ns,
                step: StepId(record.step),
            }),
        );
        match begin {
            Some(begin) if self.first_begin.is_none_or(|(step, _)| step != record.step) => {
                self.first_begin = Some((record.step, begin));
            }
            Some(_) => {}
            None => self.last_step = Some((record.step, end)),
        }
        self.release(record, end);
        Ok(())
    }

    /// Times of a record's end and, if it has one, its begin.
    fn times(&mut self, record: &DeviceRecord) -> Result<(f64, Option<f64>), Lost> {
        let (mark, at) = *self.reference.get_or_insert((record.end, 0.0));
        let end = if mark == record.end { at } else { at + self.stream.between_ns(mark, record.end)? };
        let begin = match record.begin {
            NO_MARK => None,
            begin => Some(end - self.stream.between_ns(begin, record.end)?),
        };
        Ok((end, begin))
    }

    /// Notes the comparison made at the start.
    fn compare_first(&mut self, map: &ClockMap) {
        if let Some(FirstComparison { ticks: [before, seen], .. }) = self.first.take() {
            self.clock.observe(0.0, map.ns(before), map.ns(seen));
        }
    }

    /// A step begins on the device where the previous one ended or, if that is unknown, with its own first span.
    fn start_of_step(&self, step: u64, end: f64) -> f64 {
        let after = self.last_step.filter(|(last, _)| last.checked_add(1) == Some(step));
        let first = self.first_begin.filter(|(of, _)| *of == step);
        after.or(first).map_or(end, |(_, start)| start.min(end))
    }

    /// Returns marks for reuse, except the one that becomes the reference.
    fn release(&mut self, record: &DeviceRecord, end: f64) {
        let mut free = |mark: u32| {
            if mark != NO_MARK {
                // The ring has room for all marks; it cannot be full.
                let _ = self.free.try_push(mark);
            }
        };
        free(record.begin);
        match self.reference {
            Some((mark, _)) if mark == record.end => {}
            Some((mark, at)) if end - at > REFERENCE_NS => {
                free(mark);
                self.reference = Some((record.end, end));
            }
            _ => free(record.end),
        }
    }

    fn push(&mut self, out: &mut Vec<u8>, event: &Event) {
        if self.encoder.is_full() {
            self.finish(out);
        }
        self.encoder.push(event);
    }

    /// The device is lost: writes why, and counts what was not reached.
    fn give_up(&mut self, lost: Option<Lost>, t_ns: u64, out: &mut Vec<u8>) {
        if let Some(lost) = lost {
            self.shared.set_lost(lost);
        }
        let reason = self.shared.reason.get().map_or("", String::as_str);
        let name = names::intern(NameKind::Text, &format!("device time ends: {reason}")).id();
        self.push(out, &Event::Mark(Mark { name, t_ns, ..Mark::default() }));
        self.count_unreached();
        self.is_over = true;
    }
}

impl Source for Resolver {
    fn take_definitions(&mut self) -> Vec<Definition> {
        self.definition.take().into_iter().collect()
    }

    /// Writes what the device has reached. Never waits for the device.
    fn drain(&mut self, map: &ClockMap, ticks: &Clock, out: &mut Vec<u8>) {
        if self.is_over {
            return;
        }
        // Read before the ring: once set, nothing more comes.
        let closed = self.shared.closed.load(Ordering::Acquire);
        while let Some(record) = self.records.try_pop() {
            self.pending.push_back(record);
        }
        let reached = if self.shared.lost.load(Ordering::Acquire) { Err(None) } else { self.reached(map, ticks, out) };
        match reached {
            Ok(()) => self.is_over = closed && self.pending.is_empty(),
            Err(lost) => self.give_up(lost, map.ns(ticks.raw()), out),
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.encoder.finish(self.shared.dropped.load(Ordering::Relaxed), out);
    }

    fn begin_again(&mut self) {
        self.encoder.begin_again();
    }

    /// What the device has not reached by now is lost, and a mark says so.
    fn end(&mut self, t_ns: u64) {
        let unreached = self.count_unreached();
        if unreached > 0 {
            let name = names::intern(NameKind::Text, "not reached by the device at the end").id();
            self.encoder.push(&Event::Mark(Mark { name, t_ns, value: Some(unreached as f64), took_ns: None }));
        }
        self.is_over = true;
    }

    /// Whether the thread has closed the track or the device was lost, and everything was written.
    fn is_over(&self) -> bool {
        self.is_over && self.encoder.is_empty()
    }
}
