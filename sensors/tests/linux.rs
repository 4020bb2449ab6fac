//! Every Linux sensor against a fake `/proc`, and the process sensor against a real child.

use std::collections::HashSet;
use std::process::Command;

use crate::fake_proc::{FakeProc, PID, Pass, ProcessStat};
use gnntop_sensors::{Reading, SensorOptions, SensorSet, monotonic_ns};
use gnntop_wire::{Metric, Quantity, Scope, SignalKind, Unit};
use proptest::prelude::*;

const TICK_NS: i64 = 10_000_000;

#[test]
fn every_signal_of_a_healthy_machine_has_its_value() {
    let fake = FakeProc::new();
    fake.energy_counters();
    fake.write("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n");
    fake.write("sys/class/powercap/intel-rapl:0:0/max_energy_range_uj", "65712999613\n");
    fake.write("sys/devices/system/edac/mc/mc0/dimm0/size", "16384\n");
    fake.write("proc/4242/cgroup", "0::/job\n");
    fake.write("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
    fake.write("sys/fs/cgroup/job/cpu.stat", "usage_usec 9\nnr_periods 40\nnr_throttled 12\nthrottled_usec 7\n");
    fake.write("sys/fs/cgroup/job/memory.max", "4294967296\n");
    fake.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "800000\n");
    fake.write("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3599999\n");
    let pass = Pass::read(&mut fake.open());
    let page = 4096;
    let expected = [
        ("process.cpu_time", 48 * TICK_NS),
        ("process.cpu_time.user", 31 * TICK_NS),
        ("process.cpu_time.system", 17 * TICK_NS),
        ("process.rss", 416 * page),
        ("process.faults.minor", 103),
        ("process.faults.major", 2),
        ("process.threads", 4),
        ("process.rss.peak", 2048 * 1024),
        ("process.rss.own", 624 * 1024),
        ("process.swap", 16 * 1024),
        ("process.main_thread.voluntary_switches", 111),
        ("process.main_thread.involuntary_switches", 22),
        ("process.main_thread.cpu_wait", 2_000_000),
        ("process.main_thread.clock", 3599),
        ("process.io.rchar", 1000),
        ("process.io.read_calls", 10),
        ("process.io.wchar", 2000),
        ("process.io.read_bytes", 4096),
        ("process.io.write_bytes", 8192),
        ("machine.cpu.busy", 50 * TICK_NS),
        ("machine.cpu.iowait", 40 * TICK_NS),
        ("machine.cpu.steal", 6 * TICK_NS),
        ("machine.cpu.0.busy", 19 * TICK_NS),
        ("machine.cpu.0.iowait", 20 * TICK_NS),
        ("machine.cpu.0.steal", 2 * TICK_NS),
        ("machine.cpu.1.busy", 31 * TICK_NS),
        ("machine.cpu.1.iowait", 20 * TICK_NS),
        ("machine.cpu.1.steal", 4 * TICK_NS),
        ("machine.memory.total", 1000 * 1024),
        ("machine.memory.available", 400 * 1024),
        ("machine.memory.used", 600 * 1024),
        ("machine.swap.total", 50 * 1024),
        ("machine.swap.used", 30 * 1024),
        ("machine.pressure.cpu.some", 700_000),
        ("machine.pressure.cpu.full", 300_000),
        ("machine.pressure.memory.some", 700_000),
        ("machine.pressure.memory.full", 300_000),
        ("machine.pressure.io.some", 700_000),
        ("machine.pressure.io.full", 300_000),
        ("machine.load.1m", 52_000),
        ("machine.load.5m", 100_000),
        ("machine.load.15m", 1_225_000),
        ("machine.disk.read_bytes", 100 * 512),
        ("machine.disk.write_bytes", 40 * 512),
        ("machine.network.received_bytes", 3000),
        ("machine.network.sent_bytes", 700),
        ("cpu.0.energy", 123_456_789),
        ("dram.0.energy", 4242),
        ("cpu.0.energy.range", 262_143_328_850),
        ("dram.0.energy.range", 65_712_999_613),
        ("machine.cpu.threads", 2),
        ("machine.cpu.sockets", 1),
        ("machine.memory.modules", 1),
        ("allotted.cpu.threads", 2),
        ("allotted.cpu.quota", 150_000),
        ("allotted.memory", 4_294_967_296),
        ("allotted.cpu.periods", 40),
        ("allotted.cpu.throttled_periods", 12),
    ];
    for (name, value) in expected {
        assert_eq!(pass.value(name), Some(value), "{name}");
    }
    // Nothing is read that this list, and the table in the crate's documentation, does not name.
    let listed: HashSet<&str> = expected.iter().map(|(name, _)| *name).chain(["gpu.count"]).collect();
    for (name, _) in pass.readings() {
        assert!(listed.contains(name.as_str()), "{name} is not listed");
    }
}

