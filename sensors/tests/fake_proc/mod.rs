//! A fake `/proc` and `/sys` in a temporary folder, with one process and two cores, to change at will.

use std::fs;
use std::path::PathBuf;

use gnntop_sensors::{Reading, SensorOptions, SensorSet};

/// The PID of the fake process.
pub const PID: u32 = 4242;

/// The folder; gone when this is dropped.
pub struct FakeProc {
    root: tempfile::TempDir,
}

impl FakeProc {
    /// A machine and a process on which everything can be read.
    pub fn new() -> Self {
        let fake = Self { root: tempfile::tempdir().unwrap() };
        fake.process_stat(&ProcessStat::default());
        fake.write(
            "proc/4242/status",
            "Name:\tpython (x)\nVmHWM:\t   2048 kB\nVmRSS:\t   1024 kB\nRssAnon:\t    600 kB\nRssFile:\t    400 kB\nRssShmem:\t     24 kB\nVmSwap:\t      16 kB\n\
             Cpus_allowed_list:\t0-1\nvoluntary_ctxt_switches:\t111\nnonvoluntary_ctxt_switches:\t22\n",
        );
        fake.write(
            "proc/4242/io",
            "rchar: 1000\nwchar: 2000\nsyscr: 10\nsyscw: 20\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 0\n",
        );
        fake.write("proc/4242/schedstat", "50000000 2000000 31\n");
        fake.write(
            "proc/stat",
            "cpu  30 2 10 1000 40 3 5 6 0 0\ncpu0 10 1 5 500 20 1 2 2 0 0\ncpu1 20 1 5 500 20 2 3 4 0 0\nintr 5 1 2\nctxt 9\n",
        );
        fake.write(
            "proc/meminfo",
            "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\nSwapTotal:       50 kB\nSwapFree:        20 kB\n",
        );
        for resource in ["cpu", "memory", "io"] {
            fake.write(
                &format!("proc/pressure/{resource}"),
                "some avg10=0.00 avg60=0.00 avg300=0.00 total=700\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=300\n",
            );
        }
        fake.write(
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: Fake 1\nphysical id\t: 0\nprocessor\t: 1\nphysical id\t: 0\n",
        );
        fake.write("proc/loadavg", "0.52 1.00 12.25 3/95 4116\n");
        fake.write("sys/devices/system/cpu/present", "0-1\n");
        fake.write(
            "proc/diskstats",
            " 259 0 nvme0n1 9 0 100 9 9 9 40 9 0 9 9\n 259 1 nvme0n1p1 9 0 90 9 9 9 30 9 0 9 9\n   7 0 loop0 9 0 7 9 9 9 7 9 0 9 9\n",
        );
        fake.write("sys/block/nvme0n1/device/model", "fake\n");
        fake.write("sys/block/loop0/size", "7\n");
        fake.write(
            "proc/4242/net/dev",
            "Inter-| Receive | Transmit\n face |bytes packets\n  lo: 5 0 0 0 0 0 0 0 5 0 0 0 0 0 0 0\n\
             eth0: 3000 0 0 0 0 0 0 0 700 0 0 0 0 0 0 0\n docker0: 20 0 0 0 0 0 0 0 30 0 0 0 0 0 0 0\n",
        );
        fake.write("sys/class/net/eth0/device/vendor", "fake\n");
        fake
    }

    /// RAPL counters of a package and its memory, and one that is inside the package.
    pub fn energy_counters(&self) {
        for (zone, name, energy_uj) in [("0", "package-0", "123456789"), ("0:0", "dram", "4242"), ("0:1", "core", "99")]
        {
            self.write(&format!("sys/class/powercap/intel-rapl:{zone}/name"), format!("{name}\n"));
            self.write(&format!("sys/class/powercap/intel-rapl:{zone}/energy_uj"), format!("{energy_uj}\n"));
        }
    }

    /// Writes a file in place, as the kernel changes what an open descriptor reads.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Removes a file. It is emptied first: open descriptors of a removed file would read on, which the kernel's do not.
    pub fn remove(&self, path: &str) {
        let path = self.root.path().join(path);
        fs::write(&path, "").unwrap();
        fs::remove_file(path).unwrap();
    }

    /// The process ends: its files go.
    pub fn end_process(&self) {
        for file in ["stat", "status", "io", "schedstat", "net/dev"] {
            self.remove(&format!("proc/{PID}/{file}"));
        }
    }

    /// Writes `/proc/PID/stat`.
    pub fn process_stat(&self, stat: &ProcessStat) {
        let ProcessStat { state, minor, major, user, system, threads, start, pages } = stat;
        let line = format!(
            "{PID} (python (x)) {state} 1 1 1 0 -1 4194304 {minor} 7 {major} 9 {user} {system} 5 6 20 0 {threads} 0 {start} 3133440 {pages} 18446744073709551615 1 2 3 4 5 6 7 8 9 10 11 12 17 1\n"
        );
        self.write("proc/4242/stat", line);
    }

    /// Options for this root, without GPUs.
    pub fn options(&self) -> SensorOptions {
        SensorOptions {
            pid: PID,
            proc_root: self.path("proc"),
            sys_root: self.path("sys"),
            gpu: false,
            ..SensorOptions::default()
        }
    }

    /// A path inside the folder.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// The sensors of this root.
    pub fn open(&self) -> SensorSet {
        SensorSet::open(&self.options())
    }
}

/// The fields of `/proc/PID/stat` that matter.
pub struct ProcessStat {
    pub state: char,
    pub minor: u64,
    pub major: u64,
    pub user: u64,
    pub system: u64,
    pub threads: u64,
    pub start: u64,
    pub pages: u64,
}

impl Default for ProcessStat {
    fn default() -> Self {
        Self { state: 'R', minor: 103, major: 2, user: 31, system: 17, threads: 4, start: 55954, pages: 416 }
    }
}

/// What one pass said of each signal.
pub struct Pass {
    readings: Vec<(String, Reading)>,
}

impl Pass {
    /// Reads the set once.
    pub fn read(set: &mut SensorSet) -> Self {
        let mut readings = Vec::new();
        set.read(&mut |reading| readings.push(reading));
        let name = |reading: &Reading| set.signals()[reading.signal().0 as usize].metric.to_string();
        Self { readings: readings.into_iter().map(|reading| (name(&reading), reading)).collect() }
    }

    fn find(&self, name: &str) -> Option<&Reading> {
        let mut found = self.readings.iter().filter(|(of, _)| of == name);
        let first = found.next().map(|(_, reading)| reading);
        assert!(found.next().is_none(), "{name} was read twice in one pass");
        first
    }

    /// The value the signal had, `None` if it had none in this pass.
    pub fn value(&self, name: &str) -> Option<i64> {
        match self.find(name)? {
            Reading::Value { value, .. } => Some(*value),
            Reading::Absent { .. } => None,
        }
    }

    /// The reason told in this pass for the signal's absence.
    pub fn reason(&self, name: &str) -> Option<&str> {
        match self.find(name)? {
            Reading::Value { .. } => None,
            Reading::Absent { reason, .. } => Some(reason),
        }
    }

    /// Every reading with its signal's name.
    pub fn readings(&self) -> &[(String, Reading)] {
        &self.readings
    }
}
