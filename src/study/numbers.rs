//! The summary of one recording: numbers by name, so that several runs of a setting can be combined and
//! compared with published values.

use std::collections::BTreeMap;

use gnntop_wire::phase::{DATA_WAIT, GATHER, SAMPLE};

use super::published::median;
use crate::report::{Component, Options, Report};
use gnntop_analysis::energy::Scope;
use gnntop_analysis::findings::{Class, Kind, classes};
use gnntop_analysis::ranks::Run;
use gnntop_analysis::store::{PhaseSlot, StepRow, Store};

/// Phases in which a loop gets its batch. What a step takes without them and without the gap is its work, which is
/// what timers around a step see.
const LOADING: [&str; 4] = [DATA_WAIT, SAMPLE, GATHER, ASSEMBLE];
/// The names of our workloads for putting a batch together.
const ASSEMBLE: &str = "assemble";

/// What a number is a number of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Time,
    /// A share from 0 to 1.
    Share,
    /// How many.
    Count,
    /// How many per second.
    Rate,
    /// Bytes.
    Bytes,
    /// Cores.
    Cores,
    /// Joules.
    Energy,
    /// Grams of CO2-equivalent.
    Carbon,
    /// What a program counts itself.
    Number,
}

/// What is measured, beside `share PHASE` (of the wall time), `work share PHASE` (of the work), `energy share COMPONENT`
/// and `last COUNTER`.
pub(super) const MEASURES: [(&str, Unit); 35] = [
    ("steps", Unit::Count),
    ("epochs", Unit::Count),
    ("steps per second", Unit::Rate),
    ("graphs per second", Unit::Rate),
    ("seeds per second", Unit::Rate),
    ("period p50", Unit::Time),
    ("period p90", Unit::Time),
    ("period p99", Unit::Time),
    ("period mean", Unit::Time),
    ("step p50", Unit::Time),
    ("step p90", Unit::Time),
    ("step p99", Unit::Time),
    ("step mean", Unit::Time),
    ("work p50", Unit::Time),
    ("work mean", Unit::Time),
    ("work max", Unit::Time),
    ("between mean", Unit::Time),
    ("gap mean", Unit::Time),
    ("epoch first", Unit::Time),
    ("epoch wall", Unit::Time),
    ("epoch work", Unit::Time),
    ("full batch p50", Unit::Time),
    ("partial batch p50", Unit::Time),
    ("partial batches", Unit::Count),
    ("spikes", Unit::Count),
    ("outliers", Unit::Count),
    ("heap peak", Unit::Bytes),
    ("resident peak", Unit::Bytes),
    ("process cpu", Unit::Cores),
    ("machine memory mean", Unit::Bytes),
    ("gpu utilisation", Unit::Share),
    ("energy per step", Unit::Energy),
    ("energy per epoch", Unit::Energy),
    ("carbon per step", Unit::Carbon),
    ("carbon per epoch", Unit::Carbon),
];
/// Components of energy by the word their names begin with.
const COMPONENTS: [&str; 3] = ["cpu", "gpu", "memory"];

/// The unit of a measure; `None` if there is no such measure.
pub fn unit_of(measure: &str) -> Option<Unit> {
    let of_phase = measure.strip_prefix("work share ").or(measure.strip_prefix("share "));
    if of_phase.is_some_and(|phase| !phase.is_empty()) {
        return Some(Unit::Share);
    }
    if measure.strip_prefix("energy share ").is_some_and(|component| COMPONENTS.contains(&component)) {
        return Some(Unit::Share);
    }
    if measure.strip_prefix("last ").is_some_and(|counter| !counter.is_empty()) {
        return Some(Unit::Number);
    }
    MEASURES.iter().find(|(name, _)| *name == measure).map(|(_, unit)| *unit)
}

/// Numbers by the name of what is measured. What was not measured is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers {
    by_measure: BTreeMap<String, f64>,
    /// Where the energy comes from, such as `modelled`.
    energy_label: Option<&'static str>,
}