#[test]
fn missing_scheduler_statistics_have_a_reason() {
    let fake = FakeProc::new();
    let wait = "process.main_thread.cpu_wait";
    fake.write("proc/4242/schedstat", "0 0 0\n");
    assert_eq!(Pass::read(&mut fake.open()).reason(wait), Some("this kernel keeps no scheduler statistics"));
    fake.write("proc/4242/schedstat", "17 none\n");
    assert_eq!(Pass::read(&mut fake.open()).reason(wait), Some("cannot parse /proc/PID/schedstat"));
    fake.remove("proc/4242/schedstat");
    assert!(Pass::read(&mut fake.open()).reason(wait).is_some());
}

#[test]
fn signal_indices_are_dense_and_metrics_unique() {
    let fake = FakeProc::new();
    let set = fake.open();
    let metrics: HashSet<Metric> = set.signals().iter().map(|signal| signal.metric).collect();
    assert_eq!(metrics.len(), set.signals().len());
    for (slot, signal) in set.signals().iter().enumerate() {
        assert_eq!(set.find(signal.metric).unwrap().0 as usize, slot);
        assert!(!signal.source.is_empty());
    }
    let busy = &set.signals()[set.find(Quantity::CoreBusy.with_instance(1)).unwrap().0 as usize];
    assert_eq!(
        (busy.unit(), busy.kind(), busy.device.as_deref()),
        (Unit::Nanoseconds, SignalKind::Counter, Some("cpu 1"))
    );
}

#[test]
fn reading_times_are_within_the_pass_and_ascending() {
    let fake = FakeProc::new();
    let mut set = fake.open();
    let mut last_ns = 0;
    for _ in 0..20 {
        let before_ns = monotonic_ns();
        let mut stamps = Vec::new();
        set.read(&mut |reading| {
            if let Reading::Value { t_ns, .. } = reading {
                stamps.push(t_ns);
            }
        });
        let after_ns = monotonic_ns();
        assert!(stamps.iter().all(|t_ns| (before_ns..=after_ns).contains(t_ns)));
        assert!(stamps[0] >= last_ns);
        last_ns = stamps[0];
    }
}

#[test]
fn missing_file_affects_only_its_signals() {
    let cases = [
        ("proc/4242/status", "process.swap", "status not found"),
        ("proc/4242/io", "process.io.rchar", "io not found"),
        ("proc/stat", "machine.cpu.busy", "stat not found"),
        ("proc/meminfo", "machine.memory.used", "meminfo not found"),
        ("proc/pressure/io", "machine.pressure.io.full", "no pressure information: kernel without PSI"),
        ("proc/loadavg", "machine.load.5m", "loadavg not found"),
    ];
    for (file, signal, reason) in cases {
        let fake = FakeProc::new();
        let mut set = fake.open();
        let healthy = Pass::read(&mut set);
        let content = std::fs::read(fake.path(file)).unwrap();
        fake.remove(file);
        let pass = Pass::read(&mut set);
        assert!(pass.reason(signal).unwrap().ends_with(reason), "{file}: {:?}", pass.reason(signal));
        let lost = pass.readings().iter().filter(|(_, reading)| matches!(reading, Reading::Absent { .. })).count();
        assert!((2..=9).contains(&lost), "{file}: {lost} signals lost");
        assert_eq!(Pass::read(&mut set).reason(signal), None, "told once");
        fake.write(file, content);
        assert_eq!(Pass::read(&mut set).value(signal), healthy.value(signal), "{file} comes back");
    }
}

