//! The NVIDIA sensor against a fake `libnvidia-ml`, and against a machine that has none.

use std::path::Path;
use std::time::Duration;

use crate::fake_nvml::{FakeDriver, FakeNvml};
use crate::fake_proc::Pass;
use gnntop_sensors::{SensorOptions, SensorSet};
use gnntop_wire::{Metric, Quantity, Scope};

/// Options that try failed and slow calls again in every pass, so that no test waits.
fn options(library: &Path) -> SensorOptions {
    SensorOptions {
        pid: 77,
        nvml_library: Some(library.to_path_buf()),
        gpu_slow_interval: Duration::ZERO,
        gpu_retry_interval: Duration::ZERO,
        ..SensorOptions::default()
    }
}

fn open(control: &str) -> Option<(FakeNvml, SensorSet)> {
    let fake = FakeNvml::build(FakeDriver::Current)?;
    fake.control(control);
    let set = SensorSet::open(&options(&fake.path()));
    Some((fake, set))
}

/// What the set measures of a GPU.
fn metrics(set: &SensorSet, gpu: u32) -> impl Iterator<Item = Metric> {
    let metrics = set.signals().iter().map(|signal| signal.metric);
    metrics.filter(move |metric| metric.quantity().scope() == Scope::Gpu && metric.instance() == gpu)
}

#[test]
fn every_signal_of_a_healthy_gpu_has_its_value() {
    let control = "nvmlDeviceGetComputeRunningProcesses_v3 5 100 77 4096\nnvmlDeviceGetPcieThroughput 2000\n";
    let Some((_fake, mut set)) = open(control) else { return };
    let (first, second) = (Pass::read(&mut set), Pass::read(&mut set));
    let expected = [
        ("gpu.count", 1),
        ("gpu.0.energy", 123_456_789),
        ("gpu.0.power.instant", 333_000),
        ("gpu.0.power", 251_000),
        ("gpu.0.power.limit", 700_000),
        ("gpu.0.util", 87_000),
        ("gpu.0.memory_util", 42_000),
        ("gpu.0.memory.total", 150_754_820_096),
        ("gpu.0.memory.used", 1 << 30),
        ("gpu.0.clock.sm", 1980),
        ("gpu.0.clock.memory", 3201),
        ("gpu.0.temperature", 64_000),
        ("gpu.0.throttle", 4),
        ("gpu.0.processes", 2),
        ("gpu.0.process.memory", 4096),
    ];
    for (name, value) in expected {
        assert_eq!(first.value(name), Some(value), "{name}");
    }
    assert_eq!(first.value("gpu.0.pcie.tx"), Some(2_000_000));
    assert_eq!(first.value("gpu.0.pcie.rx"), None, "one blocking call a pass");
    assert_eq!(second.value("gpu.0.pcie.tx"), None, "one blocking call a pass");
    assert_eq!(second.value("gpu.0.pcie.rx"), Some(2_000_000));
    let listed = expected.len() + 2;
    assert_eq!(set.signals().iter().filter(|signal| signal.metric.to_string().starts_with("gpu.")).count(), listed);
}

#[test]
fn gpus_are_described() {
    let Some((_fake, set)) = open("nvmlDeviceGetCount_v2 2\n") else { return };
    assert_eq!(set.gpus().len(), 2);
    let gpu = &set.gpus()[1];
    assert_eq!(gpu.uuid.as_deref(), Some("GPU-fa4e0000-0000-0000-0000-000000000001"));
    assert_eq!(gpu.name.as_deref(), Some("NVIDIA Fake 100"));
    assert_eq!(gpu.pci_slot.as_deref(), Some("0000:3c:00.0"));
    assert_eq!(gpu.memory_bytes, Some(150_754_820_096));
    assert_eq!(gpu.driver.as_deref(), Some("580.82.07"));
    let signal = &set.signals()[set.find(Quantity::GpuPower.with_instance(1)).unwrap().0 as usize];
    assert_eq!(signal.device.as_deref(), Some("NVIDIA Fake 100 (GPU-fa4e0000-0000-0000-0000-000000000001)"));
}

