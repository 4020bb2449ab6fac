//! The memory of a device from the counters with known names that the program publishes, by phase and by purpose.

use gnntop_wire::device_memory as names;

use crate::store::contents::Store;
use crate::store::signals::signal::CounterSeries;

/// Counters of a device's memory, in bytes. See [`gnntop_wire::device_memory`] for the meaning of each.
#[derive(Clone, Debug, Default)]
pub struct DeviceMemory<'a> {
    /// Held by tensors when a measured step ended.
    pub used: Option<&'a CounterSeries>,
    /// Held by tensors, at most, since the last measured step.
    pub peak: Option<&'a CounterSeries>,
    /// Taken from the device.
    pub reserved: Option<&'a CounterSeries>,
    /// Taken from the device, at most.
    pub reserved_peak: Option<&'a CounterSeries>,
    /// Not taken by any program.
    pub free: Option<&'a CounterSeries>,
    /// The device's total.
    pub total: Option<&'a CounterSeries>,
    /// Number of allocations in a measured step.
    pub allocations: Option<&'a CounterSeries>,
    /// By phase, in the order of appearance: name, peak held by tensors, peak reserved.
    pub phases: Vec<(&'a str, &'a CounterSeries, Option<&'a CounterSeries>)>,
    /// By purpose: name, how the figure is derived, and the figure.
    pub kinds: Vec<(&'static str, &'static str, &'a CounterSeries)>,
}

impl CounterSeries {
    /// The newest value; `None` if it was NaN or infinite.
    pub fn last(&self) -> Option<f64> {
        self.series.last().and_then(|point| point.value())
    }
}

impl DeviceMemory<'_> {
    /// The share (0 to 1) of reserved memory that no tensor uses: cached, or in holes between tensors.
    pub fn fragmentation(&self) -> Option<f64> {
        let (used, reserved) = (self.used?.last()?, self.reserved?.last()?);
        (reserved > 0.0).then(|| ((reserved - used) / reserved).clamp(0.0, 1.0))
    }
}

impl Store {
    /// The device's memory, if the program publishes it.
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

    /// The program's counters, except for those of its device's memory.
    pub fn own_counters(&self) -> impl Iterator<Item = &CounterSeries> {
        self.counters().iter().filter(|counter| !names::is_one(self.name(counter.name)))
    }
}