#[test]
fn empty_proc_has_all_signals_absent() {
    let folder = tempfile::tempdir().unwrap();
    let (proc_root, sys_root) = (folder.path().join("proc"), folder.path().join("sys"));
    let options = SensorOptions { pid: PID, proc_root, sys_root, gpu: false, ..SensorOptions::default() };
    let mut set = SensorSet::open(&options);
    let pass = Pass::read(&mut set);
    assert_eq!(pass.readings().len(), set.signals().len());
    for (name, reading) in pass.readings() {
        assert!(matches!(reading, Reading::Absent { reason, .. } if !reason.is_empty()), "{name}");
    }
    assert_eq!(pass.reason("process.rss"), Some("there is no process 4242, or it is hidden from this user"));
    assert_eq!(pass.reason("gpu.count"), Some("GPU sensors are turned off"));
    assert!(Pass::read(&mut set).readings().is_empty(), "an absence is reported once");
}

#[test]
fn garbage_makes_signals_absent() {
    let cases: [(&str, &[u8], &str, &str); 8] = [
        ("proc/4242/stat", b"4242 (python", "process.cpu_time", "cannot parse"),
        ("proc/4242/stat", b"\xff\xfe\x00\n", "process.swap", "cannot parse"),
        ("proc/4242/status", b"VmHWM:\t lots kB\n", "process.rss.peak", "no VmHWM in"),
        ("proc/4242/io", b"rchar: 99999999999999999999\n", "process.io.rchar", "no rchar in"),
        ("proc/stat", b"cpu  1 2 3\ncpu0 1 2 3\n", "machine.cpu.busy", "no cpu line in /proc/stat"),
        ("proc/meminfo", b"MemTotal: 1000 kB\n", "machine.memory.used", "missing from /proc/meminfo"),
        ("proc/pressure/cpu", b"some avg10=1\n", "machine.pressure.cpu.some", "this kernel reports no \"some\" total"),
        ("proc/loadavg", b"x y z\n", "machine.load.1m", "missing from /proc/loadavg"),
    ];
    for (file, content, signal, reason) in cases {
        let fake = FakeProc::new();
        fake.write(file, content);
        let pass = Pass::read(&mut fake.open());
        assert!(pass.reason(signal).unwrap().contains(reason), "{file}: {:?}", pass.reason(signal));
    }
}

#[test]
fn missing_line_affects_only_its_signal() {
    let fake = FakeProc::new();
    fake.write("proc/meminfo", "MemTotal: 1000 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\n");
    fake.write("proc/pressure/cpu", "some avg10=0.00 total=700\n");
    let pass = Pass::read(&mut fake.open());
    assert_eq!(pass.value("machine.memory.total"), Some(1000 * 1024));
    assert_eq!(pass.value("machine.swap.used"), Some(30 * 1024));
    assert!(pass.reason("machine.memory.available").is_some());
    assert_eq!(pass.value("machine.pressure.cpu.some"), Some(700_000));
    assert_eq!(pass.reason("machine.pressure.cpu.full"), Some("this kernel reports no \"full\" total"));
}

#[test]
fn truncated_file_never_gives_wrong_value() {
    for file in ["proc/4242/stat", "proc/4242/status", "proc/4242/io", "proc/stat", "proc/meminfo", "proc/pressure/io"]
    {
        let fake = FakeProc::new();
        let mut set = fake.open();
        let whole = Pass::read(&mut set);
        let content = std::fs::read(fake.path(file)).unwrap();
        for end in 0..content.len() {
            fake.write(file, &content[..end]);
            let cut = Pass::read(&mut set);
            for (name, reading) in cut.readings() {
                if let Reading::Value { value, .. } = reading {
                    assert_eq!(Some(*value), whole.value(name), "{name}, {file} cut at {end}");
                }
            }
        }
    }
}

