//! The step table: one row per step; the most recent rows are kept.
//!
//! Rows are in chunks, so that the table grows without copying and old rows leave in bulk; `reduced_steps.rs` has what is left of
//! those. A row's phases are stored beside it, with only as many places as its chunk has phases: a run with four phases
//! needs room for four.

use std::collections::VecDeque;
use std::ops::Range;

use gnntop_wire::{Step, StepId, ThreadUsage};

use super::reduced_steps::{PastSlowStep, ReducedSteps, SlowSteps, StepGroup};
use super::statistics::StepStatistics;
use super::step_row::{Period, StepHead, StepRow};
use super::stretches::{Stretch, Stretches};

/// Rows in a chunk.
const CHUNK_ROWS: usize = 4096;
/// Most steps that can share page faults: a program queries them every 250 µs.
const MAX_SHARING: u64 = 4096;

/// A chunk of rows.
#[derive(Clone, Debug)]
struct Chunk {
    heads: Vec<StepHead>,
    /// `stride` numbers for each row head.
    phases: Vec<u64>,
    stride: usize,
}

/// The most recent steps of a session.
#[derive(Clone, Debug)]
pub struct StepTable {
    chunks: VecDeque<Chunk>,
    capacity: usize,
    /// Number of rows that left; the ordinal of the first row kept.
    discarded: u64,
    len: usize,
    reduced: ReducedSteps,
    stretches: Stretches,
    slow: SlowSteps,
}

impl StepTable {
    /// An empty table that keeps at least `capacity` rows, at most one chunk (4,096 rows) more, and not much more than
    /// `groups` groups of those that left.
    pub(in crate::store) fn new(capacity: usize, groups: usize) -> Self {
        Self {
            chunks: VecDeque::new(),
            capacity,
            discarded: 0,
            len: 0,
            reduced: ReducedSteps::new(groups),
            stretches: Stretches::default(),
            slow: SlowSteps::default(),
        }
    }

    /// Number of steps so far, kept or not. The newest row's ordinal is one less.
    pub fn total(&self) -> u64 {
        self.discarded + self.len as u64
    }

    /// Number of rows kept.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no row is kept.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of steps no longer kept individually: [`StepTable::known_row`] has what is left of them.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }

    /// The ordinals of the rows kept.
    pub fn kept_ordinals(&self) -> Range<u64> {
        self.discarded..self.total()
    }

