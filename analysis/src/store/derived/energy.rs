//! Energy of a session: passes what its signals, steps and phases show to the arithmetic as plain inputs.

use std::ops::Range;

use gnntop_wire::{Metric, Quantity, RankKind, SignalSource};

use crate::energy::{
    Assumptions, ComponentEnergy, ComponentKind, CounterInputs, CounterOrigin, EnergyBook, EnergyFigure, EnergyInputs,
    EnergyScope, GpuInputs, Intensity, IntensityError, MemoryInputs, NoEnergy, PhaseFigure, PhasedTime, Processor,
    ProcessorInputs,
};
use crate::store::contents::Store;
use crate::store::ids::phases::PhaseSlot;
use crate::store::session::SessionState;
use crate::store::signals::signal::Signal;
use crate::store::steps::step_row::StepRow;

use super::hardware::Absence;

/// Epochs that are listed, the newest ones.
const EPOCHS_LISTED: usize = 32;
/// Number of newest steps whose lengths are compared.
const STEPS_COMPARED: usize = 2000;

impl Store {
    /// Energy by component under assumptions. Takes milliseconds: it copies lines and fits power by phase.
    pub fn energy(&self, assumptions: &Assumptions) -> EnergyBook {
        EnergyBook::new(&self.energy_inputs(), assumptions)
    }

    /// Carbon intensity at a time under the assumptions.
    ///
    /// # Errors
    /// If it is unknown, the reason: see [`EnergyBook::intensity`].
    pub fn carbon_intensity(
        &self,
        book: &EnergyBook,
        assumptions: &Assumptions,
        scope: EnergyScope,
        range: Range<u64>,
    ) -> Result<Intensity, IntensityError> {
        let wall_ns = |t_ns| self.session().wall_ns(t_ns);
        let wall_ns = wall_ns(range.start).zip(wall_ns(range.end)).map(|(start, end)| start..end);
        book.intensity(assumptions, scope, range, wall_ns)
    }

    /// Energy of a device in the steps kept, by phase in display order with the gap last; empty if no counter measures it.
    /// The phases of a step add up to the step.
    pub fn energy_by_phase(&self, component: &ComponentEnergy) -> Vec<(&str, PhaseFigure)> {
        if self.steps().total() == 0 { Vec::new() } else { self.by_phase(component, self.steps().all()) }
    }

    /// The same in one step.
    pub fn step_energy_by_phase(&self, component: &ComponentEnergy, row: StepRow<'_>) -> Vec<(&str, PhaseFigure)> {
        self.by_phase(component, std::iter::once(row))
    }

    /// The time covered by the steps, from the start of the first one's period to the end of the last.
    pub fn steps_time(&self) -> Option<Range<u64>> {
        let first = self.steps().known_row(0)?;
        Some(first.period_start_ns()..self.steps().last()?.end_ns())
    }

    /// Energy of the mean step after the first `skip`.
    pub fn mean_step_energy(&self, book: &EnergyBook, scope: EnergyScope, skip: u64) -> Option<EnergyFigure> {
        let first = self.steps().known_row(skip)?;
        let range = first.period_start_ns()..self.steps().last()?.end_ns();
        let steps = self.steps().total().checked_sub(skip).filter(|steps| *steps > 0)?;
        let all = book.total(scope, range)?.0;
        let label = all.label;
        Some(EnergyFigure { label, ..all.share(1.0 / steps as f64) })
    }

    /// Energy of the newest epochs whose steps are kept, oldest first: each with its number, and whether all of its steps
    /// are in it, since it begins in what is kept, not with the first `skip` steps, and is over.
    pub fn epochs_energy(&self, book: &EnergyBook, scope: EnergyScope, skip: u64) -> Vec<(u64, bool, EnergyFigure)> {
        let mut times: Vec<(u64, Range<u64>, u64)> = Vec::new();
        for row in self.steps().all().rev() {
            let is_full = times.len() == EPOCHS_LISTED;
            match times.last_mut() {
                Some((epoch, time, first)) if *epoch == row.epoch() => {
                    (time.start, *first) = (row.period_start_ns(), row.ordinal());
                }
                _ if is_full => break,
                _ => times.push((row.epoch(), row.period_start_ns()..row.end_ns(), row.ordinal())),
            }
        }
        let oldest = self.steps().kept_ordinals().start;
        let going_on = self.unfinished_epoch();
        let energy = |(epoch, time, first)| {
            let is_whole = (first > oldest || first == 0) && first >= skip && Some(epoch) != going_on;
            Some((epoch, is_whole, book.total(scope, time)?.0))
        };
        times.into_iter().rev().filter_map(energy).collect()
    }

