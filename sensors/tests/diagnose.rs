//! The doctor: what it finds on machines that have everything, something and nothing.

use crate::fake_nvml::{FakeDriver, FakeNvml};
use crate::fake_proc::FakeProc;
use gnntop_sensors::{Diagnosis, DiagnosisState, MachineInfo, SensorOptions, SensorSet, diagnose};

fn find<'a>(diagnoses: &'a [Diagnosis], component: &str) -> &'a Diagnosis {
    diagnoses.iter().find(|diagnosis| diagnosis.component == component).expect(component)
}

#[test]
fn a_healthy_machine_is_readable_and_needs_no_remedy() {
    let fake = FakeProc::new();
    let diagnoses = diagnose(&fake.options());
    for component in ["process", "process input and output", "machine CPU", "machine memory and load", "pressure"] {
        let diagnosis = find(&diagnoses, component);
        assert_eq!((diagnosis.state, &diagnosis.remedy), (DiagnosisState::Readable, &None), "{diagnosis:?}");
    }
}

#[test]
fn missing_pressure_information_has_a_remedy() {
    let fake = FakeProc::new();
    for resource in ["cpu", "memory", "io"] {
        fake.remove(&format!("proc/pressure/{resource}"));
    }
    let diagnoses = diagnose(&fake.options());
    let pressure = find(&diagnoses, "pressure");
    assert_eq!(pressure.state, DiagnosisState::Missing);
    let reason = "0 of 6 signals; machine.pressure.cpu.some and 5 more: no pressure information: kernel without PSI";
    assert_eq!(pressure.detail, reason);
    assert!(pressure.remedy.as_ref().unwrap().contains("psi=1"));
}

#[test]
fn an_offline_core_makes_the_cpu_partial() {
    let fake = FakeProc::new();
    fake.write("sys/devices/system/cpu/present", "0-2\n");
    let diagnoses = diagnose(&fake.options());
    let cpu = find(&diagnoses, "machine CPU");
    assert_eq!(cpu.state, DiagnosisState::Partial);
    assert!(cpu.detail.contains("machine.cpu.2.busy and 2 more: cpu 2 is offline"), "{}", cpu.detail);
}

#[test]
fn diagnose_names_all_energy_zones() {
    let fake = FakeProc::new();
    assert_eq!(find(&diagnose(&fake.options()), "CPU energy (RAPL)").state, DiagnosisState::Missing);
    fake.write("sys/class/powercap/intel-rapl:0/name", "package-0\n");
    fake.write("sys/class/powercap/intel-rapl:0/energy_uj", "123\n");
    let diagnoses = diagnose(&fake.options());
    let rapl = find(&diagnoses, "CPU energy (RAPL)");
    assert_eq!(rapl.state, DiagnosisState::Readable);
    assert_eq!(rapl.detail, "zones intel-rapl:0 (package-0)");
    // A counter that exists and does not open; root opens everything but a folder.
    fake.write("sys/class/powercap/intel-rapl:1/name", "dram\n");
    fake.write("sys/class/powercap/intel-rapl:1/energy_uj/closed", "");
    let diagnoses = diagnose(&fake.options());
    let rapl = find(&diagnoses, "CPU energy (RAPL)");
    assert_eq!(rapl.state, DiagnosisState::Partial);
    assert_eq!(rapl.detail, "zones intel-rapl:0 (package-0); root only: intel-rapl:1 (dram)");
    assert!(rapl.remedy.as_ref().unwrap().contains("CVE-2020-8694"));
}

#[test]
fn energy_diagnosis_lists_components_and_substitutes() {
    let fake = FakeProc::new();
    let found = diagnose(&fake.options());
    let energy = find(&found, "energy");
    assert_eq!(energy.state, DiagnosisState::Missing);
    for part in ["GPU: unknown (", "CPU: estimated from load", "no RAPL counters", "memory: estimated from modules"] {
        assert!(energy.detail.contains(part), "{part:?} in {}", energy.detail);
    }
    assert!(energy.remedy.as_ref().unwrap().contains("--tdp"));
    fake.energy_counters();
    let found = diagnose(&fake.options());
    let energy = find(&found, "energy");
    assert_eq!(energy.state, DiagnosisState::Partial);
    assert!(energy.detail.contains("CPU: RAPL powercap, 1 counter; memory: RAPL powercap"), "{}", energy.detail);
}