#[test]
fn unsupported_query_affects_only_its_signals() {
    let cases: [(&str, &[&str]); 11] = [
        ("nvmlDeviceGetTotalEnergyConsumption", &["energy"]),
        ("nvmlDeviceGetFieldValues", &["power.instant"]),
        ("field186", &["power.instant"]),
        ("nvmlDeviceGetPowerUsage", &["power"]),
        ("nvmlDeviceGetUtilizationRates", &["util", "memory_util"]),
        ("nvmlDeviceGetMemoryInfo_v2", &["memory.total", "memory.used"]),
        ("nvmlDeviceGetClockInfo", &["clock.sm", "clock.memory"]),
        ("nvmlDeviceGetTemperature", &["temperature"]),
        ("nvmlDeviceGetCurrentClocksThrottleReasons", &["throttle"]),
        ("nvmlDeviceGetEnforcedPowerLimit", &["power.limit"]),
        ("nvmlDeviceGetComputeRunningProcesses_v3", &["processes", "process.memory"]),
    ];
    for (function, lost) in cases {
        let healthy = "nvmlDeviceGetComputeRunningProcesses_v3 77 4096\n";
        let Some((fake, mut set)) = open(&format!("{healthy}{function} error 3\n")) else { return };
        let pass = Pass::read(&mut set);
        for metric in metrics(&set, 0) {
            let whole = metric.to_string();
            let name = whole.strip_prefix("gpu.0.").unwrap();
            if lost.contains(&name) {
                assert_eq!(pass.reason(&whole), Some("not supported by this GPU"), "{function}: {name}");
            } else {
                assert_eq!(pass.reason(&whole), None, "{function}: {name}");
            }
        }
        fake.control(healthy);
        let back = Pass::read(&mut set);
        for name in lost {
            assert!(back.value(&format!("gpu.0.{name}")).is_some(), "{function}: {name} comes back");
        }
    }
}

#[test]
fn refused_query_has_a_reason() {
    let Some((_fake, mut set)) = open("nvmlDeviceGetPowerUsage error 4\nnvmlDeviceGetTemperature error 999\n") else {
        return;
    };
    let pass = Pass::read(&mut set);
    assert_eq!(pass.reason("gpu.0.power"), Some("this user may not read it (root may)"));
    assert_eq!(pass.reason("gpu.0.temperature"), Some("NVML: an internal driver error occurred"));
}

#[test]
fn lost_gpu_is_absent_and_recovers() {
    let Some((fake, mut set)) = open("nvmlDeviceGetCount_v2 2\n1.nvmlDeviceGetTotalEnergyConsumption 900000\n") else {
        return;
    };
    assert_eq!(Pass::read(&mut set).value("gpu.1.energy"), Some(900_000));
    fake.control("nvmlDeviceGetCount_v2 2\n1.* error 15\n");
    let lost = Pass::read(&mut set);
    for metric in metrics(&set, 1) {
        assert_eq!(lost.reason(&metric.to_string()), Some("the GPU is lost: it fell off the bus"), "{metric}");
    }
    assert!(lost.value("gpu.0.energy").is_some());
    let still = Pass::read(&mut set);
    assert_eq!(still.reason("gpu.1.energy"), None, "told once");
    assert!(still.value("gpu.0.energy").is_some());
    fake.control("nvmlDeviceGetCount_v2 2\n1.nvmlDeviceGetTotalEnergyConsumption 12\n");
    assert_eq!(Pass::read(&mut set).value("gpu.1.energy"), Some(12), "a reset counter is passed on raw");
}

#[test]
fn blocking_queries_alternate_and_skip_lost_gpus() {
    let Some((fake, mut set)) = open("nvmlDeviceGetCount_v2 3\n") else { return };
    let names: Vec<String> = (0..3).flat_map(|gpu| ["tx", "rx"].map(|way| format!("gpu.{gpu}.pcie.{way}"))).collect();
    for call in 0..12_usize {
        let pass = Pass::read(&mut set);
        for (place, name) in names.iter().enumerate() {
            let expected = (place == call % names.len()).then_some((call as i64 + 1) * 1000);
            assert_eq!(pass.value(name), expected, "{name} in pass {call}");
        }
    }
    fake.control("nvmlDeviceGetCount_v2 3\n0.* error 15\n");
    let pass = Pass::read(&mut set);
    assert_eq!(pass.value("gpu.1.pcie.tx"), Some(13_000));
}

