//! Energy of a session by component, under assumptions: from counters if there are any, else from models, each with its scope.

use std::ops::Range;

use super::account::{Account, EnergyFigure};
use super::assumptions::Assumptions;
use super::carbon::{Intensity, IntensityError};
use super::component::{ComponentEnergy, EnergyScope, JobShare, NO_CPU_TIME, NoEnergy};
use super::components::components;
use super::inputs::EnergyInputs;
use super::line::EnergyLine;
use super::model::Processor;

/// CPU time is counted in ticks of 10 ms, so shares are taken over at least this long.
const SHARE_NS: u64 = 1_000_000_000;

/// How busy the processors were, and with whose work.
#[derive(Clone, Debug, PartialEq)]
struct ProcessorLoad {
    /// CPU time of all processes, then of the session's process, in nanoseconds instead of microjoules.
    machine: Option<EnergyLine>,
    job: Option<EnergyLine>,
    processor: Processor,
    /// Processes of the run on this machine, each charged its part of the idle time.
    sharers: u32,
}

/// Energy of a session by component, at one moment. It can be kept while the session continues.
#[derive(Clone, Debug, PartialEq)]
pub struct EnergyBook {
    /// GPUs, processors, memory.
    pub components: Vec<ComponentEnergy>,
    load: ProcessorLoad,
    shares_idle: bool,
    /// Whether further readings may come.
    is_running: bool,
}

impl EnergyBook {
    /// Energy by component under assumptions. Takes milliseconds: it copies lines and fits power by phase.
    pub fn new(inputs: &EnergyInputs<'_>, assumptions: &Assumptions) -> Self {
        let processors = &inputs.processors;
        Self {
            components: components(inputs, assumptions),
            load: ProcessorLoad {
                machine: processors.machine_busy.cloned(),
                job: processors.process_busy.cloned(),
                processor: processors.processor.clone(),
                sharers: inputs.processes,
            },
            shares_idle: assumptions.shares_idle,
            is_running: inputs.is_running,
        }
    }

    /// Energy of one component over a range; `None` if it is unknown.
    pub fn figure(&self, component: &ComponentEnergy, scope: EnergyScope, range: Range<u64>) -> Option<EnergyFigure> {
        let figure = self.account_figure(component.account(scope)?, range.clone())?;
        match (scope, &component.job) {
            (EnergyScope::Job, JobShare::CpuTime) => Some(figure.share(self.job_share(&range)?)),
            _ => Some(figure),
        }
    }

    fn account_figure(&self, account: &Account, range: Range<u64>) -> Option<EnergyFigure> {
        let figure = account.figure(range)?;
        // A finished session has no further readings.
        Some(EnergyFigure { is_provisional: figure.is_provisional && self.is_running, ..figure })
    }

    /// All components together; `None` if none is known. Also lists the missing ones.
    pub fn total(&self, scope: EnergyScope, range: Range<u64>) -> Option<(EnergyFigure, Vec<&str>)> {
        let mut missing = Vec::new();
        let mut all: Option<EnergyFigure> = None;
        for component in &self.components {
            match self.figure(component, scope, range.clone()) {
                Some(figure) => all = Some(all.map_or(figure, |all| all.plus(&figure))),
                None => missing.push(component.name.as_str()),
            }
        }
        all.map(|all| (all, missing))
    }

    /// The scope that is shown to people: the job's, if it is known of all components that the devices are known of.
    pub fn shown_scope(&self, range: Range<u64>) -> EnergyScope {
        let missing = |scope| self.total(scope, range.clone()).map(|(_, missing)| missing.len());
        match (missing(EnergyScope::Job), missing(EnergyScope::Device)) {
            (Some(job), Some(device)) if job <= device => EnergyScope::Job,
            (Some(_), None) => EnergyScope::Job,
            _ => EnergyScope::Device,
        }
    }

    /// Mean power of a component over the known part of a range, in watts; `None` if less than half of it is known.
    pub fn watts(&self, component: &ComponentEnergy, scope: EnergyScope, range: Range<u64>) -> Option<f64> {
        let account = component.account(scope)?;
        let span = account.line().span()?;
        let (from_ns, to_ns) = (range.start.max(span.start), range.end.min(span.end));
        let known_ns =
            to_ns.checked_sub(from_ns).filter(|ns| *ns > 0 && *ns >= range.end.saturating_sub(range.start) / 2)?;
        let watts = account.between_uj(from_ns..to_ns) as f64 * 1e3 / known_ns as f64;
        match (scope, &component.job) {
            (EnergyScope::Job, JobShare::CpuTime) => Some(watts * self.job_share(&range)?),
            _ => Some(watts),
        }
    }