    /// The row with this ordinal, if it is kept.
    pub fn row(&self, ordinal: u64) -> Option<StepRow<'_>> {
        let index = usize::try_from(ordinal.checked_sub(self.discarded)?).ok()?;
        // All chunks except the last are full, and rows leave by whole chunks.
        let chunk = self.chunks.get(index / CHUNK_ROWS)?;
        chunk.row(ordinal, index % CHUNK_ROWS)
    }

    /// The row with this ordinal or, if steps are reduced, the worst of its group.
    pub fn known_row(&self, ordinal: u64) -> Option<StepRow<'_>> {
        let exact = self.row(ordinal).or_else(|| self.reduced.row(ordinal)).or_else(|| self.slow.row(ordinal));
        exact.or_else(|| Some(self.reduced.group(ordinal)?.worst()))
    }

    /// The median step of each group of reduced steps, oldest first.
    pub fn medians(&self) -> impl ExactSizeIterator<Item = StepRow<'_>> {
        self.reduced.within(0..u64::MAX).iter().map(StepGroup::median)
    }

    /// Number of steps from `ordinal` on that are known together: 1 if they are kept individually.
    pub fn coarseness(&self, ordinal: u64) -> u64 {
        self.reduced.group(ordinal).map_or(1, |group| group.ordinals().end - group.ordinals().start)
    }

    /// The smallest number of steps per column at `ordinal`, at least `wanted`, such that it holds whole groups: a multiple
    /// of their length or, if groups end with a second or a minute, at least their length.
    pub fn whole_groups(&self, ordinal: u64, wanted: u64) -> u64 {
        let coarseness = self.coarseness(ordinal);
        if self.reduced.group(ordinal).is_some_and(StepGroup::is_past) {
            wanted.max(coarseness)
        } else {
            wanted.next_multiple_of(coarseness)
        }
    }

    /// What is left of the steps that are no longer kept.
    pub(in crate::store) fn reduced(&self) -> &ReducedSteps {
        &self.reduced
    }

    /// The newest row.
    pub fn last(&self) -> Option<StepRow<'_>> {
        self.row(self.total().checked_sub(1)?)
    }

    /// The kept rows of a range of ordinals, oldest first.
    pub fn rows(&self, ordinals: Range<u64>) -> impl DoubleEndedIterator<Item = StepRow<'_>> {
        let start = ordinals.start.max(self.discarded);
        let end = ordinals.end.min(self.total()).max(start);
        (start..end).filter_map(|ordinal| self.row(ordinal))
    }

    /// All rows kept, oldest first.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = StepRow<'_>> {
        self.rows(self.kept_ordinals())
    }

    /// The rows of a range of ordinals; for reduced steps, the worst and the median of each group.
    pub fn known_rows(&self, ordinals: Range<u64>) -> impl Iterator<Item = StepRow<'_>> {
        let groups = self.reduced.within(ordinals.start..ordinals.end.min(self.discarded));
        groups.iter().flat_map(|group| [group.median(), group.worst()]).chain(self.rows(ordinals))
    }

    /// The median of each group of reduced steps that begins in a range of ordinals, with the group's ordinals.
    pub fn reduced_medians(&self, ordinals: Range<u64>) -> impl ExactSizeIterator<Item = (StepRow<'_>, Range<u64>)> {
        let groups = self.reduced.within(ordinals.start..ordinals.end.min(self.discarded));
        groups.iter().map(|group| (group.median(), group.ordinals()))
    }

    /// The newest row whose period began at or before `t_ns`: the step running at that time. Uses binary search; if the
    /// clock went backwards, it may return any such row.
    pub fn row_at(&self, t_ns: u64) -> Option<StepRow<'_>> {
        let Range { start: mut low, end: mut high } = self.kept_ordinals();
        while low < high {
            let middle = low + (high - low) / 2;
            if self.row(middle)?.period_start_ns() <= t_ns { low = middle + 1 } else { high = middle }
        }
        self.row(low.checked_sub(1)?)
    }

    /// The newest row of the step that the program counts as `step`. Searches all rows.
    pub fn find_step(&self, step: StepId) -> Option<StepRow<'_>> {
        self.all().rev().find(|row| row.step() == step)
    }

    /// Begins after `steps` steps, of which only groups are known.
    pub(in crate::store) fn begin_after(&mut self, steps: u64) {
        if self.len == 0 {
            self.discarded = self.discarded.saturating_add(steps);
        }
    }

    /// Reduces all rows like old ones: what comes next is also in the past.
    pub(in crate::store) fn reduce_all(&mut self) {
        while let Some(rows) = self.chunks.front().map(|chunk| chunk.heads.len()) {
            self.reduce_oldest();
            self.chunks.pop_front();
            self.len -= rows;
            self.discarded += rows as u64;
        }
    }

    /// Adds steps from before the kept ones.
    pub(in crate::store) fn push_past(&mut self, group: StepGroup) {
        if group.ordinals().end <= self.discarded {
            self.reduced.push(group);
        }
    }

    /// Adds durations of steps from before the kept ones.
    pub(in crate::store) fn push_stretch(&mut self, stretch: Stretch) {
        if stretch.ordinals.end <= self.discarded {
            self.stretches.push(stretch);
        }
    }

    /// Durations over a range of ordinals. Of steps that are no longer kept individually they are to within 3 %, and the range
    /// begins or ends with whole stretches of them.
    pub fn statistics(&self, ordinals: Range<u64>) -> StepStatistics {
        let mut all = StepStatistics::default();
        for stretch in self.stretches.within(ordinals.start..ordinals.end.min(self.discarded)) {
            all.add_stretch(stretch);
        }
        self.rows(ordinals).for_each(|row| all.add(&row));
        all
    }

    /// Adds a slow step from before the kept ones.
    pub(in crate::store) fn push_slow(&mut self, slow: PastSlowStep) {
        if slow.ordinal() < self.discarded {
            self.slow.push(slow);
        }
    }

    /// The slow steps from before the kept ones, each with its spans.
    pub fn slow(&self) -> &SlowSteps {
        &self.slow
    }

    /// The page faults and context switches that include a step, and the steps that share them: short steps report theirs
    /// together, with the last of them. `None` if the program reported none, or not yet.
    pub fn shared_usage(&self, ordinal: u64) -> Option<(ThreadUsage, Range<u64>)> {
        if ordinal < self.discarded {
            // Each reduced step stands for itself.
            return Some((self.known_row(ordinal)?.usage()?, ordinal..ordinal + 1));
        }
        let around = ordinal.saturating_sub(MAX_SHARING)..ordinal.saturating_add(MAX_SHARING);
        let last = self.rows(ordinal..around.end).find(|row| row.usage().is_some())?;
        let before = self.rows(around.start..ordinal).rev().find(|row| row.usage().is_some());
        let first = before.map_or(around.start.max(self.discarded), |row| row.ordinal() + 1);
        Some((last.usage()?, first..last.ordinal() + 1))
    }

    pub(in crate::store) fn push(&mut self, step: &Step, period: &Period<'_>) {
        if self.len >= self.capacity + CHUNK_ROWS {
            self.reduce_oldest();
            self.chunks.pop_front();
            self.len -= CHUNK_ROWS;
            self.discarded += CHUNK_ROWS as u64;
        }
        if self.chunks.back().is_none_or(|chunk| chunk.heads.len() == CHUNK_ROWS) {
            self.chunks.push_back(Chunk::new(period.phase_ns.len()));
        }
        if let Some(chunk) = self.chunks.back_mut() {
            chunk.push(StepHead::new(step, period), period.phase_ns);
            self.len += 1;
        }
    }

    /// Keeps what matters of the oldest chunk.
    fn reduce_oldest(&mut self) {
        let Some(chunk) = self.chunks.front() else { return };
        let rows = (self.discarded..).zip(0..chunk.heads.len()).filter_map(|(ordinal, at)| chunk.row(ordinal, at));
        let mut rows: Vec<StepRow<'_>> = rows.collect();
        self.stretches.push_rows(&rows);
        self.reduced.push_rows(&mut rows);
    }
}

