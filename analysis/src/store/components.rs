//! What a session's energy is known by: for each GPU, the processors and the memory the best source there is, counters before
//! models.

use super::Store;
use super::hardware::Absence;
use super::joules::{ComponentEnergy, ComponentKind, JobShare, NO_CPU_TIME};
use crate::energy::{Account, Assumptions, CrossCheck, Label, Line, Model, PowerRange, Processor, Source};

/// Newest steps whose lengths are compared.
const STEPS_COMPARED: usize = 2000;
/// What a GPU's or a package's counter may be off by, and that of memory.
const GAIN: (f64, f64) = (0.95, 1.05);
const MEMORY_GAIN: (f64, f64) = (0.8, 1.2);
/// What sources of signals begin with that were imported from a table, and what their numbers may be off by: as models of memory.
const IMPORTED: &str = "column ";
const IMPORTED_GAIN: (f64, f64) = (1.0 / 3.0, 3.0);
/// Power beyond the most that was seen between two knots, which is a mean.
const BEYOND_SEEN: f64 = 1.5;

impl Store {
    /// How many processes of the run there are on this session's machine: each rank is one, but for those that are threads.
    pub(super) fn processes_of_the_run(&self) -> u32 {
        let place = self.session().info().and_then(|info| info.place.as_deref());
        place.filter(|place| !place.engine.ends_with("threads")).map_or(1, |place| place.host_ranks.max(1))
    }

    /// What is known of the processors from the session's signals.
    pub(super) fn processor(&self) -> Processor {
        let gauge = |name: &str| self.hardware().reading(name).ok();
        let is_core = |name: &str| name.strip_prefix("machine.cpu.")?.strip_suffix(".busy")?.parse::<u32>().ok();
        let cores = self.signals().all().iter().filter(|signal| is_core(&signal.name).is_some()).count();
        let threads = gauge("machine.cpu.threads").map_or(cores as u64, |count| count as u64);
        let allowed = gauge("allotted.cpu.threads").unwrap_or(threads as f64);
        let quota = gauge("allotted.cpu.quota").map_or(f64::MAX, |millipercent| millipercent / 1e5);
        Processor {
            name: self.signals().find("machine.cpu.threads").map(|signal| signal.device.clone()).unwrap_or_default(),
            sockets: gauge("machine.cpu.sockets").map_or(0, |count| count as u64),
            threads,
            allotted: allowed.min(quota).min(threads as f64),
        }
    }
}

/// Puts the components together.
pub(super) struct Builder<'a> {
    store: &'a Store,
    assumptions: &'a Assumptions,
    steps_ns: Vec<u64>,
    /// Processes of the run on this machine.
    sharers: u32,
}

impl<'a> Builder<'a> {
    pub(super) fn new(store: &'a Store, assumptions: &'a Assumptions) -> Self {
        let newest = store.steps().all().rev().take(STEPS_COMPARED);
        let sharers = store.processes_of_the_run();
        Self { store, assumptions, steps_ns: newest.map(|row| row.period_ns()).collect(), sharers }
    }

    pub(super) fn gpus(&self) -> Vec<ComponentEnergy> {
        let gpus = self.store.hardware().gpus();
        if gpus.is_empty() {
            let absence = self.store.hardware().no_gpu().unwrap_or(Absence::NotPublished);
            let reason = absence.to_string();
            return vec![missing(ComponentKind::Gpu, "gpu", reason)];
        }
        gpus.into_iter().map(|gpu| self.gpu(gpu)).collect()
    }

