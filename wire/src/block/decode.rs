//! Reads blocks.

use super::{
    BlockInfo, Context, FIRST_SIZED_TAG, MAX_BLOCK_LEN, NUMBER_F32, NUMBER_F64, NUMBER_INTEGER, NUMBER_NONE,
    TAG_ABSENT, TAG_ALLOCATION, TAG_COUNTER, TAG_MARK, TAG_OPEN, TAG_PHASE_MEMORY, TAG_SAMPLE, TAG_STEP,
    TAG_STEP_CHANGED,
};
use crate::event::{
    Absent, Allocation, BatchShape, Counter, Event, Mark, Open, PhaseMemory, Sample, Span, Step, ThreadUsage,
};
use crate::frame::{FLAG_LZ4, RawFrame};
use crate::ids::{NameId, SignalId, StepId, TrackId};
use crate::varint::{Cursor, Malformed};

/// Memory that decoding reuses from block to block; never more than [`MAX_BLOCK_LEN`] plus a small table.
#[derive(Debug, Default)]
pub struct Scratch {
    body: Vec<u8>,
    context: Context,
}

/// The events of a block, in the order in which they were written.
#[derive(Debug)]
pub struct Events<'a> {
    cursor: Cursor<'a>,
    context: &'a mut Context,
    left: u64,
}

/// Reads a block's header and opens its body; `None` where the block is malformed.
pub(crate) fn open<'a>(frame: RawFrame<'a>, scratch: &'a mut Scratch) -> Option<(BlockInfo, Events<'a>)> {
    let mut cursor = Cursor::new(frame.payload);
    let (info, raw_len) = header(&mut cursor).ok()?;
    let body = if frame.flags & FLAG_LZ4 == 0 {
        cursor.rest()
    } else {
        scratch.body.resize(raw_len, 0);
        let len = lz4_flex::block::decompress_into(cursor.rest(), &mut scratch.body).ok()?;
        &scratch.body[..len]
    };
    if body.len() != raw_len || info.count > raw_len as u64 {
        return None;
    }
    scratch.context.reset(info.base_ns);
    Some((info, Events { cursor: Cursor::new(body), context: &mut scratch.context, left: info.count }))
}

fn header(cursor: &mut Cursor<'_>) -> Result<(BlockInfo, usize), Malformed> {
    let info = BlockInfo {
        track: TrackId(cursor.u32()?),
        first_seq: cursor.u64()?,
        count: cursor.u64()?,
        dropped: cursor.u64()?,
        base_ns: cursor.u64()?,
    };
    let raw_len = cursor.u32()? as usize;
    if raw_len > MAX_BLOCK_LEN { Err(Malformed) } else { Ok((info, raw_len)) }
}

impl Iterator for Events<'_> {
    type Item = Event;

    /// The next event; `None` at the end, and at the first malformed byte of a block that passed its
    /// checksum (only a faulty writer makes one): [`Events::is_exhausted`] tells the two apart.
    #[inline]
    fn next(&mut self) -> Option<Event> {
        while self.left > 0 {
            match self.event() {
                Ok(event) => {
                    self.left -= 1;
                    if event.is_some() {
                        return event;
                    }
                }
                Err(Malformed) => return None,
            }
        }
        None
    }
}

