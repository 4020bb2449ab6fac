//! Writes blocks.

use super::{
    Context, INLINE_NAMES, MAX_BLOCK_LEN, NUMBER_F32, NUMBER_F64, NUMBER_INTEGER, NUMBER_NONE, TAG_ABSENT,
    TAG_ALLOCATION, TAG_COUNTER, TAG_MARK, TAG_OPEN, TAG_PHASE_MEMORY, TAG_SAMPLE, TAG_STEP, TAG_STEP_CHANGED,
};
use crate::event::{Event, PhaseMemory, Sample, Span, Step};
use crate::frame::{self, FLAG_LZ4, Kind};
use crate::ids::{NameId, TrackId};
use crate::varint::{put_delta, put_i64, put_u64};

/// Room that one event may take at most; keeps `push` from growing a block past its limit.
const MAX_EVENT_LEN: usize = 160;
/// Below this size compression costs more than it gives.
const MIN_COMPRESSED: usize = 192;

/// Collects events of one track into a block.
pub struct BlockEncoder {
    track: TrackId,
    first_seq: u64,
    count: u64,
    base_ns: u64,
    context: Context,
    body: Vec<u8>,
    /// One event's payload while its length is not known yet.
    sized: Vec<u8>,
    compressed: Vec<u8>,
    table: lz4_flex::block::CompressTable,
}

impl BlockEncoder {
    /// An empty block for `track`. All its memory is reserved here and reused for every block.
    pub fn new(track: TrackId) -> Self {
        Self {
            track,
            first_seq: 0,
            count: 0,
            base_ns: 0,
            context: Context::default(),
            body: Vec::with_capacity(4096),
            sized: Vec::with_capacity(MAX_EVENT_LEN),
            compressed: Vec::new(),
            table: lz4_flex::block::CompressTable::small(),
        }
    }

    /// Whether nothing was pushed since the last block was finished.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes collected, before compression.
    pub fn len(&self) -> usize {
        self.body.len()
    }

    /// Whether the block must be finished before the next push.
    pub fn is_full(&self) -> bool {
        self.body.len() + MAX_EVENT_LEN > MAX_BLOCK_LEN
    }

    /// Adds an event. Returns `false`, and adds nothing, when the block is full.
    #[inline]
    pub fn push(&mut self, event: &Event) -> bool {
        if self.is_full() {
            return false;
        }
        if self.count == 0 {
            self.base_ns = event.t_ns();
            self.context.reset(self.base_ns);
        }
        self.count += 1;
        match event {
            Event::Span(span) => put_span(&mut self.body, &mut self.context, span),
            Event::Sample(sample) => put_sample(&mut self.body, &mut self.context, sample),
            other => self.push_sized(other),
        }
        true
    }

    fn push_sized(&mut self, event: &Event) {
        self.sized.clear();
        let tag = put_sized(&mut self.sized, &mut self.context, event);
        self.body.push(tag);
        put_u64(&mut self.body, self.sized.len() as u64);
        self.body.extend_from_slice(&self.sized);
    }

    /// Appends the block as one frame to `out` and starts the next one. `dropped` is the number of events
    /// lost on this track since the start. Does nothing when no event was pushed.
    pub fn finish(&mut self, dropped: u64, out: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        let flags = self.compress();
        frame::put(out, Kind::BLOCK, flags, |out| {
            put_u64(out, u64::from(self.track.0));
            put_u64(out, self.first_seq);
            put_u64(out, self.count);
            put_u64(out, dropped);
            put_u64(out, self.base_ns);
            put_u64(out, self.body.len() as u64);
            out.extend_from_slice(if flags & FLAG_LZ4 != 0 { &self.compressed } else { &self.body });
        });
        self.first_seq += self.count;
        self.count = 0;
        self.body.clear();
    }

    /// Starts counting events anew from `first_seq`, for an encoder that continues or copies a track.
    pub fn continue_from(&mut self, first_seq: u64) {
        debug_assert!(self.is_empty(), "only between blocks");
        self.first_seq = first_seq;
    }

    /// Number that the next pushed event gets on its track.
    pub fn next_seq(&self) -> u64 {
        self.first_seq + self.count
    }

    /// Compresses the body where that makes it smaller; returns the frame's flags.
    fn compress(&mut self) -> u8 {
        if self.body.len() < MIN_COMPRESSED {
            return 0;
        }
        self.compressed.resize(lz4_flex::block::get_maximum_output_size(self.body.len()), 0);
        match lz4_flex::block::compress_into_with_table(&self.body, &mut self.compressed, &mut self.table) {
            Ok(len) if len < self.body.len() => {
                self.compressed.truncate(len);
                FLAG_LZ4
            }
            _ => 0,
        }
    }
}

