//! Reads frames of the past. Nothing in them is trusted: a list is no longer than its bytes.

use super::durations::{Durations, SLICE_BITS, bins_at_most};
use super::entry::{Past, Series, Slice, SlowStep, StepFigures, Sum, TrackEnd, Unfinished, Whole};
use super::put::{
    CONSTANT, COUNTED, DURATIONS, EXACT, MAX_BODY_LEN, OF_GAP, OF_PERIOD, OF_PHASE, OF_SPAN, OF_STEP, RANGE, SLICE,
    SLOW, WHOLE,
};
use super::readings::Readings;
use crate::block::Allowance;
use crate::event::{BatchShape, Mark, PhaseMemory, Rival, Span, Step};
use crate::fields;
use crate::frame::{FLAG_LZ4, RawFrame};
use crate::ids::{NameId, SignalId, StepId, TrackId};
use crate::varint::{Cursor, Malformed};

type Read<T> = Result<T, Malformed>;

/// The entries of a frame, without those of unknown kinds. `None` if the frame is malformed.
pub(crate) fn past(frame: RawFrame<'_>, allowance: &mut Allowance) -> Option<Vec<Past>> {
    let mut payload = Cursor::new(frame.payload);
    let len = usize::try_from(payload.u64().ok()?).ok().filter(|len| *len <= MAX_BODY_LEN)?;
    allowance.spend(0, len)?;
    if frame.flags & FLAG_LZ4 == 0 {
        return entries(payload.rest()).ok();
    }
    let body = lz4_flex::block::decompress(payload.rest(), len).ok().filter(|body| body.len() == len)?;
    entries(&body).ok()
}

fn entries(body: &[u8]) -> Read<Vec<Past>> {
    let (mut p, mut all) = (Cursor::new(body), Vec::new());
    while !p.is_empty() {
        let tag = p.u8()?;
        let len = p.u64()?;
        let mut entry = Cursor::new(p.take(len)?);
        let p = &mut entry;
        all.extend(match tag {
            WHOLE => Some(Past::Whole(Box::new(whole(p)?))),
            DURATIONS => series(p)?.map(|series| durations(p).map(|all| Past::Durations(series, all))).transpose()?,
            SLICE => Some(Past::Slice(Box::new(slice(p)?))),
            SLOW => Some(Past::Slow(Box::new(slow(p)?))),
            _ => None,
        });
    }
    Ok(all)
}

/// What the durations are of; `None` for series of newer versions.
fn series(p: &mut Cursor<'_>) -> Read<Option<Series>> {
    Ok(Some(match p.u8()? {
        OF_STEP => Series::Step,
        OF_PERIOD => Series::Period,
        OF_GAP => Series::Gap,
        OF_PHASE => Series::Phase(NameId(p.u32()?)),
        OF_SPAN => Series::Span { name: NameId(p.u32()?), ahead_ns: p.u64()? },
        _ => return Ok(None),
    }))
}

fn durations(p: &mut Cursor<'_>) -> Read<Durations> {
    let count = p.u64()?;
    if count == 0 {
        return Ok(Durations::default());
    }
    let bits = p.u8()?;
    if !(2..=16).contains(&bits) {
        return Err(Malformed);
    }
    let (min_ns, range_ns, total_ns) = (p.u64()?, p.u64()?, p.u64()?);
    let max_ns = min_ns.checked_add(range_ns).ok_or(Malformed)?;
    let squares = if bits > SLICE_BITS { f64::from_le_bytes(p.array()?) } else { 0.0 };
    let mut next = 0u32;
    let bins = list(p, |p| {
        let bin = next.checked_add(p.u32()?).filter(|bin| *bin < bins_at_most(bits)).ok_or(Malformed)?;
        next = bin + 1;
        Ok((bin, p.u64()?))
    })?;
    Ok(Durations::of_parts(bits, [count, total_ns, min_ns, max_ns], squares, bins))
}