#[test]
fn decreasing_counters_are_reported_raw() {
    let fake = FakeProc::new();
    let mut set = fake.open();
    assert_eq!(Pass::read(&mut set).value("machine.cpu.iowait"), Some(40 * TICK_NS));
    fake.write(
        "proc/stat",
        "cpu  29 2 10 1000 12 3 5 6 0 0\ncpu0 10 1 5 500 20 1 2 2 0 0\ncpu1 20 1 5 500 20 2 3 4 0 0\n",
    );
    let pass = Pass::read(&mut set);
    assert_eq!(pass.value("machine.cpu.iowait"), Some(12 * TICK_NS));
    assert_eq!(pass.value("machine.cpu.busy"), Some(49 * TICK_NS));
}

#[test]
fn a_core_switched_off_is_absent_and_comes_back() {
    let fake = FakeProc::new();
    let mut set = fake.open();
    let both = std::fs::read(fake.path("proc/stat")).unwrap();
    Pass::read(&mut set);
    fake.write("proc/stat", "cpu  30 2 10 1000 40 3 5 6 0 0\ncpu0 10 1 5 500 20 1 2 2 0 0\nintr 1\n");
    let pass = Pass::read(&mut set);
    assert_eq!(pass.value("machine.cpu.0.busy"), Some(19 * TICK_NS));
    for quantity in ["busy", "iowait", "steal"] {
        assert_eq!(pass.reason(&format!("machine.cpu.1.{quantity}")), Some("cpu 1 is offline"));
    }
    fake.write("proc/stat", both);
    assert_eq!(Pass::read(&mut set).value("machine.cpu.1.busy"), Some(31 * TICK_NS));
}

#[test]
fn a_core_that_is_off_from_the_start_is_shown_as_absent() {
    let fake = FakeProc::new();
    fake.write("sys/devices/system/cpu/present", "0-2\n");
    let pass = Pass::read(&mut fake.open());
    assert_eq!(pass.reason("machine.cpu.2.busy"), Some("cpu 2 is offline"));
}

#[test]
fn cores_are_optional_and_unknown_ones_ignored() {
    let fake = FakeProc::new();
    let set = SensorSet::open(&SensorOptions { per_core: false, ..fake.options() });
    assert_eq!(set.find(Quantity::CoreBusy.with_instance(0)), None);
    let mut set = fake.open();
    fake.write(
        "proc/stat",
        "cpu  30 2 10 1000 40 3 5 6 0 0\ncpu7 1 1 1 1 1 1 1 1\ncpu0 1 1 1 1 1 1 1 1\ncpu0 2 2 2 2 2 2 2 2\n",
    );
    let pass = Pass::read(&mut set);
    assert_eq!(pass.value("machine.cpu.0.busy"), Some(5 * TICK_NS), "the first of two lines holds");
}

#[test]
fn ended_process_has_all_signals_absent() {
    let fake = FakeProc::new();
    let mut set = fake.open();
    Pass::read(&mut set);
    fake.end_process();
    let pass = Pass::read(&mut set);
    let metrics = set.signals().iter().map(|signal| signal.metric);
    for metric in metrics.filter(|metric| metric.quantity().scope() == Scope::Process) {
        assert_eq!(pass.reason(&metric.to_string()), Some("process 4242 has ended"), "{metric}");
    }
    assert!(pass.value("machine.cpu.busy").is_some());
}

#[test]
fn a_zombie_has_ended() {
    let fake = FakeProc::new();
    let mut set = fake.open();
    Pass::read(&mut set);
    fake.process_stat(&ProcessStat { state: 'Z', ..ProcessStat::default() });
    assert_eq!(Pass::read(&mut set).reason("process.rss"), Some("process 4242 has ended"));
}

