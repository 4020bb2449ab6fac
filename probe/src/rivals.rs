//! Names the other processes that use the CPU, on the sensors' track. It looks only while they use much of it, and so seldom
//! that the cost is negligible.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use gnntop_sensors::{Reading, Rival, Rivals, SensorSet, SignalIndex};
use gnntop_wire::Quantity;

/// Stands for further commands.
const MANY: &str = "many";
/// Others use much of the CPU if they use this many cores...
const MUCH: f64 = 0.5;
/// ...for this long.
const LASTING: Duration = Duration::from_secs(1);
/// A process that uses less, in cores, is not named.
const LEAST: f64 = 0.25;
/// Time between two comparisons of the totals.
const COMPARE_INTERVAL: Duration = Duration::from_secs(1);
/// Time between the first two scans of all processes, and between later ones.
const FIRST_INTERVAL: Duration = Duration::from_secs(1);
const SCAN_INTERVAL: Duration = Duration::from_secs(10);
/// A scan may take the time until the next one divided by this: with thousands of processes, scans are rarer.
const COST: u32 = 1000;
/// What has not changed is repeated this often.
const REPEAT_INTERVAL: Duration = Duration::from_secs(60);
/// Most commands; names are kept forever, and the program needs room for its own.
const MAX_COMMANDS: usize = 256;

/// Watches how much CPU others use.
pub(crate) struct RivalWatch {
    rivals: Rivals,
    totals: CpuTotals,
    compared: Option<(Instant, CpuTotals)>,
    /// Since when others use much CPU.
    much_since: Option<Instant>,
    next_scan: Instant,
    has_scanned: bool,
    /// What was reported last: when, the command, and its process if it is one.
    reported: Option<(Instant, String, Option<u32>)>,
    commands: HashSet<String>,
}

/// Total CPU time, with its signals: of the machine, and of this process with all its threads.
#[derive(Clone, Copy)]
struct CpuTotals {
    signals: [Option<SignalIndex>; 2],
    ns: [i64; 2],
}

impl RivalWatch {
    pub(crate) fn new(set: &SensorSet) -> Self {
        let signals = [Quantity::MachineCpuBusy, Quantity::ProcessCpuTime].map(|quantity| set.find(quantity));
        Self {
            rivals: Rivals::new(set.options()),
            totals: CpuTotals { signals, ns: [0; 2] },
            compared: None,
            much_since: None,
            next_scan: Instant::now(),
            has_scanned: false,
            reported: None,
            commands: HashSet::new(),
        }
    }

    /// Notes a reading.
    pub(crate) fn note(&mut self, reading: &Reading) {
        if let Reading::Value { signal, value, .. } = reading
            && let Some(at) = self.totals.signals.iter().position(|one| *one == Some(*signal))
        {
            self.totals.ns[at] = *value;
        }
    }

    /// Scans for the processes that use the CPU, if a scan is due. Returns the one to report.
    pub(crate) fn poll(&mut self) -> Option<Rival> {
        let now = Instant::now();
        self.compare(now);
        let is_due = self.much_since.is_some_and(|since| now.duration_since(since) >= LASTING) && now >= self.next_scan;
        if !is_due {
            return None;
        }
        let rival = self.rivals.scan();
        let pause = if self.has_scanned { SCAN_INTERVAL } else { FIRST_INTERVAL };
        self.next_scan = now + pause.max(now.elapsed() * COST);
        self.has_scanned = true;
        let rival = self.bounded(rival.filter(|rival| rival.cores >= LEAST)?);
        let is_old = |(at, command, pid): &(Instant, String, Option<u32>)| {
            *command == rival.command && *pid == rival.pid && now.duration_since(*at) < REPEAT_INTERVAL
        };
        if self.reported.as_ref().is_some_and(is_old) {
            return None;
        }
        self.reported = Some((now, rival.command.clone(), rival.pid));
        Some(rival)
    }

    /// Notes when others begin to use much CPU, and when they stop.
    fn compare(&mut self, now: Instant) {
        let Some((at, before)) = self.compared else {
            self.compared = Some((now, self.totals));
            return;
        };
        let passed = now.duration_since(at);
        if passed < COMPARE_INTERVAL {
            return;
        }
        self.compared = Some((now, self.totals));
        if self.totals.others_since(&before) >= MUCH * passed.as_nanos() as f64 {
            self.much_since.get_or_insert(now);
        } else {
            (self.much_since, self.has_scanned, self.reported) = (None, false, None);
            self.rivals.forget();
        }
    }

    /// The rival, or [`MANY`] if there were too many commands already.
    fn bounded(&mut self, rival: Rival) -> Rival {
        if self.commands.len() >= MAX_COMMANDS && !self.commands.contains(&rival.command) {
            return Rival { command: MANY.to_owned(), pid: None, ..rival };
        }
        self.commands.insert(rival.command.clone());
        rival
    }
}

impl CpuTotals {
    /// Nanoseconds of CPU time that others used; none if that is not measured.
    fn others_since(&self, before: &Self) -> f64 {
        if self.signals.contains(&None) {
            return 0.0;
        }
        let [all, own] = [0, 1].map(|at| self.ns[at].saturating_sub(before.ns[at]));
        all.saturating_sub(own) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_sensors::SensorOptions;

    fn watch() -> RivalWatch {
        RivalWatch::new(&SensorSet::open(&SensorOptions { gpu: false, ..SensorOptions::default() }))
    }

    #[test]
    fn rival_watch_counts_only_other_processes() {
        let mut watch = watch();
        if watch.totals.signals.contains(&None) {
            println!("skipped: this system does not count what the machine takes");
            return;
        }
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut take = |at, all_ms: i64, own_ms: i64| {
            watch.totals.ns = [all_ms * 1_000_000, own_ms * 1_000_000];
            watch.compare(at);
            watch.much_since
        };
        assert_eq!(take(after(0), 50_000, 40_000), None);
        assert_eq!(take(after(1000), 54_000, 44_000), None, "all four cores are this process's");
        assert_eq!(take(after(1500), 60_000, 44_000), None, "too early to compare");
        assert_eq!(take(after(2000), 60_000, 46_000), Some(after(2000)));
        assert_eq!(take(after(3000), 61_000, 46_000), Some(after(2000)), "it lasts");
        assert_eq!(take(after(4000), 61_400, 46_000), None, "and is over");
    }

    #[test]
    fn rival_watch_bounds_commands() {
        let mut watch = watch();
        let mut bounded = |n: u32| {
            let rival = watch.bounded(Rival { command: format!("x{n}"), pid: Some(n), cores: 1.0 });
            (rival.command, rival.pid)
        };
        let rivals: HashSet<(String, Option<u32>)> = (0..2000).map(&mut bounded).collect();
        assert!(rivals.len() == MAX_COMMANDS + 1 && rivals.contains(&(MANY.to_owned(), None)), "{}", rivals.len());
        assert_eq!(bounded(1), ("x1".to_owned(), Some(1)), "what was named before stays");
    }
}
