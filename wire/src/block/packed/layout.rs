//! The meaning and order of a block's bits. Both directions use [`Model`]; the crate's documentation describes the layout.

use super::coder::Coder;
use super::number::Number;
use super::symbols::{KIND_BITS, Slot, Symbols};
use crate::device_span::DeviceSpan;
use crate::event::{
    Absent, Allocation, BatchShape, Counter, Mark, Open, PhaseMemory, Rival, Sample, Span, StackFrame, StackSample,
    StackThread, Step, ThreadUsage,
};
use crate::ids::{NameId, SignalId, StepId};

/// Tracks whose blocks continue one another: those with lower ids than this. A reader keeps a model of each.
pub(super) const TRACKS_KEPT: u32 = 16;
/// Most blocks that continue one that started fresh, so that a damaged one costs no more than these.
pub(super) const MAX_CONTINUED: u32 = 15;

pub(super) const SPAN: u8 = 0;
pub(super) const SAMPLE: u8 = 1;
pub(super) const STEP: u8 = 2;
pub(super) const COUNTER: u8 = 3;
pub(super) const MARK: u8 = 4;
pub(super) const OPEN: u8 = 5;
pub(super) const ABSENT: u8 = 6;
pub(super) const ALLOCATION: u8 = 7;
pub(super) const PHASE_MEMORY: u8 = 8;
pub(super) const DEVICE_SPAN: u8 = 9;
pub(super) const TRACED_STEP: u8 = 10;
pub(super) const STACK_FRAME: u8 = 11;
pub(super) const STACK_SAMPLE: u8 = 12;
pub(super) const RIVAL: u8 = 13;
/// Kinds from here on carry bytes, whether known or not.
pub(super) const FIRST_SIZED: u8 = 14;

/// Numbers of each kind; for kinds that carry bytes, their length.
pub(super) const COLUMNS: [usize; 1 << KIND_BITS] = [3, 5, 13, 2, 3, 3, 2, 3, 7, 6, 13, 2, 2, 3, 1, 1];

/// A span that began before the previous event ended.
pub(super) const FROM_END: u8 = 1;
/// A span of the step after the previous event's.
pub(super) const NEXT_STEP: u8 = 2;
/// A span of any other step.
pub(super) const OTHER_STEP: u8 = 4;
/// The bits of a sample's form that index [`UNITS`].
pub(super) const UNIT_MASK: u8 = 7;
/// A sample whose time is whole microseconds after the previous event.
pub(super) const MICROSECONDS: u8 = 8;
/// Units whose multiples a signal's values are: sectors, pages, kibibytes, thousands, clock ticks.
pub(super) const UNITS: [i64; 8] = [1, 512, 1_000, 1_024, 4_096, 1_000_000, 1_048_576, 10_000_000];
/// A mark at the end of something: how long that took follows.
pub(super) const HAS_DURATION: u8 = 4;
/// A count that is only repeated.
pub(super) const IS_REPEAT: u8 = 1;
/// A rival that is one process.
pub(super) const HAS_PID: u8 = 4;
/// The bits of a form that say what a number is, where it is not alone.
const NUMBER_MASK: u8 = 3;
/// Position of the kind of loss in a step's form, above the bits for what is present.
pub(super) const LOSS_SHIFT: u8 = 5;
pub(super) const HAS_USAGE: u8 = 1 << 4;

// Kinds of numbers, in forms.
pub(super) const NO_NUMBER: u8 = 0;
pub(super) const INTEGER: u8 = 1;
pub(super) const F32: u8 = 2;
pub(super) const F64: u8 = 3;

/// A larger error of a reading counts as this, so that no sum overflows.
const MAX_SCORE: u64 = 1 << 58;
/// Number of span starts kept; a span that encloses more is coded by its length.
const STARTS: usize = 256;
/// Comparisons with starts that each span adds to the allowance: the deepest nesting that can be sustained.
const COMPARISONS_PER_SPAN: u32 = 8;
/// Most comparisons that may be saved up.
const MAX_COMPARISONS: u32 = 1 << 12;

