//! Writes a block's bits.

use std::collections::HashMap;

use super::bits::BitWriter;
use super::coder::Coder;
use super::layout::{
    ABSENT, ALLOCATION, COLUMNS, COUNTER, DEVICE_SPAN, F32, F64, FROM_END, HAS_DURATION, HAS_PID, HAS_USAGE, INTEGER,
    IS_REPEAT, LOSS_SHIFT, MARK, MAX_CONTINUED, MICROSECONDS, Model, NEXT_STEP, NO_NUMBER, OPEN, OTHER_STEP,
    PHASE_MEMORY, RIVAL, SAMPLE, SPAN, STACK_FRAME, STACK_SAMPLE, STEP, TRACED_STEP, TRACKS_KEPT, UNIT_MASK, UNITS,
};
use super::symbols::Symbol;
use crate::event::{Event, Mark, Rival, Sample, Span, Step};
use crate::frame::{self, FLAG_CONTINUES, FLAG_PACKED, FrameKind};
use crate::ids::SignalId;
use crate::varint::{put_i64, put_u64};

/// Collects the events of a block as bits.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    bits: BitWriter,
    model: Model,
    /// The checksum of the last block, unless the next one must start fresh.
    last: Option<u32>,
    /// That of the block which this one continues, and the time at its end.
    before: Option<(u32, u64)>,
    /// Blocks since one started fresh.
    continued: u32,
    slots: HashMap<Symbol, usize>,
    /// By signal: the form of its samples so far.
    forms: HashMap<SignalId, u8>,
}

impl Packer {
    /// Whole bytes collected.
    pub(crate) fn len(&self) -> usize {
        self.bits.len()
    }

    /// Begins a block.
    pub(crate) fn start(&mut self, base_ns: u64) {
        self.bits.clear();
        let last = self.last.take().filter(|_| self.continued < MAX_CONTINUED);
        self.before = last.map(|crc| (crc, self.model.t_ns));
        self.continued += 1;
        if self.before.is_none() {
            self.continued = 0;
            self.model.clear(base_ns);
            self.slots.clear();
            self.forms.clear();
        }
    }

    /// Makes the next block start fresh.
    pub(crate) fn begin_again(&mut self) {
        self.last = None;
    }

    /// Appends the block, of this track, first number, count, drops and base time.
    pub(crate) fn finish(&mut self, [track, numbers @ .., base_ns]: [u64; 5], out: &mut Vec<u8>) {
        let continues = if self.before.is_some() { FLAG_CONTINUES } else { 0 };
        let crc = frame::put(out, FrameKind::BLOCK, FLAG_PACKED | continues, |out| {
            put_u64(out, track);
            numbers.into_iter().for_each(|number| put_u64(out, number));
            match self.before {
                Some((crc, end_ns)) => {
                    out.extend_from_slice(&crc.to_le_bytes());
                    put_i64(out, base_ns.wrapping_sub(end_ns) as i64);
                }
                None => put_u64(out, base_ns),
            }
            out.extend_from_slice(self.bits.finish());
        });
        self.last = (track < TRACKS_KEPT as u64).then_some(crc);
    }

    /// Adds an event.
    #[inline]
    pub(crate) fn push(&mut self, event: &Event) {
        let symbol = self.symbol(event);
        let slot = self.put_symbol(symbol);
        let (model, bits) = (&mut self.model, &mut self.bits);
        let is_written = match event {
            Event::Span(span) => model.span(bits, slot, span).is_some(),
            Event::Sample(sample) => model.sample(bits, slot, sample).is_some(),
            Event::Step(step) => model.step(bits, slot, step).is_some(),
            Event::Counter(counter) => model.counter(bits, slot, counter).is_some(),
            Event::Mark(mark) => model.mark(bits, slot, mark).is_some(),
            Event::Open(open) => model.open(bits, slot, open).is_some(),
            Event::Absent(absent) => model.absent(bits, slot, absent).is_some(),
            Event::Allocation(allocation) => model.allocation(bits, slot, allocation).is_some(),
            Event::PhaseMemory(memory) => model.phase_memory(bits, slot, memory).is_some(),
            Event::DeviceSpan(span) => model.device_span(bits, slot, span).is_some(),
            Event::StackFrame(frame) => model.stack_frame(bits, slot, frame).is_some(),
            Event::StackSample(sample) => model.stack_sample(bits, slot, sample).is_some(),
            Event::Rival(rival) => model.rival(bits, slot, rival).is_some(),
        };
        debug_assert!(is_written, "its symbol has all its columns");
    }

