//! Reads frames of the past. Nothing in them is trusted: a list is no longer than its bytes.

use super::durations::{Durations, SLICE_BITS, max_bins};
use super::entry::{DurationSeries, PastEntry, PastTotals, Slice, SlowStep, StepFigures, Sum, TrackEnd, Unfinished};
use super::put::{
    CONSTANT, COUNTED, DURATIONS, EXACT, MAX_BODY_LEN, RANGE, SERIES_GAP, SERIES_PERIOD, SERIES_PHASE, SERIES_SPAN,
    SERIES_STEP, SLICE, SLOW, TOTALS,
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
pub(crate) fn parse_past(frame: RawFrame<'_>, allowance: &mut Allowance) -> Option<Vec<PastEntry>> {
    let mut payload = Cursor::new(frame.payload);
    let len = usize::try_from(payload.u64().ok()?).ok().filter(|len| *len <= MAX_BODY_LEN)?;
    allowance.spend(0, len)?;
    if frame.flags & FLAG_LZ4 == 0 {
        return parse_entries(payload.rest()).ok();
    }
    let body = lz4_flex::block::decompress(payload.rest(), len).ok().filter(|body| body.len() == len)?;
    parse_entries(&body).ok()
}

fn parse_entries(body: &[u8]) -> Read<Vec<PastEntry>> {
    let (mut p, mut all) = (Cursor::new(body), Vec::new());
    while !p.is_empty() {
        let tag = p.u8()?;
        let len = p.u64()?;
        let mut entry = Cursor::new(p.take(len)?);
        let p = &mut entry;
        all.extend(match tag {
            TOTALS => Some(PastEntry::Totals(Box::new(parse_totals(p)?))),
            DURATIONS => parse_series(p)?
                .map(|series| parse_durations(p).map(|all| PastEntry::Durations(series, all)))
                .transpose()?,
            SLICE => Some(PastEntry::Slice(Box::new(parse_slice(p)?))),
            SLOW => Some(PastEntry::Slow(Box::new(parse_slow(p)?))),
            _ => None,
        });
    }
    Ok(all)
}

/// What the durations are of; `None` for series of newer versions.
fn parse_series(p: &mut Cursor<'_>) -> Read<Option<DurationSeries>> {
    Ok(Some(match p.u8()? {
        SERIES_STEP => DurationSeries::Step,
        SERIES_PERIOD => DurationSeries::Period,
        SERIES_GAP => DurationSeries::Gap,
        SERIES_PHASE => DurationSeries::Phase(NameId(p.u32()?)),
        SERIES_SPAN => DurationSeries::Span { name: NameId(p.u32()?), ahead_ns: p.u64()? },
        _ => return Ok(None),
    }))
}

fn parse_durations(p: &mut Cursor<'_>) -> Read<Durations> {
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
    let bins = parse_list(p, |p| {
        let bin = next.checked_add(p.u32()?).filter(|bin| *bin < max_bins(bits)).ok_or(Malformed)?;
        next = bin + 1;
        Ok((bin, p.u64()?))
    })?;
    Ok(Durations::from_parts(bits, [count, total_ns, min_ns, max_ns], squares, bins))
}

fn parse_slice(p: &mut Cursor<'_>) -> Read<Slice> {
    let (from_ns, len_ns, first_ordinal, epoch) = (p.u64()?, p.u64()?, p.u64()?, p.u64()?);
    let to_ns = from_ns.checked_add(len_ns).ok_or(Malformed)?;
    let (step, period, gap) = (parse_durations(p)?, parse_durations(p)?, parse_durations(p)?);
    let phases = parse_list(p, |p| {
        let (name, durations) = (NameId(p.u32()?), parse_durations(p)?);
        // No writer includes empty ones, which would take fifty times their bytes in memory.
        if durations.is_empty() { Err(Malformed) } else { Ok((name, durations)) }
    })?;
    let batch = parse_batch(p)?;
    let worst = parse_option(p, |p| parse_figures(p, from_ns).map(Box::new))?;
    let median = parse_option(p, |p| parse_figures(p, from_ns).map(Box::new))?;
    let signals = parse_list(p, |p| parse_readings(p, to_ns).map(|(id, readings)| (SignalId(id), readings)))?;
    let counters = parse_list(p, |p| parse_readings(p, to_ns).map(|(id, readings)| (NameId(id), readings)))?;
    let marks = parse_list(p, |p| parse_mark(p, from_ns))?;
    let marks_left_out = p.u64()?;
    let rivals = parse_list(p, |p| parse_rival(p, from_ns))?;
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

fn parse_batch(p: &mut Cursor<'_>) -> Read<[Sum; 4]> {
    let present = p.u8()?;
    let mut batch = [Sum::default(); 4];
    for (bit, sum) in batch.iter_mut().enumerate() {
        if present >> bit & 1 == 1 {
            *sum = Sum { sum: p.u64()?, period_ns: p.u64()? };
        }
    }
    Ok(batch)
}

fn parse_figures(p: &mut Cursor<'_>, base_ns: u64) -> Read<StepFigures> {
    let (ordinal, number, epoch) = (p.u64()?, p.u64()?, p.u64()?);
    let end_ns = p.delta(base_ns)?;
    // A clock that went backwards must not put an end before its start.
    let (start_ns, period_start_ns) = (end_ns.saturating_sub(p.u64()?), end_ns.saturating_sub(p.u64()?));
    let gap_ns = p.u64()?;
    let batch = parse_shape(p)?;
    let loss = parse_option(p, parse_f64)?;
    let usage = parse_option(p, fields::parse_usage)?;
    let is_traced = p.u8()? != 0;
    let step = Step { step: StepId(number), epoch, start_ns, end_ns, batch, loss, usage, is_traced };
    let phases = parse_list(p, |p| Ok((NameId(p.u32()?), p.u64()?)))?;
    Ok(StepFigures { ordinal, step, period_start_ns, gap_ns, phases })
}

fn parse_shape(p: &mut Cursor<'_>) -> Read<BatchShape> {
    let present = p.u8()?;
    let mut number = |bit: u8| if present >> bit & 1 == 1 { p.u64().map(Some) } else { Ok(None) };
    Ok(BatchShape { graphs: number(0)?, nodes: number(1)?, edges: number(2)?, seeds: number(3)? })
}

fn parse_mark(p: &mut Cursor<'_>, base_ns: u64) -> Read<(TrackId, Mark)> {
    let (track, name) = (TrackId(p.u32()?), NameId(p.u32()?));
    let (t_ns, value, took_ns) = (p.delta(base_ns)?, parse_option(p, parse_f64)?, parse_option(p, |p| p.u64())?);
    Ok((track, Mark { name, t_ns, value, took_ns }))
}

fn parse_rival(p: &mut Cursor<'_>, base_ns: u64) -> Read<Rival> {
    let (name, t_ns, pid) = (NameId(p.u32()?), p.delta(base_ns)?, parse_option(p, |p| p.u32())?);
    Ok(Rival { name, t_ns, pid, cores: parse_f64(p)? })
}

fn parse_slow(p: &mut Cursor<'_>) -> Read<SlowStep> {
    let figures = parse_figures(p, 0)?;
    let (step, mut before_ns) = (figures.step.step, figures.period_start_ns);
    let spans = parse_list(p, |p| {
        let (name, start_ns) = (NameId(p.u32()?), p.delta(before_ns)?);
        before_ns = start_ns.saturating_add(p.u64()?);
        Ok(Span { name, start_ns, end_ns: before_ns, step })
    })?;
    Ok(SlowStep { figures, spans })
}

fn parse_totals(p: &mut Cursor<'_>) -> Read<PastTotals> {
    let (next_segment, first_ns, last_ns, steps) = (p.u64()?, p.u64()?, p.u64()?, p.u64()?);
    Ok(PastTotals {
        next_segment,
        first_ns,
        last_ns,
        steps,
        batch: parse_batch(p)?,
        usage: parse_option(p, fields::parse_usage)?,
        epochs: (p.u64()?, p.u64()?, p.u64()?),
        losses: parse_option(p, |p| Ok((parse_f64(p)?, parse_f64(p)?)))?,
        tracks: parse_list(p, parse_track_end)?,
        unfinished: parse_option(p, parse_unfinished)?,
        memory: parse_list(p, parse_memory)?,
        signals: parse_list(p, |p| parse_readings(p, 0).map(|(id, readings)| (SignalId(id), readings)))?,
        counters: parse_list(p, |p| parse_readings(p, 0).map(|(id, readings)| (NameId(id), readings)))?,
        files: parse_list(p, |p| Ok((p.u64()?, p.u64()?)))?,
    })
}

fn parse_track_end(p: &mut Cursor<'_>) -> Read<TrackEnd> {
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

fn parse_unfinished(p: &mut Cursor<'_>) -> Read<Unfinished> {
    let (track, last_end_ns, last_step) = (TrackId(p.u32()?), p.u64()?, p.u64()?);
    let phases = parse_list(p, |p| {
        let (name, start_ns) = (NameId(p.u32()?), p.delta(last_end_ns)?);
        Ok((name, start_ns, start_ns.saturating_add(p.u64()?)))
    })?;
    Ok(Unfinished { track, last_end_ns, last_step, phases })
}

fn parse_memory(p: &mut Cursor<'_>) -> Read<PhaseMemory> {
    let (phase, t_ns) = (NameId(p.u32()?), p.u64()?);
    fields::parse_memory(p, phase, t_ns)
}

fn parse_readings(p: &mut Cursor<'_>, to_ns: u64) -> Read<(u32, Readings)> {
    let (id, count, since_ns) = (p.u32()?, p.u64()?, p.i64()?);
    let last_ns = to_ns.wrapping_sub(since_ns as u64);
    let form = p.u8()?;
    if form == EXACT {
        let [min, max, sum, last, increase] =
            [parse_f64(p)?, parse_f64(p)?, parse_f64(p)?, parse_f64(p)?, parse_f64(p)?];
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

fn parse_f64(p: &mut Cursor<'_>) -> Read<f64> {
    p.array().map(f64::from_le_bytes)
}

fn parse_option<T>(p: &mut Cursor<'_>, read: impl FnOnce(&mut Cursor<'_>) -> Read<T>) -> Read<Option<T>> {
    match p.u8()? {
        0 => Ok(None),
        _ => read(p).map(Some),
    }
}

/// A list whose entries take at least a byte each, so that a length beyond the rest is rejected before memory is reserved.
fn parse_list<T>(p: &mut Cursor<'_>, mut read: impl FnMut(&mut Cursor<'_>) -> Read<T>) -> Read<Vec<T>> {
    let len = p.u64()?;
    if len > p.rest().len() as u64 {
        return Err(Malformed);
    }
    (0..len).map(|_| read(p)).collect()
}
