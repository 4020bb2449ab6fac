//! The queries of each NVIDIA GPU: their signals, how often they are made, and the units of the answers.

use gnntop_wire::Quantity;
use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::{Clock, PcieUtilCounter, TemperatureSensor};
use nvml_wrapper::enums::device::{SampleValue, UsedGpuMemory};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id::NVML_FI_DEV_POWER_INSTANT;

/// One NVML call, which yields one or two signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Query {
    Energy,
    PowerInstant,
    Power,
    Utilization,
    Memory,
    ClockSm,
    ClockMemory,
    Temperature,
    Throttle,
    PowerLimit,
    Processes,
    PcieTx,
    PcieRx,
}

/// How often a query is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rate {
    /// In every pass.
    Pass,
    /// Once every slow interval: expensive, or hardly changing.
    Slow,
    /// Once every slow interval, and never two in one pass: NVML may measure for 20 ms before it answers.
    Blocking,
}

/// A query with its rate and signals.
#[derive(Debug)]
pub(super) struct QuerySpec {
    pub(super) query: Query,
    pub(super) rate: Rate,
    /// NVML's name of the call.
    pub(super) source: &'static str,
    pub(super) quantities: &'static [Quantity],
}

const fn spec(query: Query, rate: Rate, source: &'static str, quantities: &'static [Quantity]) -> QuerySpec {
    QuerySpec { query, rate, source, quantities }
}

/// Every query, in the order in which a pass makes them: energy and power first, so that their stamps are close.
pub(super) static QUERIES: [QuerySpec; 13] = [
    spec(Query::Energy, Rate::Pass, "NVML nvmlDeviceGetTotalEnergyConsumption", &[Quantity::GpuEnergy]),
    spec(Query::PowerInstant, Rate::Pass, "NVML nvmlDeviceGetFieldValues(186)", &[Quantity::GpuPowerNow]),
    spec(Query::Power, Rate::Pass, "NVML nvmlDeviceGetPowerUsage", &[Quantity::GpuPower]),
    spec(
        Query::Utilization,
        Rate::Pass,
        "NVML nvmlDeviceGetUtilizationRates",
        &[Quantity::GpuUtil, Quantity::GpuMemoryUtil],
    ),
    spec(
        Query::Memory,
        Rate::Pass,
        "NVML nvmlDeviceGetMemoryInfo_v2",
        &[Quantity::GpuMemoryTotal, Quantity::GpuMemoryUsed],
    ),
    spec(Query::ClockSm, Rate::Pass, "NVML nvmlDeviceGetClockInfo", &[Quantity::GpuClockSm]),
    spec(Query::ClockMemory, Rate::Pass, "NVML nvmlDeviceGetClockInfo", &[Quantity::GpuClockMemory]),
    spec(Query::Temperature, Rate::Pass, "NVML nvmlDeviceGetTemperature", &[Quantity::GpuTemperature]),
    spec(Query::Throttle, Rate::Pass, "NVML nvmlDeviceGetCurrentClocksThrottleReasons", &[Quantity::GpuThrottle]),
    spec(Query::PowerLimit, Rate::Slow, "NVML nvmlDeviceGetEnforcedPowerLimit", &[Quantity::GpuPowerLimit]),
    spec(
        Query::Processes,
        Rate::Slow,
        "NVML nvmlDeviceGetComputeRunningProcesses_v3",
        &[Quantity::GpuProcesses, Quantity::GpuProcessMemory],
    ),
    spec(Query::PcieTx, Rate::Blocking, "NVML nvmlDeviceGetPcieThroughput", &[Quantity::GpuPcieTx]),
    spec(Query::PcieRx, Rate::Blocking, "NVML nvmlDeviceGetPcieThroughput", &[Quantity::GpuPcieRx]),
];

/// Values in the order of the spec's quantities, in their units. `None`: the call worked, but did not return this one.
pub(super) type QueryValues = [Option<i64>; 2];

/// Makes one query of one GPU. `pid` is the observed process.
pub(super) fn run_query(device: &Device<'_>, query: Query, pid: u32) -> Result<QueryValues, NvmlError> {
    Ok(match query {
        Query::Energy => single_value(i64::try_from(device.total_energy_consumption()?).ok()),
        Query::PowerInstant => single_value(power_instant(device)?),
        Query::Power => single_value(Some(device.power_usage()?.into())),
        Query::Utilization => {
            let rates = device.utilization_rates()?;
            [rates.gpu, rates.memory].map(|percent| Some(i64::from(percent) * 1000))
        }
        Query::Memory => {
            let memory = device.memory_info()?;
            [memory.total, memory.used].map(|bytes| i64::try_from(bytes).ok())
        }
        Query::ClockSm => single_value(Some(device.clock_info(Clock::SM)?.into())),
        Query::ClockMemory => single_value(Some(device.clock_info(Clock::Memory)?.into())),
        Query::Temperature => single_value(Some(i64::from(device.temperature(TemperatureSensor::Gpu)?) * 1000)),
        Query::Throttle => single_value(i64::try_from(device.current_throttle_reasons()?.bits()).ok()),
        Query::PowerLimit => single_value(Some(device.enforced_power_limit()?.into())),
        Query::Processes => processes(device, pid)?,
        Query::PcieTx => single_value(Some(throughput(device, PcieUtilCounter::Send)?)),
        Query::PcieRx => single_value(Some(throughput(device, PcieUtilCounter::Receive)?)),
    })
}

fn single_value(value: Option<i64>) -> QueryValues {
    [value, None]
}

/// Field 186: power now, where `power_usage` is the mean of the last second on Ampere and newer (except GA100).
fn power_instant(device: &Device<'_>) -> Result<Option<i64>, NvmlError> {
    let fields = device.field_values_for(&[FieldId(NVML_FI_DEV_POWER_INSTANT)])?;
    let sample = fields.into_iter().next().ok_or(NvmlError::NoData)??;
    Ok(match sample.value? {
        SampleValue::U32(milliwatts) => Some(milliwatts.into()),
        SampleValue::U64(milliwatts) => i64::try_from(milliwatts).ok(),
        SampleValue::I64(milliwatts) => Some(milliwatts),
        SampleValue::F64(_) => None,
    })
}

/// How many processes compute on the GPU, and the memory of the observed one if it is among them.
fn processes(device: &Device<'_>, pid: u32) -> Result<QueryValues, NvmlError> {
    let processes = device.running_compute_processes()?;
    let ours = processes.iter().find(|process| process.pid == pid);
    let bytes = ours.and_then(|process| match process.used_gpu_memory {
        UsedGpuMemory::Used(bytes) => i64::try_from(bytes).ok(),
        UsedGpuMemory::Unavailable => None,
    });
    Ok([i64::try_from(processes.len()).ok(), bytes])
}

/// NVML counts in KB/s over 20 ms; its KB are taken as 1,000 bytes.
fn throughput(device: &Device<'_>, counter: PcieUtilCounter) -> Result<i64, NvmlError> {
    Ok(i64::from(device.pcie_throughput(counter)?) * 1000)
}
