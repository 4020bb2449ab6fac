//! Reads a block's bits.

use super::bits::BitReader;
use super::coder::Coder;
use super::layout::{
    ABSENT, ALLOCATION, COLUMNS, COUNTER, DEVICE_SPAN, FIRST_SIZED, MARK, Model, OPEN, PHASE_MEMORY, RIVAL, SAMPLE,
    SPAN, STACK_FRAME, STACK_SAMPLE, STEP, TRACED_STEP, TRACKS_KEPT,
};
use super::symbols::Symbol;
use crate::block::format::EventSink;
use crate::device_span::DeviceSpan;
use crate::event::{
    Absent, Allocation, Counter, Event, Mark, Open, PhaseMemory, Rival, Sample, Span, StackFrame, StackSample, Step,
};
use crate::frame::{FLAG_CONTINUES, RawFrame};
use crate::ids::{NameId, SignalId, StepId, TrackId};
use crate::varint::{Cursor, Malformed};

/// What is known of each track for its next block: of those whose blocks continue one another, and one for all others.
#[derive(Debug, Default)]
pub(crate) struct Unpackers(Vec<Unpacker>);

#[derive(Debug, Default)]
struct Unpacker {
    model: Model,
    /// The checksum of the block that the model is of, once all of it was read.
    last: Option<u32>,
}

/// The events of a block, decoded from its bits.
#[derive(Debug)]
pub(crate) struct Unpacking<'a> {
    bits: BitReader<'a>,
    model: &'a mut Model,
    last: &'a mut Option<u32>,
    /// The block's checksum, if another may continue it.
    crc: Option<u32>,
}

impl Unpackers {
    /// Opens the block of a packed frame whose header was read up to the base time; returns that and the events. `None` if
    /// it is malformed, or continues a block that was not read just before.
    pub(crate) fn open<'a>(
        &'a mut self,
        frame: RawFrame<'a>,
        track: TrackId,
        mut rest: Cursor<'a>,
    ) -> Option<(u64, Unpacking<'a>)> {
        let at = track.0.min(TRACKS_KEPT) as usize;
        if self.0.len() <= at {
            self.0.resize_with(at + 1, Unpacker::default);
        }
        let Unpacker { model, last } = self.0.get_mut(at)?;
        let known = last.take();
        let base_ns = if frame.flags & FLAG_CONTINUES != 0 {
            known.filter(|known| rest.array().is_ok_and(|crc| u32::from_le_bytes(crc) == *known))?;
            model.t_ns.wrapping_add_signed(rest.i64().ok()?)
        } else {
            let base_ns = rest.u64().ok()?;
            model.clear(base_ns);
            base_ns
        };
        let crc = (track.0 < TRACKS_KEPT).then_some(frame.crc);
        Some((base_ns, Unpacking { bits: BitReader::new(rest.rest()), model, last, crc }))
    }
}

const NO_SPAN: Span = Span { name: NameId::NONE, start_ns: 0, end_ns: 0, step: StepId::NONE };
const NO_SAMPLE: Sample = Sample { signal: SignalId(0), t_ns: 0, value: 0 };
const NO_COUNTER: Counter = Counter { name: NameId::NONE, t_ns: 0, value: 0.0 };
const NO_OPEN: Open = Open { name: NameId::NONE, since_ns: 0, t_ns: 0, step: StepId::NONE };
const NO_ABSENCE: Absent = Absent { signal: SignalId(0), t_ns: 0, reason: NameId::NONE };
const NO_ALLOCATION: Allocation = Allocation { phase: NameId::NONE, t_ns: 0, bytes: 0, live_bytes: 0 };
const NO_DEVICE_SPAN: DeviceSpan = DeviceSpan {
    name: NameId::NONE,
    start_ns: 0,
    end_ns: 0,
    error_ns: 0,
    issued_start_ns: 0,
    issued_end_ns: 0,
    step: StepId::NONE,
};