#[test]
fn reused_pid_is_another_process() {
    let fake = FakeProc::new();
    let mut set = fake.open();
    Pass::read(&mut set);
    fake.process_stat(&ProcessStat { start: 99999, user: 1, ..ProcessStat::default() });
    let pass = Pass::read(&mut set);
    for name in ["process.cpu_time", "process.swap", "process.io.rchar", "process.main_thread.cpu_wait"] {
        assert_eq!(pass.reason(name), Some("process 4242 has ended (its PID now belongs to another process)"));
    }
    fake.end_process();
    assert_eq!(
        Pass::read(&mut set).reason("process.cpu_time"),
        Some("process 4242 has ended"),
        "a new reason is reported"
    );
}

/// A child that is killed and collected when the test is over, however it ends.
struct Child(std::process::Child);

impl Child {
    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end();
    }
}

#[test]
fn a_child_is_read_until_it_ends() {
    let mut child = Child(Command::new("sleep").arg("600").spawn().unwrap());
    let pid = child.0.id();
    let mut set = SensorSet::open(&SensorOptions { pid, gpu: false, ..SensorOptions::default() });
    let alive = Pass::read(&mut set);
    // Its memory may read 0: since Linux 6.2 the kernel's count is off by some pages a core.
    for name in ["process.cpu_time", "process.rss", "process.swap", "process.io.rchar"] {
        assert!(alive.value(name).is_some(), "{name}");
    }
    assert_eq!(alive.value("process.threads"), Some(1));
    child.end();
    let reason = format!("process {pid} has ended");
    let dead = Pass::read(&mut set);
    for name in ["process.cpu_time", "process.rss", "process.swap", "process.io.rchar"] {
        assert_eq!(dead.reason(name), Some(reason.as_str()), "{name}");
    }
}

#[test]
fn cpu_time_of_this_process_rises_with_work() {
    let mut set = SensorSet::open(&SensorOptions { gpu: false, ..SensorOptions::default() });
    let first = Pass::read(&mut set);
    let mut worked = 0_u64;
    loop {
        // Pages that are touched fault once each, and touching takes CPU time.
        let pages = std::hint::black_box(vec![1_u8; 8 << 20]);
        worked += pages.iter().step_by(4096).map(|byte| u64::from(*byte)).sum::<u64>();
        let now = Pass::read(&mut set);
        let grew = |name: &str| now.value(name).unwrap() - first.value(name).unwrap();
        if grew("process.cpu_time") > 2 * TICK_NS {
            assert!(grew("process.faults.minor") > 0);
            assert!(now.value("process.rss").unwrap() > 0);
            break;
        }
        assert!(worked < 1 << 30, "CPU time does not change");
    }
}

#[test]
fn io_of_other_users_process_is_absent_with_reason() {
    // SAFETY: geteuid only returns a number.
    if unsafe { libc::geteuid() } == 0 {
        println!("skipped: root may read everything");
        return;
    }
    let mut set = SensorSet::open(&SensorOptions { pid: 1, gpu: false, ..SensorOptions::default() });
    let pass = Pass::read(&mut set);
    assert_eq!(pass.reason("process.io.rchar"), Some("permission denied reading /proc/1/io"));
    assert!(pass.value("process.cpu_time").is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_file_content_gives_no_panic_or_negative_value(
        contents in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..300),
                "(cpu[0-9]{0,4}|some|full|total=|Mem(Total|Available):|VmHWM:|rchar:|[0-9]{1,22}|[ \\t\\n():.=-]){0,60}".prop_map(String::into_bytes),
            ],
            9,
        )
    ) {
        let fake = FakeProc::new();
        let mut set = fake.open();
        Pass::read(&mut set);
        let files = [
            "proc/4242/stat", "proc/4242/status", "proc/4242/io", "proc/stat", "proc/meminfo",
            "proc/pressure/cpu", "proc/pressure/memory", "proc/pressure/io", "proc/loadavg",
        ];
        for (file, content) in files.into_iter().zip(&contents) {
            fake.write(file, content);
        }
        let mut reopened = fake.open();
        for set in [&mut set, &mut reopened] {
            for (name, reading) in Pass::read(set).readings() {
                if let Reading::Value { value, .. } = reading {
                    prop_assert!(*value >= 0, "{} is {}", name, value);
                }
            }
        }
    }
}

