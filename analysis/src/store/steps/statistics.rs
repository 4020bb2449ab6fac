//! Running figures over steps: distributions of the period, of each phase and of the gap, and batch totals.
//!
//! The store adds every step to one of these; a report without the first steps fills another one from the rows of the table.

use gnntop_wire::past::{DurationSeries, PastTotals};
use gnntop_wire::{BatchShape, ThreadUsage};

use super::step_row::StepRow;
use super::stretches::Stretch;
use crate::store::ids::phases::PhaseSlot;
use crate::store::spans::distribution::Distribution;

/// Figures over a set of steps.
#[derive(Clone, Debug, Default)]
pub struct StepStatistics {
    step: Distribution,
    period: Distribution,
    gap: Distribution,
    /// By slot. Only steps in which the phase took time are recorded.
    phases: Vec<Distribution>,
    batch: BatchTotals,
    usage: Option<ThreadUsage>,
    epochs: EpochCount,
    first_loss: Option<f64>,
    last_loss: Option<f64>,
}

/// Sums over the batches whose size is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchTotals {
    /// Graphs.
    pub graphs: Total,
    /// Nodes.
    pub nodes: Total,
    /// Directed edges.
    pub edges: Total,
    /// Seed nodes.
    pub seeds: Total,
}

/// A sum over the steps that report a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// The sum, saturating.
    pub sum: u64,
    /// Wall time of the steps that report it, in nanoseconds.
    pub period_ns: u64,
}

impl Total {
    /// The sum per second of the steps that report it; `None` if none does.
    pub fn per_s(&self) -> Option<f64> {
        (self.period_ns > 0).then(|| self.sum as f64 * 1e9 / self.period_ns as f64)
    }