impl Numbers {
    /// The numbers of a recording, and its report with these options: without the steps that they leave out. The first
    /// epoch's time is with them. Of a run of several ranks they are rank 0's, and work per second the run's. `None` if
    /// no step is left.
    pub fn of(run: &Run, options: &Options) -> Option<(Self, Report)> {
        let store = run.store();
        let skip = options.skip_steps;
        let rows: Vec<StepRow<'_>> = store.steps().rows(skip..u64::MAX).collect();
        if rows.is_empty() {
            return None;
        }
        let report = Report::of_run(run, options);
        let mut numbers = Self::default();
        numbers.steps(&report);
        numbers.work(store, &rows);
        numbers.epochs(store, &rows);
        numbers.batches(store, skip);
        let spikes = report.findings.found.iter().filter(|finding| finding.kind == Kind::Spike);
        numbers.set("spikes", Some(spikes.map(|finding| finding.count).sum::<u64>() as f64));
        numbers.set("heap peak", report.memory.peak_live_bytes.map(|bytes| bytes as f64));
        numbers.hardware(&report);
        numbers.energy(&report);
        for counter in &report.counters {
            numbers.set(&format!("last {}", counter.name), counter.last);
        }
        Some((numbers, report))
    }

    /// A number.
    pub fn get(&self, measure: &str) -> Option<f64> {
        self.by_measure.get(measure).copied()
    }

