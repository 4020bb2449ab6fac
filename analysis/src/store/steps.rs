//! The step table: one row per step, the most recent ones kept.
//!
//! Rows lie in chunks, so that the table grows without copying and old rows leave in bulk; what is left of those that
//! leave lies in `reduced.rs`. A row's phases are stored beside it with only as many places as the chunk has phases; a
//! run with four phases pays for four.

use std::collections::VecDeque;
use std::ops::Range;

use gnntop_wire::{BatchShape, Step, StepId, ThreadUsage};

use super::phases::PhaseSlot;
use super::reduced::Reduced;

/// Rows in a chunk.
const CHUNK_ROWS: usize = 4096;
/// Stands for "not known" where a number is stored.
const UNKNOWN: u64 = u64::MAX;

/// What the tiling found out about a step: where its wall time went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Period<'a> {
    /// Start of the period: the end of the step before.
    pub start_ns: u64,
    /// Length of the period.
    pub period_ns: u64,
    /// Time inside no phase. The phases and this add up to the period.
    pub gap_ns: u64,
    /// Time in each phase, by slot; phases beyond the end took no time.
    pub phase_ns: &'a [u64],
}

/// The numbers of a step that every row has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    step: u64,
    epoch: u64,
    start_ns: u64,
    end_ns: u64,
    period_start_ns: u64,
    pub(super) period_ns: u64,
    gap_ns: u64,
    batch: [u64; 4],
    loss: f64,
    usage: [u32; 4],
    has_loss: bool,
    has_usage: bool,
}

/// Rows that lie together.
#[derive(Clone, Debug)]
struct Chunk {
    heads: Vec<Head>,
    /// `stride` numbers for each head.
    phases: Vec<u64>,
    stride: usize,
}

/// One step, as the table keeps it.
#[derive(Clone, Copy, Debug)]
pub struct StepRow<'a> {
    ordinal: u64,
    head: &'a Head,
    phase_ns: &'a [u64],
}

impl<'a> StepRow<'a> {
    pub(super) fn new(ordinal: u64, head: &'a Head, phase_ns: &'a [u64]) -> Self {
        Self { ordinal, head, phase_ns }
    }

    pub(super) fn head(&self) -> &'a Head {
        self.head
    }

    /// The row's number in the table, from 0; it stays the same when old rows leave.
    pub fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// The step's own number, as the program counts.
    pub fn step(&self) -> StepId {
        StepId(self.head.step)
    }

    /// The epoch.
    pub fn epoch(&self) -> u64 {
        self.head.epoch
    }

    /// When the program says the step started.
    pub fn start_ns(&self) -> u64 {
        self.head.start_ns
    }

    /// When the step ended.
    pub fn end_ns(&self) -> u64 {
        self.head.end_ns
    }

    /// When the step's period began: the end of the step before, or the start of a first step.
    pub fn period_start_ns(&self) -> u64 {
        self.head.period_start_ns
    }

    /// Wall time from the end of the step before to the end of this one. Exactly the sum of all phases and the gap.
    pub fn period_ns(&self) -> u64 {
        self.head.period_ns
    }

    /// Time of the period that lies inside no phase.
    pub fn gap_ns(&self) -> u64 {
        self.head.gap_ns
    }

    /// Time of the period in one phase, or in the gap.
    pub fn phase_ns(&self, slot: PhaseSlot) -> u64 {
        if slot == PhaseSlot::GAP { self.head.gap_ns } else { self.phase_ns.get(slot.index()).copied().unwrap_or(0) }
    }

    /// Time of the period in every phase, by slot and without the gap; phases beyond the end took none.
    pub(super) fn phases(&self) -> &'a [u64] {
        self.phase_ns
    }

    /// The batch's size, as far as known.
    pub fn batch(&self) -> BatchShape {
        let [graphs, nodes, edges, seeds] = self.head.batch.map(|n| (n != UNKNOWN).then_some(n));
        BatchShape { graphs, nodes, edges, seeds }
    }

    /// The loss, where the program read it. It may be NaN.
    pub fn loss(&self) -> Option<f64> {
        self.head.has_loss.then_some(self.head.loss)
    }

    /// The page faults and context switches of the step's thread, each saturating at `u32::MAX`.
    pub fn usage(&self) -> Option<ThreadUsage> {
        let [minor_faults, major_faults, voluntary_switches, involuntary_switches] = self.head.usage.map(u64::from);
        let usage = ThreadUsage { minor_faults, major_faults, voluntary_switches, involuntary_switches };
        self.head.has_usage.then_some(usage)
    }
}

/// The most recent steps of a session.
#[derive(Clone, Debug)]
pub struct StepTable {
    chunks: VecDeque<Chunk>,
    capacity: usize,
    /// Rows that left; the ordinal of the first row kept.
    discarded: u64,
    len: usize,
    reduced: Reduced,
}

impl StepTable {
    /// An empty table that keeps at least `capacity` rows and at most one chunk (4,096 rows) more, and of those that
    /// left at most `groups` groups for long.
    pub(super) fn new(capacity: usize, groups: usize) -> Self {
        Self { chunks: VecDeque::new(), capacity, discarded: 0, len: 0, reduced: Reduced::new(groups) }
    }

