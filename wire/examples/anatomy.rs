//! Reports what a recording's bytes are spent on: by kind of frame, and by kind of event as rows and packed.
//!
//! `cargo run --release -p gnntop-wire --example anatomy a.gnntop [SECONDS]`
//!
//! Blocks are encoded again both ways, with those of each track merged over that many seconds (default 1; 0 leaves them as
//! they are). Rows are compressed with LZ4 block by block, which the bytes of single events do not show.

#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::io;

use gnntop_wire::{BlockEncoder, BlockInfo, Event, HEADER_LEN, Item, StreamReader, TrackId, peek};

#[derive(Default)]
struct Counted {
    number: u64,
    rows: u64,
    packed: u64,
}

/// One track's blocks, both ways.
struct Track {
    rows: BlockEncoder,
    packed: BlockEncoder,
    begun_ns: u64,
}

#[derive(Default)]
struct Anatomy {
    frames: BTreeMap<&'static str, (u64, u64)>,
    events: BTreeMap<&'static str, Counted>,
    tracks: BTreeMap<TrackId, Track>,
    /// All blocks, both ways.
    rows: Vec<u8>,
    packed: Vec<u8>,
    merge_ns: u64,
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or_else(|| io::Error::other("name a recording"))?;
    let seconds: f64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let bytes = std::fs::read(path)?;
    let mut anatomy = Anatomy { merge_ns: (seconds * 1e9) as u64, ..Anatomy::default() };
    anatomy.take(&bytes);
    anatomy.print(bytes.len() as u64);
    Ok(())
}

impl Anatomy {
    fn take(&mut self, bytes: &[u8]) {
        let mut reader = StreamReader::new();
        let mut at = 0;
        for chunk in bytes.chunks(1 << 18) {
            reader.fill(chunk);
            while let Some(item) = reader.next() {
                let kind = match item {
                    Item::Segment(_) => "segments",
                    Item::Definitions(_) => "definitions",
                    Item::Anchor(_) => "anchors",
                    Item::Block(info, events) => {
                        events.for_each(|event| self.add(&info, &event));
                        "blocks"
                    }
                    Item::End(_) => "ends",
                    _ => "others",
                };
                let len = bytes.get(at..).and_then(|rest| rest.first_chunk::<HEADER_LEN>()).and_then(peek);
                let len = len.map_or(0, |(len, _)| len);
                at += len;
                let (frames, total) = self.frames.entry(kind).or_default();
                (*frames, *total) = (*frames + 1, *total + len as u64);
            }
        }
        self.tracks.values_mut().for_each(|track| track.finish(&mut self.rows, &mut self.packed));
    }

    fn add(&mut self, info: &BlockInfo, event: &Event) {
        let new =
            || Track { rows: BlockEncoder::new(info.track), packed: BlockEncoder::packed(info.track), begun_ns: 0 };
        let track = self.tracks.entry(info.track).or_insert_with(new);
        let is_over = event.t_ns().saturating_sub(track.begun_ns) >= self.merge_ns;
        if is_over && !track.rows.is_empty() || track.rows.is_full() || track.packed.is_full() {
            track.finish(&mut self.rows, &mut self.packed);
        }
        if track.rows.is_empty() {
            track.begun_ns = event.t_ns();
        }
        let (rows, packed) = (track.rows.len(), track.packed.len());
        track.rows.push(event);
        track.packed.push(event);
        let counted = self.events.entry(kind(event)).or_default();
        counted.number += 1;
        counted.rows += (track.rows.len() - rows) as u64;
        counted.packed += (track.packed.len() - packed) as u64;
    }

    fn print(&self, len: u64) {
        let spans = self.events.get("spans").map_or(0, |spans| spans.number).max(1) as f64;
        let a_span = |bytes: u64| bytes as f64 / spans;
        println!("{:<12} {:>9} {:>11} {:>8}", "frames", "number", "bytes", "a span");
        for (kind, (frames, bytes)) in &self.frames {
            println!("{kind:<12} {frames:>9} {bytes:>11} {:>8.2}", a_span(*bytes));
        }
        println!("{:<12} {:>9} {len:>11} {:>8.2}", "all", "", a_span(len));
        println!(
            "\n{:<12} {:>9} {:>11} {:>8} {:>8} {:>11} {:>8} {:>8}",
            "events", "number", "as rows", "each", "a span", "packed", "each", "a span"
        );
        for (kind, Counted { number, rows, packed }) in &self.events {
            let each = |bytes: u64| bytes as f64 / *number as f64;
            println!(
                "{kind:<12} {number:>9} {rows:>11} {:>8.2} {:>8.2} {packed:>11} {:>8.2} {:>8.2}",
                each(*rows),
                a_span(*rows),
                each(*packed),
                a_span(*packed),
            );
        }
        let others: u64 = self.frames.iter().filter(|(kind, _)| **kind != "blocks").map(|(_, (_, bytes))| bytes).sum();
        for (what, blocks) in [("rows and LZ4", &self.rows), ("packed", &self.packed)] {
            let all = blocks.len() as u64 + others;
            println!(
                "\n{what}: blocks {} B, {:.2} a span; with the other frames {:.2}",
                blocks.len(),
                a_span(blocks.len() as u64),
                a_span(all)
            );
        }
    }
}

impl Track {
    fn finish(&mut self, rows: &mut Vec<u8>, packed: &mut Vec<u8>) {
        self.rows.finish(0, rows);
        self.packed.finish(0, packed);
    }
}

fn kind(event: &Event) -> &'static str {
    match event {
        Event::Span(_) => "spans",
        Event::Step(_) => "steps",
        Event::Counter(_) => "counters",
        Event::Mark(_) => "marks",
        Event::Open(_) => "open spans",
        Event::Sample(_) => "samples",
        Event::Absent(_) => "absences",
        Event::Allocation(_) => "allocations",
        Event::PhaseMemory(_) => "memory",
        Event::DeviceSpan(_) => "device spans",
        _ => "others",
    }
}
