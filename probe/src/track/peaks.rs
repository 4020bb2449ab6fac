//! Counters called after a phase, for the most memory of the device that was in use in it. Their names are made on the drain
//! thread: putting a name together takes memory and a lock, which the program's threads are not to wait for.

use gnntop_wire::{NameId, NameKind, device_memory};

use crate::names;

/// Phases that have a peak of their own.
const MAX_PHASES: usize = 32;

/// Which peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Peak {
    /// In tensors.
    Used = 0,
    /// Taken from the device.
    Reserved = 1,
}

/// The names of the counters, by phase.
#[derive(Debug, Default)]
pub(super) struct PeakNames {
    known: Vec<(u32, [NameId; 2])>,
}

impl PeakNames {
    /// The counter's name for a phase and the number of a [`Peak`]; `None` for a phase that is one too many.
    pub(super) fn of(&mut self, phase: u32, peak: u8) -> Option<NameId> {
        let known = self.known.iter().find(|(of, _)| *of == phase).map(|(_, names)| *names);
        let names = match known {
            Some(names) => names,
            None => self.add(phase)?,
        };
        names.get(usize::from(peak)).copied()
    }

    fn add(&mut self, phase: u32) -> Option<[NameId; 2]> {
        if self.known.len() >= MAX_PHASES {
            return None;
        }
        let text = names::text(phase)?;
        let name = |of: &str| names::intern(NameKind::Counter, &format!("{of}{text}")).id();
        let names = [device_memory::PEAK_IN, device_memory::RESERVED_PEAK_IN].map(name);
        self.known.push((phase, names));
        Some(names)
    }
}