    fn add(&mut self, n: Option<u64>, period_ns: u64) {
        if let Some(n) = n {
            self.sum = self.sum.saturating_add(n);
            self.period_ns = self.period_ns.saturating_add(period_ns);
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct EpochCount {
    first: u64,
    last: u64,
    changes: u64,
}

impl StepStatistics {
    /// Figures over the given rows.
    pub fn from_rows<'a>(rows: impl IntoIterator<Item = StepRow<'a>>) -> Self {
        let mut all = Self::default();
        rows.into_iter().for_each(|row| all.add(&row));
        all
    }

    /// Adds a step, unless a deep trace has slowed it down.
    pub(in crate::store) fn add(&mut self, row: &StepRow<'_>) {
        if row.is_traced() {
            return;
        }
        self.add_epoch(row.epoch());
        self.step.record(row.work_ns());
        self.period.record(row.period_ns());
        self.gap.record(row.gap_ns());
        if self.phases.len() < row.phases().len() {
            self.phases.resize_with(row.phases().len(), Distribution::default);
        }
        for (phase, ns) in self.phases.iter_mut().zip(row.phases()).filter(|(_, ns)| **ns > 0) {
            phase.record(*ns);
        }
        self.batch.add(&row.batch(), row.period_ns());
        if let Some(usage) = row.usage() {
            add_usage(self.usage.get_or_insert_default(), &usage);
        }
        if let Some(loss) = row.loss() {
            self.first_loss.get_or_insert(loss);
            self.last_loss = Some(loss);
        }
    }

    /// Adds the durations of steps that are no longer kept individually.
    pub(in crate::store) fn add_stretch(&mut self, stretch: &Stretch) {
        self.step.add_past(&stretch.step);
        self.period.add_past(&stretch.period);
        self.gap.add_past(&stretch.gap);
        if self.phases.len() < stretch.phases.len() {
            self.phases.resize_with(stretch.phases.len(), Distribution::default);
        }
        self.phases.iter_mut().zip(&stretch.phases).for_each(|(phase, past)| phase.add_past(past));
    }

    /// Continues figures over steps that are no longer kept.
    pub(in crate::store) fn resume(&mut self, whole: &PastTotals) {
        let totals = [&mut self.batch.graphs, &mut self.batch.nodes, &mut self.batch.edges, &mut self.batch.seeds];
        for (total, past) in totals.into_iter().zip(&whole.batch) {
            total.sum = total.sum.saturating_add(past.sum);
            total.period_ns = total.period_ns.saturating_add(past.period_ns);
        }
        if let Some(usage) = &whole.usage {
            add_usage(self.usage.get_or_insert_default(), usage);
        }
        let (first, last, changes) = whole.epochs;
        let changes = changes.min(whole.steps.min(u64::MAX >> 8));
        let e = &mut self.epochs;
        *e = match self.period.count() {
            0 => EpochCount { first, last, changes },
            _ => EpochCount { last, changes: e.changes.saturating_add(changes + u64::from(e.last != first)), ..*e },
        };
        if let Some((first, last)) = whole.losses {
            self.first_loss.get_or_insert(first);
            self.last_loss = Some(last);
        }
    }

    /// The durations of steps, their gaps or a phase, for adding those of the past; `None` for those of spans.
    pub(in crate::store) fn durations_mut(
        &mut self,
        of: DurationSeries,
        slot: Option<PhaseSlot>,
    ) -> Option<&mut Distribution> {
        match of {
            DurationSeries::Step => Some(&mut self.step),
            DurationSeries::Period => Some(&mut self.period),
            DurationSeries::Gap => Some(&mut self.gap),
            DurationSeries::Phase(_) => {
                let at = slot?.index();
                if self.phases.len() <= at {
                    self.phases.resize_with(at + 1, Distribution::default);
                }
                self.phases.get_mut(at)
            }
            DurationSeries::Span { .. } => None,
        }
    }

    fn add_epoch(&mut self, epoch: u64) {
        let e = &mut self.epochs;
        if self.period.count() == 0 {
            e.first = epoch;
        } else if e.last != epoch {
            e.changes += 1;
        }
        e.last = epoch;
    }

    /// Number of steps.
    pub fn steps(&self) -> u64 {
        self.period.count()
    }

    /// Number of epochs of these steps, counting each return to an earlier one again.
    pub fn epochs(&self) -> u64 {
        if self.steps() == 0 { 0 } else { self.epochs.changes + 1 }
    }

    /// The newest step's epoch; `None` without a step.
    pub fn last_epoch(&self) -> Option<u64> {
        (self.steps() > 0).then_some(self.epochs.last)
    }

    /// Steps from their own start to their end, as in exports.
    pub fn step(&self) -> &Distribution {
        &self.step
    }

    /// Steps with the gap before them: from the end of the previous step.
    pub fn period(&self) -> &Distribution {
        &self.period
    }

    /// Time outside every phase. Includes every step, even one without a gap.
    pub fn gap(&self) -> &Distribution {
        &self.gap
    }

    /// Time per step in a phase (or in the gap), over the steps that spend any; `None` if none does.
    pub fn phase(&self, slot: PhaseSlot) -> Option<&Distribution> {
        if slot == PhaseSlot::GAP {
            return Some(&self.gap);
        }
        self.phases.get(slot.index()).filter(|phase| phase.count() > 0)
    }

    /// Wall time of all steps, which the shares of phases and gap refer to.
    pub fn tiled_ns(&self) -> u64 {
        self.period.total_ns()
    }

    /// A phase's share (0 to 1), or the gap's, of the wall time of all steps. `None` without a step.
    pub fn share(&self, slot: PhaseSlot) -> Option<f64> {
        let total = self.phase(slot).map_or(0, Distribution::total_ns);
        (self.tiled_ns() > 0).then(|| total as f64 / self.tiled_ns() as f64)
    }

    /// Sums over the batches.
    pub fn batch(&self) -> &BatchTotals {
        &self.batch
    }

    /// Steps per second of their wall time; `None` without a step.
    pub fn steps_per_s(&self) -> Option<f64> {
        (self.tiled_ns() > 0).then(|| self.steps() as f64 * 1e9 / self.tiled_ns() as f64)
    }

    /// Sum of page faults and context switches over the steps that report them.
    pub fn usage(&self) -> Option<&ThreadUsage> {
        self.usage.as_ref()
    }

    /// The first loss that the program read.
    pub fn first_loss(&self) -> Option<f64> {
        self.first_loss
    }

    /// The last loss that the program read.
    pub fn last_loss(&self) -> Option<f64> {
        self.last_loss
    }
}

impl BatchTotals {
    /// Adds a batch whose step had this period.
    pub fn add(&mut self, batch: &BatchShape, period_ns: u64) {
        self.graphs.add(batch.graphs, period_ns);
        self.nodes.add(batch.nodes, period_ns);
        self.edges.add(batch.edges, period_ns);
        self.seeds.add(batch.seeds, period_ns);
    }
}

fn add_usage(sum: &mut ThreadUsage, usage: &ThreadUsage) {
    sum.minor_faults = sum.minor_faults.saturating_add(usage.minor_faults);
    sum.major_faults = sum.major_faults.saturating_add(usage.major_faults);
    sum.voluntary_switches = sum.voluntary_switches.saturating_add(usage.voluntary_switches);
    sum.involuntary_switches = sum.involuntary_switches.saturating_add(usage.involuntary_switches);
}
