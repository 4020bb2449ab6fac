//! Counters, named after phases, of the peak device memory in each phase. The drain thread makes their names: that
//! allocates and locks, and the program's threads must not wait for either.

use gnntop_wire::{DeviceMemory, NameId, NameKind, Reported};

use crate::names;

/// Most phases with a peak of their own.
const MAX_PHASES: usize = 32;

/// Which peak it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Peak {
    /// Held by tensors.
    Used = 0,
    /// Taken from the device.
    Reserved = 1,
}

/// The names of the counters, by phase.
#[derive(Debug, Default)]
pub(super) struct PeakNames {
    names: Vec<(u32, [NameId; 2])>,
}

impl PeakNames {
    /// The counter's name for a phase and the number of a [`Peak`]; `None` for phases beyond the limit.
    pub(super) fn name(&mut self, phase: u32, peak: u8) -> Option<NameId> {
        let known = self.names.iter().find(|(of, _)| *of == phase).map(|(_, names)| *names);
        let names = match known {
            Some(names) => names,
            None => self.add(phase)?,
        };
        names.get(usize::from(peak)).copied()
    }

    fn add(&mut self, phase: u32) -> Option<[NameId; 2]> {
        if self.names.len() >= MAX_PHASES {
            return None;
        }
        let text = names::name_text(phase)?;
        let name = |peak: fn(NameId) -> DeviceMemory| {
            let what = Reported::Memory(peak(NameId(phase)));
            names::intern(NameKind::Reported(what), &format!("{}{text}", what.text())).id()
        };
        let names = [name(DeviceMemory::PeakIn), name(DeviceMemory::ReservedPeakIn)];
        self.names.push((phase, names));
        Some(names)
    }
}