/// What the events so far predict about the next one.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) symbols: Symbols,
    pub(super) t_ns: u64,
    pub(super) step: u64,
    /// When the first span since the last step's end began; 0 for none.
    first_start_ns: u64,
    starts: Box<[u64; STARTS]>,
    spans: usize,
    /// Comparisons with starts that are left. Every span allows some, so that no input can cause far more work.
    comparisons: u32,
    live_bytes: u64,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            symbols: Symbols::default(),
            t_ns: 0,
            step: 0,
            first_start_ns: 0,
            starts: Box::new([0; STARTS]),
            spans: 0,
            comparisons: 0,
            live_bytes: 0,
        }
    }
}

impl Model {
    /// Begins a block.
    pub(super) fn clear(&mut self, base_ns: u64) {
        self.symbols.clear();
        self.starts.fill(base_ns);
        (self.t_ns, self.step, self.first_start_ns) = (base_ns, 0, 0);
        (self.spans, self.comparisons, self.live_bytes) = (0, MAX_COMPARISONS, 0);
    }

    #[inline]
    pub(super) fn span<C: Coder>(&mut self, coder: &mut C, slot: usize, span: &Span) -> Option<Span> {
        let spans = self.spans;
        let (slot, [time, length, step]) = self.symbols.columns::<3>(slot)?;
        let form = slot.symbol.form;
        if form & (NEXT_STEP | OTHER_STEP) != 0 {
            let one_on = self.step.wrapping_add(1);
            self.step = if form & NEXT_STEP != 0 { one_on } else { coder.delta(step, self.step, span.step.0) };
        }
        let less = |to: u64, from: u64| to.wrapping_sub(from) as i64;
        let (start_ns, end_ns) = if form & FROM_END == 0 {
            let values = (less(span.start_ns, self.t_ns), less(span.end_ns, span.start_ns));
            let (dt, duration) = coder.pair(time, length, values);
            let start_ns = self.t_ns.wrapping_add_signed(dt);
            (start_ns, start_ns.wrapping_add_signed(duration))
        } else {
            let guess_ns = self.starts[spans.wrapping_sub(slot.enclosed as usize) % STARTS];
            let values = (less(span.end_ns, self.t_ns), less(span.start_ns, guess_ns));
            let (dt, off) = coder.pair(time, length, values);
            let (start_ns, end_ns) = (guess_ns.wrapping_add_signed(off), self.t_ns.wrapping_add_signed(dt));
            slot.enclosed = enclosed(&self.starts, spans, start_ns, &mut self.comparisons);
            (start_ns, end_ns)
        };
        self.starts[spans % STARTS] = start_ns;
        self.spans = spans.wrapping_add(1);
        self.comparisons = (self.comparisons + COMPARISONS_PER_SPAN).min(MAX_COMPARISONS);
        if self.first_start_ns == 0 {
            self.first_start_ns = start_ns;
        }
        self.t_ns = end_ns;
        let name = NameId(slot.symbol.id);
        Some(Span { name, start_ns: start_ns.min(end_ns), end_ns, step: StepId(self.step) })
    }

    pub(super) fn sample<C: Coder>(&mut self, coder: &mut C, slot: usize, sample: &Sample) -> Option<Sample> {
        let (slot, [time, readings @ ..]) = self.symbols.columns::<5>(slot)?;
        let tick_ns: i64 = if slot.symbol.form & MICROSECONDS != 0 { 1_000 } else { 1 };
        let dt = sample.t_ns.wrapping_sub(self.t_ns) as i64 / tick_ns;
        self.t_ns = self.t_ns.wrapping_add(coder.number(time, dt).wrapping_mul(tick_ns) as u64);
        let unit = UNITS[usize::from(slot.symbol.form & UNIT_MASK)];
        let value = reading(coder, readings, sample.value / unit).wrapping_mul(unit);
        Some(Sample { signal: SignalId(slot.symbol.id), t_ns: self.t_ns, value })
    }

