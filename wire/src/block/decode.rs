//! Reads blocks.

use std::iter::FusedIterator;

use super::format::{
    BlockInfo, FIRST_OTHER_TAG, FIRST_SIZED_TAG, LastValues, MAX_BLOCK_LEN, NUMBER_F32, NUMBER_F64, NUMBER_INTEGER,
    NUMBER_NONE, SPAN_FROM_END, TAG_ABSENT, TAG_ALLOCATION, TAG_CHANGE_STEP, TAG_COUNTER, TAG_DEVICE_SPAN, TAG_MARK,
    TAG_OPEN, TAG_SAMPLE, TAG_STEP,
};
use super::work::Allowance;
use crate::device_span::DeviceSpan;
use crate::event::{
    Absent, Allocation, BatchShape, Counter, Event, Mark, Open, PhaseMemory, Sample, Span, Step, ThreadUsage,
};
use crate::frame::{FLAG_LZ4, RawFrame};
use crate::ids::{NameId, SignalId, StepId, TrackId};
use crate::varint::{Cursor, Malformed, unzigzag};

/// Memory that decoding reuses from block to block; never more than [`MAX_BLOCK_LEN`] plus a small table.
#[derive(Debug, Default)]
pub struct Scratch {
    /// As long as the longest body so far.
    body: Vec<u8>,
    values: LastValues,
}

/// The events of a block, in the order in which they were written.
#[derive(Debug)]
pub struct Events<'a> {
    cursor: Cursor<'a>,
    left: u64,
    t_ns: u64,
    step: u64,
    values: &'a mut LastValues,
}

/// Reads a block's header and opens its body; `None` where the block is malformed, or takes more work than is allowed.
pub(crate) fn open<'a>(
    frame: RawFrame<'a>,
    scratch: &'a mut Scratch,
    allowance: &mut Allowance,
) -> Option<(BlockInfo, Events<'a>)> {
    let mut cursor = Cursor::new(frame.payload);
    let (info, raw_len) = header(&mut cursor).ok()?;
    // The shortest event takes two bytes, so a count beyond the length is a lie.
    if info.count > raw_len as u64 {
        return None;
    }
    allowance.spend(info.count, raw_len)?;
    let body = if frame.flags & FLAG_LZ4 == 0 {
        cursor.rest()
    } else {
        if scratch.body.len() < raw_len {
            scratch.body.resize(raw_len, 0);
        }
        let room = &mut scratch.body[..raw_len];
        let len = lz4_flex::block::decompress_into(cursor.rest(), room).ok()?;
        &room[..len]
    };
    if body.len() != raw_len {
        return None;
    }
    scratch.values.clear();
    let (left, t_ns) = (info.count, info.base_ns);
    Some((info, Events { cursor: Cursor::new(body), left, t_ns, step: 0, values: &mut scratch.values }))
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

    /// The next event; `None` at the end, and from the first malformed byte on in a block that passed its
    /// checksum (only a faulty writer makes one): [`Events::is_exhausted`] tells the two apart.
    #[inline]
    fn next(&mut self) -> Option<Event> {
        if self.left == 0 {
            return None;
        }
        self.event().unwrap_or_else(|Malformed| {
            self.cursor = Cursor::new(&[]);
            None
        })
    }
}

impl FusedIterator for Events<'_> {}

impl Events<'_> {
    /// Whether every event that the block announced was read.
    pub fn is_exhausted(&self) -> bool {
        self.left == 0
    }

    #[inline]
    fn event(&mut self) -> Result<Option<Event>, Malformed> {
        let tag = self.cursor.u8()?;
        if tag >= FIRST_OTHER_TAG {
            return self.other(tag);
        }
        let span = self.span(tag)?;
        self.left -= 1;
        Ok(Some(Event::Span(span)))
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

    /// The next event where it is not a span, or the one after a change of step or after unknown events.
    fn other(&mut self, mut tag: u8) -> Result<Option<Event>, Malformed> {
        loop {
            let event = match tag {
                ..FIRST_OTHER_TAG => Some(Event::Span(self.span(tag)?)),
                TAG_SAMPLE => Some(Event::Sample(self.sample()?)),
                TAG_CHANGE_STEP => {
                    self.step = self.cursor.after(self.step)?;
                    tag = self.cursor.u8()?;
                    continue;
                }
                FIRST_SIZED_TAG.. => {
                    let len = self.cursor.u64()?;
                    let payload = Cursor::new(self.cursor.take(len)?);
                    self.sized(tag, payload)?
                }
                _ => return Err(Malformed),
            };
            self.left -= 1;
            if event.is_some() || self.left == 0 {
                return Ok(event);
            }
            tag = self.cursor.u8()?;
        }
    }

    fn sample(&mut self) -> Result<Sample, Malformed> {
        let signal = SignalId(self.cursor.u32()?);
        let t_ns = self.cursor.after(self.t_ns)?;
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
        if tag > TAG_DEVICE_SPAN {
            return Ok(None);
        }
        let name = NameId(p.u32()?);
        let t_ns = p.after(self.t_ns)?;
        self.t_ns = t_ns;
        Ok(Some(match tag {
            TAG_COUNTER => Event::Counter(Counter { name, t_ns, value: number(&mut p)?.ok_or(Malformed)? }),
            TAG_MARK => Event::Mark(Mark { name, t_ns, value: number(&mut p)? }),
            TAG_OPEN => Event::Open(Open { name, t_ns, since_ns: p.after(t_ns)?, step: StepId(p.u64()?) }),
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

    fn device_span(&self, mut p: Cursor<'_>) -> Result<DeviceSpan, Malformed> {
        let name = NameId(p.u32()?);
        let end_ns = p.after(self.t_ns)?;
        let start_ns = end_ns.saturating_sub(p.u64()?);
        let issued_start_ns = p.after(start_ns)?;
        let issued_end_ns = issued_start_ns.saturating_add(p.u64()?);
        let error_ns = p.u64()?;
        let step = StepId(p.after(self.step)?);
        Ok(DeviceSpan { name, start_ns, end_ns, error_ns, issued_start_ns, issued_end_ns, step })
    }

    fn step(&mut self, mut p: Cursor<'_>) -> Result<Step, Malformed> {
        let end_ns = p.after(self.t_ns)?;
        self.t_ns = end_ns;
        let start_ns = end_ns.saturating_sub(p.u64()?);
        self.step = p.after(self.step)?;
        let epoch = p.u64()?;
        let present = p.u8()?;
        let mut field = |bit: u8| (present >> bit & 1 == 1).then(|| p.u64()).transpose();
        let batch = BatchShape { graphs: field(0)?, nodes: field(1)?, edges: field(2)?, seeds: field(3)? };
        let usage = if present >> 4 & 1 == 1 { Some(thread_usage(&mut p)?) } else { None };
        let loss = number(&mut p)?;
        Ok(Step { step: StepId(self.step), epoch, start_ns, end_ns, batch, loss, usage })
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