#[test]
fn disk_and_network_absence_has_a_reason() {
    let fake = FakeProc::new();
    fake.write("proc/diskstats", " 7 0 loop0 9 0 7 9 9 9 7 9 0 9 9\n");
    fake.write("proc/4242/net/dev", "Inter-| x\n face |y\n  lo: 5 0 0 0 0 0 0 0 5 0 0 0 0 0 0 0\n");
    let pass = Pass::read(&mut fake.open());
    assert_eq!(pass.reason("machine.disk.read_bytes"), Some("no physical disk is visible here"));
    assert_eq!(pass.reason("machine.network.sent_bytes"), Some("no network interface except the loopback"));
    fake.remove("proc/diskstats");
    fake.end_process();
    let pass = Pass::read(&mut fake.open());
    assert!(pass.reason("machine.disk.write_bytes").unwrap().ends_with("proc/diskstats not found"));
    assert!(pass.reason("machine.network.received_bytes").unwrap().ends_with("4242/net/dev not found"));
}

#[test]
fn energy_counter_absence_has_a_reason() {
    let fake = FakeProc::new();
    let reason = Pass::read(&mut fake.open()).reason("cpu.0.energy").map(str::to_owned);
    assert!(reason.unwrap().starts_with("no RAPL counters"));
    fake.energy_counters();
    let mut set = fake.open();
    assert_eq!(Pass::read(&mut set).value("dram.0.energy"), Some(4242));
    fake.write("sys/class/powercap/intel-rapl:0:0/energy_uj", "x\n");
    let pass = Pass::read(&mut set);
    assert_eq!(
        (pass.reason("dram.0.energy"), pass.value("cpu.0.energy")),
        (Some("the counter is not a number"), Some(123_456_789))
    );
}

#[test]
fn energy_counter_reports_range_if_readable() {
    let fake = FakeProc::new();
    fake.energy_counters();
    fake.write("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n");
    let pass = Pass::read(&mut fake.open());
    assert_eq!(pass.value("cpu.0.energy.range"), Some(262_143_328_850));
    assert!(pass.reason("dram.0.energy.range").unwrap().contains("max_energy_range_uj is unreadable"));
}

#[test]
fn shared_energy_counter_is_counted_once() {
    let fake = FakeProc::new();
    fake.energy_counters();
    fake.write("sys/class/powercap/intel-rapl:1/name", "package-1\n");
    let both = |uj: &str| {
        for zone in ["0", "1"] {
            fake.write(&format!("sys/class/powercap/intel-rapl:{zone}/energy_uj"), uj);
        }
    };
    both("500000000\n");
    let mut set = fake.open();
    Pass::read(&mut set);
    assert_eq!(Pass::read(&mut set).value("cpu.1.energy"), Some(500_000_000), "once may be chance");
    both("500000900\n");
    Pass::read(&mut set);
    let pass = Pass::read(&mut set);
    assert_eq!(pass.value("cpu.0.energy"), Some(500_000_900));
    assert!(pass.reason("cpu.1.energy").is_none_or(|reason| reason.contains("counted once")));
    assert_eq!(pass.value("cpu.1.energy"), None);
}

#[test]
fn energy_counter_recovers_and_refuses_garbage() {
    let fake = FakeProc::new();
    fake.energy_counters();
    let mut set = fake.open();
    assert_eq!(Pass::read(&mut set).value("cpu.0.energy"), Some(123_456_789));
    let path = "sys/class/powercap/intel-rapl:0/energy_uj";
    for content in ["", "12x\n", "-5\n", "99999999999999999999999\n"] {
        fake.write(path, content);
        assert_eq!(Pass::read(&mut set).value("cpu.0.energy"), None, "{content:?}");
    }
    fake.write(path, "77\n");
    let mut only = Vec::new();
    set.read_energy(&mut |reading| only.push(reading));
    assert_eq!(only.len(), 2, "a read of energy alone reads nothing else");
    assert_eq!(Pass::read(&mut set).value("cpu.0.energy"), Some(77));
}