    pub(super) fn step<C: Coder>(&mut self, coder: &mut C, slot: usize, step: &Step) -> Option<Step> {
        let (slot, columns) = self.symbols.columns::<13>(slot)?;
        let (form, is_traced) = (slot.symbol.form, slot.symbol.kind == TRACED_STEP);
        let [end, start, loss, others @ ..] = columns;
        let (usages, others) = others.split_first_chunk_mut::<4>()?;
        let shapes = others.first_chunk_mut::<6>()?;
        let before_ns = self.t_ns;
        self.t_ns = coder.delta(end, before_ns, step.end_ns);
        let guess_ns = if self.first_start_ns > 0 { self.first_start_ns } else { before_ns };
        self.first_start_ns = 0;
        let start_ns = coder.delta(start, guess_ns, step.start_ns);
        let ordinal = Some(step.step.0.wrapping_sub(self.step));
        let BatchShape { graphs, nodes, edges, seeds } = step.batch;
        let known = [ordinal, Some(step.epoch), graphs, nodes, edges, seeds].map(|value| value.unwrap_or(0) as i64);
        let values = coder.group(shapes, known).map(|value| value as u64);
        self.step = self.step.wrapping_add(values[0]);
        let part = |index: usize| (form >> index & 1 == 1).then_some(values[index + 2]);
        let batch = BatchShape { graphs: part(0), nodes: part(1), edges: part(2), seeds: part(3) };
        let usage = if form & HAS_USAGE != 0 { Some(usage(coder, usages, step.usage)) } else { None };
        let loss = real(coder, loss, form >> LOSS_SHIFT, step.loss);
        let (end_ns, epoch, start_ns) = (self.t_ns, values[1], start_ns.min(self.t_ns));
        Some(Step { step: StepId(self.step), epoch, start_ns, end_ns, batch, loss, usage, is_traced })
    }

    /// The slot, its numbers except the first, and the time that the first one encodes.
    fn timed<const N: usize, C: Coder>(
        &mut self,
        coder: &mut C,
        slot: usize,
        t_ns: u64,
    ) -> Option<(&mut Slot, &mut [Number; N], u64)> {
        let (slot, columns) = self.symbols.columns::<N>(slot)?;
        self.t_ns = coder.delta(&mut columns[0], self.t_ns, t_ns);
        Some((slot, columns, self.t_ns))
    }

    pub(super) fn counter<C: Coder>(&mut self, coder: &mut C, slot: usize, counter: &Counter) -> Option<Counter> {
        let (slot, [_, value], t_ns) = self.timed::<2, C>(coder, slot, counter.t_ns)?;
        let value = real(coder, value, slot.symbol.form, Some(counter.value))?;
        Some(Counter { name: NameId(slot.symbol.id), t_ns, value })
    }

    pub(super) fn mark<C: Coder>(&mut self, coder: &mut C, slot: usize, mark: &Mark) -> Option<Mark> {
        let (slot, [_, value, took], t_ns) = self.timed::<3, C>(coder, slot, mark.t_ns)?;
        let form = slot.symbol.form;
        let value = real(coder, value, form & NUMBER_MASK, mark.value);
        let took_ns = (form & HAS_DURATION != 0).then(|| coder.unsigned(took, mark.took_ns.unwrap_or(0)));
        Some(Mark { name: NameId(slot.symbol.id), t_ns, value, took_ns })
    }

    pub(super) fn stack_frame<C: Coder>(&mut self, coder: &mut C, slot: usize, it: &StackFrame) -> Option<StackFrame> {
        let (slot, [_, depth], t_ns) = self.timed::<2, C>(coder, slot, it.t_ns)?;
        let depth = u32::try_from(coder.number(depth, i64::from(it.depth))).ok()?;
        let thread = StackThread::from_code(slot.symbol.form);
        Some(StackFrame { name: NameId(slot.symbol.id), t_ns, depth, thread })
    }

