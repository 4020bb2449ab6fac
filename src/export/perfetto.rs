//! Perfetto's protobuf: track descriptors and track events, by the field numbers of its
//! `protos/perfetto/trace/trace_packet.proto` and `track_event/{track_descriptor,track_event,counter_descriptor}.proto`.
//!
//! Only a dozen fields are needed, all of them varints, doubles and texts, so they are written by hand.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::Display;
use std::io::{self, Write};
use std::ops::Range;

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

/// Where the encoded category and name of an event lie in the batch's texts.
type Named = Range<usize>;

/// An event that waits to be written in its order.
struct Waiting {
    order: Order,
    /// Its track.
    uuid: u64,
    what: What,
}

enum What {
    Begin(Named),
    End,
    Instant(Named),
    Counter(f64),
    Reading(i64),
}

/// A slice that waits for its lane.
struct Slice {
    track: TrackId,
    start_ns: u64,
    end_ns: u64,
    named: Named,
}

/// A thread's name, and how many of its lanes have been described.
struct Thread {
    title: String,
    lanes: usize,
}

pub(super) struct Perfetto<W: Write> {
    out: W,
    /// The batch that is being gathered: events, slices, and the texts of both.
    waiting: Vec<Waiting>,
    slices: Vec<Slice>,
    texts: Vec<u8>,
    /// What a message is put together in, kept for the next one.
    event: Vec<u8>,
    packet: Vec<u8>,
    threads: HashMap<TrackId, Thread>,
    counters: HashMap<String, u64>,
    has_process: bool,
}

impl<W: Write> Perfetto<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            waiting: Vec::new(),
            slices: Vec::new(),
            texts: Vec::new(),
            event: Vec::new(),
            packet: Vec::new(),
            threads: HashMap::new(),
            counters: HashMap::new(),
            has_process: false,
        }
    }

    /// Writes the packet that has been put together. The sequence id is needed for every packet with track events.
    fn packet(&mut self) -> io::Result<()> {
        put_varint_field(&mut self.packet, 10, 1);
        self.event.clear();
        put_varint(&mut self.event, 1 << 3 | 2);
        put_varint(&mut self.event, self.packet.len() as u64);
        self.out.write_all(&self.event)?;
        self.out.write_all(&self.packet)?;
        self.packet.clear();
        Ok(())
    }

    fn descriptor(&mut self, uuid: u64, name: &str, more: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut descriptor = Vec::new();
        put_varint_field(&mut descriptor, 1, uuid);
        put_bytes_field(&mut descriptor, 2, name.as_bytes());
        more(&mut descriptor);
        put_bytes_field(&mut self.packet, 60, &descriptor);
        self.packet()
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

    /// Encodes category, where there is one, and name.
    fn named(&mut self, category: &str, name: impl Display) -> Named {
        let start = self.texts.len();
        if !category.is_empty() {
            put_bytes_field(&mut self.texts, 22, category.as_bytes());
        }
        self.event.clear();
        // Writing into memory does not fail.
        _ = write!(self.event, "{name}");
        put_bytes_field(&mut self.texts, 23, &self.event);
        start..self.texts.len()
    }

    fn slice(&mut self, track: TrackId, named: Named, (start_ns, end_ns): (u64, u64)) {
        if end_ns <= start_ns {
            return self.waiting.push(Waiting {
                order: (start_ns, 2, 0),
                uuid: thread(track),
                what: What::Instant(named),
            });
        }
        self.slices.push(Slice { track, start_ns, end_ns, named });
    }

    /// Gives the waiting slices their lanes, and turns them into events.
    fn place_slices(&mut self) -> io::Result<()> {
        let mut slices = std::mem::take(&mut self.slices);
        slices.sort_by_key(|slice| (slice.track.0, slice.start_ns, Reverse(slice.end_ns)));
        let (mut lanes, mut track) = (Lanes::default(), None);
        for slice in slices.drain(..) {
            if track.replace(slice.track) != Some(slice.track) {
                lanes = Lanes::default();
            }
            let Slice { start_ns, end_ns, .. } = slice;
            let uuid = self.lane(slice.track, lanes.place(start_ns, end_ns))?;
            let len_ns = end_ns - start_ns;
            let begin = Waiting { order: (start_ns, 1, u64::MAX - len_ns), uuid, what: What::Begin(slice.named) };
            let end = Waiting { order: (end_ns, 0, len_ns), uuid, what: What::End };
            self.waiting.extend([begin, end]);
        }
        self.slices = slices;
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
        waiting.sort_by_key(|event| event.order);
        waiting.drain(..).try_for_each(|event| self.write(&event))?;
        self.waiting = waiting;
        self.texts.clear();
        Ok(())
    }

    fn write(&mut self, waiting: &Waiting) -> io::Result<()> {
        let (event, texts) = (&mut self.event, &self.texts);
        event.clear();
        let kind = match &waiting.what {
            What::Begin(_) => SLICE_BEGIN,
            What::End => SLICE_END,
            What::Instant(_) => INSTANT,
            What::Counter(_) | What::Reading(_) => COUNTER,
        };
        put_varint_field(event, 9, kind);
        put_varint_field(event, 11, waiting.uuid);
        match &waiting.what {
            What::Begin(named) | What::Instant(named) => event.extend_from_slice(&texts[named.clone()]),
            What::End => (),
            What::Counter(value) => put_double_field(event, 44, *value),
            // Negative ones as protobuf's int64 has them: two's complement.
            What::Reading(value) => put_varint_field(event, 30, value.cast_unsigned()),
        }
        put_varint_field(&mut self.packet, 8, waiting.order.0);
        put_bytes_field(&mut self.packet, 11, &self.event);
        self.packet()
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
        let (t_ns, _) = entry.time_ns();
        let (uuid, what) = match entry {
            Entry::Span { name, is_phase, .. } => {
                let named = self.named(if *is_phase { "phase" } else { "span" }, name);
                self.slice(track, named, entry.time_ns());
                return Ok(());
            }
            Entry::Step { step } => {
                let named = self.named("step", format_args!("step {}", step.step.0));
                self.slice(track, named, entry.time_ns());
                return Ok(());
            }
            Entry::Mark { name, .. } => (thread(track), What::Instant(self.named("", name))),
            Entry::Counter { name, value, .. } => (self.counter(name)?, What::Counter(*value)),
            Entry::Sample { name, unit, value, .. } => {
                (self.counter(&format!("{name} [{}]", unit.symbol()))?, What::Reading(*value))
            }
        };
        self.waiting.push(Waiting { order: (t_ns, 2, 0), uuid, what });
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
