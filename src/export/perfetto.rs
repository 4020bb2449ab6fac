//! Perfetto's protobuf: track descriptors and track events, by the field numbers of its
//! `protos/perfetto/trace/trace_packet.proto` and `track_event/{track_descriptor,track_event,counter_descriptor}.proto`.
//!
//! Only a dozen fields are needed, all of them varints, doubles and texts, so they are written by hand.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Write};

use gnntop_wire::TrackId;

use super::nesting::{Lanes, MAX_LANES};
use super::{Entry, Format};

/// Events that wait to be ordered by time; a begin may stand behind the begin of what lies inside it. Whether spans
/// nest is looked at among these.
const ORDERED: usize = 1 << 16;
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;
/// Track of the process; threads and counters hang below it.
const PROCESS: u64 = 1;
/// Counters have the numbers from here on, threads those below.
const COUNTERS: u64 = 1 << 40;
/// Further lanes of threads.
const LANES: u64 = 1 << 41;

/// Where an event stands among those of the same time: ends before begins, outer begins before inner ones.
type Order = (u64, u8, u64);

/// A slice that waits for its lane.
struct Slice {
    track: TrackId,
    start_ns: u64,
    end_ns: u64,
    /// Its category and name, encoded.
    named: Vec<u8>,
}

/// A thread's name, and how many of its lanes have been described.
struct Thread {
    title: String,
    lanes: usize,
}

pub(super) struct Perfetto<W: Write> {
    out: W,
    waiting: Vec<(Order, Vec<u8>)>,
    slices: Vec<Slice>,
    threads: HashMap<TrackId, Thread>,
    counters: HashMap<String, u64>,
    has_process: bool,
}

impl<W: Write> Perfetto<W> {
    pub(super) fn new(out: W) -> Self {
        let (slices, threads, counters) = (Vec::new(), HashMap::new(), HashMap::new());
        Self { out, waiting: Vec::new(), slices, threads, counters, has_process: false }
    }

    /// Writes a packet around `fields`. The sequence id is needed for every packet with track events.
    fn packet(&mut self, fields: &[u8]) -> io::Result<()> {
        let mut packet = fields.to_vec();
        put_varint_field(&mut packet, 10, 1);
        let mut trace = Vec::with_capacity(packet.len() + 8);
        put_bytes_field(&mut trace, 1, &packet);
        self.out.write_all(&trace)
    }

    fn descriptor(&mut self, uuid: u64, name: &str, more: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut descriptor = Vec::new();
        put_varint_field(&mut descriptor, 1, uuid);
        put_bytes_field(&mut descriptor, 2, name.as_bytes());
        more(&mut descriptor);
        let mut fields = Vec::new();
        put_bytes_field(&mut fields, 60, &descriptor);
        self.packet(&fields)
    }

    fn process(&mut self) -> io::Result<()> {
        if self.has_process {
            return Ok(());
        }
        self.has_process = true;
        self.descriptor(PROCESS, "gnntop", |descriptor| {
            let mut process = Vec::new();
            put_varint_field(&mut process, 1, 1);
            put_bytes_field(&mut process, 6, b"gnntop");
            put_bytes_field(descriptor, 3, &process);
        })
    }

    /// The track of a counter, which it gets now if it has none.
    fn counter(&mut self, name: &str) -> io::Result<u64> {
        if let Some(uuid) = self.counters.get(name) {
            return Ok(*uuid);
        }
        let uuid = COUNTERS + self.counters.len() as u64;
        self.counters.insert(name.to_owned(), uuid);
        self.process()?;
        self.descriptor(uuid, name, |descriptor| {
            put_varint_field(descriptor, 5, PROCESS);
            put_bytes_field(descriptor, 8, &[]);
        })?;
        Ok(uuid)
    }

    fn event(&mut self, order: Order, uuid: u64, kind: u64, more: impl FnOnce(&mut Vec<u8>)) {
        let mut event = Vec::new();
        put_varint_field(&mut event, 9, kind);
        put_varint_field(&mut event, 11, uuid);
        more(&mut event);
        let mut fields = Vec::new();
        put_varint_field(&mut fields, 8, order.0);
        put_bytes_field(&mut fields, 11, &event);
        self.waiting.push((order, fields));
    }

    fn slice(&mut self, track: TrackId, name: &str, category: &str, (start_ns, end_ns): (u64, u64)) {
        let mut named = Vec::with_capacity(category.len() + name.len() + 8);
        put_bytes_field(&mut named, 22, category.as_bytes());
        put_bytes_field(&mut named, 23, name.as_bytes());
        if end_ns <= start_ns {
            return self.event((start_ns, 2, 0), thread(track), INSTANT, |event| event.extend_from_slice(&named));
        }
        self.slices.push(Slice { track, start_ns, end_ns, named });
    }