    pub(super) fn stack_sample<C: Coder>(
        &mut self,
        coder: &mut C,
        slot: usize,
        it: &StackSample,
    ) -> Option<StackSample> {
        let (slot, [_, count], t_ns) = self.timed::<2, C>(coder, slot, it.t_ns)?;
        let (path, is_repeat) = (NameId(slot.symbol.id), slot.symbol.form == IS_REPEAT);
        Some(StackSample { path, t_ns, count: coder.unsigned(count, it.count), is_repeat })
    }

    pub(super) fn rival<C: Coder>(&mut self, coder: &mut C, slot: usize, it: &Rival) -> Option<Rival> {
        let (slot, [_, cores, pid], t_ns) = self.timed::<3, C>(coder, slot, it.t_ns)?;
        let form = slot.symbol.form;
        let cores = real(coder, cores, form & NUMBER_MASK, Some(it.cores))?;
        let number = (form & HAS_PID != 0).then(|| coder.steady(pid, i64::from(it.pid.unwrap_or(0))));
        let pid = number.map(u32::try_from).transpose().ok()?;
        Some(Rival { name: NameId(slot.symbol.id), t_ns, pid, cores })
    }

    pub(super) fn open<C: Coder>(&mut self, coder: &mut C, slot: usize, open: &Open) -> Option<Open> {
        let block_step = self.step;
        let (slot, [_, since, step], t_ns) = self.timed::<3, C>(coder, slot, open.t_ns)?;
        let since_ns = coder.delta(since, t_ns, open.since_ns);
        let step = StepId(coder.delta(step, block_step, open.step.0));
        Some(Open { name: NameId(slot.symbol.id), since_ns, t_ns, step })
    }

    pub(super) fn absent<C: Coder>(&mut self, coder: &mut C, slot: usize, absent: &Absent) -> Option<Absent> {
        let (slot, [_, reason], t_ns) = self.timed::<2, C>(coder, slot, absent.t_ns)?;
        let reason = coder.steady(reason, i64::from(absent.reason.0));
        Some(Absent { signal: SignalId(slot.symbol.id), t_ns, reason: NameId(u32::try_from(reason).ok()?) })
    }

    pub(super) fn allocation<C: Coder>(&mut self, coder: &mut C, slot: usize, it: &Allocation) -> Option<Allocation> {
        let before = self.live_bytes;
        let (slot, [_, bytes, live], t_ns) = self.timed::<3, C>(coder, slot, it.t_ns)?;
        let bytes = coder.number(bytes, it.bytes);
        let live_bytes = coder.delta(live, before.wrapping_add_signed(bytes), it.live_bytes);
        let phase = NameId(slot.symbol.id);
        self.live_bytes = live_bytes;
        Some(Allocation { phase, t_ns, bytes, live_bytes })
    }

    pub(super) fn phase_memory<C: Coder>(
        &mut self,
        coder: &mut C,
        slot: usize,
        it: &PhaseMemory,
    ) -> Option<PhaseMemory> {
        let before = self.live_bytes;
        let (slot, [_, numbers @ ..], t_ns) = self.timed::<7, C>(coder, slot, it.t_ns)?;
        let [allocated, allocations, freed, frees, live, peak] = numbers;
        let allocated_bytes = coder.unsigned(allocated, it.allocated_bytes);
        let allocated_count = coder.unsigned(allocations, it.allocated_count);
        let freed_bytes = coder.delta(freed, allocated_bytes, it.freed_bytes);
        let freed_count = coder.delta(frees, allocated_count, it.freed_count);
        let live_bytes = coder.delta(live, before, it.live_bytes);
        let peak_bytes = coder.unsigned(peak, it.peak_bytes);
        let phase = NameId(slot.symbol.id);
        self.live_bytes = live_bytes;
        Some(PhaseMemory {
            phase,
            t_ns,
            allocated_bytes,
            allocated_count,
            freed_bytes,
            freed_count,
            live_bytes,
            peak_bytes,
        })
    }