    /// Where the numbers on energy come from, such as `modelled`; `None` if there are none.
    pub fn energy_label(&self) -> Option<&'static str> {
        self.energy_label
    }

    /// The names of the phases with a share, the gap among them.
    pub fn phases(&self) -> impl Iterator<Item = &str> {
        self.by_measure.keys().filter_map(|name| name.strip_prefix("share "))
    }

    /// The names of the program's own counters.
    pub fn counters(&self) -> impl Iterator<Item = &str> {
        self.by_measure.keys().filter_map(|name| name.strip_prefix("last "))
    }

    fn set(&mut self, measure: &str, value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.by_measure.insert(measure.to_owned(), value);
        }
    }

    fn steps(&mut self, report: &Report) {
        self.set("steps", Some(report.steps.reported as f64));
        let throughput = report.run.as_ref().map_or(&report.throughput, |run| &run.throughput);
        self.set("steps per second", report.throughput.steps_per_s);
        self.set("graphs per second", throughput.graphs_per_s);
        self.set("seeds per second", throughput.seeds_per_s);
        for line in &report.phases {
            let name = match line.name.as_str() {
                name @ ("period" | "step") => name,
                phase => {
                    self.set(&format!("share {phase}"), line.share);
                    continue;
                }
            };
            self.set(&format!("{name} mean"), line.durations.mean_ns);
            for (percentage, ns) in &line.durations.percentiles.0 {
                self.set(&format!("{name} p{percentage}"), ns.map(|ns| ns as f64));
            }
        }
    }

    fn work(&mut self, store: &Store, rows: &[StepRow<'_>]) {
        let loading = loading(store);
        let mut work: Vec<u64> = rows.iter().map(|row| work_ns(row, &loading)).collect();
        work.sort_unstable();
        let (total, count) = (work.iter().map(|ns| *ns as f64).sum::<f64>(), rows.len() as f64);
        let median = median_of_sorted(&work);
        self.set("work p50", median);
        self.set("work mean", Some(total / count));
        self.set("work max", work.last().map(|ns| *ns as f64));
        let beyond = |median: f64| work.iter().filter(|ns| **ns as f64 > 1.5 * median).count() as f64;
        self.set("outliers", median.map(beyond));
        let sum = |of: &dyn Fn(&StepRow<'_>) -> u64| rows.iter().map(|row| of(row) as f64).sum::<f64>();
        self.set("gap mean", Some(sum(&|row| row.gap_ns()) / count));
        self.set("between mean", Some((sum(&|row| row.period_ns()) - total) / count));
        for phase in store.phases().iter().filter(|phase| !phase.is_gap() && !LOADING.contains(&phase.text.as_str())) {
            let share = (total > 0.0).then(|| sum(&|row| row.phase_ns(phase.slot)) / total);
            self.set(&format!("work share {}", phase.text), share);
        }
    }

    /// The first epoch apart from the others, which are those without a step that is left out.
    fn epochs(&mut self, store: &Store, rows: &[StepRow<'_>]) {
        let loading = loading(store);
        let first = store.steps().row(0).map(|row| row.epoch());
        let mut epochs: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for row in store.steps().all() {
            let (wall, work) = epochs.entry(row.epoch()).or_default();
            *wall = wall.saturating_add(row.period_ns());
            *work = work.saturating_add(work_ns(&row, &loading));
        }
        self.set("epochs", Some(epochs.len() as f64));
        self.set("epoch first", first.and_then(|first| epochs.remove(&first)).map(|(wall, _)| wall as f64));
        let from = rows.first().map_or(0, |row| {
            let is_cut = row.ordinal().checked_sub(1).and_then(|before| store.steps().row(before));
            row.epoch() + u64::from(is_cut.is_some_and(|before| before.epoch() == row.epoch()))
        });
        let median = |of: fn(&(u64, u64)) -> u64| {
            let mut times: Vec<u64> = epochs.range(from..).map(|(_, times)| of(times)).collect();
            times.sort_unstable();
            median_of_sorted(&times)
        };
        self.set("epoch wall", median(|times| times.0));
        self.set("epoch work", median(|times| times.1));
    }

    /// Of the whole run: sensors know no steps.
    fn hardware(&mut self, report: &Report) {
        let hardware = &report.hardware;
        self.set("resident peak", hardware.process_rss.max);
        self.set("process cpu", hardware.process_cpu.mean);
        self.set("machine memory mean", hardware.machine_memory_used.mean);
        let busiest = hardware.gpus.iter().filter_map(|gpu| gpu.utilisation.mean).max_by(f64::total_cmp);
        self.set("gpu utilisation", busiest.map(|percent| percent / 100.0));
    }

    /// Energy in the scope that the report shows, the newest epochs without the session's first; and its carbon.
    fn energy(&mut self, report: &Report) {
        let energy = &report.energy;
        self.energy_label = energy.in_scope().map(|joules| joules.label.as_str());
        self.set("energy per step", energy.step.map(|step| step.joules));
        let later = energy.epochs.iter().skip(usize::from(report.steps.epochs <= energy.epochs.len() as u64));
        let of_epochs: Vec<f64> = later.map(|epoch| epoch.energy.joules).collect();
        self.set("energy per epoch", median(&of_epochs));
        let of = |component: &Component| if energy.scope == Scope::Job { component.job } else { component.device };
        let joules = |word: &str| {
            let named = energy.components.iter().filter(|component| component.name.starts_with(word));
            let known: Vec<f64> = named.filter_map(|component| Some(of(component)?.joules)).collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>())
        };
        let all: f64 = COMPONENTS.iter().filter_map(|word| joules(word)).sum();
        for word in COMPONENTS.iter().filter(|_| all > 0.0) {
            self.set(&format!("energy share {word}"), joules(word).map(|joules| joules / all));
        }
        if let Some(intensity) = &energy.carbon.intensity {
            for (from, to) in [("energy per step", "carbon per step"), ("energy per epoch", "carbon per epoch")] {
                let grams = self.get(from).map(|joules| intensity.kilograms(joules, energy.carbon.pue) * 1e3);
                self.set(to, grams);
            }
        }
    }

    fn batches(&mut self, store: &Store, skip: u64) {
        let classes = classes(store, skip..u64::MAX);
        let times = |class: Class| {
            let mut times: Vec<u64> =
                classes.iter().filter(|(_, of)| *of == class).map(|(row, _)| row.period_ns()).collect();
            times.sort_unstable();
            times
        };
        let partial = times(Class::Partial);
        self.set("full batch p50", median_of_sorted(&times(Class::Full)));
        self.set("partial batch p50", median_of_sorted(&partial));
        self.set("partial batches", Some(partial.len() as f64));
    }
}

fn loading(store: &Store) -> Vec<PhaseSlot> {
    LOADING.iter().filter_map(|name| store.phase(name)).map(|phase| phase.slot).collect()
}

/// The step without getting its batch and without the gap before it.
fn work_ns(row: &StepRow<'_>, loading: &[PhaseSlot]) -> u64 {
    let outside = loading.iter().fold(row.gap_ns(), |sum, slot| sum.saturating_add(row.phase_ns(*slot)));
    row.period_ns().saturating_sub(outside)
}

/// The lower median, as percentiles are given everywhere.
fn median_of_sorted(sorted: &[u64]) -> Option<f64> {
    sorted.get(sorted.len().saturating_sub(1) / 2).map(|ns| *ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measure_has_a_unit_and_others_have_none() {
        assert!(MEASURES.iter().all(|(name, unit)| unit_of(name) == Some(*unit)));
        assert_eq!(unit_of("work share forward"), Some(Unit::Share));
        assert_eq!((unit_of("share "), unit_of("step p51")), (None, None));
    }
}