#[test]
fn slow_queries_keep_their_interval() {
    let Some(fake) = FakeNvml::build(FakeDriver::Current) else { return };
    let hour = Duration::from_secs(3600);
    let mut set =
        SensorSet::open(&SensorOptions { gpu_slow_interval: hour, gpu_retry_interval: hour, ..options(&fake.path()) });
    let first = Pass::read(&mut set);
    assert!(first.value("gpu.0.power.limit").is_some() && first.value("gpu.0.processes").is_some());
    let second = Pass::read(&mut set);
    assert_eq!(second.value("gpu.0.power.limit"), None);
    assert_eq!(second.value("gpu.0.processes"), None);
    assert!(second.value("gpu.0.power").is_some());
    // A call that failed is left alone too, and its absence was told.
    fake.control("nvmlDeviceGetPowerUsage error 3\n");
    assert!(Pass::read(&mut set).reason("gpu.0.power").is_some());
    fake.control("");
    let waiting = Pass::read(&mut set);
    assert_eq!((waiting.value("gpu.0.power"), waiting.reason("gpu.0.power")), (None, None));
}

#[test]
fn old_driver_has_absent_signals() {
    let Some(fake) = FakeNvml::build(FakeDriver::Old) else { return };
    let mut set = SensorSet::open(&options(&fake.path()));
    let pass = Pass::read(&mut set);
    let missing = [
        ("gpu.0.energy", "nvmlDeviceGetTotalEnergyConsumption"),
        ("gpu.0.power.instant", "nvmlDeviceGetFieldValues(186)"),
        ("gpu.0.memory.used", "nvmlDeviceGetMemoryInfo_v2"),
        ("gpu.0.processes", "nvmlDeviceGetComputeRunningProcesses_v3"),
    ];
    for (name, function) in missing {
        assert_eq!(pass.reason(name), Some(format!("this NVIDIA driver has no {function}").as_str()));
    }
    assert_eq!(pass.value("gpu.0.power"), Some(251_000));
    assert_eq!(set.gpus()[0].memory_bytes, None);
}

#[test]
fn unopened_gpu_is_listed_and_can_recover() {
    let Some((fake, mut set)) = open("nvmlDeviceGetCount_v2 2\n1.nvmlDeviceGetHandleByIndex_v2 error 4\n") else {
        return;
    };
    assert_eq!(set.gpus()[1].name, None);
    let pass = Pass::read(&mut set);
    assert_eq!(pass.reason("gpu.1.power"), Some("this user may not read it (root may)"));
    assert!(pass.value("gpu.0.power").is_some());
    fake.control("nvmlDeviceGetCount_v2 2\n");
    assert!(Pass::read(&mut set).value("gpu.1.power").is_some());
}

#[test]
fn nvml_that_was_shut_down_is_started_again() {
    let Some((fake, mut set)) = open("") else { return };
    assert!(Pass::read(&mut set).value("gpu.0.power").is_some());
    fake.control("nvmlDeviceGetCount_v2 error 1\n* error 1\nnvmlInit_v2 error 9\n");
    let gone = Pass::read(&mut set);
    assert_eq!(gone.reason("gpu.count"), Some("NVML was shut down"));
    assert_eq!(gone.reason("gpu.0.power"), Some("NVML was shut down"));
    let unloaded = Pass::read(&mut set);
    assert_eq!(unloaded.reason("gpu.count"), Some("the NVIDIA driver is not loaded"));
    assert_eq!(unloaded.reason("gpu.0.power"), Some("the NVIDIA driver is not loaded"));
    fake.control("nvmlDeviceGetTotalEnergyConsumption 3\n");
    let back = Pass::read(&mut set);
    assert_eq!(back.value("gpu.count"), Some(1));
    assert_eq!(back.value("gpu.0.energy"), Some(3));
}

