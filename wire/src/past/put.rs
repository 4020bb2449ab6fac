//! Writes frames of the past.

use super::durations::{Durations, SLICE_BITS};
use super::entry::{DurationSeries, PastEntry, PastTotals, Slice, SlowStep, StepFigures, Sum, Unfinished};
use super::readings::Readings;
use crate::event::{BatchShape, Mark, PhaseMemory, Rival, Step, ThreadUsage};
use crate::frame::{self, FLAG_LZ4, FrameKind};
use crate::ids::TrackId;
use crate::varint::{put_i64, put_u64};

/// A frame is closed beyond this many bytes before compression.
const FRAME_LEN: usize = 64 * 1024;
/// A larger entry is left out, since no reader would accept it.
pub(super) const MAX_BODY_LEN: usize = 128 * 1024;

pub(super) const TOTALS: u8 = 1;
pub(super) const DURATIONS: u8 = 2;
pub(super) const SLICE: u8 = 3;
pub(super) const SLOW: u8 = 4;

pub(super) const SERIES_STEP: u8 = 0;
pub(super) const SERIES_PERIOD: u8 = 1;
pub(super) const SERIES_GAP: u8 = 2;
pub(super) const SERIES_PHASE: u8 = 3;
pub(super) const SERIES_SPAN: u8 = 4;

/// All readings are equal.
pub(super) const CONSTANT: u8 = 0;
/// Readings only rise: the total increase, and the last reading.
pub(super) const COUNTED: u8 = 1;
/// Whole numbers, with the mean and the last to a 255th of their range.
pub(super) const RANGE: u8 = 2;
/// Eight bytes for each figure.
pub(super) const EXACT: u8 = 3;

/// Appends entries, in as many frames as they need.
pub fn put_past<'a>(out: &mut Vec<u8>, entries: impl IntoIterator<Item = &'a PastEntry>) {
    let (mut body, mut entry) = (Vec::new(), Vec::new());
    for past in entries {
        entry.clear();
        let tag = put_entry(&mut entry, past);
        if entry.len() > MAX_BODY_LEN - 16 {
            continue;
        }
        if body.len() + entry.len() > FRAME_LEN {
            put_frame(out, &mut body);
        }
        body.push(tag);
        put_u64(&mut body, entry.len() as u64);
        body.extend_from_slice(&entry);
    }
    put_frame(out, &mut body);
}

fn put_frame(out: &mut Vec<u8>, body: &mut Vec<u8>) {
    if body.is_empty() {
        return;
    }
    let compressed = lz4_flex::block::compress(body);
    let (flags, bytes) = if compressed.len() < body.len() { (FLAG_LZ4, &compressed) } else { (0, &*body) };
    frame::put(out, FrameKind::PAST, flags, |out| {
        put_u64(out, body.len() as u64);
        out.extend_from_slice(bytes);
    });
    body.clear();
}

fn put_entry(out: &mut Vec<u8>, past: &PastEntry) -> u8 {
    match past {
        PastEntry::Totals(whole) => {
            put_totals(out, whole);
            TOTALS
        }
        PastEntry::Durations(series, durations) => {
            put_series(out, *series);
            put_durations(out, durations);
            DURATIONS
        }
        PastEntry::Slice(slice) => {
            put_slice(out, slice);
            SLICE
        }
        PastEntry::Slow(slow) => {
            put_slow(out, slow);
            SLOW
        }
    }
}

fn put_series(out: &mut Vec<u8>, series: DurationSeries) {
    match series {
        DurationSeries::Step => out.push(SERIES_STEP),
        DurationSeries::Period => out.push(SERIES_PERIOD),
        DurationSeries::Gap => out.push(SERIES_GAP),
        DurationSeries::Phase(name) => {
            out.push(SERIES_PHASE);
            put_u64(out, u64::from(name.0));
        }
        DurationSeries::Span { name, ahead_ns } => {
            out.push(SERIES_SPAN);
            put_numbers(out, [u64::from(name.0), ahead_ns]);
        }
    }
}

fn put_durations(out: &mut Vec<u8>, durations: &Durations) {
    put_u64(out, durations.count);
    if durations.count == 0 {
        return;
    }
    out.push(durations.bits());
    // As little as the total and the longest can be.
    put_numbers(out, [durations.min_ns, durations.max_ns.saturating_sub(durations.min_ns), durations.total_ns]);
    if durations.bits() > SLICE_BITS {
        out.extend_from_slice(&durations.squares.to_le_bytes());
    }
    put_u64(out, durations.raw_bins().len() as u64);
    let mut next = 0;
    for (bin, count) in durations.raw_bins() {
        put_numbers(out, [u64::from(bin - next), *count]);
        next = bin + 1;
    }
}