impl Events<'_> {
    /// Whether every event that the block announced was read.
    pub fn is_exhausted(&self) -> bool {
        self.left == 0
    }

    /// The next event, `Ok(None)` for one of an unknown kind.
    #[inline]
    fn event(&mut self) -> Result<Option<Event>, Malformed> {
        let tag = self.cursor.u8()?;
        if tag < 0x80 {
            return self.span(tag).map(|span| Some(Event::Span(span)));
        }
        if tag == TAG_SAMPLE {
            return self.sample().map(|sample| Some(Event::Sample(sample)));
        }
        if tag < FIRST_SIZED_TAG {
            return Err(Malformed);
        }
        let len = self.cursor.u64()?;
        let payload = Cursor::new(self.cursor.take(len)?);
        self.sized(tag, payload)
    }

    #[inline]
    fn span(&mut self, tag: u8) -> Result<Span, Malformed> {
        let inline = u32::from(tag >> 1);
        let name = if inline > 0 { inline - 1 } else { self.cursor.u32()? };
        let end_ns = self.cursor.after(self.context.t_ns)?;
        let start_ns = end_ns.saturating_sub(self.cursor.u64()?);
        if tag & TAG_STEP_CHANGED != 0 {
            self.context.step = self.cursor.after(self.context.step)?;
        }
        self.context.t_ns = end_ns;
        Ok(Span { name: NameId(name), start_ns, end_ns, step: StepId(self.context.step) })
    }

    fn sample(&mut self) -> Result<Sample, Malformed> {
        let signal = SignalId(self.cursor.u32()?);
        let t_ns = self.cursor.after(self.context.t_ns)?;
        self.context.t_ns = t_ns;
        let delta = self.cursor.i64()?;
        let value = match self.context.value(signal) {
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
        if tag > TAG_PHASE_MEMORY {
            return Ok(None);
        }
        let name = NameId(p.u32()?);
        let t_ns = p.after(self.context.t_ns)?;
        self.context.t_ns = t_ns;
        Ok(Some(match tag {
            TAG_COUNTER => Event::Counter(Counter { name, t_ns, value: number(&mut p)?.ok_or(Malformed)? }),
            TAG_MARK => Event::Mark(Mark { name, t_ns, value: number(&mut p)? }),
            TAG_OPEN => Event::Open(Open { name, t_ns, since_ns: p.after(t_ns)?, step: StepId(p.u64()?) }),
            TAG_ABSENT => {
                let signal = SignalId(p.u32()?);
                if let Some(last) = self.context.value(signal) {
                    *last = 0;
                }
                Event::Absent(Absent { signal, t_ns, reason: name })
            }
            TAG_ALLOCATION => {
                Event::Allocation(Allocation { phase: name, t_ns, bytes: p.i64()?, live_bytes: p.u64()? })
            }
            _ => Event::PhaseMemory(PhaseMemory {
                phase: name,
                t_ns,
                allocated_bytes: p.u64()?,
                allocated_count: p.u64()?,
                freed_bytes: p.u64()?,
                freed_count: p.u64()?,
                live_bytes: p.u64()?,
                peak_bytes: p.u64()?,
            }),
        }))
    }

    fn step(&mut self, mut p: Cursor<'_>) -> Result<Step, Malformed> {
        let end_ns = p.after(self.context.t_ns)?;
        self.context.t_ns = end_ns;
        let start_ns = end_ns.saturating_sub(p.u64()?);
        self.context.step = p.after(self.context.step)?;
        let epoch = p.u64()?;
        let present = p.u8()?;
        let mut field = |bit: u8| (present >> bit & 1 == 1).then(|| p.u64()).transpose();
        let batch = BatchShape { graphs: field(0)?, nodes: field(1)?, edges: field(2)?, seeds: field(3)? };
        let usage = if present >> 4 & 1 == 1 { Some(thread_usage(&mut p)?) } else { None };
        let loss = number(&mut p)?;
        Ok(Step { step: StepId(self.context.step), epoch, start_ns, end_ns, batch, loss, usage })
    }
}

fn thread_usage(p: &mut Cursor<'_>) -> Result<ThreadUsage, Malformed> {
    Ok(ThreadUsage {
        minor_faults: p.u64()?,
        major_faults: p.u64()?,
        voluntary_switches: p.u64()?,
        involuntary_switches: p.u64()?,
    })
}

fn number(cursor: &mut Cursor<'_>) -> Result<Option<f64>, Malformed> {
    Ok(match cursor.u8()? {
        NUMBER_NONE => None,
        NUMBER_INTEGER => Some(cursor.i64()? as f64),
        NUMBER_F32 => Some(f64::from(f32::from_le_bytes(cursor.array()?))),
        NUMBER_F64 => Some(f64::from_le_bytes(cursor.array()?)),
        _ => return Err(Malformed),
    })
}