    /// Gives the waiting slices their lanes, and turns them into events.
    fn place_slices(&mut self) -> io::Result<()> {
        let mut slices = std::mem::take(&mut self.slices);
        slices.sort_by_key(|slice| (slice.track.0, slice.start_ns, Reverse(slice.end_ns)));
        let (mut lanes, mut track) = (Lanes::default(), None);
        for slice in slices {
            if track.replace(slice.track) != Some(slice.track) {
                lanes = Lanes::default();
            }
            let Slice { start_ns, end_ns, .. } = slice;
            let uuid = self.lane(slice.track, lanes.place(start_ns, end_ns))?;
            let len_ns = end_ns - start_ns;
            let named = |event: &mut Vec<u8>| event.extend_from_slice(&slice.named);
            self.event((start_ns, 1, u64::MAX - len_ns), uuid, SLICE_BEGIN, named);
            self.event((end_ns, 0, len_ns), uuid, SLICE_END, |_| {});
        }
        Ok(())
    }

    /// The track of a thread's lane: the thread's own, or one below it that is described now if it is new.
    fn lane(&mut self, track: TrackId, lane: usize) -> io::Result<u64> {
        let uuid = |lane: usize| LANES + u64::from(track.0) * MAX_LANES as u64 + lane as u64;
        let described = self.threads.get(&track).map_or(1, |thread| thread.lanes);
        for new in described..=lane {
            let title = self.threads.get(&track).map_or("", |thread| &thread.title);
            let title = format!("{title} ({})", new + 1);
            self.descriptor(uuid(new), &title, |descriptor| put_varint_field(descriptor, 5, thread(track)))?;
        }
        if let Some(thread) = self.threads.get_mut(&track) {
            thread.lanes = described.max(lane + 1);
        }
        Ok(if lane == 0 { thread(track) } else { uuid(lane) })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.place_slices()?;
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_by_key(|(order, _)| *order);
        waiting.iter().try_for_each(|(_, fields)| self.packet(fields))
    }
}

impl<W: Write> Format for Perfetto<W> {
    fn track(&mut self, track: TrackId, title: &str) -> io::Result<()> {
        self.process()?;
        self.threads.insert(track, Thread { title: title.to_owned(), lanes: 1 });
        self.descriptor(thread(track), title, |descriptor| {
            let mut thread = Vec::new();
            put_varint_field(&mut thread, 1, 1);
            put_varint_field(&mut thread, 2, u64::from(track.0) + 1);
            put_bytes_field(&mut thread, 5, title.as_bytes());
            put_bytes_field(descriptor, 4, &thread);
        })
    }

    fn entry(&mut self, track: TrackId, entry: &Entry<'_>) -> io::Result<()> {
        let uuid = thread(track);
        match entry {
            Entry::Span { name, is_phase, .. } => {
                self.slice(track, name, if *is_phase { "phase" } else { "span" }, entry.time_ns());
            }
            Entry::Step { step } => self.slice(track, &format!("step {}", step.step.0), "step", entry.time_ns()),
            Entry::Mark { name, t_ns, .. } => {
                self.event((*t_ns, 2, 0), uuid, INSTANT, |event| put_bytes_field(event, 23, name.as_bytes()));
            }
            Entry::Counter { name, t_ns, value } => {
                let uuid = self.counter(name)?;
                self.event((*t_ns, 2, 0), uuid, COUNTER, |event| put_double_field(event, 44, *value));
            }
            Entry::Sample { name, unit, t_ns, value } => {
                let uuid = self.counter(&format!("{name} [{}]", unit.symbol()))?;
                // Negative ones as protobuf's int64 has them: two's complement.
                self.event((*t_ns, 2, 0), uuid, COUNTER, |event| put_varint_field(event, 30, *value as u64));
            }
        }
        Ok(())
    }

    fn block_end(&mut self) -> io::Result<()> {
        if self.waiting.len() + 2 * self.slices.len() >= ORDERED { self.flush() } else { Ok(()) }
    }

    fn end(&mut self) -> io::Result<()> {
        self.flush()?;
        self.out.flush()
    }
}

fn thread(track: TrackId) -> u64 {
    u64::from(track.0) + 2
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_varint_field(out: &mut Vec<u8>, field: u64, value: u64) {
    put_varint(out, field << 3);
    put_varint(out, value);
}

fn put_bytes_field(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(out, field << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_double_field(out: &mut Vec<u8>, field: u64, value: f64) {
    put_varint(out, field << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}
