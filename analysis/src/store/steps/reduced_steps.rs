//! The oldest steps, which the table no longer keeps individually: the worst and the median of each group of steps.
//!
//! Groups begin with 64 steps. When there are too many, four neighbours are merged, smallest groups first, so memory is
//! fixed and resolution decreases with age. A group's worst step is exact. Its median is exact for the first 64 steps; that
//! of four groups is the middle one of their medians, the lower and the upper middle in turn, so that it does not drift
//! (the remedian of Rousseeuw and Bassett, JASA 85, 1990).
//!
//! From before them, the publisher keeps the slowest steps of each hour, with their spans ([`SlowSteps`]).

use std::ops::Range;

use gnntop_wire::Span;
use gnntop_wire::past::StepFigures;

use super::step_row::{Period, StepHead, StepRow};

/// Steps in a new group.
const FIRST_STEPS: usize = 64;
/// Groups merged into one.
const MERGED: usize = 4;
/// Most slow steps kept: 100 an hour for three weeks.
const MAX_SLOW_STEPS: usize = 1 << 16;

/// A step that is still known.
#[derive(Clone, Debug)]
pub(in crate::store) struct StoredStep {
    ordinal: u64,
    head: StepHead,
    phase_ns: Box<[u64]>,
}

impl StoredStep {
    /// A step whose events the publisher has dropped, with its gap, and its phases by slot.
    pub(in crate::store) fn from_past(figures: &StepFigures, gap_ns: u64, phase_ns: &[u64]) -> Self {
        let StepFigures { ordinal, step, period_start_ns, .. } = figures;
        let period = Period { start_ns: *period_start_ns, period_ns: figures.period_ns(), gap_ns, phase_ns };
        Self { ordinal: *ordinal, head: StepHead::new(step, &period), phase_ns: phase_ns.into() }
    }

    /// The step's number in the table.
    pub(in crate::store) fn ordinal(&self) -> u64 {
        self.ordinal
    }

    fn from_row(row: &StepRow<'_>) -> Self {
        Self { ordinal: row.ordinal(), head: *row.head(), phase_ns: row.phases().into() }
    }

    pub(in crate::store) fn row(&self) -> StepRow<'_> {
        StepRow::new(self.ordinal, &self.head, &self.phase_ns)
    }
}

/// What is left of some consecutive steps.
#[derive(Clone, Debug)]
pub(in crate::store) struct StepGroup {
    first: u64,
    steps: u64,
    worst: StoredStep,
    median: StoredStep,
}

impl StepGroup {
    /// Reduces rows; `None` if there are none.
    fn from_rows(rows: &mut [StepRow<'_>]) -> Option<Self> {
        let first = rows.first()?.ordinal();
        let worst = StoredStep::from_row(rows.iter().max_by_key(|row| row.period_ns())?);
        let middle = (rows.len() - 1) / 2;
        let (_, median, _) = rows.select_nth_unstable_by_key(middle, |row| (row.period_ns(), row.ordinal()));
        Some(Self { first, median: StoredStep::from_row(median), worst, steps: rows.len() as u64 })
    }

    /// A group of which only the worst and an approximately median step are known.
    pub(in crate::store) fn from_past(ordinals: Range<u64>, worst: StoredStep, median: StoredStep) -> Self {
        Self { first: ordinals.start, steps: ordinals.end - ordinals.start, worst, median }
    }

    /// Merges consecutive groups.
    fn merge(groups: &[Self]) -> Option<Self> {
        let first = groups.first()?.first;
        let steps = groups.iter().map(|group| group.steps).sum();
        let worst = groups.iter().map(|group| &group.worst).max_by_key(|known| known.head.period_ns)?.clone();
        let mut medians: Vec<&Self> = groups.iter().collect();
        medians.sort_unstable_by_key(|group| (group.median.head.period_ns, group.first));
        let takes_upper = (first / steps) % 2 == 1;
        let mut below = 0;
        let is_middle = |group: &&&Self| {
            below += group.steps;
            if takes_upper { below * 2 > steps } else { below * 2 >= steps }
        };
        let median = medians.iter().find(is_middle)?.median.clone();
        Some(Self { first, steps, worst, median })
    }

    /// The ordinals of its steps.
    pub(in crate::store) fn ordinals(&self) -> Range<u64> {
        self.first..self.first + self.steps
    }

    /// Whether it covers a second or a minute of the past, rather than as many steps as its neighbours.
    pub(in crate::store) fn is_past(&self) -> bool {
        !self.steps.is_multiple_of(FIRST_STEPS as u64) || !self.first.is_multiple_of(FIRST_STEPS as u64)
    }

    /// Its worst step.
    pub(in crate::store) fn worst(&self) -> StepRow<'_> {
        self.worst.row()
    }

    /// Its median step.
    pub(in crate::store) fn median(&self) -> StepRow<'_> {
        self.median.row()
    }
}