fn put_slice(out: &mut Vec<u8>, slice: &Slice) {
    put_numbers(out, [slice.from_ns, slice.to_ns - slice.from_ns.min(slice.to_ns), slice.first_ordinal, slice.epoch]);
    [&slice.step, &slice.period, &slice.gap].into_iter().for_each(|durations| put_durations(out, durations));
    put_list(out, &slice.phases, |out, (name, durations)| {
        put_u64(out, u64::from(name.0));
        put_durations(out, durations);
    });
    put_batch(out, &slice.batch);
    for figures in [&slice.worst, &slice.median] {
        out.push(u8::from(figures.is_some()));
        figures.iter().for_each(|figures| put_figures(out, figures, slice.from_ns));
    }
    put_list(out, &slice.signals, |out, (signal, readings)| put_readings(out, signal.0, readings, slice.to_ns));
    put_list(out, &slice.counters, |out, (name, readings)| put_readings(out, name.0, readings, slice.to_ns));
    put_list(out, &slice.marks, |out, (track, mark)| put_mark(out, *track, mark, slice.from_ns));
    put_u64(out, slice.marks_left_out);
    put_list(out, &slice.rivals, |out, rival| put_rival(out, rival, slice.from_ns));
}

/// A bit of the first byte for each sum; sums of 0 are left out.
fn put_batch(out: &mut Vec<u8>, batch: &[Sum; 4]) {
    let is_told = |sum: &Sum| *sum != Sum::default();
    out.push(batch.iter().enumerate().fold(0, |present, (bit, sum)| present | u8::from(is_told(sum)) << bit));
    batch.iter().filter(|sum| is_told(sum)).for_each(|sum| put_numbers(out, [sum.sum, sum.period_ns]));
}

fn put_figures(out: &mut Vec<u8>, figures: &StepFigures, base_ns: u64) {
    let StepFigures { ordinal, step, period_start_ns, gap_ns, phases } = figures;
    let Step { step: number, epoch, start_ns, end_ns, batch, loss, usage, is_traced } = step;
    put_numbers(out, [*ordinal, number.0, *epoch]);
    put_i64(out, end_ns.wrapping_sub(base_ns) as i64);
    put_numbers(out, [end_ns.wrapping_sub(*start_ns), end_ns.wrapping_sub(*period_start_ns), *gap_ns]);
    put_shape(out, batch);
    put_option(out, *loss, put_f64);
    put_option(out, *usage, put_usage);
    out.push(u8::from(*is_traced));
    put_list(out, phases, |out, (name, ns)| put_numbers(out, [u64::from(name.0), *ns]));
}

fn put_shape(out: &mut Vec<u8>, batch: &BatchShape) {
    let all = [batch.graphs, batch.nodes, batch.edges, batch.seeds];
    out.push(all.iter().enumerate().fold(0, |present, (bit, n)| present | u8::from(n.is_some()) << bit));
    all.into_iter().flatten().for_each(|n| put_u64(out, n));
}

fn put_usage(out: &mut Vec<u8>, usage: ThreadUsage) {
    let ThreadUsage { minor_faults, major_faults, voluntary_switches, involuntary_switches } = usage;
    put_numbers(out, [minor_faults, major_faults, voluntary_switches, involuntary_switches]);
}

fn put_mark(out: &mut Vec<u8>, track: TrackId, mark: &Mark, base_ns: u64) {
    put_numbers(out, [u64::from(track.0), u64::from(mark.name.0)]);
    put_i64(out, mark.t_ns.wrapping_sub(base_ns) as i64);
    put_option(out, mark.value, put_f64);
    put_option(out, mark.took_ns, put_u64);
}

fn put_rival(out: &mut Vec<u8>, rival: &Rival, base_ns: u64) {
    put_u64(out, u64::from(rival.name.0));
    put_i64(out, rival.t_ns.wrapping_sub(base_ns) as i64);
    put_option(out, rival.pid, |out, pid| put_u64(out, u64::from(pid)));
    put_f64(out, rival.cores);
}

fn put_slow(out: &mut Vec<u8>, slow: &SlowStep) {
    put_figures(out, &slow.figures, 0);
    let mut before_ns = slow.figures.period_start_ns;
    put_list(out, &slow.spans, |out, span| {
        put_u64(out, u64::from(span.name.0));
        put_i64(out, span.start_ns.wrapping_sub(before_ns) as i64);
        put_u64(out, span.end_ns.saturating_sub(span.start_ns));
        before_ns = span.end_ns.max(span.start_ns);
    });
}

