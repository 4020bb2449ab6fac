//! What all processes below one take in total: for a launcher, whose own share is next to nothing.
//!
//! They are looked up once a second, from the parent of every process. What a process had taken when it was last read
//! still counts after its end, so that sums of counters never fall.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::hot_file::HotFile;
use super::parse::ProcessStat;

/// Time between two searches for new ones.
const SCAN_INTERVAL: Duration = Duration::from_secs(1);
/// The largest number of followed processes, with one file descriptor each.
const MAX_MEMBERS: usize = 512;

/// The processes below one.
#[derive(Debug)]
pub(super) struct Descendants {
    root: u32,
    proc_root: PathBuf,
    next_scan: Instant,
    members: HashMap<u32, Descendant>,
    /// What ended ones had taken.
    ended: ProcessCounters,
}

#[derive(Debug)]
struct Descendant {
    file: HotFile,
    start_ticks: Option<i64>,
    last: ProcessCounters,
}

/// Counters that only grow.
#[derive(Clone, Copy, Debug, Default)]
struct ProcessCounters {
    user_ticks: i64,
    system_ticks: i64,
    minor_faults: i64,
    major_faults: i64,
}

impl ProcessCounters {
    fn from_stat(stat: &ProcessStat) -> Self {
        let ProcessStat { user_ticks, system_ticks, minor_faults, major_faults, .. } = *stat;
        Self { user_ticks, system_ticks, minor_faults, major_faults }
    }

    fn add(&mut self, other: Self) {
        self.user_ticks = self.user_ticks.saturating_add(other.user_ticks);
        self.system_ticks = self.system_ticks.saturating_add(other.system_ticks);
        self.minor_faults = self.minor_faults.saturating_add(other.minor_faults);
        self.major_faults = self.major_faults.saturating_add(other.major_faults);
    }
}

impl Descendants {
    pub(super) fn new(root: u32, proc_root: &Path) -> Self {
        Self {
            root,
            proc_root: proc_root.to_owned(),
            next_scan: Instant::now(),
            members: HashMap::new(),
            ended: ProcessCounters::default(),
        }
    }

    /// Adds what they take to the process above them.
    pub(super) fn add_to(&mut self, stat: &mut ProcessStat) {
        if Instant::now() >= self.next_scan {
            self.next_scan = Instant::now() + SCAN_INTERVAL;
            self.find_new();
        }
        let mut sum = ProcessCounters::from_stat(stat);
        let ended = &mut self.ended;
        self.members.retain(|_, member| match member.read() {
            Some(now) => {
                sum.add(member.last);
                stat.resident_pages = stat.resident_pages.saturating_add(now.resident_pages);
                stat.threads = stat.threads.saturating_add(now.threads);
                true
            }
            None => {
                ended.add(member.last);
                false
            }
        });
        sum.add(self.ended);
        (stat.user_ticks, stat.system_ticks) = (sum.user_ticks, sum.system_ticks);
        (stat.minor_faults, stat.major_faults) = (sum.minor_faults, sum.major_faults);
    }

    /// Finds those that are new.
    fn find_new(&mut self) {
        let entries = fs::read_dir(&self.proc_root).into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let parents: HashMap<u32, u32> = pids.filter_map(|pid| Some((pid, self.parent(pid)?))).collect();
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for (pid, parent) in &parents {
            children.entry(*parent).or_default().push(*pid);
        }
        let (mut waiting, mut seen) = (vec![self.root], HashSet::from([self.root]));
        while let Some(pid) = waiting.pop() {
            for child in children.get(&pid).into_iter().flatten().filter(|child| seen.insert(**child)) {
                waiting.push(*child);
                if self.members.len() < MAX_MEMBERS {
                    let file = || HotFile::new(self.proc_root.join(child.to_string()).join("stat"));
                    let new = || Descendant { file: file(), start_ticks: None, last: ProcessCounters::default() };
                    self.members.entry(*child).or_insert_with(new);
                }
            }
        }
    }

    fn parent(&self, pid: u32) -> Option<u32> {
        let line = fs::read(self.proc_root.join(pid.to_string()).join("stat")).ok()?;
        u32::try_from(ProcessStat::parse(&line)?.parent).ok()
    }
}

impl Descendant {
    /// Its current use; `None` once it has ended.
    fn read(&mut self) -> Option<ProcessStat> {
        let stat = ProcessStat::parse(self.file.read().ok()?.bytes)?;
        if stat.has_ended() || stat.start_ticks != *self.start_ticks.get_or_insert(stat.start_ticks) {
            return None;
        }
        self.last = ProcessCounters::from_stat(&stat);
        Some(stat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test's own process file system.
    struct Proc(tempfile::TempDir);

    impl Proc {
        /// A process with `ticks` user ticks, twice as many pages, and one thread.
        fn put(&self, pid: u32, parent: u32, ticks: u32) {
            self.write(pid, 'S', parent, ticks);
        }

        /// It has ended, and its parent has not collected it yet.
        fn end(&self, pid: u32) {
            self.write(pid, 'Z', 1, 0);
        }

        fn write(&self, pid: u32, state: char, parent: u32, ticks: u32) {
            let dir = self.0.path().join(pid.to_string());
            fs::create_dir_all(&dir).unwrap();
            let pages = 2 * ticks;
            let line =
                format!("{pid} (a) b) {state} {parent} 0 0 0 0 0 1 0 2 0 {ticks} 0 0 0 20 0 1 0 77 0 {pages} 0 0\n");
            fs::write(dir.join("stat"), line).unwrap();
        }
    }

    fn sums(descendants: &mut Descendants) -> (i64, i64, i64) {
        descendants.next_scan = Instant::now();
        let bytes = fs::read(descendants.proc_root.join("10/stat")).unwrap();
        let mut stat = ProcessStat::parse(&bytes).unwrap();
        descendants.add_to(&mut stat);
        (stat.user_ticks, stat.resident_pages, stat.threads)
    }

    #[test]
    fn descendants_are_counted_after_they_end() {
        let proc = Proc(tempfile::tempdir().unwrap());
        proc.put(10, 1, 1);
        proc.put(11, 10, 100);
        proc.put(12, 11, 1000);
        proc.put(13, 1, 50_000);
        let mut descendants = Descendants::new(10, proc.0.path());
        assert_eq!(sums(&mut descendants), (1101, 2202, 3));
        proc.end(12);
        assert_eq!(sums(&mut descendants), (1101, 202, 2), "its time counts on, its memory is given back");
        proc.put(11, 10, 300);
        assert_eq!(sums(&mut descendants).0, 1301);
    }
}
