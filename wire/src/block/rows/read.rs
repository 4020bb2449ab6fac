//! Reads rows.

use super::format::{
    FIRST_OTHER_TAG, FIRST_SIZED_TAG, HAS_USAGE, IS_TRACED, LastValues, NUMBER_F32, NUMBER_F64, NUMBER_INTEGER,
    NUMBER_NONE, SPAN_FROM_END, TAG_ABSENT, TAG_ALLOCATION, TAG_CHANGE_STEP, TAG_COUNTER, TAG_DEVICE_SPAN, TAG_MARK,
    TAG_OPEN, TAG_PHASE_MEMORY, TAG_RIVAL, TAG_SAMPLE, TAG_STACK_FRAME, TAG_STEP,
};
use crate::block::format::EventSink;
use crate::device_span::DeviceSpan;
use crate::event::{
    Absent, Allocation, BatchShape, Counter, Event, Mark, Open, Rival, Sample, Span, StackFrame, StackSample,
    StackThread, Step,
};
use crate::fields;
use crate::ids::{NameId, SignalId, StepId};
use crate::varint::{Cursor, Malformed, unzigzag};

/// The events of a block, decoded from its rows.
#[derive(Debug)]
pub(crate) struct RowsReader<'a> {
    cursor: Cursor<'a>,
    t_ns: u64,
    step: u64,
    values: &'a mut LastValues,
}

impl<'a> RowsReader<'a> {
    /// Opens a block.
    pub(crate) fn open(body: &'a [u8], base_ns: u64, values: &'a mut LastValues) -> Self {
        values.clear();
        Self { cursor: Cursor::new(body), t_ns: base_ns, step: 0, values }
    }
}

