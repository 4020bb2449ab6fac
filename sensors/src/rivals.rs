//! Other processes that use the processor: what each took between two scans of the process file system.
//!
//! A scan reads a small file of every process, so use it rarely, and only when something else is known to use the
//! processor. It does not see processes that began and ended between two scans, nor another user's processes if the
//! system hides them.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use gnntop_wire::text::clean;

use crate::clock::monotonic_ns;
#[cfg(target_os = "linux")]
use crate::linux::parse::ProcessStat;
use crate::options::SensorOptions;

/// The largest number of processes read, so that a scan stays cheap; others are left out.
const MAX_PROCESSES: usize = 4096;
/// The line of a process takes some 300 bytes.
const MAX_LINE_BYTES: usize = 1024;

/// Finds processes that use the processor, other than one process and those it has started.
#[derive(Debug)]
pub struct Rivals {
    root: u32,
    proc_root: PathBuf,
    ns_per_tick: u64,
    last_scan: Option<ProcessScan>,
}

/// The command whose processes used the processor most.
#[derive(Clone, Debug, PartialEq)]
pub struct Rival {
    /// The command's name: at most 15 characters.
    pub command: String,
    /// Its process; `None` for several.
    pub pid: Option<u32>,
    /// How many cores they used in total.
    pub cores: f64,
}

/// The CPU time of every process at some time.
#[derive(Debug)]
struct ProcessScan {
    t_ns: u64,
    processes: HashMap<u32, ScannedProcess>,
}

#[derive(Debug)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "none is found there"))]
struct ScannedProcess {
    command: String,
    parent: u32,
    start_ticks: u64,
    cpu_ticks: u64,
}

impl Rivals {
    /// Finds processes other than that of `options`.
    pub fn new(options: &SensorOptions) -> Self {
        Self { root: options.pid, proc_root: options.proc_root.clone(), ns_per_tick: ns_per_tick(), last_scan: None }
    }

    /// The command that used the processor most since the previous scan; `None` at the first scan, or if there is none.
    pub fn scan(&mut self) -> Option<Rival> {
        let now = ProcessScan { t_ns: monotonic_ns(), processes: processes(&self.proc_root) };
        let before = self.last_scan.replace(now)?;
        self.last_scan.as_ref()?.most_since(&before, self.root, self.ns_per_tick)
    }

    /// Makes the next scan the first of a new pair.
    pub fn forget(&mut self) {
        self.last_scan = None;
    }
}

impl ProcessScan {
    fn most_since(&self, before: &Self, root: u32, ns_per_tick: u64) -> Option<Rival> {
        let own = self.descendants(root);
        let newest_then = before.processes.values().map(|process| process.start_ticks).max().unwrap_or(0);
        let mut by_command: HashMap<&str, (u64, Vec<u32>)> = HashMap::new();
        for (pid, process) in self.processes.iter().filter(|(pid, _)| !own.contains(pid)) {
            let earlier = before.processes.get(pid).filter(|earlier| earlier.start_ticks == process.start_ticks);
            let ticks = process.cpu_ticks.saturating_sub(earlier.map_or(0, |earlier| earlier.cpu_ticks));
            // A new one took all of it since then, unless it was missed for another reason.
            if ticks > 0 && (earlier.is_some() || process.start_ticks >= newest_then) {
                let all = by_command.entry(&process.command).or_default();
                all.0 = all.0.saturating_add(ticks);
                all.1.push(*pid);
            }
        }
        let (command, (ticks, pids)) = by_command.into_iter().max_by_key(|(_, (ticks, _))| *ticks)?;
        let passed_ns = self.t_ns.saturating_sub(before.t_ns).max(1);
        let cores = ticks.saturating_mul(ns_per_tick) as f64 / passed_ns as f64;
        let pid = if let [pid] = pids[..] { Some(pid) } else { None };
        Some(Rival { command: command.to_owned(), pid, cores })
    }

    /// A process and all that it and its children have started.
    fn descendants(&self, root: u32) -> HashSet<u32> {
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for (pid, process) in &self.processes {
            children.entry(process.parent).or_default().push(*pid);
        }
        let (mut found, mut waiting) = (HashSet::from([root]), vec![root]);
        while let Some(pid) = waiting.pop() {
            waiting.extend(children.get(&pid).into_iter().flatten().copied().filter(|child| found.insert(*child)));
        }
        found
    }
}

/// The unit of times in `/proc`.
#[cfg(target_os = "linux")]
fn ns_per_tick() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

/// Other systems have no such times.
#[cfg(not(target_os = "linux"))]
fn ns_per_tick() -> u64 {
    0
}

fn processes(proc_root: &Path) -> HashMap<u32, ScannedProcess> {
    let entries = fs::read_dir(proc_root).into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).take(MAX_PROCESSES);
    pids.filter_map(|pid| Some((pid, ScannedProcess::read(&proc_root.join(pid.to_string()).join("stat"))?))).collect()
}

