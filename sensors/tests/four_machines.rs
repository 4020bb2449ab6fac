//! The doctor on four machines, whole: root and a user on bare metal, a container, a virtual machine.

use crate::fake_proc::FakeProc;
use gnntop_sensors::diagnose;

/// Capabilities of root, and of everyone else.
const ALL: &str = "CapEff:\t000001ffffffffff\n";
const NONE: &str = "CapEff:\t0000000000000000\n";

/// A processor with two energy counters, which do not open where `is_open` is not set: root opens everything but a folder.
fn with_rapl(fake: &FakeProc, is_open: bool) {
    for (zone, name) in [("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "dram")] {
        fake.write(&format!("sys/class/powercap/{zone}/name"), format!("{name}\n"));
        fake.write(&format!("sys/class/powercap/{zone}/max_energy_range_uj"), "262143328850\n");
        let counter = format!("sys/class/powercap/{zone}/energy_uj");
        match is_open {
            true => fake.write(&counter, "123456\n"),
            false => fake.write(&format!("{counter}/closed"), ""),
        }
    }
}

/// A kernel that counts energy through perf, and lets only those with the capability do so.
fn with_perf(fake: &FakeProc, capabilities: &str) {
    fake.write("sys/bus/event_source/devices/power/type", "22\n");
    fake.write("proc/sys/kernel/perf_event_paranoid", "2\n");
    fake.write("proc/self/status", capabilities);
}

/// The doctor's output, a paragraph for each component, without the path of the simulated machine.
fn diagnosis_text(fake: &FakeProc) -> String {
    let root = fake.path("").display().to_string();
    let paragraph = |found: gnntop_sensors::Diagnosis| {
        let remedy = found.remedy.map(|remedy| format!("\n    {remedy}")).unwrap_or_default();
        format!("{}: {}\n    {}{remedy}", found.component, found.state.as_str(), found.detail)
    };
    let all: Vec<String> = diagnose(&fake.options()).into_iter().map(paragraph).collect();
    all.join("\n").replace(root.trim_end_matches('/'), "")
}

#[test]
fn root_on_bare_metal() {
    let fake = FakeProc::new();
    with_rapl(&fake, true);
    with_perf(&fake, ALL);
    insta::assert_snapshot!(diagnosis_text(&fake));
}

#[test]
fn a_user_on_bare_metal() {
    let fake = FakeProc::new();
    with_rapl(&fake, false);
    with_perf(&fake, NONE);
    insta::assert_snapshot!(diagnosis_text(&fake));
}

#[test]
fn a_container() {
    // Energy zones are masked there, the kernel's settings are the host's, and its group is limited.
    let fake = FakeProc::new();
    with_perf(&fake, NONE);
    fake.write("proc/4242/cgroup", "0::/\n");
    fake.write("sys/fs/cgroup/cpu.max", "150000 100000\n");
    fake.write("sys/fs/cgroup/memory.max", "4294967296\n");
    insta::assert_snapshot!(diagnosis_text(&fake));
}

#[test]
fn a_virtual_machine() {
    let fake = FakeProc::new();
    fake.write("proc/sys/kernel/perf_event_paranoid", "2\n");
    fake.write("proc/self/status", NONE);
    insta::assert_snapshot!(diagnosis_text(&fake));
}