#[inline]
fn put_span(out: &mut Vec<u8>, context: &mut Context, span: &Span) {
    let step_changed = u8::from(span.step.0 != context.step) * TAG_STEP_CHANGED;
    let inline = if span.name.0 <= INLINE_NAMES { span.name.0 as u8 + 1 } else { 0 };
    out.push(inline << 1 | step_changed);
    if inline == 0 {
        put_u64(out, u64::from(span.name.0));
    }
    put_delta(out, context.t_ns, span.end_ns);
    put_u64(out, span.end_ns.saturating_sub(span.start_ns));
    if step_changed != 0 {
        put_delta(out, context.step, span.step.0);
        context.step = span.step.0;
    }
    context.t_ns = span.end_ns;
}

fn put_sample(out: &mut Vec<u8>, context: &mut Context, sample: &Sample) {
    out.push(TAG_SAMPLE);
    put_u64(out, u64::from(sample.signal.0));
    put_delta(out, context.t_ns, sample.t_ns);
    context.t_ns = sample.t_ns;
    let last = context.value(sample.signal);
    put_i64(out, sample.value.wrapping_sub(last.as_deref().copied().unwrap_or(0)));
    if let Some(last) = last {
        *last = sample.value;
    }
}

/// Writes the payload of a length-carrying event and returns its tag.
fn put_sized(out: &mut Vec<u8>, context: &mut Context, event: &Event) -> u8 {
    let before = context.t_ns;
    context.t_ns = event.t_ns();
    let named = |out: &mut Vec<u8>, name: NameId| {
        put_u64(out, u64::from(name.0));
        put_delta(out, before, event.t_ns());
    };
    match event {
        Event::Span(_) | Event::Sample(_) => unreachable!("have their own short form"),
        Event::Step(step) => {
            put_delta(out, before, step.end_ns);
            put_step(out, context, step);
            TAG_STEP
        }
        Event::Counter(counter) => {
            named(out, counter.name);
            put_number(out, Some(counter.value));
            TAG_COUNTER
        }
        Event::Mark(mark) => {
            named(out, mark.name);
            put_number(out, mark.value);
            TAG_MARK
        }
        Event::Open(open) => {
            named(out, open.name);
            put_delta(out, open.t_ns, open.since_ns);
            put_u64(out, open.step.0);
            TAG_OPEN
        }
        Event::Absent(absent) => {
            named(out, absent.reason);
            put_u64(out, u64::from(absent.signal.0));
            if let Some(last) = context.value(absent.signal) {
                *last = 0;
            }
            TAG_ABSENT
        }
        Event::Allocation(allocation) => {
            named(out, allocation.phase);
            put_i64(out, allocation.bytes);
            put_u64(out, allocation.live_bytes);
            TAG_ALLOCATION
        }
        Event::PhaseMemory(memory) => {
            named(out, memory.phase);
            for value in phase_memory_fields(memory) {
                put_u64(out, value);
            }
            TAG_PHASE_MEMORY
        }
    }
}

fn phase_memory_fields(m: &PhaseMemory) -> [u64; 6] {
    [m.allocated_bytes, m.allocated_count, m.freed_bytes, m.freed_count, m.live_bytes, m.peak_bytes]
}

fn put_step(out: &mut Vec<u8>, context: &mut Context, step: &Step) {
    put_u64(out, step.end_ns.saturating_sub(step.start_ns));
    put_delta(out, context.step, step.step.0);
    context.step = step.step.0;
    put_u64(out, step.epoch);
    let batch = [step.batch.graphs, step.batch.nodes, step.batch.edges, step.batch.seeds];
    let mut present = 0u8;
    for (bit, value) in batch.iter().enumerate() {
        present |= u8::from(value.is_some()) << bit;
    }
    present |= u8::from(step.usage.is_some()) << 4;
    out.push(present);
    batch.into_iter().flatten().for_each(|value| put_u64(out, value));
    if let Some(u) = step.usage {
        for value in [u.minor_faults, u.major_faults, u.voluntary_switches, u.involuntary_switches] {
            put_u64(out, value);
        }
    }
    put_number(out, step.loss);
}

/// Writes a number in the shortest form that gives the same bits back.
fn put_number(out: &mut Vec<u8>, value: Option<f64>) {
    let Some(value) = value else {
        return out.push(NUMBER_NONE);
    };
    let (integer, single) = (value as i64, value as f32);
    if (integer as f64).to_bits() == value.to_bits() && integer.unsigned_abs() < 1 << 53 {
        out.push(NUMBER_INTEGER);
        put_i64(out, integer);
    } else if f64::from(single).to_bits() == value.to_bits() {
        out.push(NUMBER_F32);
        out.extend_from_slice(&single.to_le_bytes());
    } else {
        out.push(NUMBER_F64);
        out.extend_from_slice(&value.to_le_bytes());
    }
}
