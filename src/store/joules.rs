//! Energy of a session by component, under assumptions: counters where there are some, models where not, each with its scope.
//!
//! Two scopes are kept apart. *Device* is a whole GPU, processor or memory, whoever uses it. *Job* is what the session's
//! process used of it: a share by CPU time, or a GPU that nobody else is on.

use std::ops::Range;

use super::Store;
use super::hardware::Absence;
use super::phases::{Phase, PhaseSlot};
use super::session::SessionState;
use crate::energy::{Account, Assumptions, Figure, Label, Line, Model, PhaseFigure, PowerRange, Processor, Source};

/// Newest steps whose lengths are compared.
const STEPS_COMPARED: usize = 2000;
/// CPU time is counted in ticks of 10 ms: shares are taken over at least this long.
const SHARE_NS: u64 = 1_000_000_000;
/// What a GPU's or a package's counter may be off by, and that of memory.
const GAIN: (f64, f64) = (0.95, 1.05);
const MEMORY_GAIN: (f64, f64) = (0.8, 1.2);
/// Power beyond the most that was seen between two knots, which is a mean.
const BEYOND_SEEN: f64 = 1.5;

/// What uses energy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ComponentKind {
    /// A GPU.
    Gpu,
    /// The processors.
    Cpu,
    /// The memory.
    Memory,
}

/// Whose energy it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The whole device's.
    Device,
    /// What the session's process used of it.
    Job,
}

/// How the job's energy follows from the device's.
#[derive(Clone, Debug)]
enum JobShare {
    /// It has a model of its own.
    Own(Box<Account>),
    /// All of it: nobody else is on the device.
    All,
    /// By CPU time.
    CpuTime,
    /// Nobody knows, for this reason.
    Unknown(String),
}

/// Energy of one component.
#[derive(Clone, Debug)]
pub struct ComponentEnergy {
    /// What it is.
    pub kind: ComponentKind,
    /// Its name, such as `gpu 0`.
    pub name: String,
    /// Where its numbers come from, such as `NVML total energy` or `model: TDP 360 W by name`.
    pub source: String,
    /// Why it is not measured, where it is not.
    pub reason: Option<String>,
    /// The whole device's energy, or why there is none.
    pub device: Result<Account, String>,
    job: JobShare,
}

/// Energy of a session by component.
#[derive(Clone, Debug)]
pub struct EnergyBook<'a> {
    store: &'a Store,
    assumptions: Assumptions,
    /// GPUs, processors, memory.
    pub components: Vec<ComponentEnergy>,
}

impl Store {
    /// Energy by component under assumptions. Takes milliseconds: lines are copied and power by phase is fitted.
    pub fn energy(&self, assumptions: &Assumptions) -> EnergyBook<'_> {
        let builder = Builder::new(self, assumptions);
        let mut components = builder.gpus();
        components.extend(builder.processors());
        components.extend(builder.memory());
        EnergyBook { store: self, assumptions: assumptions.clone(), components }
    }

    /// The time that the steps cover, from the start of the first one's period to the end of the last.
    pub fn steps_time(&self) -> Option<Range<u64>> {
        let first = self.steps().known_row(0)?;
        Some(first.period_start_ns()..self.steps().last()?.end_ns())
    }
}

