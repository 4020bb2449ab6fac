//! Energy of a session by component, under assumptions: counters where there are some, models where not, each with its scope.
//!
//! Two scopes are kept apart. *Device* is a whole GPU, processor or memory, whoever uses it. *Job* is what the session's
//! process used of it: a share by CPU time, or a GPU that nobody else is on.

use std::ops::Range;

use super::Store;
use super::components::Builder;
use super::phases::{Phase, PhaseSlot};
use super::session::SessionState;
use super::steps::StepRow;
use crate::energy::{Account, Assumptions, CrossCheck, Figure, Intensity, Label, Line, PhaseFigure, Processor};

/// CPU time is counted in ticks of 10 ms: shares are taken over at least this long.
const SHARE_NS: u64 = 1_000_000_000;

/// Why a processor's energy cannot be shared.
pub(super) const NO_CPU_TIME: &str = "the CPU time of the process was not read";

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
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JobShare {
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
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentEnergy {
    /// What it is.
    pub kind: ComponentKind,
    /// Its name, such as `gpu 0`.
    pub name: String,
    /// Where its numbers come from, such as `NVML total energy` or `model: TDP 360 W by name`.
    pub source: String,
    /// Why it is not measured, where it is not.
    pub reason: Option<String>,
    /// How its counter lies beside its power, where it tells both.
    pub check: CrossCheck,
    /// The whole device's energy, or why there is none.
    pub device: Result<Account, String>,
    pub(super) job: JobShare,
}

/// How busy the processors were, and with whose work.
#[derive(Clone, Debug, PartialEq)]
struct Load {
    /// CPU time of all and of the session's process, in nanoseconds in the place of microjoules.
    machine: Option<Line>,
    job: Option<Line>,
    processor: Processor,
    /// Processes of the run on this machine, of which each bears its part of the idle time.
    sharers: u32,
}

/// Energy of a session by component, at one moment. It can be kept while the session goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct EnergyBook {
    /// GPUs, processors, memory.
    pub components: Vec<ComponentEnergy>,
    load: Load,
    shares_idle: bool,
    /// Whether further readings may come.
    goes_on: bool,
}

impl Store {
    /// Energy by component under assumptions. Takes milliseconds: lines are copied and power by phase is fitted.
    pub fn energy(&self, assumptions: &Assumptions) -> EnergyBook {
        let builder = Builder::new(self, assumptions);
        let mut components = builder.gpus();
        components.extend(builder.processors());
        components.extend(builder.memory());
        let line = |name: &str| self.meters.line(name).cloned();
        EnergyBook {
            components,
            load: Load {
                machine: line("machine.cpu.busy"),
                job: line("process.cpu_time"),
                processor: self.processor(),
                sharers: self.processes_of_the_run(),
            },
            shares_idle: assumptions.shares_idle,
            goes_on: matches!(self.session().state(), SessionState::Running),
        }
    }

    /// The time that the steps cover, from the start of the first one's period to the end of the last.
    pub fn steps_time(&self) -> Option<Range<u64>> {
        let first = self.steps().known_row(0)?;
        Some(first.period_start_ns()..self.steps().last()?.end_ns())
    }
}

impl EnergyBook {
    /// Energy of one component over a time; `None` where it is not known.
    pub fn figure(&self, component: &ComponentEnergy, scope: Scope, range: Range<u64>) -> Option<Figure> {
        let figure = self.of_account(account(component, scope)?, range.clone())?;
        match (scope, &component.job) {
            (Scope::Job, JobShare::CpuTime) => Some(figure.share(self.job_share(&range)?)),
            _ => Some(figure),
        }
    }

    fn of_account(&self, account: &Account, range: Range<u64>) -> Option<Figure> {
        let figure = account.figure(range)?;
        // Of a session that is over no further reading comes.
        Some(Figure { is_provisional: figure.is_provisional && self.goes_on, ..figure })
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

    /// Mean power of a component over the part of a time that is known, in watts; `None` where that is less than half of it.
    pub fn watts(&self, component: &ComponentEnergy, scope: Scope, range: Range<u64>) -> Option<f64> {
        let account = account(component, scope)?;
        let span = account.line().span()?;
        let (from_ns, to_ns) = (range.start.max(span.start), range.end.min(span.end));
        let known_ns =
            to_ns.checked_sub(from_ns).filter(|ns| *ns > 0 && *ns >= range.end.saturating_sub(range.start) / 2)?;
        let watts = account.between_uj(from_ns..to_ns) as f64 * 1e3 / known_ns as f64;
        match (scope, &component.job) {
            (Scope::Job, JobShare::CpuTime) => Some(watts * self.job_share(&range)?),
            _ => Some(watts),
        }
    }

    /// Mean power of all components that are known in this scope, in watts; `None` where one of them is not known in that time.
    pub fn total_watts(&self, scope: Scope, range: Range<u64>) -> Option<f64> {
        let known = self.components.iter().filter(|component| account(component, scope).is_some());
        let watts = known.map(|component| self.watts(component, scope, range.clone()));
        watts.collect::<Option<Vec<f64>>>().filter(|all| !all.is_empty()).map(|all| all.iter().sum())
    }

    /// Carbon intensity of a time under the assumptions: a figure or file of a person's before that of a region.
    ///
    /// # Errors
    /// Where there is none, with the reason.
    pub fn intensity(
        &self,
        store: &Store,
        assumptions: &Assumptions,
        scope: Scope,
        range: Range<u64>,
    ) -> Result<Intensity, String> {
        let series = assumptions.g_over_time.as_ref().filter(|_| assumptions.g_per_kwh.is_none());
        let Some(series) = series else { return assumptions.intensity() };
        let wall_ns = |t_ns| store.session().wall_ns(t_ns).ok_or("when the session ran is not known");
        let time = wall_ns(range.start)?..wall_ns(range.end)?;
        let ran = |wall_ns: u64| range.start + wall_ns.saturating_sub(time.start);
        let energy = |part: Range<u64>| {
            let figure = self.total(scope, ran(part.start)..ran(part.end));
            figure.map_or(0.0, |(figure, _)| figure.joules)
        };
        Ok(Intensity::over_time(series.weighted(time.clone(), energy)?, &series.name))
    }

    /// Up to when all components that are known in this scope have been read.
    pub fn read_until(&self, scope: Scope) -> Option<u64> {
        self.components.iter().filter_map(|component| self.read_until_ns(component, scope)).min()
    }

    /// Up to when a component has been read; `None` where it is not known in this scope.
    pub fn read_until_ns(&self, component: &ComponentEnergy, scope: Scope) -> Option<u64> {
        Some(account(component, scope)?.line().span()?.end)
    }

    /// Energy of the device in the steps that are kept, by phase in display order and the gap last; nothing where no counter
    /// tells it. The phases of a step add up to it.
    pub fn phases<'s>(&self, component: &ComponentEnergy, store: &'s Store) -> Vec<(&'s str, PhaseFigure)> {
        if store.steps().total() == 0 { Vec::new() } else { by_phase(component, store, store.steps().all()) }
    }

