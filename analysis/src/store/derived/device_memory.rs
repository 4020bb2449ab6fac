//! The memory of a device as its program publishes it: counters with names that are known, by phase and by what it is for.

use gnntop_wire::device_memory as names;

use crate::store::contents::Store;
use crate::store::signals::signal::CounterSeries;

/// Counters of a device's memory, in bytes. See [`gnntop_wire::device_memory`] for what each says.
#[derive(Clone, Debug, Default)]
pub struct DeviceMemory<'a> {
    /// In tensors when a measured step ended.
    pub used: Option<&'a CounterSeries>,
    /// In tensors, the most since the measured step before.
    pub peak: Option<&'a CounterSeries>,
    /// Taken from the device.
    pub reserved: Option<&'a CounterSeries>,
    /// Taken from the device, the most.
    pub reserved_peak: Option<&'a CounterSeries>,
    /// What no program has taken.
    pub free: Option<&'a CounterSeries>,
    /// Of the device.
    pub total: Option<&'a CounterSeries>,
    /// Allocations in a measured step; a number.
    pub allocations: Option<&'a CounterSeries>,
    /// By phase, in the order of appearance: name, the most in tensors, the most reserved.
    pub phases: Vec<(&'a str, &'a CounterSeries, Option<&'a CounterSeries>)>,
    /// By what it is for: name, how the figure comes about, and the figure.
    pub kinds: Vec<(&'static str, &'static str, &'a CounterSeries)>,
}

impl CounterSeries {
    /// The newest value, `None` where it was no number.
    pub fn last(&self) -> Option<f64> {
        self.series.last().and_then(|point| point.value())
    }
}

impl DeviceMemory<'_> {
    /// The share (0 to 1) of what is reserved that no tensor uses: kept for the next ones, or in holes between them.
    pub fn fragmentation(&self) -> Option<f64> {
        let (used, reserved) = (self.used?.last()?, self.reserved?.last()?);
        (reserved > 0.0).then(|| ((reserved - used) / reserved).clamp(0.0, 1.0))
    }
}

impl Store {
    /// The memory of the device, where the program publishes it.
    pub fn device_memory(&self) -> Option<DeviceMemory<'_>> {
        let mut memory = DeviceMemory::default();
        let mut of_phases: Vec<(&str, &CounterSeries)> = Vec::new();
        let mut is_any = false;
        for counter in self.counters() {
            let name = self.name(counter.name);
            is_any |= names::is_one(name);
            if let Some(phase) = name.strip_prefix(names::RESERVED_PEAK_IN) {
                of_phases.push((phase, counter));
            } else if let Some(phase) = name.strip_prefix(names::PEAK_IN) {
                memory.phases.push((phase, counter, None));
            } else if let Some(kind) = name.strip_prefix(names::KIND) {
                let known = names::KINDS.iter().find(|(known, _)| *known == kind);
                memory.kinds.extend(known.map(|(kind, how)| (*kind, *how, counter)));
            } else {
                *match name {
                    names::USED => &mut memory.used,
                    names::PEAK => &mut memory.peak,
                    names::RESERVED => &mut memory.reserved,
                    names::RESERVED_PEAK => &mut memory.reserved_peak,
                    names::FREE => &mut memory.free,
                    names::TOTAL => &mut memory.total,
                    names::ALLOCATIONS => &mut memory.allocations,
                    _ => continue,
                } = Some(counter);
            }
        }
        for (phase, _, reserved) in &mut memory.phases {
            *reserved = of_phases.iter().find(|(of, _)| of == phase).map(|(_, counter)| *counter);
        }
        memory.kinds.sort_by_key(|(kind, ..)| names::KINDS.iter().position(|(known, _)| known == kind));
        is_any.then_some(memory)
    }

    /// The program's counters but for those of its device's memory, which have a place of their own.
    pub fn own_counters(&self) -> impl Iterator<Item = &CounterSeries> {
        self.counters().iter().filter(|counter| !names::is_one(self.name(counter.name)))
    }
}