impl EnergyBook<'_> {
    /// Energy of one component over a time; `None` where it is not known.
    pub fn figure(&self, component: &ComponentEnergy, scope: Scope, range: Range<u64>) -> Option<Figure> {
        let figure = self.figure_so_far(component, scope, range)?;
        // Of a session that is over no further reading comes.
        let goes_on = matches!(self.store.session().state(), SessionState::Running);
        Some(Figure { is_provisional: figure.is_provisional && goes_on, ..figure })
    }

    fn figure_so_far(&self, component: &ComponentEnergy, scope: Scope, range: Range<u64>) -> Option<Figure> {
        let device = || component.device.as_ref().ok()?.figure(range.clone());
        match (scope, &component.job) {
            (Scope::Device, _) | (Scope::Job, JobShare::All) => device(),
            (Scope::Job, JobShare::Own(account)) => account.figure(range),
            (Scope::Job, JobShare::CpuTime) => Some(device()?.share(self.job_share(range.clone())?)),
            (Scope::Job, JobShare::Unknown(_)) => None,
        }
    }

    /// All components together; `None` where none is known. Says which are missing.
    pub fn total(&self, scope: Scope, range: Range<u64>) -> Option<(Figure, Vec<&str>)> {
        let mut missing = Vec::new();
        let mut all: Option<Figure> = None;
        for component in &self.components {
            match self.figure(component, scope, range.clone()) {
                Some(figure) => all = Some(all.map_or(figure, |all| all.plus(&figure))),
                None => missing.push(component.name.as_str()),
            }
        }
        all.map(|all| (all, missing))
    }

    /// Energy of the device in the steps that are kept, by phase in display order and the gap last; nothing where no counter
    /// tells it. The phases of a step add up to it.
    pub fn phases(&self, component: &ComponentEnergy) -> Vec<(&str, PhaseFigure)> {
        let account = component.device.as_ref().ok().filter(|account| account.source().best != Label::Modelled);
        let Some(account) = account.filter(|_| self.store.steps().total() > 0) else { return Vec::new() };
        let shown = self.store.phases();
        let mut slots: Vec<PhaseSlot> = shown.iter().map(|phase| phase.slot).collect();
        slots.sort_unstable();
        let mut sums = vec![0; slots.len()];
        for row in self.store.steps().all() {
            let uj = account.between_uj(row.period_start_ns()..row.end_ns());
            let phase_ns: Vec<u64> = slots.iter().map(|slot| row.phase_ns(*slot)).collect();
            sums.iter_mut().zip(account.split_uj(uj, &phase_ns)).for_each(|(sum, uj)| *sum += uj);
        }
        let figure = |phase: &'_ Phase| {
            slots.iter().position(|slot| *slot == phase.slot).map(|at| account.phase_figure(at, sums[at]))
        };
        shown.iter().filter_map(|phase| Some((phase.text.as_str(), figure(phase)?))).collect()
    }

    /// Why the job's energy of a component is not known; `None` where it is.
    pub fn no_job<'b>(&self, component: &'b ComponentEnergy) -> Option<&'b str> {
        match (&component.job, &component.device) {
            (JobShare::Unknown(reason), _) => Some(reason),
            (JobShare::Own(_), _) | (_, Ok(_)) => None,
            (_, Err(reason)) => Some(reason),
        }
    }

    /// Energy that a measured processor uses in the time when no thread of it runs; `None` for others.
    pub fn idle(&self, component: &ComponentEnergy, range: Range<u64>) -> Option<Figure> {
        let is_counter = matches!(component.job, JobShare::CpuTime);
        let account = component.device.as_ref().ok().filter(|_| is_counter)?;
        let busy = self.cpu_share("machine.cpu.busy", &range)?;
        Some(account.figure(range)?.share(1.0 - busy))
    }

    /// The job's share of a processor's energy.
    fn job_share(&self, range: Range<u64>) -> Option<f64> {
        let own = self.cpu_share("process.cpu_time", &range)?;
        let busy = self.cpu_share("machine.cpu.busy", &range)?;
        let own = own.min(busy);
        let processor = self.store.processor();
        let allotted = (processor.allotted / processor.threads.max(1) as f64).min(1.0);
        Some(if self.assumptions.shares_idle { own + (1.0 - busy) * allotted } else { own })
    }

    /// CPU time as a share of what all threads have, over at least a second.
    fn cpu_share(&self, name: &str, range: &Range<u64>) -> Option<f64> {
        let line = self.store.meters.line(name)?;
        let short_ns = SHARE_NS.saturating_sub(range.end.saturating_sub(range.start)) / 2;
        let span = line.span()?;
        let from_ns = range.start.saturating_sub(short_ns).max(span.start);
        let to_ns = range.end.saturating_add(short_ns).min(span.end);
        let ns = to_ns.checked_sub(from_ns).filter(|ns| *ns > 0)? as f64;
        let threads = self.store.processor().threads.max(1) as f64;
        Some((line.between(from_ns..to_ns) as f64 / ns / threads).clamp(0.0, 1.0))
    }
}

impl Store {
    /// What is known of the processors from the session's signals.
    fn processor(&self) -> Processor {
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
struct Builder<'a> {
    store: &'a Store,
    assumptions: &'a Assumptions,
    steps_ns: Vec<u64>,
}

impl<'a> Builder<'a> {
    fn new(store: &'a Store, assumptions: &'a Assumptions) -> Self {
        let newest = store.steps().all().rev().take(STEPS_COMPARED);
        Self { store, assumptions, steps_ns: newest.map(|row| row.period_ns()).collect() }
    }

    fn gpus(&self) -> Vec<ComponentEnergy> {
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
        ComponentEnergy { kind: ComponentKind::Gpu, name, source: source.to_owned(), reason, device: Ok(account), job }
    }

    fn processors(&self) -> Vec<ComponentEnergy> {
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
        let is_given = self.assumptions.cpu_watts.is_some();
        let device = match busy {
            _ if is_given => Ok(self.modelled(&all, None)),
            Some(busy) => Ok(self.modelled(&all, Some(busy))),
            None => Err("the load of the processors was not read".to_owned()),
        };
        let job = match of_job {
            _ if is_given => JobShare::All,
            Some(of_job) => JobShare::Own(Box::new(self.modelled(&own, Some(of_job)))),
            None => JobShare::Unknown("the CPU time of the process was not read".to_owned()),
        };
        vec![self.model_component(ComponentKind::Cpu, "cpu", &own, device, job)]
    }

    fn memory(&self) -> Vec<ComponentEnergy> {
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
        ComponentEnergy { kind, name: name.to_owned(), source: format!("model: {}", model.basis), reason, device, job }
    }

    /// The components with a counter whose signals begin so.
    fn counted(&self, prefix: &str, kind: ComponentKind, gain: (f64, f64)) -> Vec<ComponentEnergy> {
        let names = self.store.meters.names().filter(|name| name.starts_with(prefix) && name.ends_with(".energy"));
        let component = |name: &str| {
            let line = self.store.meters.line(name)?;
            let signal = self.store.signals().find(name)?;
            let account = self.account(line, Label::Measured, gain, None, true);
            Some(ComponentEnergy {
                kind,
                name: name.strip_suffix(".energy").unwrap_or(name).replace('.', " "),
                source: format!("{} {}", signal.source, signal.device),
                reason: None,
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
    ComponentEnergy { kind, name: name.to_owned(), source, reason: Some(reason.clone()), device: Err(reason), job }
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
