//! The share of the machine that a process may use: its control group's CPU and memory limits, and its CPU mask.
//!
//! Read once for headers and the doctor, not in a sampling pass. Both versions of control groups are supported, also
//! side by side. A limit applies to everything below it, so the tightest one on the way to the root counts.

use std::fs;
use std::path::{Path, PathBuf};

use super::parse::{decimal, lines, number_list, words};
use crate::limits::ProcessLimits;
use crate::options::SensorOptions;

/// Version 1 writes "no limit" as the largest page-aligned number, which no machine's memory comes near.
const NO_MEMORY_LIMIT_BYTES: i64 = 1 << 60;

/// The limits of the observed process. An unreadable limit is `None`, like no limit.
pub(crate) fn limits(options: &SensorOptions) -> ProcessLimits {
    let folder = options.proc_root.join(options.pid.to_string());
    let groups = fs::read(folder.join("cgroup")).unwrap_or_default();
    let hierarchy = options.sys_root.join("fs/cgroup");
    let mut limits = ProcessLimits { allowed_cpus: allowed_cpus(&folder), ..ProcessLimits::default() };
    for line in lines(&groups) {
        let mut parts = line.splitn(3, |byte| *byte == b':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let Ok(path) = std::str::from_utf8(path) else { continue };
        let names = || controllers.split(|byte| *byte == b',');
        if controllers.is_empty() {
            for mount in [hierarchy.clone(), hierarchy.join("unified")] {
                tighten(&mut limits.cpu_millicores, walk(&mount, path, cpu_max));
                tighten(&mut limits.memory_bytes, walk(&mount, path, |group| number(group.join("memory.max"))));
            }
        } else if names().any(|name| name == b"cpu") {
            tighten(&mut limits.cpu_millicores, walk(&hierarchy.join("cpu"), path, cpu_quota));
        } else if names().any(|name| name == b"memory") {
            tighten(&mut limits.memory_bytes, walk(&hierarchy.join("memory"), path, memory_limit));
        }
    }
    limits
}

/// The tightest limit of a group and its ancestors.
fn walk(mount: &Path, path: &str, limit: impl Fn(&Path) -> Option<i64>) -> Option<i64> {
    let mut tightest = limit(mount);
    let mut group = mount.to_path_buf();
    for name in path.split('/').filter(|name| !matches!(*name, "" | "." | "..")) {
        group.push(name);
        tighten(&mut tightest, limit(&group));
    }
    tightest
}

fn tighten(limit: &mut Option<i64>, other: Option<i64>) {
    *limit = [*limit, other].into_iter().flatten().min();
}

/// Version 2: `quota period` in microseconds, with `max` for no quota.
fn cpu_max(group: &Path) -> Option<i64> {
    let text = fs::read(group.join("cpu.max")).ok()?;
    let mut fields = words(text.trim_ascii()).map(decimal);
    millicores(fields.next()??, fields.next()??)
}

/// Version 1: quota and period in separate files, with -1 for no quota.
fn cpu_quota(group: &Path) -> Option<i64> {
    millicores(number(group.join("cpu.cfs_quota_us"))?, number(group.join("cpu.cfs_period_us"))?)
}

fn millicores(quota_us: i64, period_us: i64) -> Option<i64> {
    quota_us.checked_mul(1000)?.checked_div(period_us)
}

fn memory_limit(group: &Path) -> Option<i64> {
    number(group.join("memory.limit_in_bytes")).filter(|bytes| *bytes < NO_MEMORY_LIMIT_BYTES)
}

fn number(path: PathBuf) -> Option<i64> {
    decimal(fs::read(path).ok()?.trim_ascii())
}

/// How many CPUs the process's mask lets it run on.
fn allowed_cpus(process_folder: &Path) -> Option<u32> {
    let status = fs::read(process_folder.join("status")).ok()?;
    let list = lines(&status).find_map(|line| line.strip_prefix(b"Cpus_allowed_list:"))?;
    u32::try_from(number_list(list, 8192).len()).ok().filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(files: &[(&str, &str)]) -> (tempfile::TempDir, SensorOptions) {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let options = SensorOptions {
            pid: 7,
            proc_root: root.path().join("proc"),
            sys_root: root.path().join("sys"),
            ..SensorOptions::default()
        };
        (root, options)
    }

    #[test]
    fn cgroup_v2_uses_tightest_ancestor() {
        let (_root, options) = fixture(&[
            ("proc/7/cgroup", "0::/job/step\n"),
            ("proc/7/status", "Cpus_allowed_list:\t0-3,8\n"),
            ("sys/fs/cgroup/job/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/job/step/cpu.max", "400000 100000\n"),
            ("sys/fs/cgroup/job/memory.max", "max\n"),
            ("sys/fs/cgroup/job/step/memory.max", "4294967296\n"),
        ]);
        let expected = ProcessLimits { allowed_cpus: Some(5), cpu_millicores: Some(1500), memory_bytes: Some(4 << 30) };
        assert_eq!(limits(&options), expected);
    }

    #[test]
    fn cgroup_v1_limits_are_read() {
        let (_root, options) = fixture(&[
            ("proc/7/cgroup", "4:memory:/a\n1:cpu,cpuacct:/a\n0::/\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n"),
            ("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        let expected = ProcessLimits { allowed_cpus: None, cpu_millicores: Some(500), memory_bytes: None };
        assert_eq!(limits(&options), expected);
    }

    #[test]
    fn garbage_is_no_limit() {
        let (_root, options) = fixture(&[
            ("proc/7/cgroup", "0::/../../x\n:::\n\u{fffd}\n0:/\n"),
            ("proc/7/status", "Cpus_allowed_list:\tx\n"),
            ("sys/fs/cgroup/x/cpu.max", "100000 0\n"),
            ("sys/fs/cgroup/memory.max", "-5\n"),
        ]);
        assert_eq!(limits(&options), ProcessLimits::default());
    }
}
