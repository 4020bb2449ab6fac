//! Chooses the best source of energy for each GPU, the processors and the memory: counters before models.

use super::account::{Account, EnergySource, Label};
use super::assumptions::Assumptions;
use super::component::{ComponentEnergy, ComponentKind, JobShare, NO_CPU_TIME, NoEnergy};
use super::cross_check::CrossCheck;
use super::inputs::{CounterInputs, CounterOrigin, EnergyInputs, GpuInputs};
use super::line::{EnergyLine, Knot, PowerRange};
use super::model::{Model, ModelOrigin, Processor};
use super::profile::Profile;

/// Possible error of a GPU's or a package's counter, and of a memory's.
const GAIN: (f64, f64) = (0.95, 1.05);
const MEMORY_GAIN: (f64, f64) = (0.8, 1.2);
/// Possible error of the numbers of an imported table: as for models of memory.
const IMPORTED_GAIN: (f64, f64) = (1.0 / 3.0, 3.0);
/// Why they are not measured.
const TABLE_NOTE: &str = "the table does not say how its numbers were obtained";
/// Assumed limit, as a multiple of the highest power between two knots, which is only a mean.
const PEAK_MARGIN: f64 = 1.5;

/// GPUs, processors and memory, each from the best source available.
pub(super) fn components(inputs: &EnergyInputs<'_>, assumptions: &Assumptions) -> Vec<ComponentEnergy> {
    let builder = Builder { inputs, assumptions };
    let mut components = builder.gpus();
    components.extend(builder.processors());
    components.extend(builder.memory());
    components
}

/// Assembles the components.
struct Builder<'a> {
    inputs: &'a EnergyInputs<'a>,
    assumptions: &'a Assumptions,
}