    fn gpu(&self, gpu: u32) -> ComponentEnergy {
        let sources = [
            ("energy", "NVML total energy", Label::Measured),
            ("power.instant", "NVML field 186, added up over time", Label::Interpolated),
            ("power", "NVML power usage, a mean over a second, added up over time", Label::Interpolated),
        ];
        let name = format!("gpu {gpu}");
        let found = sources.into_iter().find_map(|(quantity, source, label)| {
            Some((self.store.meters.line(&format!("gpu.{gpu}.{quantity}"))?, source, label))
        });
        let Some((line, source, best)) = found else {
            let reason = self.reason(&format!("gpu.{gpu}.energy"));
            return missing(ComponentKind::Gpu, &name, reason);
        };
        let limit = self.store.hardware().gpu(gpu, "power.limit").ok().map(|milliwatts| milliwatts / 1e3);
        // Phases are stamped by the host, which does not wait for the GPU: they say nothing of when it works.
        let account = self.account(line, best, GAIN, limit, false);
        let others = self.store.hardware().gpu(gpu, "processes").ok();
        let own = self.store.hardware().gpu(gpu, "process.memory").is_ok();
        let job = match others {
            Some(count) if count <= 1.0 && own => JobShare::All,
            Some(count) if count > 1.0 => JobShare::Unknown(format!("{count:.0} processes share the GPU")),
            _ => JobShare::Unknown("whether the process is alone on the GPU is not known".to_owned()),
        };
        let reason = (best != Label::Measured).then(|| self.reason(&format!("gpu.{gpu}.energy")));
        let check = self.cross_check(gpu);
        let source = source.to_owned();
        ComponentEnergy { kind: ComponentKind::Gpu, name, source, reason, check, device: Ok(account), job }
    }

    /// A GPU's counter beside its power.
    fn cross_check(&self, gpu: u32) -> CrossCheck {
        let line = |quantity: &str| self.store.meters.line(&format!("gpu.{gpu}.{quantity}"));
        let power = line("power.instant").or_else(|| line("power"));
        line("energy").zip(power).map(|(counted, added_up)| CrossCheck::of(counted, added_up)).unwrap_or_default()
    }

    pub(super) fn processors(&self) -> Vec<ComponentEnergy> {
        if self.assumptions.cpu_watts.is_none() {
            let counted = self.counted("cpu.", ComponentKind::Cpu, GAIN);
            if !counted.is_empty() {
                return counted;
            }
        }
        let processor = self.store.processor();
        let whole = Processor { allotted: processor.threads as f64, ..processor.clone() };
        let model = |of: &Processor| match self.assumptions.cpu_watts {
            Some(watts) => Some(Model::given(watts)),
            None => Model::of_processor(of, self.assumptions.tdp_watts),
        };
        let (Some(all), Some(own)) = (model(&whole), model(&processor)) else {
            return vec![missing(ComponentKind::Cpu, "cpu", self.reason("cpu.0.energy"))];
        };
        let busy = self.store.meters.line("machine.cpu.busy").map(|line| (line, whole.allotted));
        let of_job = self.store.meters.line("process.cpu_time").map(|line| (line, processor.allotted));
        let own = own.shared_by(self.sharers);
        let is_given = self.assumptions.cpu_watts.is_some();
        let device = match busy {
            _ if is_given => Ok(self.modelled(&all, None)),
            Some(busy) => Ok(self.modelled(&all, Some(busy))),
            None => Err("the load of the processors was not read".to_owned()),
        };
        let job = match of_job {
            _ if is_given => JobShare::Own(Box::new(self.modelled(&own, None))),
            Some(of_job) => JobShare::Own(Box::new(self.modelled(&own, Some(of_job)))),
            None => JobShare::Unknown(NO_CPU_TIME.to_owned()),
        };
        vec![self.model_component(ComponentKind::Cpu, "cpu", &own, device, job)]
    }

    pub(super) fn memory(&self) -> Vec<ComponentEnergy> {
        if self.assumptions.ram_watts.is_none() {
            let counted = self.counted("dram.", ComponentKind::Memory, MEMORY_GAIN);
            if !counted.is_empty() {
                return counted;
            }
        }
        let hardware = self.store.hardware();
        let bytes = hardware.machine_memory_total_bytes().unwrap_or(0.0);
        let modules = hardware.reading("machine.memory.modules").ok().map(|count| count as u64);
        let limit = hardware.reading("allotted.memory").unwrap_or(f64::MAX).min(bytes);
        let model = |share: f64| match self.assumptions.ram_watts {
            Some(watts) => Some(Model::given(watts)),
            None => Model::of_memory(bytes, modules, share),
        };
        let (Some(all), Some(own)) = (model(1.0), model(limit / bytes)) else {
            return vec![missing(ComponentKind::Memory, "memory", self.reason("dram.0.energy"))];
        };
        let own = own.shared_by(self.sharers);
        let job = JobShare::Own(Box::new(self.modelled(&own, None)));
        vec![self.model_component(ComponentKind::Memory, "memory", &own, Ok(self.modelled(&all, None)), job)]
    }