fn put_totals(out: &mut Vec<u8>, whole: &PastTotals) {
    put_numbers(out, [whole.next_segment, whole.first_ns, whole.last_ns, whole.steps]);
    put_batch(out, &whole.batch);
    put_option(out, whole.usage, put_usage);
    put_numbers(out, [whole.epochs.0, whole.epochs.1, whole.epochs.2]);
    put_option(out, whole.losses, |out, (first, last)| {
        put_f64(out, first);
        put_f64(out, last);
    });
    put_list(out, &whole.tracks, |out, end| {
        put_numbers(out, [u64::from(end.track.0), end.next_seq, end.dropped, end.events, end.spans]);
        put_numbers(out, [end.steps, end.last_ns]);
    });
    put_option(out, whole.unfinished.as_ref(), put_unfinished);
    put_list(out, &whole.memory, put_memory);
    put_list(out, &whole.signals, |out, (signal, readings)| put_exact(out, signal.0, readings));
    put_list(out, &whole.counters, |out, (name, readings)| put_exact(out, name.0, readings));
    put_list(out, &whole.files, |out, (file, bytes)| put_numbers(out, [*file, *bytes]));
}

fn put_unfinished(out: &mut Vec<u8>, unfinished: &Unfinished) {
    let Unfinished { track, last_end_ns, last_step, phases } = unfinished;
    put_numbers(out, [u64::from(track.0), *last_end_ns, *last_step]);
    put_list(out, phases, |out, (name, start_ns, end_ns)| {
        put_u64(out, u64::from(name.0));
        put_i64(out, start_ns.wrapping_sub(*last_end_ns) as i64);
        put_u64(out, end_ns.saturating_sub(*start_ns));
    });
}

fn put_memory(out: &mut Vec<u8>, m: &PhaseMemory) {
    put_numbers(out, [u64::from(m.phase.0), m.t_ns, m.allocated_bytes, m.allocated_count, m.freed_bytes]);
    put_numbers(out, [m.freed_count, m.live_bytes, m.peak_bytes]);
}

/// Writes readings in the shortest form that a chart and a mean need.
fn put_readings(out: &mut Vec<u8>, id: u32, readings: &Readings, to_ns: u64) {
    let Readings { count, min, max, last, increase, increase_ns, .. } = *readings;
    let whole = [min, max, last, increase].iter().all(|value| value.fract() == 0.0 && value.abs() < 2f64.powi(53));
    if !whole {
        return put_exact(out, id, readings);
    }
    put_numbers(out, [u64::from(id), count]);
    put_i64(out, to_ns.wrapping_sub(readings.last_ns) as i64);
    if min == max && increase_ns == 0 {
        out.push(CONSTANT);
        put_i64(out, last as i64);
    } else if increase_ns > 0 && last == max {
        out.push(COUNTED);
        put_i64(out, last as i64);
        put_numbers(out, [(max - min) as u64, increase as u64, increase_ns]);
    } else {
        out.push(RANGE);
        put_i64(out, min as i64);
        put_numbers(out, [(max - min) as u64, increase as u64, increase_ns]);
        let part = |value: f64| (((value - min) / (max - min)) * 255.0).round() as u8;
        out.extend_from_slice(&[part(readings.mean().unwrap_or(min)), part(last)]);
    }
}

fn put_exact(out: &mut Vec<u8>, id: u32, readings: &Readings) {
    let Readings { count, min, max, sum, last, last_ns, increase, increase_ns } = *readings;
    put_numbers(out, [u64::from(id), count, 0]);
    out.push(EXACT);
    [min, max, sum, last, increase].into_iter().for_each(|value| put_f64(out, value));
    put_numbers(out, [last_ns, increase_ns]);
}

fn put_f64(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_option<T>(out: &mut Vec<u8>, value: Option<T>, put: impl FnOnce(&mut Vec<u8>, T)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

fn put_list<T>(out: &mut Vec<u8>, all: &[T], mut put: impl FnMut(&mut Vec<u8>, &T)) {
    put_u64(out, all.len() as u64);
    all.iter().for_each(|one| put(out, one));
}

fn put_numbers<const N: usize>(out: &mut Vec<u8>, numbers: [u64; N]) {
    numbers.into_iter().for_each(|number| put_u64(out, number));
}