impl Chunk {
    fn new(stride: usize) -> Self {
        Self { heads: Vec::new(), phases: Vec::new(), stride }
    }

    fn row(&self, ordinal: u64, at: usize) -> Option<StepRow<'_>> {
        let head = self.heads.get(at)?;
        let phase_ns = self.phases.get(at * self.stride..(at + 1) * self.stride)?;
        Some(StepRow::new(ordinal, head, phase_ns))
    }

    fn push(&mut self, head: StepHead, phase_ns: &[u64]) {
        if phase_ns.len() > self.stride {
            self.widen(phase_ns.len());
        }
        self.heads.push(head);
        self.phases.extend_from_slice(phase_ns);
        self.phases.resize(self.heads.len() * self.stride, 0);
    }

    /// Makes room for more phases in every row of the chunk.
    fn widen(&mut self, stride: usize) {
        let mut phases = Vec::with_capacity(self.heads.len() * stride);
        for row in 0..self.heads.len() {
            phases.extend_from_slice(&self.phases[row * self.stride..(row + 1) * self.stride]);
            phases.resize((row + 1) * stride, 0);
        }
        self.phases = phases;
        self.stride = stride;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_shared_by_short_steps() {
        let mut table = StepTable::new(100, 0);
        let usage = |minor_faults| Some(ThreadUsage { minor_faults, ..ThreadUsage::default() });
        for (number, usage) in (1..).zip([usage(3), None, None, usage(7), usage(1), None]) {
            let step = Step { step: StepId(number), usage, ..Step::default() };
            table.push(&step, &Period { start_ns: 0, period_ns: 1, gap_ns: 1, phase_ns: &[] });
        }
        let around = |ordinal| table.shared_usage(ordinal).map(|(usage, steps)| (usage.minor_faults, steps));
        assert_eq!(around(0), Some((3, 0..1)));
        assert!((1..4).all(|shared| around(shared) == Some((7, 1..4))));
        assert_eq!((around(4), around(5)), (Some((1, 4..5)), None), "the last has not told yet");
    }
}
