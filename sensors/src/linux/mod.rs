//! Linux: the process and the machine through `/proc`, read through descriptors that stay open and parsed by hand.
//!
//! | sensor | files |
//! |---|---|
//! | [`process`] | `/proc/PID/stat`, `/proc/PID/status`, `/proc/PID/io`; with [`run_queue`] `/proc/PID/schedstat`, with [`core_clock`] `scaling_cur_freq` |
//! | [`children`] | `/proc/PID/task/PID/children`, and `io` and `statm` of each |
//! | [`cpu`] | `/proc/stat` |
//! | [`memory`] | `/proc/meminfo` |
//! | [`pressure`] | `/proc/pressure/cpu`, `memory`, `io` |
//! | [`load`] | `/proc/loadavg` |
//! | [`disk`] | `/proc/diskstats` |
//! | [`network`] | `/proc/PID/net/dev` |
//! | [`numa`] | `/sys/devices/system/node`, `/sys/bus/pci/devices/SLOT/numa_node` |
//! | [`infiniband`] | `/sys/class/infiniband/DEVICE/ports/N/counters` |
//! | [`quota`] | `cpu.stat` of a control group |
//! | [`rapl`], [`perf`] | `/sys/class/powercap/intel-rapl:*/energy_uj`, or the PMU `power` |
//! | [`drm`] | `/sys/class/drm/cardN/device`: GPUs that are not NVIDIA's |
//! | [`shape`] | `/proc/cpuinfo`, EDAC, control groups: once |

pub(crate) mod cgroup;
mod children;
mod core_clock;
mod cpu;
mod descendants;
mod disk;
mod drm;
mod hot_file;
mod infiniband;
mod load;
mod memory;
mod network;
mod numa;
pub(crate) mod parse;
mod perf;
mod pressure;
mod process;
mod quota;
mod rapl;
mod run_queue;
mod shape;

pub(crate) use drm::Drm;
pub(crate) use numa::GpuNodes;

use crate::options::SensorOptions;
use crate::sensor::{Registry, Sensor};

/// Opens every Linux sensor, in the order in which a pass reads them.
pub(crate) fn open(options: &SensorOptions, registry: &mut Registry) -> Vec<Box<dyn Sensor>> {
    let mut sensors: Vec<Box<dyn Sensor>> = vec![
        Box::new(process::ProcessSensor::open(options, registry)),
        Box::new(cpu::Cpu::open(options, registry)),
        Box::new(memory::Memory::open(options, registry)),
        Box::new(pressure::Pressure::open(options, registry)),
        Box::new(load::Load::open(options, registry)),
        Box::new(disk::Disk::open(options, registry)),
        Box::new(network::Network::open(options, registry)),
        Box::new(rapl::Rapl::open(options, registry)),
        Box::new(shape::Shape::open(options, registry)),
    ];
    if let Some(infiniband) = infiniband::InfiniBand::open(options, registry) {
        sensors.push(Box::new(infiniband));
    }
    if let Some(children) = children::Children::open(options, registry) {
        sensors.push(Box::new(children));
    }
    if let Some(quota) = quota::Quota::open(options, registry) {
        sensors.push(Box::new(quota));
    }
    sensors
}
