//! Perfetto's protobuf: track descriptors and track events, by the field numbers of its
//! `protos/perfetto/trace/trace_packet.proto` and `track_event/{track_descriptor,track_event,counter_descriptor}.proto`.
//!
//! Only a dozen fields are needed, all of them varints, doubles and texts, so they are written by hand. What reads such a
//! file orders its events by time; those of the same time keep their order, so an outer slice is begun before an inner
//! one, and ended after it.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::Display;
use std::io::{self, Write};
use std::ops::Range;

use gnntop_wire::TrackId;

use super::definitions::Interner;
use super::format::{Entry, FormatWriter, Lanes, MAX_LANES};

/// Slices that are gathered before they are nested.
const GATHERED: usize = 1 << 15;
/// Bytes that are put together before they are written.
const READY_BYTES: usize = 1 << 20;
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

/// A slice that waits for its lane.
struct PerfettoSlice {
    track: TrackId,
    start_ns: u64,
    end_ns: u64,
    /// The range of its encoded category and name in `texts`.
    named: Range<usize>,
}

/// A thread's name, and how many of its lanes have been described.
struct PerfettoThread {
    title: String,
    lanes: usize,
}

pub(super) struct Perfetto<W: Write> {
    out: W,
    packets: Packets,
    slices: Vec<PerfettoSlice>,
    texts: Vec<u8>,
    /// How many of the slices came before the newest step ended: the slices around these are known.
    settled: usize,
    threads: HashMap<TrackId, PerfettoThread>,
    counters: Interner,
    has_process: bool,
}

/// Packets as they are put together.
#[derive(Default)]
struct Packets {
    /// Those that are ready to be written.
    ready: Vec<u8>,
    /// The current packet, and the event in it; reused for the next one.
    packet: Vec<u8>,
    event: Vec<u8>,
}

impl Packets {
    /// Ends the current packet. The sequence id is needed for every packet with track events.
    fn end(&mut self) {
        put_varint_field(&mut self.packet, 10, 1);
        put_bytes_field(&mut self.ready, 1, &self.packet);
        self.packet.clear();
    }

    fn event(&mut self, t_ns: u64, uuid: u64, kind: u64, more: impl FnOnce(&mut Vec<u8>)) {
        self.event.clear();
        put_varint_field(&mut self.event, 9, kind);
        put_varint_field(&mut self.event, 11, uuid);
        more(&mut self.event);
        put_varint_field(&mut self.packet, 8, t_ns);
        put_bytes_field(&mut self.packet, 11, &self.event);
        self.end();
    }

    fn descriptor(&mut self, uuid: u64, name: &str, more: impl FnOnce(&mut Vec<u8>)) {
        let mut descriptor = Vec::new();
        put_varint_field(&mut descriptor, 1, uuid);
        put_bytes_field(&mut descriptor, 2, name.as_bytes());
        more(&mut descriptor);
        put_bytes_field(&mut self.packet, 60, &descriptor);
        self.end();
    }
}