fn slice(p: &mut Cursor<'_>) -> Read<Slice> {
    let (from_ns, len_ns, first_ordinal, epoch) = (p.u64()?, p.u64()?, p.u64()?, p.u64()?);
    let to_ns = from_ns.checked_add(len_ns).ok_or(Malformed)?;
    let (step, period, gap) = (durations(p)?, durations(p)?, durations(p)?);
    let phases = list(p, |p| {
        let (name, durations) = (NameId(p.u32()?), durations(p)?);
        // No writer includes empty ones, which would take fifty times their bytes in memory.
        if durations.is_empty() { Err(Malformed) } else { Ok((name, durations)) }
    })?;
    let batch = batch(p)?;
    let worst = option(p, |p| figures(p, from_ns).map(Box::new))?;
    let median = option(p, |p| figures(p, from_ns).map(Box::new))?;
    let signals = list(p, |p| readings(p, to_ns).map(|(id, readings)| (SignalId(id), readings)))?;
    let counters = list(p, |p| readings(p, to_ns).map(|(id, readings)| (NameId(id), readings)))?;
    let marks = list(p, |p| mark(p, from_ns))?;
    let marks_left_out = p.u64()?;
    let rivals = list(p, |p| rival(p, from_ns))?;
    Ok(Slice {
        from_ns,
        to_ns,
        first_ordinal,
        epoch,
        step,
        period,
        gap,
        phases,
        batch,
        worst,
        median,
        signals,
        counters,
        marks,
        marks_left_out,
        rivals,
    })
}

fn batch(p: &mut Cursor<'_>) -> Read<[Sum; 4]> {
    let present = p.u8()?;
    let mut batch = [Sum::default(); 4];
    for (bit, sum) in batch.iter_mut().enumerate() {
        if present >> bit & 1 == 1 {
            *sum = Sum { sum: p.u64()?, period_ns: p.u64()? };
        }
    }
    Ok(batch)
}

fn figures(p: &mut Cursor<'_>, base_ns: u64) -> Read<StepFigures> {
    let (ordinal, number, epoch) = (p.u64()?, p.u64()?, p.u64()?);
    let end_ns = p.after(base_ns)?;
    // A clock that went backwards must not put an end before its start.
    let (start_ns, period_start_ns) = (end_ns.saturating_sub(p.u64()?), end_ns.saturating_sub(p.u64()?));
    let gap_ns = p.u64()?;
    let batch = shape(p)?;
    let loss = option(p, number_f64)?;
    let usage = option(p, fields::usage)?;
    let is_traced = p.u8()? != 0;
    let step = Step { step: StepId(number), epoch, start_ns, end_ns, batch, loss, usage, is_traced };
    let phases = list(p, |p| Ok((NameId(p.u32()?), p.u64()?)))?;
    Ok(StepFigures { ordinal, step, period_start_ns, gap_ns, phases })
}

fn shape(p: &mut Cursor<'_>) -> Read<BatchShape> {
    let present = p.u8()?;
    let mut number = |bit: u8| if present >> bit & 1 == 1 { p.u64().map(Some) } else { Ok(None) };
    Ok(BatchShape { graphs: number(0)?, nodes: number(1)?, edges: number(2)?, seeds: number(3)? })
}

fn mark(p: &mut Cursor<'_>, base_ns: u64) -> Read<(TrackId, Mark)> {
    let (track, name) = (TrackId(p.u32()?), NameId(p.u32()?));
    let (t_ns, value, took_ns) = (p.after(base_ns)?, option(p, number_f64)?, option(p, |p| p.u64())?);
    Ok((track, Mark { name, t_ns, value, took_ns }))
}

fn rival(p: &mut Cursor<'_>, base_ns: u64) -> Read<Rival> {
    let (name, t_ns, pid) = (NameId(p.u32()?), p.after(base_ns)?, option(p, |p| p.u32())?);
    Ok(Rival { name, t_ns, pid, cores: number_f64(p)? })
}

fn slow(p: &mut Cursor<'_>) -> Read<SlowStep> {
    let figures = figures(p, 0)?;
    let (step, mut before_ns) = (figures.step.step, figures.period_start_ns);
    let spans = list(p, |p| {
        let (name, start_ns) = (NameId(p.u32()?), p.after(before_ns)?);
        before_ns = start_ns.saturating_add(p.u64()?);
        Ok(Span { name, start_ns, end_ns: before_ns, step })
    })?;
    Ok(SlowStep { figures, spans })
}