    /// The same in one step.
    pub fn phases_of_step<'s>(
        &self,
        component: &ComponentEnergy,
        store: &'s Store,
        row: StepRow<'s>,
    ) -> Vec<(&'s str, PhaseFigure)> {
        by_phase(component, store, std::iter::once(row))
    }

    /// Why the job's energy of a component is not known; `None` where it is.
    pub fn no_job<'b>(&self, component: &'b ComponentEnergy) -> Option<&'b str> {
        match (&component.job, &component.device) {
            (JobShare::Unknown(reason), _) => Some(reason),
            (JobShare::CpuTime, Ok(_)) if self.load.job.is_none() || self.load.machine.is_none() => Some(NO_CPU_TIME),
            (JobShare::Own(_), _) | (_, Ok(_)) => None,
            (_, Err(reason)) => Some(reason),
        }
    }

    /// Energy that a measured processor uses in the time when no thread of it runs; `None` for others.
    pub fn idle(&self, component: &ComponentEnergy, range: Range<u64>) -> Option<Figure> {
        let is_counter = component.job == JobShare::CpuTime;
        let account = component.device.as_ref().ok().filter(|_| is_counter)?;
        let busy = self.cpu_share(self.load.machine.as_ref()?, &range)?;
        Some(self.of_account(account, range)?.share(1.0 - busy))
    }

    /// The job's share of a processor's energy.
    fn job_share(&self, range: &Range<u64>) -> Option<f64> {
        let own = self.cpu_share(self.load.job.as_ref()?, range)?;
        let busy = self.cpu_share(self.load.machine.as_ref()?, range)?;
        let own = own.min(busy);
        let processor = &self.load.processor;
        let allotted = (processor.allotted / processor.threads.max(1) as f64).min(1.0) / f64::from(self.load.sharers);
        Some(if self.shares_idle { own + (1.0 - busy) * allotted } else { own })
    }

    /// CPU time as a share of what all threads have, over at least a second.
    fn cpu_share(&self, line: &Line, range: &Range<u64>) -> Option<f64> {
        let short_ns = SHARE_NS.saturating_sub(range.end.saturating_sub(range.start)) / 2;
        let span = line.span()?;
        let from_ns = range.start.saturating_sub(short_ns).max(span.start);
        let to_ns = range.end.saturating_add(short_ns).min(span.end);
        let ns = to_ns.checked_sub(from_ns).filter(|ns| *ns > 0)? as f64;
        let threads = self.load.processor.threads.max(1) as f64;
        Some((line.between(from_ns..to_ns) as f64 / ns / threads).clamp(0.0, 1.0))
    }
}

/// The account that a component's energy in a scope follows from; `None` where it is not known.
fn account(component: &ComponentEnergy, scope: Scope) -> Option<&Account> {
    match (scope, &component.job) {
        (Scope::Job, JobShare::Own(account)) => Some(account),
        (Scope::Job, JobShare::Unknown(_)) => None,
        (Scope::Device, _) | (Scope::Job, JobShare::All | JobShare::CpuTime) => component.device.as_ref().ok(),
    }
}

/// Energy of the device in some steps by phase, in display order and the gap last.
fn by_phase<'s>(
    component: &ComponentEnergy,
    store: &'s Store,
    rows: impl Iterator<Item = StepRow<'s>>,
) -> Vec<(&'s str, PhaseFigure)> {
    let account = component.device.as_ref().ok().filter(|account| account.source().best != Label::Modelled);
    let Some(account) = account else { return Vec::new() };
    let shown = store.phases();
    let mut slots: Vec<PhaseSlot> = shown.iter().map(|phase| phase.slot).collect();
    slots.sort_unstable();
    let mut sums = vec![0; slots.len()];
    for row in rows {
        let uj = account.between_uj(row.period_start_ns()..row.end_ns());
        let phase_ns: Vec<u64> = slots.iter().map(|slot| row.phase_ns(*slot)).collect();
        sums.iter_mut().zip(account.split_uj(uj, &phase_ns)).for_each(|(sum, uj)| *sum += uj);
    }
    let figure = |phase: &'_ Phase| {
        slots.iter().position(|slot| *slot == phase.slot).map(|at| account.phase_figure(at, sums[at]))
    };
    shown.iter().filter_map(|phase| Some((phase.text.as_str(), figure(phase)?))).collect()
}