impl RowsReader<'_> {
    /// Passes on `left` events and counts them down.
    #[inline]
    pub(crate) fn decode_into(&mut self, left: &mut u64, sink: &mut impl EventSink) -> Result<(), Malformed> {
        while *left > 0 {
            let tag = self.cursor.u8()?;
            let event = if tag < FIRST_OTHER_TAG {
                let span = self.span(tag)?;
                sink.span(&span);
                None
            } else {
                self.other(tag)?
            };
            match &event {
                Some(Event::Span(span)) => sink.span(span),
                Some(other) => sink.other(other),
                None => (),
            }
            *left -= 1;
        }
        Ok(())
    }

    /// The next event; `None` if this version does not know its kind.
    #[inline]
    pub(crate) fn event(&mut self) -> Result<Option<Event>, Malformed> {
        let tag = self.cursor.u8()?;
        if tag >= FIRST_OTHER_TAG {
            return self.other(tag);
        }
        self.span(tag).map(|span| Some(Event::Span(span)))
    }

    #[inline]
    fn span(&mut self, tag: u8) -> Result<Span, Malformed> {
        let inline = u32::from(tag >> 1);
        let name = if inline > 0 { inline - 1 } else { self.cursor.u32()? };
        let (first, duration_ns) = self.cursor.u64_pair()?;
        let (start_ns, end_ns) = if tag & SPAN_FROM_END == 0 {
            let start_ns = self.t_ns.saturating_add(first);
            (start_ns, start_ns.saturating_add(duration_ns))
        } else {
            let end_ns = self.t_ns.wrapping_add(unzigzag(first) as u64);
            (end_ns.saturating_sub(duration_ns), end_ns)
        };
        self.t_ns = end_ns;
        Ok(Span { name: NameId(name), start_ns, end_ns, step: StepId(self.step) })
    }

    /// The next event if it is not a span, or the event after a change of step.
    fn other(&mut self, mut tag: u8) -> Result<Option<Event>, Malformed> {
        while tag == TAG_CHANGE_STEP {
            self.step = self.cursor.delta(self.step)?;
            tag = self.cursor.u8()?;
        }
        Ok(Some(match tag {
            ..FIRST_OTHER_TAG => Event::Span(self.span(tag)?),
            TAG_SAMPLE => Event::Sample(self.sample()?),
            FIRST_SIZED_TAG.. => {
                let len = self.cursor.u64()?;
                let payload = Cursor::new(self.cursor.take(len)?);
                return self.sized(tag, payload);
            }
            _ => return Err(Malformed),
        }))
    }

    fn sample(&mut self) -> Result<Sample, Malformed> {
        let signal = SignalId(self.cursor.u32()?);
        let t_ns = self.cursor.delta(self.t_ns)?;
        self.t_ns = t_ns;
        let delta = self.cursor.i64()?;
        let value = match self.values.get(signal) {
            Some(last) => {
                *last = last.wrapping_add(delta);
                *last
            }
            None => delta,
        };
        Ok(Sample { signal, t_ns, value })
    }

    fn sized(&mut self, tag: u8, mut p: Cursor<'_>) -> Result<Option<Event>, Malformed> {
        if tag == TAG_STEP {
            return self.step(p).map(|step| Some(Event::Step(step)));
        }
        if tag == TAG_DEVICE_SPAN {
            return self.device_span(p).map(|span| Some(Event::DeviceSpan(span)));
        }
        if tag > TAG_RIVAL {
            return Ok(None);
        }
        let name = NameId(p.u32()?);
        let t_ns = p.delta(self.t_ns)?;
        self.t_ns = t_ns;
        Ok(Some(match tag {
            TAG_COUNTER => Event::Counter(Counter { name, t_ns, value: read_number(&mut p)?.ok_or(Malformed)? }),
            TAG_MARK => {
                let value = read_number(&mut p)?;
                let took_ns = read_option(&mut p)?;
                Event::Mark(Mark { name, t_ns, value, took_ns })
            }
            TAG_OPEN => Event::Open(Open { name, t_ns, since_ns: p.delta(t_ns)?, step: StepId(p.u64()?) }),
            TAG_ABSENT => {
                let signal = SignalId(p.u32()?);
                if let Some(last) = self.values.get(signal) {
                    *last = 0;
                }
                Event::Absent(Absent { signal, t_ns, reason: name })
            }
            TAG_ALLOCATION => {
                Event::Allocation(Allocation { phase: name, t_ns, bytes: p.i64()?, live_bytes: p.u64()? })
            }
            TAG_PHASE_MEMORY => Event::PhaseMemory(fields::parse_memory(&mut p, name, t_ns)?),
            TAG_STACK_FRAME => {
                let (depth, thread) = (p.u32()?, StackThread::from_code(p.u8()?));
                Event::StackFrame(StackFrame { name, t_ns, depth, thread })
            }
            TAG_RIVAL => {
                let cores = read_number(&mut p)?.ok_or(Malformed)?;
                let pid = read_option(&mut p)?.map(u32::try_from).transpose().map_err(|_| Malformed)?;
                Event::Rival(Rival { name, t_ns, pid, cores })
            }
            _ => Event::StackSample(StackSample { path: name, t_ns, count: p.u64()?, is_repeat: p.u8()? != 0 }),
        }))
    }

    fn device_span(&self, mut p: Cursor<'_>) -> Result<DeviceSpan, Malformed> {
        let name = NameId(p.u32()?);
        let end_ns = p.delta(self.t_ns)?;
        let start_ns = end_ns.saturating_sub(p.u64()?);
        let issued_start_ns = p.delta(start_ns)?;
        let issued_end_ns = issued_start_ns.saturating_add(p.u64()?);
        let error_ns = p.u64()?;
        let step = StepId(p.delta(self.step)?);
        Ok(DeviceSpan { name, start_ns, end_ns, error_ns, issued_start_ns, issued_end_ns, step })
    }

    fn step(&mut self, mut p: Cursor<'_>) -> Result<Step, Malformed> {
        let end_ns = p.delta(self.t_ns)?;
        self.t_ns = end_ns;
        let start_ns = end_ns.saturating_sub(p.u64()?);
        self.step = p.delta(self.step)?;
        let epoch = p.u64()?;
        let present = p.u8()?;
        let mut field = |bit: u8| (present >> bit & 1 == 1).then(|| p.u64()).transpose();
        let batch = BatchShape { graphs: field(0)?, nodes: field(1)?, edges: field(2)?, seeds: field(3)? };
        let usage = if present & HAS_USAGE != 0 { Some(fields::parse_usage(&mut p)?) } else { None };
        let loss = read_number(&mut p)?;
        let is_traced = present & IS_TRACED != 0;
        Ok(Step { step: StepId(self.step), epoch, start_ns, end_ns, batch, loss, usage, is_traced })
    }
}

fn read_option(cursor: &mut Cursor<'_>) -> Result<Option<u64>, Malformed> {
    if cursor.u8()? == 0 { Ok(None) } else { cursor.u64().map(Some) }
}

fn read_number(cursor: &mut Cursor<'_>) -> Result<Option<f64>, Malformed> {
    Ok(match cursor.u8()? {
        NUMBER_NONE => None,
        NUMBER_INTEGER => Some(cursor.i64()? as f64),
        NUMBER_F32 => Some(f64::from(f32::from_le_bytes(cursor.array()?))),
        NUMBER_F64 => Some(f64::from_le_bytes(cursor.array()?)),
        _ => return Err(Malformed),
    })
}