impl Builder<'_> {
    fn gpus(&self) -> Vec<ComponentEnergy> {
        match &self.inputs.gpus {
            Ok(gpus) => gpus.iter().map(|gpu| self.gpu(gpu)).collect(),
            Err(NoEnergy(reason)) => vec![ComponentEnergy::missing(ComponentKind::Gpu, "gpu", reason.clone())],
        }
    }

    fn gpu(&self, gpu: &GpuInputs<'_>) -> ComponentEnergy {
        let sources = [
            (gpu.counted, "NVML total energy", Label::Measured),
            (gpu.instant_power, "NVML field 186, added up over time", Label::Interpolated),
            (gpu.mean_power, "NVML power usage, a mean over a second, added up over time", Label::Interpolated),
        ];
        let name = format!("gpu {}", gpu.gpu);
        let found = sources.into_iter().find_map(|(line, source, label)| Some((line?, source, label)));
        let Some((line, source, best)) = found else {
            return ComponentEnergy::missing(ComponentKind::Gpu, &name, gpu.no_counter.clone());
        };
        let (source, best, gain) = match gpu.origin {
            CounterOrigin::Sensor => (source, best, GAIN),
            CounterOrigin::Table => ("an imported table", Label::Modelled, IMPORTED_GAIN),
        };
        // Phases have times of the host, which does not wait for the GPU, so they do not show when the GPU works.
        let account = self.account(line, best, gain, gpu.limit_watts, false);
        let job = match gpu.processes {
            Some(count) if count <= 1.0 && gpu.has_own_process => JobShare::All,
            Some(count) if count > 1.0 => JobShare::Unknown(format!("{count:.0} processes share the GPU")),
            _ => JobShare::Unknown("it is unknown whether other processes use the GPU".to_owned()),
        };
        let reason = match gpu.origin {
            CounterOrigin::Table => Some(TABLE_NOTE.to_owned()),
            CounterOrigin::Sensor => (best != Label::Measured).then(|| gpu.no_counter.clone()),
        };
        let power = gpu.instant_power.or(gpu.mean_power);
        let check = gpu.counted.zip(power).map(|(counted, added_up)| CrossCheck::compare(counted, added_up));
        let (source, check) = (Some(source.to_owned()), check.unwrap_or_default());
        let (limit_watts, device) = (gpu.limit_watts, Ok(account));
        ComponentEnergy { kind: ComponentKind::Gpu, name, source, reason, limit_watts, check, device, job }
    }

    fn processors(&self) -> Vec<ComponentEnergy> {
        let inputs = &self.inputs.processors;
        if self.assumptions.cpu_watts.is_none() && !inputs.counters.is_empty() {
            return self.counted(ComponentKind::Cpu, &inputs.counters, GAIN);
        }
        let processor = &inputs.processor;
        let whole = Processor { allotted: processor.threads as f64, ..processor.clone() };
        let model = |of: &Processor| match self.assumptions.cpu_watts {
            Some(watts) => Some(Model::from_watts(watts)),
            None => Model::for_processor(of, self.assumptions.tdp_watts),
        };
        let (Some(all), Some(own)) = (model(&whole), model(processor)) else {
            return vec![ComponentEnergy::missing(ComponentKind::Cpu, "cpu", inputs.no_counter.clone())];
        };
        let busy = inputs.machine_busy.map(|line| (line, whole.allotted));
        let of_job = inputs.process_busy.map(|line| (line, processor.allotted));
        let own = own.shared_by(self.inputs.processes);
        let device = match (all.origin, busy) {
            (ModelOrigin::User, _) => Ok(self.modelled(&all, None)),
            (ModelOrigin::Estimated, Some(busy)) => Ok(self.modelled(&all, Some(busy))),
            (ModelOrigin::Estimated, None) => Err(NoEnergy("the load of the processors was not read".to_owned())),
        };
        let job = match (own.origin, of_job) {
            (ModelOrigin::User, _) => JobShare::Own(Box::new(self.modelled(&own, None))),
            (ModelOrigin::Estimated, Some(of_job)) => JobShare::Own(Box::new(self.modelled(&own, Some(of_job)))),
            (ModelOrigin::Estimated, None) => JobShare::Unknown(NO_CPU_TIME.to_owned()),
        };
        vec![by_model(ComponentKind::Cpu, "cpu", &own, &inputs.no_counter, device, job)]
    }

    fn memory(&self) -> Vec<ComponentEnergy> {
        let inputs = &self.inputs.memory;
        if self.assumptions.ram_watts.is_none() && !inputs.counters.is_empty() {
            return self.counted(ComponentKind::Memory, &inputs.counters, MEMORY_GAIN);
        }
        let model = |share: f64, by: &str| match self.assumptions.ram_watts {
            Some(watts) => Some(Model::from_watts(watts)),
            None => Model::for_memory(inputs.bytes, inputs.modules, share, by),
        };
        let (own_share, by, processes) = self.memory_share();
        let (Some(all), Some(own)) = (model(1.0, ""), model(own_share, by)) else {
            return vec![ComponentEnergy::missing(ComponentKind::Memory, "memory", inputs.no_counter.clone())];
        };
        let own = own.shared_by(processes);
        let job = JobShare::Own(Box::new(self.modelled(&own, None)));
        let device = Ok(self.modelled(&all, None));
        vec![by_model(ComponentKind::Memory, "memory", &own, &inputs.no_counter, device, job)]
    }

    /// The job's share of the memory, by what, and how many processes it is divided among. What a limit allots to the job is
    /// kept from others; without one, the job has what it uses.
    fn memory_share(&self) -> (f64, &'static str, u32) {
        let inputs = &self.inputs.memory;
        match inputs.used_bytes {
            _ if inputs.allotted_bytes < inputs.bytes => {
                (inputs.allotted_bytes / inputs.bytes, ", allotted to the job", self.inputs.processes)
            }
            Some(used) => ((used / inputs.bytes).min(1.0), ", used by the process at most", 1),
            None => (1.0, ", as its use was not read", self.inputs.processes),
        }
    }

    /// The components with counters.
    fn counted(&self, kind: ComponentKind, counters: &[CounterInputs<'_>], gain: (f64, f64)) -> Vec<ComponentEnergy> {
        let component = |counter: &CounterInputs<'_>| {
            let (best, gain, reason) = match counter.origin {
                CounterOrigin::Sensor => (Label::Measured, gain, None),
                CounterOrigin::Table => (Label::Modelled, IMPORTED_GAIN, Some(TABLE_NOTE.to_owned())),
            };
            ComponentEnergy {
                kind,
                name: counter.name.clone(),
                source: Some(counter.source.clone()),
                reason,
                limit_watts: None,
                check: CrossCheck::default(),
                device: Ok(self.account(counter.line, best, gain, None, true)),
                job: JobShare::CpuTime,
            }
        };
        counters.iter().map(component).collect()
    }

    fn account(
        &self,
        line: &EnergyLine,
        best: Label,
        band: (f64, f64),
        limit: Option<f64>,
        has_phases: bool,
    ) -> Account {
        let profile = if has_phases { self.inputs.profile.clone() } else { self.no_profile() };
        let source = EnergySource { best, band, power: power_range(line, limit) };
        Account::new(line.clone(), profile, source, &self.inputs.steps_ns)
    }

    fn modelled(&self, model: &Model, busy: Option<(&EnergyLine, f64)>) -> Account {
        let line = model.line(busy, self.inputs.times_ns);
        let source = EnergySource { best: Label::Modelled, band: model.band, power: power_range(&line, None) };
        Account::new(line, self.no_profile(), source, &self.inputs.steps_ns)
    }

    /// A profile in which none of the session's phases is known.
    fn no_profile(&self) -> Profile {
        Profile::new(self.inputs.phases, [])
    }
}

/// A component with modelled power. A figure from a person needs no reason; otherwise there is no counter.
fn by_model(
    kind: ComponentKind,
    name: &str,
    model: &Model,
    no_counter: &str,
    device: Result<Account, NoEnergy>,
    job: JobShare,
) -> ComponentEnergy {
    let reason = match model.origin {
        ModelOrigin::User => None,
        ModelOrigin::Estimated => Some(no_counter.to_owned()),
    };
    let (name, source) = (name.to_owned(), Some(format!("model: {}", model.basis)));
    ComponentEnergy { kind, name, source, reason, limit_watts: None, check: CrossCheck::default(), device, job }
}

/// The least power between two knots, and the device's limit or more than the highest observed.
fn power_range(line: &EnergyLine, limit: Option<f64>) -> PowerRange {
    let watts = |pair: &[Knot]| (pair[1].uj - pair[0].uj) as f64 * 1e3 / (pair[1].t_ns - pair[0].t_ns) as f64;
    let mut range = (f64::MAX, 0.0_f64);
    for watts in line.knots().windows(2).map(watts) {
        range = (range.0.min(watts), range.1.max(watts));
    }
    let most_watts = limit.unwrap_or(0.0).max(if limit.is_some() { range.1 } else { range.1 * PEAK_MARGIN });
    PowerRange { least_watts: range.0.min(most_watts), most_watts }
}
