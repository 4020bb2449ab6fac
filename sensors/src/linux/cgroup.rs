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
    ProcessLimits {
        allowed_cpus: allowed_cpus(&options.proc_root.join(options.pid.to_string())),
        cpu_millicores: groups(options, "cpu").iter().filter_map(|group| quota(group)).min(),
        memory_bytes: groups(options, "memory").iter().filter_map(|group| memory_limit(group)).min(),
    }
}

/// The group whose CPU quota is the tightest.
pub(super) fn tightest_quota(options: &SensorOptions) -> Option<PathBuf> {
    let quotas = groups(options, "cpu").into_iter().filter_map(|group| Some((quota(&group)?, group)));
    quotas.min().map(|(_, group)| group)
}

/// The groups of the process for this controller, and all above them.
fn groups(options: &SensorOptions, controller: &str) -> Vec<PathBuf> {
    let memberships = fs::read(options.proc_root.join(options.pid.to_string()).join("cgroup")).unwrap_or_default();
    let hierarchy = options.sys_root.join("fs/cgroup");
    let mut groups = Vec::new();
    for line in lines(&memberships) {
        let mut parts = line.splitn(3, |byte| *byte == b':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let Ok(path) = std::str::from_utf8(path) else { continue };
        if controllers.is_empty() {
            // Version 2, alone or beside version 1.
            groups.extend(lineage(&hierarchy, path).chain(lineage(&hierarchy.join("unified"), path)));
        } else if controllers.split(|byte| *byte == b',').any(|name| name == controller.as_bytes()) {
            groups.extend(lineage(&hierarchy.join(controller), path));
        }
    }
    groups
}

/// A group and those above it, the mount point first.
fn lineage<'a>(mount: &Path, path: &'a str) -> impl Iterator<Item = PathBuf> + use<'a> {
    let names = path.split('/').filter(|name| !matches!(*name, "" | "." | ".."));
    let mut group = mount.to_path_buf();
    std::iter::once(group.clone()).chain(names.map(move |name| {
        group.push(name);
        group.clone()
    }))
}

fn quota(group: &Path) -> Option<i64> {
    cpu_max(group).or_else(|| cpu_quota(group))
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
    let bytes = number(group.join("memory.max")).or_else(|| number(group.join("memory.limit_in_bytes")));
    bytes.filter(|bytes| *bytes < NO_MEMORY_LIMIT_BYTES)
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
    fn tightest_quota_is_of_the_ancestor_that_bounds() {
        let (root, options) = fixture(&[
            ("proc/7/cgroup", "0::/job/step\n"),
            ("sys/fs/cgroup/job/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/job/step/cpu.max", "max 100000\n"),
        ]);
        assert_eq!(tightest_quota(&options), Some(root.path().join("sys/fs/cgroup/job")));
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
        assert_eq!(tightest_quota(&options), None);
    }
}