impl<W: Write> Perfetto<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            packets: Packets::default(),
            slices: Vec::new(),
            texts: Vec::new(),
            settled: 0,
            threads: HashMap::new(),
            counters: Interner::default(),
            has_process: false,
        }
    }

    fn process(&mut self) {
        if self.has_process {
            return;
        }
        self.has_process = true;
        self.packets.descriptor(PROCESS, "gnntop", |descriptor| {
            let mut process = Vec::new();
            put_varint_field(&mut process, 1, 1);
            put_bytes_field(&mut process, 6, b"gnntop");
            put_bytes_field(descriptor, 3, &process);
        });
    }

    /// The track of a counter, which it gets now if it has none.
    fn counter(&mut self, name: &str) -> io::Result<u64> {
        let (number, is_new) = self.counters.intern(name)?;
        let uuid = COUNTERS + u64::from(number);
        if is_new {
            self.process();
            self.packets.descriptor(uuid, name, |descriptor| {
                put_varint_field(descriptor, 5, PROCESS);
                put_bytes_field(descriptor, 8, &[]);
            });
        }
        Ok(uuid)
    }

    /// A slice, or an instant where it takes no time.
    fn slice(&mut self, track: TrackId, category: &str, name: impl Display, (start_ns, end_ns): (u64, u64)) {
        let start = self.texts.len();
        put_bytes_field(&mut self.texts, 22, category.as_bytes());
        self.packets.event.clear();
        // Writing into memory does not fail.
        _ = write!(self.packets.event, "{name}");
        put_bytes_field(&mut self.texts, 23, &self.packets.event);
        let named = start..self.texts.len();
        if end_ns <= start_ns {
            let text = &self.texts[named];
            return self.packets.event(start_ns, thread(track), INSTANT, |event| event.extend_from_slice(text));
        }
        self.slices.push(PerfettoSlice { track, start_ns, end_ns, named });
    }

    /// Gives slices their lanes, and turns them into packets, lane by lane properly nested.
    fn place(&mut self, mut slices: Vec<PerfettoSlice>) {
        slices.sort_by_key(|slice| (slice.track.0, slice.start_ns, Reverse(slice.end_ns)));
        for of_track in slices.chunk_by(|a, b| a.track == b.track) {
            let mut lanes = Lanes::default();
            let mut open: Vec<(u64, Vec<u64>)> = Vec::new();
            for slice in of_track {
                let lane = lanes.place(slice.start_ns, slice.end_ns);
                if lane == open.len() {
                    open.push((self.lane(slice.track, lane), Vec::new()));
                }
                let (uuid, ends) = &mut open[lane];
                while let Some(end_ns) = ends.pop_if(|end_ns| *end_ns <= slice.start_ns) {
                    self.packets.event(end_ns, *uuid, SLICE_END, |_| {});
                }
                ends.push(slice.end_ns);
                let named = &self.texts[slice.named.clone()];
                self.packets.event(slice.start_ns, *uuid, SLICE_BEGIN, |event| event.extend_from_slice(named));
            }
            for (uuid, ends) in open {
                ends.into_iter().rev().for_each(|end_ns| self.packets.event(end_ns, uuid, SLICE_END, |_| {}));
            }
        }
    }

    /// The track of a thread's lane: the thread's own, or one below it that is described now if it is new.
    fn lane(&mut self, track: TrackId, lane: usize) -> u64 {
        let uuid = |lane: usize| LANES + u64::from(track.0) * MAX_LANES as u64 + lane as u64;
        let described = self.threads.get(&track).map_or(1, |thread| thread.lanes);
        for new in described..=lane {
            let title = self.threads.get(&track).map_or("", |thread| &thread.title);
            let title = format!("{title} ({})", new + 1);
            self.packets.descriptor(uuid(new), &title, |descriptor| put_varint_field(descriptor, 5, thread(track)));
        }
        if let Some(thread) = self.threads.get_mut(&track) {
            thread.lanes = described.max(lane + 1);
        }
        if lane == 0 { thread(track) } else { uuid(lane) }
    }

    /// Writes everything up to the newest step's end; all where `all` is asked for, or no step ended.
    fn flush(&mut self, all: bool) -> io::Result<()> {
        let settled = if all || self.settled == 0 { self.slices.len() } else { self.settled };
        let mut later = self.slices.split_off(settled);
        let slices = std::mem::take(&mut self.slices);
        self.place(slices);
        let mut texts = Vec::with_capacity(self.texts.len());
        for slice in &mut later {
            let start = texts.len();
            texts.extend_from_slice(&self.texts[slice.named.clone()]);
            slice.named = start..texts.len();
        }
        (self.slices, self.texts, self.settled) = (later, texts, 0);
        self.out.write_all(&self.packets.ready)?;
        self.packets.ready.clear();
        Ok(())
    }
}

impl<W: Write> FormatWriter for Perfetto<W> {
    fn track(&mut self, track: TrackId, title: &str) -> io::Result<()> {
        self.process();
        self.threads.insert(track, PerfettoThread { title: title.to_owned(), lanes: 1 });
        self.packets.descriptor(thread(track), title, |descriptor| {
            let mut thread = Vec::new();
            put_varint_field(&mut thread, 1, 1);
            put_varint_field(&mut thread, 2, u64::from(track.0) + 1);
            put_bytes_field(&mut thread, 5, title.as_bytes());
            put_bytes_field(descriptor, 4, &thread);
        });
        Ok(())
    }

    fn entry(&mut self, track: TrackId, entry: &Entry<'_>) -> io::Result<()> {
        match entry {
            Entry::Span { name, is_phase, .. } => {
                self.slice(track, if *is_phase { "phase" } else { "span" }, name, entry.time_ns());
            }
            Entry::Step { step } => {
                self.slice(track, "step", format_args!("step {}", step.step.0), entry.time_ns());
                self.settled = self.slices.len();
            }
            Entry::Mark { name, t_ns, .. } => {
                let named = |event: &mut Vec<u8>| put_bytes_field(event, 23, name.as_bytes());
                self.packets.event(*t_ns, thread(track), INSTANT, named);
            }
            Entry::Counter { name, t_ns, value } => {
                let uuid = self.counter(name)?;
                self.packets.event(*t_ns, uuid, COUNTER, |event| put_double_field(event, 44, *value));
            }
            Entry::Sample { name, unit, t_ns, value } => {
                let uuid = self.counter(&format!("{name} [{}]", unit.symbol()))?;
                // Negative ones as protobuf's int64 has them: two's complement.
                self.packets.event(*t_ns, uuid, COUNTER, |event| put_varint_field(event, 30, value.cast_unsigned()));
            }
        }
        Ok(())
    }

    fn block_end(&mut self) -> io::Result<()> {
        if self.slices.len() >= GATHERED || self.packets.ready.len() >= READY_BYTES {
            self.flush(false)
        } else {
            Ok(())
        }
    }

    fn end(&mut self) -> io::Result<()> {
        self.flush(true)?;
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