fn whole(p: &mut Cursor<'_>) -> Read<Whole> {
    let (next_segment, first_ns, last_ns, steps) = (p.u64()?, p.u64()?, p.u64()?, p.u64()?);
    Ok(Whole {
        next_segment,
        first_ns,
        last_ns,
        steps,
        batch: batch(p)?,
        usage: option(p, fields::usage)?,
        epochs: (p.u64()?, p.u64()?, p.u64()?),
        losses: option(p, |p| Ok((number_f64(p)?, number_f64(p)?)))?,
        tracks: list(p, track_end)?,
        unfinished: option(p, unfinished)?,
        memory: list(p, memory)?,
        signals: list(p, |p| readings(p, 0).map(|(id, readings)| (SignalId(id), readings)))?,
        counters: list(p, |p| readings(p, 0).map(|(id, readings)| (NameId(id), readings)))?,
        files: list(p, |p| Ok((p.u64()?, p.u64()?)))?,
    })
}

fn track_end(p: &mut Cursor<'_>) -> Read<TrackEnd> {
    Ok(TrackEnd {
        track: TrackId(p.u32()?),
        next_seq: p.u64()?,
        dropped: p.u64()?,
        events: p.u64()?,
        spans: p.u64()?,
        steps: p.u64()?,
        last_ns: p.u64()?,
    })
}

fn unfinished(p: &mut Cursor<'_>) -> Read<Unfinished> {
    let (track, last_end_ns, last_step) = (TrackId(p.u32()?), p.u64()?, p.u64()?);
    let phases = list(p, |p| {
        let (name, start_ns) = (NameId(p.u32()?), p.after(last_end_ns)?);
        Ok((name, start_ns, start_ns.saturating_add(p.u64()?)))
    })?;
    Ok(Unfinished { track, last_end_ns, last_step, phases })
}

fn memory(p: &mut Cursor<'_>) -> Read<PhaseMemory> {
    let (phase, t_ns) = (NameId(p.u32()?), p.u64()?);
    fields::memory(p, phase, t_ns)
}

fn readings(p: &mut Cursor<'_>, to_ns: u64) -> Read<(u32, Readings)> {
    let (id, count, since_ns) = (p.u32()?, p.u64()?, p.i64()?);
    let last_ns = to_ns.wrapping_sub(since_ns as u64);
    let form = p.u8()?;
    if form == EXACT {
        let [min, max, sum, last, increase] =
            [number_f64(p)?, number_f64(p)?, number_f64(p)?, number_f64(p)?, number_f64(p)?];
        let (last_ns, increase_ns) = (p.u64()?, p.u64()?);
        return Ok((id, Readings { count, min, max, sum, last, last_ns, increase, increase_ns }));
    }
    let first = p.i64()? as f64;
    if form == CONSTANT {
        let sum = first * count as f64;
        return Ok((id, Readings { count, min: first, max: first, sum, last: first, last_ns, ..Readings::default() }));
    }
    let (range, increase, increase_ns) = (p.u64()? as f64, p.u64()? as f64, p.u64()?);
    let (min, max, mean, last) = match form {
        COUNTED => (first - range, first, first - range / 2.0, first),
        RANGE => {
            let mut part = || p.u8().map(|part| first + range * f64::from(part) / 255.0);
            (first, first + range, part()?, part()?)
        }
        _ => return Err(Malformed),
    };
    Ok((id, Readings { count, min, max, sum: mean * count as f64, last, last_ns, increase, increase_ns }))
}

fn number_f64(p: &mut Cursor<'_>) -> Read<f64> {
    p.array().map(f64::from_le_bytes)
}

fn option<T>(p: &mut Cursor<'_>, read: impl FnOnce(&mut Cursor<'_>) -> Read<T>) -> Read<Option<T>> {
    match p.u8()? {
        0 => Ok(None),
        _ => read(p).map(Some),
    }
}

/// A list whose entries take at least a byte each, so that a length beyond the rest is rejected before memory is reserved.
fn list<T>(p: &mut Cursor<'_>, mut read: impl FnMut(&mut Cursor<'_>) -> Read<T>) -> Read<Vec<T>> {
    let len = p.u64()?;
    if len > p.rest().len() as u64 {
        return Err(Malformed);
    }
    (0..len).map(|_| read(p)).collect()
}