#[test]
fn powercap_may_be_mounted_elsewhere() {
    let fake = FakeProc::new();
    fake.write("mounted/intel-rapl:0/name", "package-0\n");
    fake.write("mounted/intel-rapl:0/energy_uj", "31\n");
    let proc_root = fake.options().proc_root;
    let mounted = proc_root.parent().unwrap().join("mounted");
    let mut set = SensorSet::open(&SensorOptions { powercap_root: Some(mounted), ..fake.options() });
    assert_eq!(Pass::read(&mut set).value("cpu.0.energy"), Some(31));
}

#[test]
fn machine_shape_is_reported() {
    let fake = FakeProc::new();
    fake.write("sys/devices/system/edac/mc/mc0/dimm0/size", "16384\n");
    let mut set = fake.open();
    let pass = Pass::read(&mut set);
    let told = ["machine.cpu.threads", "machine.cpu.sockets", "machine.memory.modules", "allotted.cpu.threads"];
    assert_eq!(told.map(|name| pass.value(name)), [Some(2), Some(1), Some(1), Some(2)]);
    assert_eq!(set.find(Quantity::AllottedMemory), None, "no limit is nothing to measure");
    let threads = &set.signals()[set.find(Quantity::MachineCpuThreads).unwrap().0 as usize];
    assert_eq!(threads.device.as_deref(), Some("Fake 1"));
}

#[test]
fn nodes_of_the_main_thread_and_of_gpus_are_read_where_there_are_several() {
    let fake = FakeProc::new();
    card(&fake, 0, "amdgpu", &[("mem_info_vram_total", "206141652992\n")]);
    fake.write("sys/bus/pci/devices/0000:00:00.0/numa_node", "1\n");
    fake.write("sys/devices/system/node/node0/cpulist", "0-127\n");
    let options = SensorOptions { gpu: true, nvml_library: Some("/none".into()), ..fake.options() };
    let of_one = SensorSet::open(&options);
    assert_eq!(
        (of_one.find(Quantity::MainThreadNumaNode), of_one.find(Quantity::GpuNumaNode.with_instance(0))),
        (None, None)
    );
    fake.write("sys/devices/system/node/node0/cpulist", "0,2-127\n");
    fake.write("sys/devices/system/node/node1/cpulist", "1,128-191\n");
    fake.write("sys/devices/system/node/node2/cpulist", "\n");
    let pass = Pass::read(&mut SensorSet::open(&options));
    assert_eq!(pass.value("process.main_thread.numa_node"), Some(1));
    assert_eq!(pass.value("gpu.0.numa_node"), Some(1));
    fake.write("sys/bus/pci/devices/0000:00:00.0/numa_node", "-1\n");
    assert_eq!(SensorSet::open(&options).find(Quantity::GpuNumaNode.with_instance(0)), None, "no node is known");
}

/// A card of a driver, with these files below its device.
fn card(fake: &FakeProc, number: u32, driver: &str, files: &[(&str, &str)]) {
    let device = format!("sys/class/drm/card{number}/device");
    std::fs::create_dir_all(fake.path(&format!("{device}/hwmon/hwmon{number}"))).unwrap();
    fake.write(&format!("{device}/uevent"), format!("DRIVER={driver}\nPCI_SLOT_NAME=0000:0{number}:00.0\n"));
    for (name, content) in files {
        fake.write(&format!("{device}/{name}"), content);
    }
}