/// All groups, oldest first.
#[derive(Clone, Debug)]
pub(in crate::store) struct ReducedSteps {
    groups: Vec<StepGroup>,
    capacity: usize,
}

impl ReducedSteps {
    /// No groups yet; not much more than `capacity` of them later.
    pub(in crate::store) fn new(capacity: usize) -> Self {
        Self { groups: Vec::new(), capacity: capacity.max(MERGED * 2) }
    }

    /// Adds the next group from before the kept rows.
    pub(in crate::store) fn push(&mut self, group: StepGroup) {
        if self.groups.last().is_none_or(|last| last.ordinals().end <= group.first) {
            self.groups.push(group);
        }
        if self.groups.len() > self.capacity {
            self.thin_out();
        }
    }

    /// Reduces the next rows.
    pub(in crate::store) fn push_rows(&mut self, rows: &mut [StepRow<'_>]) {
        self.groups.extend(rows.chunks_mut(FIRST_STEPS).filter_map(StepGroup::from_rows));
        if self.groups.len() > self.capacity {
            self.thin_out();
        }
    }

    /// Halves the number of groups, approximately: the newest and smallest are merged first.
    fn thin_out(&mut self) {
        let mut joined_steps = FIRST_STEPS as u64;
        while self.groups.len() > self.capacity / 2 && joined_steps < 1 << 60 {
            let mut thinned = Vec::with_capacity(self.capacity);
            let mut rest = self.groups.as_slice();
            while let Some(group) = rest.first() {
                // Groups begin at multiples of their length, so that columns of as many steps never cut one. Those of the
                // past end with a second or a minute instead, so their columns are approximate.
                let is_aligned = group.first.is_multiple_of(joined_steps * MERGED as u64);
                let fits = |four: &&[StepGroup]| {
                    let are_equal = four.iter().all(|g| g.steps == joined_steps);
                    let are_past = four.iter().all(|g| g.is_past() && g.steps <= joined_steps);
                    is_aligned && are_equal || are_past
                };
                let four = rest.get(..MERGED).filter(fits);
                thinned.push(four.and_then(StepGroup::merge).unwrap_or_else(|| group.clone()));
                rest = &rest[four.map_or(1, <[StepGroup]>::len)..];
            }
            self.groups = thinned;
            joined_steps *= MERGED as u64;
        }
    }

    /// The groups that begin within these ordinals.
    pub(in crate::store) fn within(&self, ordinals: Range<u64>) -> &[StepGroup] {
        let from = self.groups.partition_point(|group| group.first < ordinals.start);
        let to = self.groups.partition_point(|group| group.first < ordinals.end).max(from);
        &self.groups[from..to]
    }

    /// The group of this step.
    pub(in crate::store) fn group(&self, ordinal: u64) -> Option<&StepGroup> {
        let after = self.groups.partition_point(|group| group.first <= ordinal);
        self.groups.get(after.checked_sub(1)?).filter(|group| group.ordinals().contains(&ordinal))
    }

    /// The row of a step, if it is its group's worst or median.
    pub(in crate::store) fn row(&self, ordinal: u64) -> Option<StepRow<'_>> {
        let group = self.group(ordinal)?;
        [&group.worst, &group.median].into_iter().find(|known| known.ordinal == ordinal).map(StoredStep::row)
    }
}

/// One slow step.
#[derive(Clone, Debug)]
pub struct PastSlowStep {
    step: StoredStep,
    spans: Box<[Span]>,
}

impl PastSlowStep {
    pub(in crate::store) fn new(step: StoredStep, spans: &[Span]) -> Self {
        Self { step, spans: spans.into() }
    }

    /// Its number in the table, from 0.
    pub fn ordinal(&self) -> u64 {
        self.step.ordinal()
    }

    /// The step.
    pub fn row(&self) -> StepRow<'_> {
        self.step.row()
    }

    /// The longest spans of its thread, in the order of their ends.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }
}

/// All slow steps, by ordinal.
#[derive(Clone, Debug, Default)]
pub struct SlowSteps {
    all: Vec<PastSlowStep>,
}

impl SlowSteps {
    /// All slow steps, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &PastSlowStep> {
        self.all.iter()
    }

    /// The slow step with this ordinal.
    pub fn get(&self, ordinal: u64) -> Option<&PastSlowStep> {
        let at = self.all.binary_search_by_key(&ordinal, PastSlowStep::ordinal).ok()?;
        self.all.get(at)
    }

    pub(in crate::store) fn row(&self, ordinal: u64) -> Option<StepRow<'_>> {
        self.get(ordinal).map(PastSlowStep::row)
    }

    /// Adds a slow step, unless it already exists.
    pub(in crate::store) fn push(&mut self, slow: PastSlowStep) {
        if let Err(at) = self.all.binary_search_by_key(&slow.ordinal(), PastSlowStep::ordinal)
            && self.all.len() < MAX_SLOW_STEPS
        {
            self.all.insert(at, slow);
        }
    }
}