    pub(super) fn device_span<C: Coder>(&mut self, coder: &mut C, slot: usize, it: &DeviceSpan) -> Option<DeviceSpan> {
        let block_step = self.step;
        let (slot, [_, length, issued, issuing, error, step], end_ns) = self.timed::<6, C>(coder, slot, it.end_ns)?;
        let start_ns = coder.delta(length, end_ns, it.start_ns).min(end_ns);
        let issued_start_ns = coder.delta(issued, start_ns, it.issued_start_ns);
        let issued_end_ns = coder.delta(issuing, issued_start_ns, it.issued_end_ns);
        let error_ns = coder.unsigned(error, it.error_ns);
        let step = coder.delta(step, block_step, it.step.0);
        let name = NameId(slot.symbol.id);
        self.step = step;
        let (issued_start_ns, step) = (issued_start_ns.min(issued_end_ns), StepId(step));
        Some(DeviceSpan { name, start_ns, end_ns, error_ns, issued_start_ns, issued_end_ns, step })
    }
}

/// How many of the last spans began at this time or later; at least 1.
#[inline]
fn enclosed(starts: &[u64; STARTS], spans: usize, start_ns: u64, looks: &mut u32) -> u32 {
    let mut back = 1;
    while back < STARTS && back <= spans && *looks > 0 && starts[(spans - back) % STARTS] >= start_ns {
        back += 1;
        *looks -= 1;
    }
    // The last of those that began within it.
    (back - 1).max(1) as u32
}

/// A reading of a signal. Expected is either the average of the readings or the last one plus the trend, whichever was
/// closer recently.
fn reading<C: Coder>(coder: &mut C, columns: &mut [Number; 4], reading: i64) -> i64 {
    let [value, trend, last, score] = columns;
    let is_first = last.is_fresh();
    let going_on = last.expected.wrapping_add(trend.expected);
    let mut column = *value;
    if score.expected > 0 {
        column.expected = going_on;
    }
    let reading = coder.number(&mut column, reading);
    let (off, on) = (reading.abs_diff(value.expected), reading.abs_diff(going_on));
    let closer = off.min(MAX_SCORE) as i64 - on.min(MAX_SCORE) as i64;
    column.expected = value.expected.wrapping_add(reading.wrapping_sub(value.expected) >> 1);
    *value = column;
    if is_first {
        // A reading's size does not predict how much it changes.
        value.restart(reading);
    } else {
        let change = reading.wrapping_sub(last.expected);
        let before = if trend.is_fresh() { change } else { trend.expected };
        trend.begin(before.wrapping_add(change.wrapping_sub(before) >> 1), 0);
        score.expected += closer - score.expected / 4;
    }
    last.begin(reading, 0);
    reading
}

fn usage<C: Coder>(coder: &mut C, columns: &mut [Number; 4], usage: Option<ThreadUsage>) -> ThreadUsage {
    let u = usage.unwrap_or_default();
    let known = [u.minor_faults, u.major_faults, u.voluntary_switches, u.involuntary_switches];
    let values = coder.group(columns, known.map(|value| value as i64)).map(|value| value as u64);
    let [minor_faults, major_faults, voluntary_switches, involuntary_switches] = values;
    ThreadUsage { minor_faults, major_faults, voluntary_switches, involuntary_switches }
}

/// A number of the kind given by the form.
fn real<C: Coder>(coder: &mut C, column: &mut Number, form: u8, value: Option<f64>) -> Option<f64> {
    let value = value.unwrap_or(0.0);
    match form {
        INTEGER => Some(coder.number(column, value as i64) as f64),
        F32 => Some(f64::from(f32::from_bits(coder.number(column, i64::from((value as f32).to_bits())) as u32))),
        F64 => Some(f64::from_bits(coder.unsigned(column, value.to_bits()))),
        _ => None,
    }
}
