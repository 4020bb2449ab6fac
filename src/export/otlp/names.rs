//! What readings are called: by OpenTelemetry's semantic conventions where these have a name for exactly that, else by gnntop's own.

use std::borrow::Cow;

use gnntop_wire::{Quantity, Scope, SignalKind, Unit};

use super::metrics::Shape;

/// A name and a value.
type Label = (&'static str, &'static str);

/// The name of a quantity, what its values mean, and what tells it apart from others of the same name.
pub(super) struct MetricName {
    pub name: Cow<'static, str>,
    pub shape: Shape,
    pub attribute: Option<Label>,
}

/// Whose a quantity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Process,
    Machine,
}

/// Names of the conventions for systems, processes and hardware, 1.39 (<https://opentelemetry.io/docs/specs/semconv/>).
fn conventional(quantity: Quantity) -> Option<(&'static str, Shape, Option<Label>)> {
    use Shape::{Counter, Gauge, UpDown};
    Some(match quantity {
        Quantity::ProcessCpuTimeUser => ("process.cpu.time", Counter, Some(("cpu.mode", "user"))),
        Quantity::ProcessCpuTimeSystem => ("process.cpu.time", Counter, Some(("cpu.mode", "system"))),
        Quantity::ProcessRss => ("process.memory.usage", UpDown, None),
        Quantity::ProcessThreads => ("process.thread.count", UpDown, None),
        Quantity::ProcessIoReadBytes => ("process.disk.io", Counter, Some(("disk.io.direction", "read"))),
        Quantity::ProcessIoWriteBytes => ("process.disk.io", Counter, Some(("disk.io.direction", "write"))),
        Quantity::MachineMemoryUsed => ("system.memory.usage", UpDown, Some(("system.memory.state", "used"))),
        Quantity::MachineMemoryTotal => ("system.memory.limit", UpDown, None),
        Quantity::MachineMemoryAvailable => ("system.linux.memory.available", UpDown, None),
        Quantity::MachineDiskReadBytes => ("system.disk.io", Counter, Some(("disk.io.direction", "read"))),
        Quantity::MachineDiskWriteBytes => ("system.disk.io", Counter, Some(("disk.io.direction", "write"))),
        Quantity::MachineNetworkReceivedBytes => {
            ("system.network.io", Counter, Some(("network.io.direction", "receive")))
        }
        Quantity::MachineNetworkSentBytes => ("system.network.io", Counter, Some(("network.io.direction", "transmit"))),
        Quantity::GpuPower => ("hw.power", Gauge, None),
        Quantity::GpuTemperature => ("hw.temperature", Gauge, None),
        Quantity::GpuUtil => ("hw.gpu.utilization", Gauge, Some(("hw.gpu.task", "general"))),
        Quantity::GpuMemoryTotal => ("hw.gpu.memory.limit", UpDown, None),
        Quantity::GpuMemoryUsed => ("hw.gpu.memory.usage", UpDown, None),
        _ => return None,
    })
}

impl MetricName {
    /// The name of a quantity; `None` for one that is not sent: single cores, flags, and energy, which is sent as it is
    /// accounted.
    pub(super) fn new(quantity: Quantity) -> Option<Self> {
        let is_energy = matches!(quantity.unit(), Unit::Microjoules | Unit::Millijoules);
        // The sum of both modes would count twice.
        let is_sum = quantity == Quantity::ProcessCpuTime;
        if quantity.scope() == Scope::Core || quantity.unit() == Unit::Bits || is_energy || is_sum {
            return None;
        }
        if let Some((name, shape, attribute)) = conventional(quantity) {
            return Some(Self { name: Cow::Borrowed(name), shape, attribute });
        }
        let shape = if quantity.kind() == SignalKind::Counter { Shape::Counter } else { Shape::Gauge };
        let name = format!("gnntop.{}", quantity.text().replace(".N.", "."));
        Some(Self { name: Cow::Owned(name), shape, attribute: None })
    }
}

impl Owner {
    /// Whose this quantity is.
    pub(super) fn new(quantity: Quantity) -> Self {
        match quantity.scope() {
            Scope::Process | Scope::Allotted | Scope::Publisher => Self::Process,
            _ if quantity == Quantity::GpuProcessMemory => Self::Process,
            _ => Self::Machine,
        }
    }
}

/// `hw.type` and `hw.id` of a piece of hardware; `None` for what is of the whole machine or the process.
pub(super) fn hardware(quantity: Quantity, instance: u32) -> Option<(&'static str, String)> {
    let (kind, prefix) = match quantity.scope() {
        Scope::Gpu => ("gpu", "gpu"),
        Scope::Package => ("cpu", "cpu"),
        Scope::Dram => ("memory", "dram"),
        _ => return None,
    };
    Some((kind, format!("{prefix}.{instance}")))
}

/// The unit, as UCUM writes it, and how much of it a raw value of 1 is.
pub(super) fn unit(unit: Unit) -> (&'static str, f64) {
    match unit {
        Unit::Nanoseconds => ("s", 1e-9),
        Unit::Bytes => ("By", 1.0),
        Unit::MilliPercent => ("1", 1e-5),
        Unit::Milliwatts => ("W", 1e-3),
        Unit::Millijoules => ("J", 1e-3),
        Unit::Microjoules => ("J", 1e-6),
        Unit::Megahertz => ("Hz", 1e6),
        Unit::MilliCelsius => ("Cel", 1e-3),
        Unit::BytesPerSecond => ("By/s", 1.0),
        _ => ("1", 1.0),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn quantities_of_one_name_share_unit_and_shape_and_differ_in_an_attribute() {
        let mut seen = HashMap::new();
        for quantity in Quantity::ALL {
            let Some(MetricName { name, shape, attribute }) = MetricName::new(*quantity) else { continue };
            assert!(!name.contains('N'), "{name}");
            let of_name: &mut Vec<_> = seen.entry(name.clone()).or_default();
            let of = (unit(quantity.unit()).0, shape, Owner::new(*quantity));
            assert!(of_name.iter().all(|(known, other)| *known == of && *other != attribute), "{name}");
            of_name.push((of, attribute));
        }
        assert!(seen.len() > 40 && seen["process.cpu.time"].len() == 2);
    }
}