    /// Mean power of all components known in this scope, in watts; `None` if one of them is unknown in that range.
    pub fn total_watts(&self, scope: EnergyScope, range: Range<u64>) -> Option<f64> {
        let known = self.components.iter().filter(|component| component.account(scope).is_some());
        let watts = known.map(|component| self.watts(component, scope, range.clone()));
        watts.collect::<Option<Vec<f64>>>().filter(|all| !all.is_empty()).map(|all| all.iter().sum())
    }

    /// Carbon intensity over a range under the assumptions: a person's own figure or file takes precedence over a region.
    /// `wall_ns` is the same range in nanoseconds since 1970, if known.
    ///
    /// # Errors
    /// If it is unknown, the reason.
    pub fn intensity(
        &self,
        assumptions: &Assumptions,
        scope: EnergyScope,
        range: Range<u64>,
        wall_ns: Option<Range<u64>>,
    ) -> Result<Intensity, IntensityError> {
        let series = assumptions.g_over_time.as_ref().filter(|_| assumptions.g_per_kwh.is_none());
        let Some(series) = series else { return assumptions.intensity() };
        let time = wall_ns.ok_or(IntensityError::UnknownTime)?;
        let ran = |wall_ns: u64| range.start + wall_ns.saturating_sub(time.start);
        let energy = |part: Range<u64>| {
            let figure = self.total(scope, ran(part.start)..ran(part.end));
            figure.map_or(0.0, |(figure, _)| figure.joules)
        };
        Ok(Intensity::over_time(series.weighted(time.clone(), energy)?, &series.name))
    }

    /// The time up to which all components known in this scope have been read.
    pub fn read_until(&self, scope: EnergyScope) -> Option<u64> {
        self.components.iter().filter_map(|component| self.read_until_ns(component, scope)).min()
    }

    /// The time up to which a component has been read; `None` if it is not known in this scope.
    pub fn read_until_ns(&self, component: &ComponentEnergy, scope: EnergyScope) -> Option<u64> {
        Some(component.account(scope)?.line().span()?.end)
    }

    /// Why the job's energy of a component is unknown; `None` if it is known.
    pub fn job_absence<'b>(&self, component: &'b ComponentEnergy) -> Option<&'b str> {
        match (&component.job, &component.device) {
            (JobShare::Unknown(reason), _) => Some(reason),
            (JobShare::CpuTime, Ok(_)) if self.load.job.is_none() || self.load.machine.is_none() => Some(NO_CPU_TIME),
            (JobShare::Own(_), _) | (_, Ok(_)) => None,
            (_, Err(NoEnergy(reason))) => Some(reason),
        }
    }

    /// Energy that a measured processor uses while none of its threads runs; `None` for others.
    pub fn idle(&self, component: &ComponentEnergy, range: Range<u64>) -> Option<EnergyFigure> {
        let is_counter = component.job == JobShare::CpuTime;
        let account = component.device.as_ref().ok().filter(|_| is_counter)?;
        let busy = self.cpu_share(self.load.machine.as_ref()?, &range)?;
        Some(self.account_figure(account, range)?.share(1.0 - busy))
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

    /// CPU time as a share of all threads' time, over at least a second.
    fn cpu_share(&self, line: &EnergyLine, range: &Range<u64>) -> Option<f64> {
        let short_ns = SHARE_NS.saturating_sub(range.end.saturating_sub(range.start)) / 2;
        let span = line.span()?;
        let from_ns = range.start.saturating_sub(short_ns).max(span.start);
        let to_ns = range.end.saturating_add(short_ns).min(span.end);
        let ns = to_ns.checked_sub(from_ns).filter(|ns| *ns > 0)? as f64;
        let threads = self.load.processor.threads.max(1) as f64;
        Some((line.between(from_ns..to_ns) as f64 / ns / threads).clamp(0.0, 1.0))
    }
}