impl Unpacking<'_> {
    /// The length of the bits in bytes.
    pub(crate) fn body_len(&self) -> usize {
        self.bits.bytes_len()
    }

    /// Reads the `left` events that nobody asked for, so that the next block can continue this one.
    pub(crate) fn close(&mut self, left: u64) {
        if self.crc.is_some() && (0..left).all(|_| self.event().is_ok()) {
            *self.last = self.crc;
        }
    }

    /// Passes on `left` events and counts them down.
    #[inline]
    pub(crate) fn decode_into(&mut self, left: &mut u64, sink: &mut impl EventSink) -> Result<(), Malformed> {
        while *left > 0 {
            let slot = self.symbol()?;
            if self.model.symbols.get(slot).is_some_and(|slot| slot.symbol.kind == SPAN) {
                let span = self.model.span(&mut self.bits, slot, &NO_SPAN).ok_or(Malformed)?;
                if self.bits.is_past_end() {
                    return Err(Malformed);
                }
                sink.span(&span);
            } else {
                let event = self.fields(slot)?;
                if self.bits.is_past_end() {
                    return Err(Malformed);
                }
                event.iter().for_each(|event| sink.other(event));
            }
            *left -= 1;
        }
        Ok(())
    }

    /// The next event; `None` if this version does not know its kind.
    #[inline]
    pub(crate) fn event(&mut self) -> Result<Option<Event>, Malformed> {
        let slot = self.symbol()?;
        let event = self.fields(slot)?;
        if self.bits.is_past_end() { Err(Malformed) } else { Ok(event) }
    }

    #[inline]
    fn symbol(&mut self) -> Result<usize, Malformed> {
        let expected = self.model.symbols.expected();
        let slot = if self.bits.take(1) == 1 { expected } else { self.other_symbol(expected)? };
        self.model.symbols.record_occurrence(slot);
        Ok(slot)
    }

    fn other_symbol(&mut self, expected: usize) -> Result<usize, Malformed> {
        if self.bits.flag(false) {
            let hop = self.bits.number(&mut self.model.symbols.hop, 0);
            let slot = expected as i64 + hop.clamp(-1 << 20, 1 << 20);
            return usize::try_from(slot).ok().filter(|&slot| self.model.symbols.get(slot).is_some()).ok_or(Malformed);
        }
        let symbols = &mut self.model.symbols;
        let symbol = symbols.new_symbol(&mut self.bits, Symbol::default()).ok_or(Malformed)?;
        Ok(symbols.introduce(symbol, COLUMNS[usize::from(symbol.kind)]))
    }

    #[inline]
    fn fields(&mut self, slot: usize) -> Result<Option<Event>, Malformed> {
        let (model, bits) = (&mut *self.model, &mut self.bits);
        let event = match model.symbols.get(slot).ok_or(Malformed)?.symbol.kind {
            SPAN => model.span(bits, slot, &NO_SPAN).map(Event::Span),
            SAMPLE => model.sample(bits, slot, &NO_SAMPLE).map(Event::Sample),
            STEP | TRACED_STEP => model.step(bits, slot, &Step::default()).map(Event::Step),
            COUNTER => model.counter(bits, slot, &NO_COUNTER).map(Event::Counter),
            MARK => model.mark(bits, slot, &Mark::default()).map(Event::Mark),
            OPEN => model.open(bits, slot, &NO_OPEN).map(Event::Open),
            ABSENT => model.absent(bits, slot, &NO_ABSENCE).map(Event::Absent),
            ALLOCATION => model.allocation(bits, slot, &NO_ALLOCATION).map(Event::Allocation),
            PHASE_MEMORY => model.phase_memory(bits, slot, &PhaseMemory::default()).map(Event::PhaseMemory),
            DEVICE_SPAN => model.device_span(bits, slot, &NO_DEVICE_SPAN).map(Event::DeviceSpan),
            STACK_FRAME => model.stack_frame(bits, slot, &StackFrame::default()).map(Event::StackFrame),
            STACK_SAMPLE => model.stack_sample(bits, slot, &StackSample::default()).map(Event::StackSample),
            RIVAL => model.rival(bits, slot, &Rival::default()).map(Event::Rival),
            FIRST_SIZED.. => {
                let (_, [length]) = model.symbols.columns::<1>(slot).ok_or(Malformed)?;
                let bytes = bits.number(length, 0);
                let bytes = usize::try_from(bytes).map_err(|_| Malformed)?;
                bits.skip_bytes(bytes);
                return Ok(None);
            }
        };
        event.map(Some).ok_or(Malformed)
    }
}
