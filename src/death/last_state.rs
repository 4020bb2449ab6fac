//! What the kernel still says of a process that has ended and was not waited for: its CPU time, and the limit on it.

use std::fs;
use std::path::Path;

/// The kernel ends a process at the first tick after its limit, and counts ticks.
const TOLERANCE_S: f64 = 0.1;
/// What it then says was used is less by what others had of those ticks: on a busy machine 6 % and more of the limit.
const SHARE_OF_OTHERS: f64 = 0.1;

/// CPU time at a program's end, in seconds. `None` is "no limit", or "not told here".
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuFigures {
    /// What its threads have used.
    pub used_s: Option<f64>,
    /// What the processes have used that it has waited for.
    pub used_by_children_s: f64,
    /// The limit at which it gets SIGXCPU.
    pub soft_limit_s: Option<u64>,
    /// The limit at which it gets SIGKILL.
    pub hard_limit_s: Option<u64>,
}

impl CpuFigures {
    /// Of a process that has ended and was not waited for.
    pub fn of_ended(pid: u32) -> Self {
        Self::read(Path::new("/proc"), pid, rustix::param::clock_ticks_per_second()).unwrap_or_default()
    }

    fn read(proc_root: &Path, pid: u32, ticks_per_s: u64) -> Option<Self> {
        let process = proc_root.join(pid.to_string());
        let limits = fs::read_to_string(process.join("limits")).unwrap_or_default();
        let mut of_cpu = limits.lines().find_map(|line| line.strip_prefix("Max cpu time"))?.split_whitespace();
        let mut limit = || of_cpu.next().and_then(|limit| limit.parse().ok());
        let (soft_limit_s, hard_limit_s) = (limit(), limit());
        let stat = fs::read_to_string(process.join("stat")).ok()?;
        // The second field is the name in brackets and may hold anything, brackets and spaces too.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let seconds = |at: usize| Some(fields.get(at)?.parse::<f64>().ok()? / ticks_per_s as f64);
        let (own, children) = (seconds(11)? + seconds(12)?, seconds(13)? + seconds(14)?);
        Some(Self { used_s: Some(own), used_by_children_s: children, soft_limit_s, hard_limit_s })
    }

    /// Whether it, or what it ran, has used as much as this limit allows.
    pub(super) fn has_reached(&self, limit_s: Option<u64>) -> bool {
        let used_s = self.used_s.unwrap_or(0.0).max(self.used_by_children_s);
        limit_s.is_some_and(|limit_s| used_s >= limit_s as f64 * (1.0 - SHARE_OF_OTHERS) - TOLERANCE_S)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_and_limits_are_read() {
        let root = tempfile::tempdir().unwrap();
        let process = root.path().join("7");
        fs::create_dir(&process).unwrap();
        let read = |limits: &str| {
            fs::write(
                process.join("limits"),
                format!("Limit  Soft  Hard  Units\n{limits}Max file size  1  1  bytes\n"),
            )
            .unwrap();
            let stat = "7 (a) b) Z 1 7 7 0 -1 4 1 1 1 1 150 55 30 20 20 0 1 0 99 0 0";
            fs::write(process.join("stat"), stat).unwrap();
            CpuFigures::read(root.path(), 7, 100)
        };
        let figures = read("Max cpu time              2                    unlimited            seconds   \n").unwrap();
        let expected =
            CpuFigures { used_s: Some(2.05), used_by_children_s: 0.5, soft_limit_s: Some(2), hard_limit_s: None };
        assert_eq!(figures, expected);
        assert!(figures.has_reached(Some(2)) && !figures.has_reached(Some(3)) && !figures.has_reached(None));
        let on_a_busy_machine = CpuFigures { used_s: Some(0.87), ..figures };
        assert!(on_a_busy_machine.has_reached(Some(1)));
        assert_eq!(read(""), None);
    }
}