/// A pass in which NVML says that it was shut down, and two in which it starts and still says so.
fn read_while_nvml_is_gone(fake: &FakeNvml, set: &mut SensorSet) {
    fake.control("nvmlDeviceGetCount_v2 error 1\n");
    assert_eq!(Pass::read(set).reason("gpu.count"), Some("NVML was shut down"));
    for _ in 0..2 {
        assert_eq!(Pass::read(set).value("gpu.count"), None);
    }
    fake.control("");
}

#[test]
fn nvml_outside_of_the_program_is_unloaded_before_it_is_loaded_again() {
    let Some((fake, mut set)) = open("") else { return };
    let first = Pass::read(&mut set);
    assert_eq!((first.value("gpu.0.pcie.tx"), fake.initialised()), (Some(1000), 1));
    read_while_nvml_is_gone(&fake, &mut set);
    let back = Pass::read(&mut set);
    let name = if back.value("gpu.0.pcie.tx").is_some() { "gpu.0.pcie.tx" } else { "gpu.0.pcie.rx" };
    assert_eq!(
        (back.value(name), fake.initialised()),
        (Some(1000), 1),
        "a new library counts its calls from the beginning"
    );
    drop(set);
    assert_eq!(fake.initialised(), 0);
}

#[test]
fn nvml_in_the_program_is_initialised_once_and_never_shut_down() {
    let Some(fake) = FakeNvml::build(FakeDriver::Current) else { return };
    let mut set = SensorSet::open(&SensorOptions { pid: std::process::id(), ..options(&fake.path()) });
    assert!(Pass::read(&mut set).value("gpu.0.power").is_some());
    read_while_nvml_is_gone(&fake, &mut set);
    assert_eq!(fake.initialised(), 1, "what does not work is shut down again");
    assert!(Pass::read(&mut set).value("gpu.0.power").is_some());
    assert_eq!(fake.initialised(), 2);
    drop(set);
    assert_eq!(fake.initialised(), 2);
}

#[test]
fn process_without_gpu_has_no_gpu_memory() {
    let Some((_fake, mut set)) = open("nvmlDeviceGetComputeRunningProcesses_v3 5 100\n") else { return };
    let pass = Pass::read(&mut set);
    assert_eq!(pass.value("gpu.0.processes"), Some(1));
    let reason = pass.reason("gpu.0.process.memory").unwrap();
    assert!(reason.contains("process 77"), "{reason}");
}

#[test]
fn missing_library_and_wrong_library_have_different_reasons() {
    let folder = tempfile::tempdir().unwrap();
    let reason = |path: &Path| {
        let mut set = SensorSet::open(&options(path));
        assert!(set.gpus().is_empty());
        Pass::read(&mut set).reason("gpu.count").unwrap().to_owned()
    };
    let missing = folder.path().join("libnvidia-ml.so.1");
    assert_eq!(reason(&missing), format!("no NVIDIA driver: {} not found", missing.display()));
    let text = folder.path().join("text.so");
    std::fs::write(&text, "not a library").unwrap();
    assert!(reason(&text).contains("cannot be loaded"), "{}", reason(&text));
    let Some(fake) = FakeNvml::build(FakeDriver::Current) else { return };
    fake.control("nvmlInit_v2 error 9\n");
    assert_eq!(reason(&fake.path()), "the NVIDIA driver is not loaded");
    fake.control("nvmlInit_v2 error 18\n");
    assert!(reason(&fake.path()).contains("differ in version"));
}

#[test]
fn gpus_of_this_machine_are_listed() {
    let mut set = SensorSet::open(&SensorOptions::default());
    let pass = Pass::read(&mut set);
    match pass.value("gpu.count") {
        Some(count) => {
            println!("{count} GPUs: {:?}", set.gpus());
            assert_eq!(count as usize, set.gpus().len());
        }
        None => {
            let reason = pass.reason("gpu.count").unwrap();
            println!("{reason}");
            assert!(reason.contains("NVIDIA"), "{reason}");
        }
    }
}