#[test]
fn perf_diagnosis_follows_kernel_setting() {
    let fake = FakeProc::new();
    let state = |level: Option<&str>| {
        if let Some(level) = level {
            fake.write("proc/sys/kernel/perf_event_paranoid", level);
        }
        find(&diagnose(&fake.options()), "perf events").state
    };
    assert_eq!(state(None), DiagnosisState::Missing);
    assert_eq!(state(Some("2\n")), DiagnosisState::Refused);
    fake.write("proc/self/status", "CapEff:\t0000004000000000\n");
    assert_eq!(state(Some("2\n")), DiagnosisState::Readable, "with CAP_PERFMON");
    fake.write("proc/self/status", "CapEff:\tnonsense\n");
    assert_eq!(state(Some("2\n")), DiagnosisState::Refused);
    assert_eq!(state(Some("-1\n")), DiagnosisState::Readable);
}

#[test]
fn process_limits_are_reported() {
    let fake = FakeProc::new();
    fake.write("proc/4242/cgroup", "0::/job\n");
    fake.write("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
    fake.write("sys/fs/cgroup/job/memory.max", "4294967296\n");
    let diagnoses = diagnose(&fake.options());
    let limits = find(&diagnoses, "limits of the process");
    assert_eq!(limits.detail, "2 CPUs (mask), 1.50 cores (control group), 4096 MiB of memory");
    let machine = MachineInfo::from_sensors(&fake.open());
    assert_eq!(machine.limits.cpu_millicores, Some(1500));
}

#[test]
fn gpu_diagnosis_names_missing_queries() {
    let Some(library) = FakeNvml::build(FakeDriver::Current) else { return };
    let fake = FakeProc::new();
    let options = SensorOptions { gpu: true, nvml_library: Some(library.path()), ..fake.options() };
    let healthy = diagnose(&options);
    let gpu = find(&healthy, "NVIDIA GPU");
    assert_eq!(gpu.state, DiagnosisState::Readable, "{gpu:?}");
    assert_eq!(gpu.detail, "16 of 16 signals; 0: NVIDIA Fake 100; driver 580.82.07");
    library.control("nvmlDeviceGetPowerUsage error 3\n");
    let diagnoses = diagnose(&options);
    let gpu = find(&diagnoses, "NVIDIA GPU");
    assert_eq!(gpu.state, DiagnosisState::Partial);
    assert!(gpu.detail.ends_with("; gpu.0.power: not supported by this GPU"), "{}", gpu.detail);
    assert_eq!(MachineInfo::from_sensors(&SensorSet::open(&options)).gpus.len(), 1);
}

#[test]
fn missing_driver_has_a_remedy() {
    let fake = FakeProc::new();
    let nvml_library = Some(fake.path("libnvidia-ml.so.1"));
    let diagnoses = diagnose(&SensorOptions { gpu: true, nvml_library, ..fake.options() });
    let gpu = find(&diagnoses, "NVIDIA GPU");
    assert_eq!(gpu.state, DiagnosisState::Missing);
    assert!(gpu.detail.contains("no NVIDIA driver"), "{}", gpu.detail);
    assert!(gpu.remedy.as_ref().unwrap().contains("--gpus all"));
}

#[test]
fn gpu_without_permission_is_reported() {
    let Some(library) = FakeNvml::build(FakeDriver::Current) else { return };
    library.control("nvmlInit_v2 error 4\n");
    let fake = FakeProc::new();
    let options = SensorOptions { gpu: true, nvml_library: Some(library.path()), ..fake.options() };
    assert_eq!(find(&diagnose(&options), "NVIDIA GPU").state, DiagnosisState::Refused);
}

#[test]
fn diagnose_runs_on_this_machine() {
    let diagnoses = diagnose(&SensorOptions::default());
    for diagnosis in &diagnoses {
        println!("{:<26} {:<9} {}", diagnosis.component, diagnosis.state.as_str(), diagnosis.detail);
        assert!(!diagnosis.detail.is_empty());
        assert!(
            diagnosis.remedy.is_some()
                || diagnosis.state == DiagnosisState::Readable
                || diagnosis.component == "perf events"
        );
    }
    assert_eq!(find(&diagnoses, "process").state, DiagnosisState::Readable);
    assert_eq!(diagnoses.len(), 11);
}