    #[inline]
    fn symbol(&mut self, event: &Event) -> Symbol {
        let (kind, form, id) = match event {
            Event::Span(span) => (SPAN, self.span_form(span), span.name.0),
            Event::Sample(sample) => (SAMPLE, self.sample_form(sample), sample.signal.0),
            Event::Step(step) => (if step.is_traced { TRACED_STEP } else { STEP }, step_form(step), 0),
            Event::Counter(counter) => (COUNTER, number_form(Some(counter.value)), counter.name.0),
            Event::Mark(mark) => (MARK, mark_form(mark), mark.name.0),
            Event::Open(open) => (OPEN, 0, open.name.0),
            Event::Absent(absent) => (ABSENT, 0, absent.signal.0),
            Event::Allocation(allocation) => (ALLOCATION, 0, allocation.phase.0),
            Event::PhaseMemory(memory) => (PHASE_MEMORY, 0, memory.phase.0),
            Event::DeviceSpan(span) => (DEVICE_SPAN, 0, span.name.0),
            Event::StackFrame(frame) => (STACK_FRAME, frame.thread as u8, frame.name.0),
            Event::StackSample(sample) => (STACK_SAMPLE, if sample.is_repeat { IS_REPEAT } else { 0 }, sample.path.0),
            Event::Rival(rival) => (RIVAL, rival_form(rival), rival.name.0),
        };
        Symbol { kind, form, id }
    }

    #[inline]
    fn span_form(&self, span: &Span) -> u8 {
        let step = match span.step.0.wrapping_sub(self.model.step) {
            0 => 0,
            1 => NEXT_STEP,
            _ => OTHER_STEP,
        };
        step | if span.start_ns < self.model.t_ns { FROM_END } else { 0 }
    }

    /// The signal's previous form if it fits this sample; otherwise the form with the largest unit that fits.
    fn sample_form(&mut self, sample: &Sample) -> u8 {
        let dt = sample.t_ns.wrapping_sub(self.model.t_ns) as i64;
        let fits = |index: usize| sample.value % UNITS[index] == 0;
        let time_form = if dt % 1_000 == 0 { MICROSECONDS } else { 0 };
        match self.forms.get(&sample.signal) {
            Some(&form) if fits(usize::from(form & UNIT_MASK)) && form & MICROSECONDS <= time_form => form,
            _ => {
                let unit = (0..UNITS.len()).rfind(|&index| fits(index)).unwrap_or(0);
                let form = unit as u8 | time_form;
                self.forms.insert(sample.signal, form);
                form
            }
        }
    }

    /// Writes which symbol comes, in one bit if it is the expected one.
    #[inline]
    fn put_symbol(&mut self, symbol: Symbol) -> usize {
        let expected = self.model.symbols.expected();
        let slot = match self.model.symbols.get(expected) {
            Some(slot) if slot.symbol == symbol => {
                self.bits.put(1, 1);
                expected
            }
            _ => self.put_other_symbol(symbol, expected),
        };
        self.model.symbols.record_occurrence(slot);
        slot
    }

    fn put_other_symbol(&mut self, symbol: Symbol, expected: usize) -> usize {
        let (symbols, bits) = (&mut self.model.symbols, &mut self.bits);
        // A symbol that was replaced is new again.
        let known =
            self.slots.get(&symbol).copied().filter(|&slot| symbols.get(slot).is_some_and(|it| it.symbol == symbol));
        if let Some(slot) = known {
            bits.put(0b10, 2);
            bits.number(&mut symbols.hop, slot as i64 - expected as i64);
            return slot;
        }
        bits.put(0b00, 2);
        symbols.new_symbol(bits, symbol);
        let slot = symbols.introduce(symbol, COLUMNS[usize::from(symbol.kind)]);
        self.slots.insert(symbol, slot);
        slot
    }
}

fn step_form(step: &Step) -> u8 {
    let batch = [step.batch.graphs, step.batch.nodes, step.batch.edges, step.batch.seeds];
    let present = (0..4).map(|bit| u8::from(batch[bit].is_some()) << bit).sum::<u8>();
    let usage = if step.usage.is_some() { HAS_USAGE } else { 0 };
    present | usage | number_form(step.loss) << LOSS_SHIFT
}

fn mark_form(mark: &Mark) -> u8 {
    number_form(mark.value) | if mark.took_ns.is_some() { HAS_DURATION } else { 0 }
}

fn rival_form(rival: &Rival) -> u8 {
    number_form(Some(rival.cores)) | if rival.pid.is_some() { HAS_PID } else { 0 }
}

/// The shortest kind of number that preserves all bits.
fn number_form(value: Option<f64>) -> u8 {
    let Some(value) = value else { return NO_NUMBER };
    let (integer, single) = (value as i64, value as f32);
    if (integer as f64).to_bits() == value.to_bits() && integer.unsigned_abs() < 1 << 53 {
        INTEGER
    } else if f64::from(single) == value && single.is_sign_negative() == value.is_sign_negative() {
        F32
    } else {
        // Also any NaN: its bits would not survive the conversion to f32.
        F64
    }
}
