//! Adds the figures of one stretch of time to those of another, and so halves the resolution of the distant past.

use gnntop_wire::past::{Durations, PastEntry, Readings, Slice, StepFigures, Sum};

/// Marks that a slice keeps; further ones are only counted.
pub(crate) const MAX_MARKS: usize = 16;

/// Merges the next slice into `slice`.
pub(crate) fn add(slice: &mut Slice, next: &Slice) {
    if slice.period.is_empty() {
        slice.first_ordinal = next.first_ordinal;
    }
    if !next.period.is_empty() {
        slice.epoch = next.epoch;
    }
    slice.from_ns = slice.from_ns.min(next.from_ns);
    slice.to_ns = slice.to_ns.max(next.to_ns);
    slice.step.merge(&next.step);
    slice.period.merge(&next.period);
    slice.gap.merge(&next.gap);
    for (name, durations) in &next.phases {
        entry(&mut slice.phases, *name, Durations::default).merge(durations);
    }
    slice.batch.iter_mut().zip(&next.batch).for_each(|(sum, next)| add_sum(sum, next));
    slice.worst = longer(slice.worst.take(), next.worst.clone());
    slice.median = nearer(slice.period.percentile(0.5), slice.median.take(), next.median.clone());
    for (signal, readings) in &next.signals {
        entry(&mut slice.signals, *signal, Readings::default).merge(readings);
    }
    for (name, readings) in &next.counters {
        entry(&mut slice.counters, *name, Readings::default).merge(readings);
    }
    let room = MAX_MARKS.saturating_sub(slice.marks.len()).min(next.marks.len());
    slice.marks.extend_from_slice(&next.marks[..room]);
    let rivals = MAX_MARKS.saturating_sub(slice.rivals.len()).min(next.rivals.len());
    slice.rivals.extend_from_slice(&next.rivals[..rivals]);
    let left_out = next.marks_left_out.saturating_add((next.marks.len() - room) as u64);
    slice.marks_left_out = slice.marks_left_out.saturating_add(left_out);
}

/// The value of a key in a sorted list, inserted if it is missing.
pub(crate) fn entry<K: Ord + Copy, V>(list: &mut Vec<(K, V)>, key: K, new: impl FnOnce() -> V) -> &mut V {
    let at = match list.binary_search_by_key(&key, |(known, _)| *known) {
        Ok(at) => at,
        Err(at) => {
            list.insert(at, (key, new()));
            at
        }
    };
    &mut list[at].1
}

pub(crate) fn add_sum(sum: &mut Sum, next: &Sum) {
    sum.sum = sum.sum.saturating_add(next.sum);
    sum.period_ns = sum.period_ns.saturating_add(next.period_ns);
}

type Figures = Option<Box<StepFigures>>;

/// The step with the longer period.
fn longer(one: Figures, other: Figures) -> Figures {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.period_ns() > one.period_ns() { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// The step whose period is nearer to the median.
fn nearer(median_ns: Option<u64>, one: Figures, other: Figures) -> Figures {
    match (one, other) {
        (Some(one), Some(other)) => {
            let off = |figures: &StepFigures| figures.period_ns().abs_diff(median_ns.unwrap_or(0));
            Some(if off(&other) < off(&one) { other } else { one })
        }
        (one, other) => one.or(other),
    }
}

/// Merges each two neighbouring slices, and keeps the slower half of the slow steps.
pub fn coarsen(entries: Vec<PastEntry>) -> Vec<PastEntry> {
    let (mut slices, mut slow) = (Vec::new(), Vec::new());
    for past in entries {
        match past {
            PastEntry::Slice(slice) => slices.push(slice),
            PastEntry::Slow(step) => slow.push(step),
            _ => (),
        }
    }
    slices.sort_by_key(|slice| slice.from_ns);
    let mut halved = Vec::with_capacity(slices.len() / 2 + 1);
    for pair in slices.chunks(2) {
        let mut one = pair[0].clone();
        pair[1..].iter().for_each(|next| add(&mut one, next));
        halved.push(PastEntry::Slice(one));
    }
    slow.sort_by_key(|step| std::cmp::Reverse(step.figures.period_ns()));
    slow.truncate(slow.len().div_ceil(2));
    halved.extend(slow.into_iter().map(PastEntry::Slow));
    halved
}
