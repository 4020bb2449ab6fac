//! Energy of one component of a machine, and the job's part of it.
//!
//! There are two scopes. *Device* is a whole GPU, processor or memory, by all its users. *Job* is what the session's process
//! used of it: a share by CPU time, or a GPU that no other process uses.

use std::ops::Range;

use serde::Serialize;
use thiserror::Error;

use super::account::{Account, Label, PhaseFigure};
use super::cross_check::CrossCheck;

/// Why a processor's energy cannot be divided.
pub(super) const NO_CPU_TIME: &str = "the CPU time of the process was not read";

/// Kind of component.
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
pub enum EnergyScope {
    /// The whole device's.
    Device,
    /// What the session's process used of it.
    Job,
}

impl EnergyScope {
    /// `device` or `job`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Job => "job",
        }
    }
}

/// How the job's energy follows from the device's.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JobShare {
    /// From its own model.
    Own(Box<Account>),
    /// All of it: no other process uses the device.
    All,
    /// By CPU time.
    CpuTime,
    /// Unknown, for this reason.
    Unknown(String),
}

/// Why the energy of a component is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct NoEnergy(pub String);

/// Energy of one component.
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentEnergy {
    /// Its kind.
    pub kind: ComponentKind,
    /// Its name, such as `gpu 0`.
    pub name: String,
    /// Source of its numbers, such as `NVML total energy` or `model: TDP 360 W by name`; `None` if it has none.
    pub source: Option<String>,
    /// Why it is not measured, if it is not.
    pub reason: Option<String>,
    /// The power that it is limited to, in watts, if known.
    pub limit_watts: Option<f64>,
    /// Comparison of its counter with its power, if it has both.
    pub check: CrossCheck,
    /// The whole device's energy, or why it is unknown.
    pub device: Result<Account, NoEnergy>,
    pub(super) job: JobShare,
}

/// A range of time and how long each phase took in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhasedTime {
    /// The range.
    pub time: Range<u64>,
    /// Time of each phase in it, in nanoseconds, in the order of the profile's phases, the gap last.
    pub phase_ns: Vec<u64>,
}

impl ComponentEnergy {
    /// A component about which nothing is known, for this reason.
    pub(super) fn missing(kind: ComponentKind, name: &str, reason: String) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            source: None,
            reason: Some(reason.clone()),
            limit_watts: None,
            check: CrossCheck::default(),
            device: Err(NoEnergy(reason.clone())),
            job: JobShare::Unknown(reason),
        }
    }

    /// The account of its energy in a scope; `None` if it is unknown.
    pub(super) fn account(&self, scope: EnergyScope) -> Option<&Account> {
        match (scope, &self.job) {
            (EnergyScope::Job, JobShare::Own(account)) => Some(account),
            (EnergyScope::Job, JobShare::Unknown(_)) => None,
            (EnergyScope::Device, _) | (EnergyScope::Job, JobShare::All | JobShare::CpuTime) => {
                self.device.as_ref().ok()
            }
        }
    }

    /// The device's energy in some ranges by phase, in the order of their phases; `None` if no counter measures it. The
    /// phases of a range add up to it.
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
