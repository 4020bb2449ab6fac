//! Durations over stretches of steps that the table no longer keeps, so that percentiles can be had over any part of a run, in
//! bins that are 3 % wide.
//!
//! A stretch is a chunk of the table's rows, or a second or a minute of the publisher's past. When there are too many, neighbours
//! are merged, so memory is fixed and the ends of a part become coarser.

use std::ops::Range;

use gnntop_wire::past::{Durations, LONGEST_NS};

use super::step_row::StepRow;

/// Most stretches.
const MAX_STRETCHES: usize = 2048;

/// Durations over consecutive steps.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Stretch {
    pub(in crate::store) ordinals: Range<u64>,
    pub(in crate::store) step: Durations,
    pub(in crate::store) period: Durations,
    pub(in crate::store) gap: Durations,
    /// By slot, over the steps that spent time in the phase.
    pub(in crate::store) phases: Vec<Durations>,
}

impl Stretch {
    /// The durations of these rows, without steps that a deep trace has slowed down.
    fn from_rows(rows: &[StepRow<'_>]) -> Self {
        let ordinals = rows.first().map_or(0, StepRow::ordinal)..rows.last().map_or(0, |row| row.ordinal() + 1);
        let rows = || rows.iter().filter(|row| !row.is_traced());
        let slots = rows().map(|row| row.phases().len()).max().unwrap_or(0);
        let mut bins = Bins::new();
        let phase = |slot: usize| rows().filter_map(move |row| row.phases().get(slot).copied()).filter(|ns| *ns > 0);
        Self {
            ordinals,
            step: bins.count(rows().map(StepRow::work_ns)),
            period: bins.count(rows().map(StepRow::period_ns)),
            gap: bins.count(rows().map(StepRow::gap_ns)),
            phases: (0..slots).map(|slot| bins.count(phase(slot))).collect(),
        }
    }

    fn merge(&mut self, next: &Self) {
        self.ordinals.end = next.ordinals.end;
        self.step.merge(&next.step);
        self.period.merge(&next.period);
        self.gap.merge(&next.gap);
        if self.phases.len() < next.phases.len() {
            self.phases.resize_with(next.phases.len(), Durations::default);
        }
        self.phases.iter_mut().zip(&next.phases).for_each(|(phase, next)| phase.merge(next));
    }

    fn middle(&self) -> u64 {
        self.ordinals.start.midpoint(self.ordinals.end)
    }
}

/// A counter for each bin, to count many durations at once.
struct Bins(Vec<u32>);

impl Bins {
    fn new() -> Self {
        Self(vec![0; Durations::default().bin_index(LONGEST_NS) as usize + 1])
    }

    fn count(&mut self, all: impl Iterator<Item = u64>) -> Durations {
        let mut durations = Durations::default();
        for ns in all {
            durations.record_without_bin(ns);
            self.0[durations.bin_index(ns) as usize] += 1;
        }
        for (bin, count) in (0..).zip(&mut self.0).filter(|(_, count)| **count > 0) {
            durations.add_to_bin(bin, std::mem::take(count).into());
        }
        durations
    }
}

/// All stretches, oldest first.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Stretches(Vec<Stretch>);

impl Stretches {
    /// Adds the rows of a chunk that leaves the table.
    pub(in crate::store) fn push_rows(&mut self, rows: &[StepRow<'_>]) {
        self.push(Stretch::from_rows(rows));
    }

    /// Adds a stretch; one that overlaps others is ignored.
    pub(in crate::store) fn push(&mut self, stretch: Stretch) {
        let Range { start, end } = stretch.ordinals;
        let at = self.0.partition_point(|known| known.ordinals.end <= start);
        if start >= end || self.0.get(at).is_some_and(|next| next.ordinals.start < end) {
            return;
        }
        self.0.insert(at, stretch);
        if self.0.len() > MAX_STRETCHES {
            self.halve();
        }
    }

    fn halve(&mut self) {
        let mut all = std::mem::take(&mut self.0).into_iter();
        while let Some(mut one) = all.next() {
            all.next().into_iter().for_each(|next| one.merge(&next));
            self.0.push(one);
        }
    }

    /// The stretches whose middle is in a range of ordinals.
    pub(in crate::store) fn within(&self, ordinals: Range<u64>) -> impl Iterator<Item = &Stretch> {
        self.0.iter().filter(move |stretch| ordinals.contains(&stretch.middle()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(ordinals: Range<u64>) -> Stretch {
        let mut stretch = Stretch { ordinals: ordinals.clone(), ..Stretch::default() };
        ordinals.for_each(|ordinal| stretch.period.record(ordinal * 1000));
        stretch
    }

    #[test]
    fn stretches_are_bounded_and_count_every_step_once() {
        let mut all = Stretches::default();
        for at in 0..5000 {
            all.push(stretch(at * 10..at * 10 + 10));
        }
        all.push(stretch(5..8));
        assert!(all.0.len() <= MAX_STRETCHES, "{}", all.0.len());
        let count = |range| all.within(range).map(|stretch| stretch.period.count).sum::<u64>();
        assert_eq!(count(0..u64::MAX), 50_000);
        assert!((9_900..=10_100).contains(&count(20_000..30_000)), "{}", count(20_000..30_000));
    }
}