    /// Steps so far, kept or not. The newest row's ordinal is one less.
    pub fn total(&self) -> u64 {
        self.discarded + self.len as u64
    }

    /// Rows kept.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no row is kept.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The oldest steps, which are no longer kept one by one: [`StepTable::known_row`] has what is left of them.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }

    /// The ordinals of the rows kept.
    pub fn kept(&self) -> Range<u64> {
        self.discarded..self.total()
    }

    /// The row with this ordinal, if it is kept.
    pub fn row(&self, ordinal: u64) -> Option<StepRow<'_>> {
        let index = usize::try_from(ordinal.checked_sub(self.discarded)?).ok()?;
        // All chunks but the last are full, and rows leave by whole chunks.
        let chunk = self.chunks.get(index / CHUNK_ROWS)?;
        chunk.row(ordinal, index % CHUNK_ROWS)
    }

    /// The row with this ordinal or, where steps are reduced, the worst of the group that it is in.
    pub fn known_row(&self, ordinal: u64) -> Option<StepRow<'_>> {
        let exact = self.row(ordinal).or_else(|| self.reduced.row(ordinal));
        exact.or_else(|| Some(self.reduced.group_of(ordinal)?.worst()))
    }

    /// How many steps from `ordinal` on are known together: 1 where they are kept one by one.
    pub fn coarseness(&self, ordinal: u64) -> u64 {
        self.reduced.group_of(ordinal).map_or(1, |group| group.ordinals().end - group.ordinals().start)
    }

    /// What is left of the steps that are no longer kept.
    pub(super) fn reduced(&self) -> &Reduced {
        &self.reduced
    }

    /// The newest row.
    pub fn last(&self) -> Option<StepRow<'_>> {
        self.row(self.total().checked_sub(1)?)
    }

    /// The rows of a range of ordinals that are kept, oldest first.
    pub fn rows(&self, ordinals: Range<u64>) -> impl DoubleEndedIterator<Item = StepRow<'_>> {
        let start = ordinals.start.max(self.discarded);
        let end = ordinals.end.min(self.total()).max(start);
        (start..end).filter_map(|ordinal| self.row(ordinal))
    }

    /// All rows kept, oldest first.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = StepRow<'_>> {
        self.rows(self.kept())
    }

    /// The rows of a range of ordinals, and of those that are reduced the worst and the median of each group.
    pub fn known_rows(&self, ordinals: Range<u64>) -> impl Iterator<Item = StepRow<'_>> {
        let groups = self.reduced.within(ordinals.start..ordinals.end.min(self.discarded));
        groups.iter().flat_map(|group| [group.median(), group.worst()]).chain(self.rows(ordinals))
    }

    /// The newest row whose period began at or before `t_ns`: the step that was running then.
    /// Binary search; where the clock went backwards any such row may be given.
    pub fn at_time(&self, t_ns: u64) -> Option<StepRow<'_>> {
        let Range { start: mut low, end: mut high } = self.kept();
        while low < high {
            let middle = low + (high - low) / 2;
            if self.row(middle)?.period_start_ns() <= t_ns { low = middle + 1 } else { high = middle }
        }
        self.row(low.checked_sub(1)?)
    }

    /// The newest row of the step that the program counts as `step`. Looks through all rows.
    pub fn find(&self, step: StepId) -> Option<StepRow<'_>> {
        self.all().rev().find(|row| row.step() == step)
    }

    pub(super) fn push(&mut self, step: &Step, period: &Period<'_>) {
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
            chunk.push(head(step, period), period.phase_ns);
            self.len += 1;
        }
    }

    /// Keeps what matters of the oldest chunk.
    fn reduce_oldest(&mut self) {
        let Some(chunk) = self.chunks.front() else { return };
        let rows = (self.discarded..).zip(0..chunk.heads.len()).filter_map(|(ordinal, at)| chunk.row(ordinal, at));
        self.reduced.take(&mut rows.collect::<Vec<_>>());
    }
}

impl Chunk {
    fn new(stride: usize) -> Self {
        Self { heads: Vec::new(), phases: Vec::new(), stride }
    }

    fn row(&self, ordinal: u64, at: usize) -> Option<StepRow<'_>> {
        let head = self.heads.get(at)?;
        let phase_ns = self.phases.get(at * self.stride..(at + 1) * self.stride)?;
        Some(StepRow { ordinal, head, phase_ns })
    }

    fn push(&mut self, head: Head, phase_ns: &[u64]) {
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

fn head(step: &Step, period: &Period<'_>) -> Head {
    let BatchShape { graphs, nodes, edges, seeds } = step.batch;
    let usage = step.usage.unwrap_or_default();
    let usage_numbers = [usage.minor_faults, usage.major_faults, usage.voluntary_switches, usage.involuntary_switches];
    Head {
        step: step.step.0,
        epoch: step.epoch,
        start_ns: step.start_ns,
        end_ns: step.end_ns,
        period_start_ns: period.start_ns,
        period_ns: period.period_ns,
        gap_ns: period.gap_ns,
        batch: [graphs, nodes, edges, seeds].map(|n| n.unwrap_or(UNKNOWN)),
        loss: step.loss.unwrap_or(0.0),
        usage: usage_numbers.map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
        has_loss: step.loss.is_some(),
        has_usage: step.usage.is_some(),
    }
}
