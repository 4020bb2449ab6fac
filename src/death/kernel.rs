//! What the kernel says of memory: the limit of a program's control group, its peak, and how many processes were killed for
//! lack of memory, there and on the whole machine, while the program ran.

use std::fs;
use std::path::{Path, PathBuf};

/// Memory around a program's end. `None` is "not told here".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryFigures {
    /// Processes of its control group that the kernel killed for lack of memory while it ran.
    pub killed_in_group: Option<u64>,
    /// The same on the whole machine.
    pub killed_on_machine: Option<u64>,
    /// The group's limit, in bytes.
    pub limit_bytes: Option<u64>,
    /// The most that the group has had, in bytes.
    pub peak_bytes: Option<u64>,
    /// The limit on a process's address space (`ulimit -v`), in bytes.
    pub address_space_bytes: Option<u64>,
}

/// Watches a program's memory from its start.
#[derive(Debug)]
pub struct MemoryWatch {
    proc_root: PathBuf,
    /// The folder of the control group in which it was started.
    group: Option<PathBuf>,
    killed_in_group: Option<u64>,
    killed_on_machine: Option<u64>,
    limit_bytes: Option<u64>,
}

impl MemoryWatch {
    /// Begins to watch the process.
    pub fn start(pid: u32) -> Self {
        Self::start_in(Path::new("/proc"), Path::new("/sys/fs/cgroup"), pid)
    }

    fn start_in(proc_root: &Path, hierarchy: &Path, pid: u32) -> Self {
        let group = memory_group(&proc_root.join(pid.to_string()), hierarchy);
        let limits = group.as_deref().map(|group| read_limit(group, hierarchy));
        Self {
            proc_root: proc_root.to_owned(),
            killed_in_group: group.as_deref().and_then(killed_in),
            killed_on_machine: killed_on_machine(proc_root),
            limit_bytes: limits.flatten(),
            group,
        }
    }

    /// What has come of it.
    pub fn end(&self) -> MemoryFigures {
        let since = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        MemoryFigures {
            killed_in_group: since(self.group.as_deref().and_then(killed_in), self.killed_in_group),
            killed_on_machine: since(killed_on_machine(&self.proc_root), self.killed_on_machine),
            limit_bytes: self.limit_bytes,
            peak_bytes: self.group.as_deref().and_then(read_peak),
            // A child inherits ours.
            address_space_bytes: gnntop_sessions::Limit::AddressSpace.current(),
        }
    }
}

/// The folder of the group that accounts the process's memory. In a container its path may lie outside of what is mounted;
/// then the mount's own root is the container's group.
fn memory_group(process: &Path, hierarchy: &Path) -> Option<PathBuf> {
    let groups = fs::read_to_string(process.join("cgroup")).ok()?;
    let candidates = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        if controllers.split(',').any(|controller| controller == "memory") {
            return Some((hierarchy.join("memory"), path));
        }
        controllers.is_empty().then(|| (hierarchy.to_owned(), path))
    });
    let within = |(mount, path): (PathBuf, &str)| {
        let is_plain = path.split('/').all(|name| name != "..");
        let group = mount.join(path.trim_start_matches('/'));
        [group, mount].into_iter().filter(|_| is_plain).find(|group| killed_in(group).is_some())
    };
    candidates.filter_map(within).next()
}

/// Kills in a group: `memory.events` of version 2, `memory.oom_control` of version 1.
fn killed_in(group: &Path) -> Option<u64> {
    ["memory.events", "memory.oom_control"].iter().find_map(|file| read_count(&group.join(file)))
}

fn killed_on_machine(proc_root: &Path) -> Option<u64> {
    read_count(&proc_root.join("vmstat"))
}

fn read_count(file: &Path) -> Option<u64> {
    let counts = fs::read_to_string(file).ok()?;
    counts.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// The tightest limit of a group and of those around it.
fn read_limit(group: &Path, hierarchy: &Path) -> Option<u64> {
    // Version 1 writes "no limit" as the largest page-aligned number, which no machine's memory comes near.
    const NO_LIMIT: u64 = 1 << 60;
    let around = group.ancestors().take_while(|folder| folder.starts_with(hierarchy));
    let of = |folder: &Path| read_number(folder, ["memory.max", "memory.limit_in_bytes"]);
    around.filter_map(of).filter(|bytes| *bytes < NO_LIMIT).min()
}

fn read_peak(group: &Path) -> Option<u64> {
    read_number(group, ["memory.peak", "memory.max_usage_in_bytes"])
}

fn read_number(folder: &Path, files: [&str; 2]) -> Option<u64> {
    files.iter().find_map(|file| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        files.iter().for_each(|(path, text)| put(root.path(), path, text));
        root
    }

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn watch(root: &Path) -> MemoryWatch {
        MemoryWatch::start_in(&root.join("proc"), &root.join("cg"), 7)
    }

    #[test]
    fn only_kills_since_start_are_counted() {
        let root = fixture(&[
            ("proc/7/cgroup", "0::/job/step\n"),
            ("proc/vmstat", "nr_free 9\noom_kill 40\n"),
            ("cg/job/memory.max", "4096\n"),
            ("cg/job/step/memory.max", "max\n"),
            ("cg/job/step/memory.peak", "4000\n"),
            ("cg/job/step/memory.events", "low 0\noom 3\noom_kill 2\n"),
        ]);
        let watch = watch(root.path());
        put(root.path(), "cg/job/step/memory.events", "oom_kill 3\n");
        put(root.path(), "proc/vmstat", "oom_kill 42\n");
        let figures = watch.end();
        assert_eq!((figures.killed_in_group, figures.killed_on_machine), (Some(1), Some(2)));
        assert_eq!((figures.limit_bytes, figures.peak_bytes), (Some(4096), Some(4000)));
    }

    #[test]
    fn cgroup_v1_and_unmounted_group_are_read() {
        let root = fixture(&[
            ("proc/7/cgroup", "0::/\n4:memory:/docker/abc\n"),
            ("cg/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"),
            ("cg/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("cg/memory/memory.max_usage_in_bytes", "77\n"),
        ]);
        let figures = watch(root.path()).end();
        assert_eq!((figures.killed_in_group, figures.limit_bytes, figures.peak_bytes), (Some(0), None, Some(77)));
        assert_eq!(figures.killed_on_machine, None, "not told");
    }
}