    fn by_phase<'r>(
        &self,
        component: &ComponentEnergy,
        rows: impl Iterator<Item = StepRow<'r>>,
    ) -> Vec<(&str, PhaseFigure)> {
        let shown = self.phases();
        // By slot, in the profile's numbering, with the gap last.
        let mut slots: Vec<PhaseSlot> = shown.iter().map(|phase| phase.slot).collect();
        slots.sort_unstable();
        // What a GPU uses follows what it does itself, where that is timed.
        let device = self.device().filter(|device| component.kind == ComponentKind::Gpu && !device.is_synchronised());
        let rows = rows.map(|row| device.and_then(|device| device.row(row.step())).unwrap_or(row));
        let times = rows.map(|row| PhasedTime {
            time: row.period_start_ns()..row.end_ns(),
            phase_ns: slots.iter().map(|slot| row.phase_ns(*slot)).collect(),
        });
        let Some(figures) = component.by_phase(times) else { return Vec::new() };
        let figure = |slot| slots.iter().position(|known| *known == slot).and_then(|at| figures.get(at).copied());
        shown.iter().filter_map(|phase| Some((phase.text.as_str(), figure(phase.slot)?))).collect()
    }

    fn energy_inputs(&self) -> EnergyInputs<'_> {
        let phases = self.phases().len() - 1;
        let newest = self.steps().all().rev().take(STEPS_COMPARED);
        EnergyInputs {
            gpus: self.gpu_inputs(),
            processors: ProcessorInputs {
                counters: self.counter_inputs(Quantity::CpuEnergy),
                no_counter: self.absence_reason(Quantity::CpuEnergy.with_instance(0)),
                processor: self.processor(),
                machine_busy: self.meters.line(Quantity::MachineCpuBusy),
                process_busy: self.meters.line(Quantity::ProcessCpuTime),
            },
            memory: self.memory_inputs(),
            processes: self.run_process_count(),
            profile: self.meters.profile(phases),
            phases,
            steps_ns: newest.map(|row| row.period_ns()).collect(),
            times_ns: (self.first_ns().unwrap_or(0), self.now_ns()),
            is_running: matches!(self.session().state(), SessionState::Running),
        }
    }

    fn gpu_inputs(&self) -> Result<Vec<GpuInputs<'_>>, NoEnergy> {
        let hardware = self.hardware();
        let gpus = hardware.gpus();
        if gpus.is_empty() {
            return Err(NoEnergy(hardware.gpu_absence().unwrap_or(Absence::NotPublished).to_string()));
        }
        let line = |gpu: u32, quantity: Quantity| self.meters.line(quantity.with_instance(gpu));
        let inputs = |gpu| GpuInputs {
            gpu,
            counted: line(gpu, Quantity::GpuEnergy),
            origin: self.gpu_origin(gpu),
            instant_power: line(gpu, Quantity::GpuPowerNow),
            mean_power: line(gpu, Quantity::GpuPower),
            no_counter: self.absence_reason(Quantity::GpuEnergy.with_instance(gpu)),
            limit_watts: hardware
                .reading(Quantity::GpuPowerLimit.with_instance(gpu))
                .ok()
                .map(|milliwatts| milliwatts / 1e3),
            processes: hardware.reading(Quantity::GpuProcesses.with_instance(gpu)).ok(),
            has_own_process: hardware.reading(Quantity::GpuProcessMemory.with_instance(gpu)).is_ok(),
        };
        Ok(gpus.into_iter().map(inputs).collect())
    }

    /// The origin of a GPU's energy: a table if any of it comes from one.
    fn gpu_origin(&self, gpu: u32) -> CounterOrigin {
        let quantities = [Quantity::GpuEnergy, Quantity::GpuPowerNow, Quantity::GpuPower];
        let signals = quantities.into_iter().filter_map(|quantity| self.signals().find(quantity.with_instance(gpu)));
        let is_table = |signal: &Signal| counter_origin(signal) == CounterOrigin::Table;
        if { signals }.any(is_table) { CounterOrigin::Table } else { CounterOrigin::Sensor }
    }

    fn memory_inputs(&self) -> MemoryInputs<'_> {
        let hardware = self.hardware();
        MemoryInputs {
            counters: self.counter_inputs(Quantity::DramEnergy),
            no_counter: self.absence_reason(Quantity::DramEnergy.with_instance(0)),
            bytes: hardware.machine_memory_total_bytes().unwrap_or(0.0),
            modules: hardware.reading(Quantity::MachineMemoryModules).ok().map(|count| count as u64),
            allotted_bytes: hardware.reading(Quantity::AllottedMemory).unwrap_or(f64::MAX),
            used_bytes: self.most_memory_used(),
        }
    }

    /// The most memory that the process has used, in bytes.
    fn most_memory_used(&self) -> Option<f64> {
        let used = self.signals().find(Quantity::ProcessRss)?.series.summary();
        (used.count > 0).then_some(used.max)
    }

    /// The counters of this energy.
    fn counter_inputs(&self, energy: Quantity) -> Vec<CounterInputs<'_>> {
        let metrics = self.meters.metrics().filter(|metric| metric.quantity() == energy);
        metrics.filter_map(|metric| self.counter_input(metric)).collect()
    }

    fn counter_input(&self, metric: Metric) -> Option<CounterInputs<'_>> {
        let signal = self.signals().find(metric)?;
        let part = if metric.quantity() == Quantity::DramEnergy { "dram" } else { "cpu" };
        Some(CounterInputs {
            name: format!("{part} {}", metric.instance()),
            source: format!("{} {}", signal.source, signal.device).trim_end().to_owned(),
            origin: counter_origin(signal),
            line: self.meters.line(metric)?,
        })
    }

    /// Why a signal has no value, as text.
    fn absence_reason(&self, metric: Metric) -> String {
        match self.hardware().reading(metric) {
            Err(absence) => absence.to_string(),
            Ok(_) => "it was read only once".to_owned(),
        }
    }

    /// Number of the run's processes on this session's machine.
    fn run_process_count(&self) -> u32 {
        let place = self.session().info().and_then(|info| info.place.as_deref());
        place.map_or(1, |place| match place.kind {
            RankKind::Thread => 1,
            RankKind::Process => place.host_ranks.max(1),
        })
    }

    /// What the session's signals say about the processors.
    fn processor(&self) -> Processor {
        let gauge = |quantity: Quantity| self.hardware().reading(quantity).ok();
        let cores = self.hardware().cores().len();
        let threads = gauge(Quantity::MachineCpuThreads).map_or(cores as u64, |count| count as u64);
        let allowed = gauge(Quantity::AllottedCpuThreads).unwrap_or(threads as f64);
        let quota = gauge(Quantity::AllottedCpuQuota).map_or(f64::MAX, |millipercent| millipercent / 1e5);
        Processor {
            name: self
                .signals()
                .find(Quantity::MachineCpuThreads)
                .map(|signal| signal.device.clone())
                .unwrap_or_default(),
            sockets: gauge(Quantity::MachineCpuSockets).map_or(0, |count| count as u64),
            threads,
            allotted: allowed.min(quota).min(threads as f64),
        }
    }
}

/// The origin of a signal.
fn counter_origin(signal: &Signal) -> CounterOrigin {
    match signal.source {
        SignalSource::Column(_) | SignalSource::Kernels => CounterOrigin::Table,
        SignalSource::Sensor(_) => CounterOrigin::Sensor,
    }
}