    fn model_component(
        &self,
        kind: ComponentKind,
        name: &str,
        model: &Model,
        device: Result<Account, String>,
        job: JobShare,
    ) -> ComponentEnergy {
        let counter = if kind == ComponentKind::Cpu { "cpu.0.energy" } else { "dram.0.energy" };
        let is_given = model.basis.ends_with("as given");
        let reason = (!is_given).then(|| self.reason(counter));
        let (name, source) = (name.to_owned(), format!("model: {}", model.basis));
        ComponentEnergy { kind, name, source, reason, check: CrossCheck::default(), device, job }
    }

    /// The components with a counter whose signals begin so.
    fn counted(&self, prefix: &str, kind: ComponentKind, gain: (f64, f64)) -> Vec<ComponentEnergy> {
        let names = self.store.meters.names().filter(|name| name.starts_with(prefix) && name.ends_with(".energy"));
        let component = |name: &str| {
            let line = self.store.meters.line(name)?;
            let signal = self.store.signals().find(name)?;
            // A table does not say how its numbers came about, and tools that write such tables mostly model them.
            let is_imported = signal.source.starts_with(IMPORTED);
            let (best, gain) = if is_imported { (Label::Modelled, IMPORTED_GAIN) } else { (Label::Measured, gain) };
            let reason = is_imported.then(|| "how the table's numbers were found is not known".to_owned());
            let account = self.account(line, best, gain, None, true);
            Some(ComponentEnergy {
                kind,
                name: name.strip_suffix(".energy").unwrap_or(name).replace('.', " "),
                source: format!("{} {}", signal.source, signal.device).trim_end().to_owned(),
                reason,
                check: CrossCheck::default(),
                device: Ok(account),
                job: JobShare::CpuTime,
            })
        };
        names.filter_map(component).collect()
    }

    fn account(&self, line: &Line, best: Label, band: (f64, f64), limit: Option<f64>, has_phases: bool) -> Account {
        let phases = self.store.phases().len() - 1;
        let profile = if has_phases { self.store.meters.profile(phases) } else { super::meters::no_profile(phases) };
        let source = Source { best, band, power: power_range(line, limit) };
        Account::new(line.clone(), profile, source, &self.steps_ns)
    }

    fn modelled(&self, model: &Model, busy: Option<(&Line, f64)>) -> Account {
        let times = (self.store.first_ns().unwrap_or(0), self.store.now_ns());
        let line = model.line(busy, times);
        let source = Source { best: Label::Modelled, band: model.band, power: power_range(&line, None) };
        let no_phases = super::meters::no_profile(self.store.phases().len() - 1);
        Account::new(line, no_phases, source, &self.steps_ns)
    }

    /// Why a signal has no value.
    fn reason(&self, name: &str) -> String {
        match self.store.hardware().reading(name) {
            Err(absence) => absence.to_string(),
            Ok(_) => "it was read only once".to_owned(),
        }
    }
}

fn missing(kind: ComponentKind, name: &str, reason: String) -> ComponentEnergy {
    let job = JobShare::Unknown(reason.clone());
    let source = "none".to_owned();
    let check = CrossCheck::default();
    ComponentEnergy {
        kind,
        name: name.to_owned(),
        source,
        reason: Some(reason.clone()),
        check,
        device: Err(reason),
        job,
    }
}

/// The least power seen between two knots, and the device's limit or more than the most seen.
fn power_range(line: &Line, limit: Option<f64>) -> PowerRange {
    let watts =
        |pair: &[crate::energy::Knot]| (pair[1].uj - pair[0].uj) as f64 * 1e3 / (pair[1].t_ns - pair[0].t_ns) as f64;
    let mut range = (f64::MAX, 0.0_f64);
    for watts in line.knots().windows(2).map(watts) {
        range = (range.0.min(watts), range.1.max(watts));
    }
    let most_watts = limit.unwrap_or(0.0).max(if limit.is_some() { range.1 } else { range.1 * BEYOND_SEEN });
    PowerRange { least_watts: range.0.min(most_watts), most_watts }
}
