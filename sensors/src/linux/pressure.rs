//! Pressure stall information (PSI): how long tasks of the machine were stalled by a lack of CPU, memory or disk.
//!
//! `some` counts time in which at least one task waited, `full` time in which all did. The kernel's totals are in
//! microseconds.

use std::fmt;
use std::path::Path;

use gnntop_wire::Quantity;

use super::hot_file::{FileError, FileTrouble, HotFile};
use super::parse::pressure_total;
use crate::clock::monotonic_ns;
use crate::options::SensorOptions;
use crate::sensor::{Registry, Sensor, Sink};
use crate::signal::SignalIndex;

const LABELS: [&str; 2] = ["some", "full"];

/// Reads `/proc/pressure/cpu`, `memory` and `io`.
#[derive(Debug)]
pub(super) struct Pressure {
    resources: [Resource; 3],
}

#[derive(Debug)]
struct Resource {
    file: HotFile,
    /// In the order of [`LABELS`].
    signals: [SignalIndex; 2],
}

impl Pressure {
    pub(super) fn open(options: &SensorOptions, registry: &mut Registry) -> Self {
        let folder = options.proc_root.join("pressure");
        let mut resource = |name, source, quantities: [Quantity; 2]| Resource {
            file: HotFile::new(folder.join(name)),
            signals: quantities.map(|quantity| registry.plain(quantity, source)),
        };
        Self {
            resources: [
                resource("cpu", "/proc/pressure/cpu", [Quantity::PressureCpuSome, Quantity::PressureCpuFull]),
                resource(
                    "memory",
                    "/proc/pressure/memory",
                    [Quantity::PressureMemorySome, Quantity::PressureMemoryFull],
                ),
                resource("io", "/proc/pressure/io", [Quantity::PressureIoSome, Quantity::PressureIoFull]),
            ],
        }
    }
}

impl Resource {
    fn read(&mut self, sink: &mut Sink<'_>) {
        let snapshot = match self.file.read() {
            Ok(snapshot) => snapshot,
            Err(error) => {
                let (t_ns, reason) = (monotonic_ns(), NoPressure { path: self.file.path(), error });
                return sink.all_absent(self.signals, t_ns, &reason);
            }
        };
        for (signal, label) in self.signals.into_iter().zip(LABELS) {
            match pressure_total(snapshot.bytes, label.as_bytes()).and_then(|us| us.checked_mul(1000)) {
                Some(total_ns) => sink.value(signal, snapshot.t_ns, total_ns),
                None => sink.absent(signal, snapshot.t_ns, &format_args!("this kernel reports no \"{label}\" total")),
            }
        }
    }
}

impl Sensor for Pressure {
    fn name(&self) -> &'static str {
        "pressure"
    }

    fn read(&mut self, sink: &mut Sink<'_>) {
        for resource in &mut self.resources {
            resource.read(sink);
        }
    }
}

/// Why there is no pressure information.
struct NoPressure<'a> {
    path: &'a Path,
    error: FileError,
}

impl fmt::Display for NoPressure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.error {
            FileError::Missing => write!(f, "no pressure information: kernel without PSI"),
            FileError::TurnedOff => write!(f, "no pressure information: turned off (boot with psi=1)"),
            error => write!(f, "{}", FileTrouble { path: self.path, error }),
        }
    }
}
