//! Compares a counter with the power gauge of the same device, in windows of half a minute. If they disagree, one of them
//! is wrong and it is unknown which: this is reported, not averaged.

use super::line::EnergyLine;
use super::units::joules;

/// Length of a window.
const WINDOW_NS: u64 = 30_000_000_000;
/// A shorter session is compared as a whole, from this length on.
const SHORTEST_NS: u64 = 5_000_000_000;
/// Most windows compared, the newest.
const MAX_WINDOWS: u64 = 1024;
/// Energies that differ by more than this share of the larger one disagree.
const APART: f64 = 0.25;
/// Windows with a larger unknown share are ignored.
const MAX_UNKNOWN: f64 = 0.1;

/// The result of the comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CrossCheck {
    /// Number of windows compared.
    pub windows: u64,
    /// Number of windows that disagree.
    pub apart: u64,
    /// The window with the largest difference: joules by the counter, and by integrated power.
    pub worst: Option<(f64, f64)>,
}

impl CrossCheck {
    /// Compares a counter with integrated power, over the time that both cover.
    pub fn compare(counted: &EnergyLine, added_up: &EnergyLine) -> Self {
        let mut check = Self::default();
        let (Some(a), Some(b)) = (counted.span(), added_up.span()) else { return check };
        let (start_ns, end_ns) = (a.start.max(b.start), a.end.min(b.end));
        let ns = end_ns.saturating_sub(start_ns);
        if ns < SHORTEST_NS {
            return check;
        }
        let window_ns = WINDOW_NS.min(ns);
        let mut furthest = 0.0;
        for back in 0..(ns / window_ns).min(MAX_WINDOWS) {
            let window = end_ns - (back + 1) * window_ns..end_ns - back * window_ns;
            if [counted, added_up].iter().any(|line| line.unknown_share(window.clone()) > MAX_UNKNOWN) {
                continue;
            }
            let both = [counted, added_up].map(|line| joules(line.between(window.clone())));
            let apart = (both[0] - both[1]).abs() / f64::max(both[0], both[1]).max(f64::MIN_POSITIVE);
            check.windows += 1;
            check.apart += u64::from(apart > APART);
            if apart > furthest {
                (furthest, check.worst) = (apart, Some((both[0], both[1])));
            }
        }
        check
    }

    /// Whether they disagree in any window.
    pub fn is_doubtful(&self) -> bool {
        self.apart > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Energy for a power in watts given for each second.
    fn line(seconds: u64, watts: impl Fn(u64) -> u64) -> EnergyLine {
        let mut line = EnergyLine::new();
        (0..=seconds).for_each(|s| line.add(s * SECOND, 0, watts(s) * 1_000_000));
        line
    }

    #[test]
    fn cross_check_compares_half_minutes() {
        let check = CrossCheck::compare(&line(120, |_| 100), &line(120, |s| if s > 90 { 140 } else { 95 }));
        assert_eq!((check.windows, check.apart, check.worst), (4, 1, Some((3000.0, 4200.0))));
        assert!(check.is_doubtful());
        assert!(!CrossCheck::compare(&line(120, |_| 100), &line(120, |_| 124)).is_doubtful(), "within a quarter");
    }

    #[test]
    fn cross_check_of_short_session_is_one_window_or_none() {
        // zeus #181: 187 J counted and 327 J integrated in five seconds.
        let check = CrossCheck::compare(&line(5, |_| 37), &line(5, |_| 65));
        assert_eq!((check.windows, check.apart, check.worst), (1, 1, Some((185.0, 325.0))));
        assert_eq!(CrossCheck::compare(&line(4, |_| 37), &line(4, |_| 65)), CrossCheck::default());
        assert_eq!(
            CrossCheck::compare(&line(60, |_| 0), &line(60, |_| 0)).apart,
            0,
            "nothing is not apart from nothing"
        );
    }

    #[test]
    fn cross_check_ignores_gaps() {
        let mut counted = line(10, |_| 100);
        counted.add_gap(60 * SECOND, crate::energy::GapReason::Absent);
        assert_eq!(CrossCheck::compare(&counted, &line(60, |_| 200)).windows, 0);
    }
}
