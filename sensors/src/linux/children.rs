//! What the processes that the observed one has started read, and their memory, loader workers above all: `/proc/PID/io` and
//! `statm` of each, once a second. What an ended one had read still counts, so that the sums never fall.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use gnntop_wire::Quantity;

use super::parse::{decimal, keyed, page_bytes, words};
use crate::clock::monotonic_ns;
use crate::options::SensorOptions;
use crate::sensor::{Registry, Sensor, Sink};
use crate::signal::SignalIndex;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// The largest number of processes that are followed.
const MAX_CHILDREN: usize = 512;
const KEYS: [&[u8]; 3] = [b"rchar", b"syscr", b"read_bytes"];

/// Reads `io` of each child of one process.
#[derive(Debug)]
pub(super) struct Children {
    proc_root: PathBuf,
    list: PathBuf,
    next: Instant,
    /// What each has read so far, in the order of [`KEYS`].
    running: HashMap<u32, [i64; 3]>,
    /// What ended ones had read.
    ended: [i64; 3],
    signals: [SignalIndex; 3],
    /// Resident memory, and what is no other process's of it.
    memory: [SignalIndex; 2],
}

impl Children {
    /// `None` where the system does not list a process's children.
    pub(super) fn open(options: &SensorOptions, registry: &mut Registry) -> Option<Self> {
        let pid = options.pid.to_string();
        let list = options.proc_root.join(&pid).join("task").join(&pid).join("children");
        list.exists().then(|| {
            let quantities = [Quantity::ChildrenIoRchar, Quantity::ChildrenIoReadCalls, Quantity::ChildrenIoReadBytes];
            let signals = quantities.map(|quantity| registry.plain(quantity, "/proc/PID/io of each child"));
            let memory = [Quantity::ChildrenRss, Quantity::ChildrenRssOwn];
            let memory = memory.map(|quantity| registry.plain(quantity, "/proc/PID/statm of each child"));
            let (proc_root, running) = (options.proc_root.clone(), HashMap::new());
            Self { proc_root, list, next: Instant::now(), running, ended: [0; 3], signals, memory }
        })
    }

    /// Those that run now.
    fn pids(&self) -> Option<Vec<u32>> {
        let listed = fs::read(&self.list).ok()?;
        let pids = words(&listed).filter_map(decimal).filter_map(|pid| u32::try_from(pid).ok());
        Some(pids.take(MAX_CHILDREN).collect())
    }

    /// What all of them have read so far, of which these run.
    fn totals(&mut self, pids: &[u32]) -> [i64; 3] {
        let now: HashMap<u32, [i64; 3]> = pids.iter().filter_map(|pid| Some((*pid, self.io(*pid)?))).collect();
        for (pid, before) in &self.running {
            // A smaller number is another process under the same id.
            if now.get(pid).is_none_or(|now| now[0] < before[0]) {
                add(&mut self.ended, before);
            }
        }
        self.running = now;
        let mut totals = self.ended;
        self.running.values().for_each(|io| add(&mut totals, io));
        totals
    }

    /// Bytes of memory that a process has, and of its own; `None` if it has ended.
    fn resident(&self, pid: u32) -> Option<[i64; 2]> {
        let text = fs::read(self.proc_root.join(pid.to_string()).join("statm")).ok()?;
        let mut pages = words(&text).skip(1).map(decimal);
        let (resident, shared) = (pages.next()??, pages.next()??);
        Some([resident, (resident - shared).max(0)].map(|pages| pages.saturating_mul(page_bytes())))
    }

    fn io(&self, pid: u32) -> Option<[i64; 3]> {
        let text = fs::read(self.proc_root.join(pid.to_string()).join("io")).ok()?;
        let [bytes, calls, from_disks] = keyed(&text, &KEYS);
        Some([bytes?, calls?, from_disks?])
    }
}

fn add<const N: usize>(sums: &mut [i64; N], more: &[i64; N]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
}

impl Sensor for Children {
    fn name(&self) -> &'static str {
        "children"
    }

    fn read(&mut self, sink: &mut Sink<'_>) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + INTERVAL;
        let t_ns = monotonic_ns();
        let Some(pids) = self.pids() else {
            let all = self.signals.into_iter().chain(self.memory);
            return sink.all_absent(all, t_ns, &"the processes that it has started are not listed");
        };
        let totals = self.totals(&pids);
        self.signals.into_iter().zip(totals).for_each(|(signal, total)| sink.value(signal, t_ns, total));
        let mut resident = [0; 2];
        pids.iter().filter_map(|pid| self.resident(*pid)).for_each(|more| add(&mut resident, &more));
        self.memory.into_iter().zip(resident).for_each(|(signal, bytes)| sink.value(signal, t_ns, bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_children_read_still_counts() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let io = |pid: u32, rchar: u32| {
            put(&format!("{pid}/io"), &format!("rchar: {rchar}\nwchar: 1\nsyscr: 2\nsyscw: 1\nread_bytes: 4096\n"));
        };
        put("10/task/10/children", "11 12 ");
        io(11, 100);
        io(12, 1000);
        let options = SensorOptions { pid: 10, proc_root: dir.path().to_owned(), ..SensorOptions::default() };
        let mut children = Children::open(&options, &mut Registry::default()).unwrap();
        assert_eq!(children.pids(), Some(vec![11, 12]));
        assert_eq!(children.totals(&[11, 12]), [1100, 4, 8192]);
        put("11/statm", "9000 40 3 1 0 70 0\n");
        let bytes = [40, 37].map(|pages| pages * page_bytes());
        assert_eq!([children.resident(11), children.resident(12)], [Some(bytes), None]);
        put("10/task/10/children", "12 13 ");
        io(12, 50);
        io(13, 7);
        assert_eq!(children.totals(&children.pids().unwrap()), [1157, 8, 16384], "11 ended, and 12 is another process");
    }
}
