//! Energy of one component of a machine, and what of it is the job's.
//!
//! Two scopes are kept apart. *Device* is a whole GPU, processor or memory, whoever uses it. *Job* is what the session's
//! process used of it: a share by CPU time, or a GPU that nobody else is on.

use std::ops::Range;

use serde::Serialize;

use super::account::{Account, PhaseFigure};
use super::cross_check::CrossCheck;
use super::label::Label;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The whole device's.
    Device,
    /// What the session's process used of it.
    Job,
}

impl Scope {
    /// `device` or `job`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Job => "job",
        }
    }
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
    /// Where its numbers come from, such as `NVML total energy` or `model: TDP 360 W by name`; `None` where there are none.
    pub source: Option<String>,
    /// Why it is not measured, where it is not.
    pub reason: Option<String>,
    /// How its counter lies beside its power, where it tells both.
    pub check: CrossCheck,
    /// The whole device's energy, or why there is none.
    pub device: Result<Account, String>,
    pub(super) job: JobShare,
}

/// A time of which it is known how long each phase took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhasedTime {
    /// From when to when.
    pub time: Range<u64>,
    /// How long each phase took in it, in the order of the profile's phases, the gap last; in nanoseconds.
    pub phase_ns: Vec<u64>,
}

impl ComponentEnergy {
    /// A component of which nothing is known, for this reason.
    pub(super) fn missing(kind: ComponentKind, name: &str, reason: String) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            source: None,
            reason: Some(reason.clone()),
            check: CrossCheck::default(),
            device: Err(reason.clone()),
            job: JobShare::Unknown(reason),
        }
    }

    /// The account that its energy in a scope follows from; `None` where it is not known.
    pub(super) fn account(&self, scope: Scope) -> Option<&Account> {
        match (scope, &self.job) {
            (Scope::Job, JobShare::Own(account)) => Some(account),
            (Scope::Job, JobShare::Unknown(_)) => None,
            (Scope::Device, _) | (Scope::Job, JobShare::All | JobShare::CpuTime) => self.device.as_ref().ok(),
        }
    }

    /// Energy of the device in some times by phase, in the order of their phases; `None` where no counter tells it. The phases
    /// of a time add up to it.
    pub fn by_phase(&self, times: impl IntoIterator<Item = PhasedTime>) -> Option<Vec<PhaseFigure>> {
        let account = self.device.as_ref().ok().filter(|account| account.source().best != Label::Modelled)?;
        let mut sums: Vec<u64> = Vec::new();
        for PhasedTime { time, phase_ns } in times {
            sums.resize(sums.len().max(phase_ns.len()), 0);
            let parts = account.split_uj(account.between_uj(time), &phase_ns);
            sums.iter_mut().zip(parts).for_each(|(sum, uj)| *sum += uj);
        }
        Some(sums.into_iter().enumerate().map(|(phase, uj)| account.phase_figure(phase, uj)).collect())
    }
}
