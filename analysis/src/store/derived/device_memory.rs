//! The memory of a device from the counters of it that the program publishes, by phase and by purpose.

use gnntop_wire::{DeviceMemory as Figure, NameId, Purpose, Reported};

use crate::store::contents::Store;
use crate::store::signals::signal::CounterSeries;

/// Counters of a device's memory, in bytes. See [`gnntop_wire::DeviceMemory`] for the meaning of each.
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
    /// How often cached blocks were given back to the device because it had no memory left.
    pub retries: Option<&'a CounterSeries>,
    /// How often that did not help.
    pub out_of_memory: Option<&'a CounterSeries>,
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
        let mut reserved_in: Vec<(NameId, &CounterSeries)> = Vec::new();
        let (mut phases, mut kinds, mut is_any) = (Vec::new(), Vec::<(Purpose, _)>::new(), false);
        for counter in self.counters() {
            let Some(Reported::Memory(figure)) = self.reported(counter.name) else { continue };
            is_any = true;
            *match figure {
                Figure::Used => &mut memory.used,
                Figure::Peak => &mut memory.peak,
                Figure::Reserved => &mut memory.reserved,
                Figure::ReservedPeak => &mut memory.reserved_peak,
                Figure::Free => &mut memory.free,
                Figure::Total => &mut memory.total,
                Figure::Allocations => &mut memory.allocations,
                Figure::Retries => &mut memory.retries,
                Figure::OutOfMemory => &mut memory.out_of_memory,
                Figure::PeakIn(phase) => {
                    memory.phases.push((self.name(phase), counter, None));
                    phases.push(phase);
                    continue;
                }
                Figure::ReservedPeakIn(phase) => {
                    reserved_in.push((phase, counter));
                    continue;
                }
                Figure::Of(purpose) => {
                    kinds.push((purpose, counter));
                    continue;
                }
            } = Some(counter);
        }
        for (phase, (_, _, reserved)) in phases.iter().zip(&mut memory.phases) {
            *reserved = reserved_in.iter().find(|(of, _)| of == phase).map(|(_, counter)| *counter);
        }
        kinds.sort_by_key(|(purpose, _)| *purpose);
        memory.kinds = kinds.into_iter().map(|(of, counter)| (of.text(), of.derived(), counter)).collect();
        is_any.then_some(memory)
    }

    /// The program's counters, except for those of its device's memory.
    pub fn program_counters(&self) -> impl Iterator<Item = &CounterSeries> {
        self.counters().iter().filter(|counter| !matches!(self.reported(counter.name), Some(Reported::Memory(_))))
    }
}