#[test]
fn gpus_of_other_makers_are_read_from_their_drivers_files() {
    let fake = FakeProc::new();
    std::fs::create_dir_all(fake.path("sys/class/drm/card0-HDMI-A-1")).unwrap();
    // An MI300X as its driver shows it, a graphics processor inside a processor, and an Arc.
    card(
        &fake,
        0,
        "amdgpu",
        &[
            ("gpu_busy_percent", "97\n"),
            ("mem_info_vram_total", "206141652992\n"),
            ("mem_info_vram_used", "1073741824\n"),
            ("product_name", "AMD Instinct MI300X\n"),
            ("hwmon/hwmon0/power1_average", "512000000\n"),
            ("hwmon/hwmon0/power1_cap", "750000000\n"),
            ("hwmon/hwmon0/temp1_input", "41000\n"),
            ("hwmon/hwmon0/freq1_input", "2100000000\n"),
        ],
    );
    card(&fake, 1, "amdgpu", &[("gpu_busy_percent", "3\n"), ("mem_info_vram_total", "536870912\n")]);
    card(&fake, 2, "xe", &[("hwmon/hwmon2/energy1_input", "123456789\n"), ("hwmon/hwmon2/power1_max", "190000000\n")]);
    card(&fake, 3, "i915", &[("hwmon/hwmon3/in0_input", "900\n")]);
    let mut set = SensorSet::open(&SensorOptions { gpu: true, nvml_library: Some("/none".into()), ..fake.options() });
    let pass = Pass::read(&mut set);
    assert_eq!(pass.value("gpu.count"), Some(2));
    let read = [
        ("gpu.0.util", 97_000),
        ("gpu.0.memory.total", 206_141_652_992),
        ("gpu.0.memory.used", 1 << 30),
        ("gpu.0.power", 512_000),
        ("gpu.0.power.limit", 750_000),
        ("gpu.0.temperature", 41_000),
        ("gpu.0.clock.sm", 2_100),
        ("gpu.1.energy", 123_456),
        ("gpu.1.power.limit", 190_000),
    ];
    for (name, value) in read {
        assert_eq!(pass.value(name), Some(value), "{name}");
    }
    assert_eq!(pass.value("gpu.1.util"), None, "no file says it");
    let names: Vec<_> = set.gpus().iter().filter_map(|gpu| gpu.name.clone()).collect();
    assert_eq!(names, ["AMD Instinct MI300X (0000:00:00.0)", "Intel GPU (0000:02:00.0)"]);
    fake.write("sys/class/drm/card0/device/gpu_busy_percent", "?\n");
    fake.remove("sys/class/drm/card0/device/mem_info_vram_used");
    let pass = Pass::read(&mut set);
    assert_eq!(pass.reason("gpu.0.util"), Some("the driver returned no usable number"));
    assert!(pass.reason("gpu.0.memory.used").unwrap().ends_with("mem_info_vram_used not found"));
    let mut more = Vec::new();
    set.read_energy(&mut |reading| more.push(reading));
    assert_eq!(more.len(), 1, "only the counter of energy is read more often");
}

#[test]
fn infiniband_ports_are_added_up() {
    let fake = FakeProc::new();
    let counters = |device: &str, port: u32| format!("sys/class/infiniband/{device}/ports/{port}/counters");
    for (device, port, received, sent) in [("mlx5_0", 1, "1000", "7"), ("mlx5_1", 1, "500", "3")] {
        std::fs::create_dir_all(fake.path(&counters(device, port))).unwrap();
        fake.write(&format!("{}/port_rcv_data", counters(device, port)), format!("{received}\n"));
        fake.write(&format!("{}/port_xmit_data", counters(device, port)), format!("{sent}\n"));
    }
    let mut set = fake.open();
    let pass = Pass::read(&mut set);
    assert_eq!(pass.value("machine.infiniband.received_bytes"), Some(6000));
    assert_eq!(pass.value("machine.infiniband.sent_bytes"), Some(40));
    fake.write(&format!("{}/port_rcv_data", counters("mlx5_1", 1)), "x\n");
    assert_eq!(Pass::read(&mut set).reason("machine.infiniband.received_bytes"), Some("a counter is not a number"));
    let pass = Pass::read(&mut FakeProc::new().open());
    assert!(
        pass.value("machine.infiniband.sent_bytes").is_none() && pass.reason("machine.infiniband.sent_bytes").is_none()
    );
}