impl ScannedProcess {
    fn read(path: &Path) -> Option<Self> {
        let mut line = [0; MAX_LINE_BYTES];
        let length = File::open(path).ok()?.read(&mut line).ok()?;
        Self::parse(&line[..length])
    }

    /// Reads a line of `/proc/PID/stat`.
    #[cfg(target_os = "linux")]
    fn parse(line: &[u8]) -> Option<Self> {
        let (stat, name) = (ProcessStat::parse(line)?, ProcessStat::name(line)?);
        let whole = |number: i64| u64::try_from(number).ok();
        let (command, parent) = (clean(name), u32::try_from(stat.parent).ok()?);
        let cpu_ticks = whole(stat.user_ticks.saturating_add(stat.system_ticks))?;
        Some(Self { command, parent, start_ticks: whole(stat.start_ticks)?, cpu_ticks })
    }

    /// Other systems have no such line.
    #[cfg(not(target_os = "linux"))]
    fn parse(_: &[u8]) -> Option<Self> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process of this command: by its parent, when it was started, and what it has taken.
    fn process(command: &str, parent: u32, start_ticks: u64, cpu_ticks: u64) -> ScannedProcess {
        ScannedProcess { command: command.to_owned(), parent, start_ticks, cpu_ticks }
    }

    fn scan<const N: usize>(t_s: u64, processes: [(u32, ScannedProcess); N]) -> ProcessScan {
        ProcessScan { t_ns: t_s * 1_000_000_000, processes: HashMap::from(processes) }
    }

    /// With ticks of 10 ms.
    fn most(before: &ProcessScan, now: &ProcessScan) -> Option<Rival> {
        now.most_since(before, 10, 10_000_000)
    }

    #[test]
    fn scan_names_command_with_most_cpu_time() {
        let before = scan(0, [(10, process("python", 1, 5, 0)), (20, process("cc1plus", 1, 6, 500))]);
        let now = scan(
            10,
            [
                (10, process("python", 1, 5, 9000)),
                (11, process("pt_data_worker", 10, 50, 9000)),
                (12, process("worker's child", 11, 51, 9000)),
                (20, process("cc1plus", 1, 6, 900)),
                (21, process("cc1plus", 1, 60, 700)),
                (22, process("bash", 1, 6, 1000)),
                (30, process("rustc", 1, 60, 1000)),
            ],
        );
        let rival = most(&before, &now).unwrap();
        assert_eq!((rival.command.as_str(), rival.pid), ("cc1plus", None));
        assert!((rival.cores - 1.1).abs() < 1e-9, "11 s of CPU in 10 s: {rival:?}");
    }

    #[test]
    fn scan_treats_reused_pid_as_new_process() {
        let before = scan(0, [(20, process("make", 1, 6, 100_000)), (1, process("init", 0, 0, 0))]);
        let now = scan(10, [(20, process("stress", 1, 900, 1500)), (1, process("init", 0, 0, 0))]);
        let stress = Rival { command: "stress".to_owned(), pid: Some(20), cores: 1.5 };
        assert_eq!(most(&before, &now), Some(stress));
        assert_eq!(most(&now, &scan(20, [(20, process("stress", 1, 900, 1500))])), None, "it took nothing since");
        assert_eq!(most(&before, &scan(10, [(99, process("hidden before", 1, 3, 7000))])), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn process_parses_any_name() {
        let line = |name: &str| {
            format!("4711 ({name}) R 17 1 1 0 -1 4194304 100 0 0 0 1234 66 0 0 20 0 8 0 5555 1000000 300 18446 1 1\n")
        };
        let process = ScannedProcess::parse(line("cc1 (x) y").as_bytes()).unwrap();
        assert_eq!((process.command.as_str(), process.parent), ("cc1 (x) y", 17));
        assert_eq!((process.cpu_ticks, process.start_ticks), (1300, 5555));
        assert_eq!(ScannedProcess::parse(line("\u{1b}[2J").as_bytes()).unwrap().command, "\u{fffd}[2J");
        for broken in
            ["", "1 (x", "1 (x) R", "1 (x) R 1 2 3", ") (", "4711 (x) R a b c d e f g h i j k l m n o p q r s t"]
        {
            assert!(ScannedProcess::parse(broken.as_bytes()).is_none(), "{broken}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn scan_finds_busy_process_of_this_machine() {
        // With another root than this test, so that its child is a rival.
        let options = SensorOptions { pid: u32::MAX, ..SensorOptions::default() };
        let mut busy = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let mut rivals = Rivals::new(&options);
        assert_eq!(rivals.scan(), None, "there is nothing to compare with");
        let worked = |pid: u32| processes(&options.proc_root).get(&pid).map_or(0, |process| process.cpu_ticks);
        while worked(busy.id()) < 5 {
            std::thread::yield_now();
        }
        let rival = rivals.scan();
        busy.kill().unwrap();
        busy.wait().unwrap();
        assert!(rival.is_some_and(|rival| rival.cores > 0.0));
    }
}
