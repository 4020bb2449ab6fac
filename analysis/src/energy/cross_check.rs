//! A counter beside the power gauge of the same device, half a minute at a time. Where they disagree one of them is wrong, and
//! nobody knows which: it is said, not averaged.

use super::line::EnergyLine;
use super::units::joules;

/// They are compared over this long.
const WINDOW_NS: u64 = 30_000_000_000;
/// A session that is shorter is compared as a whole, from this length on.
const SHORTEST_NS: u64 = 5_000_000_000;
/// Windows that are compared, the newest ones.
const MOST_WINDOWS: u64 = 1024;
/// Energies further apart than this share of the larger one disagree.
const APART: f64 = 0.25;
/// Windows of which more than this share is not known say nothing.
const MOST_UNKNOWN: f64 = 0.1;

/// What the comparison came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CrossCheck {
    /// Windows that were compared.
    pub windows: u64,
    /// How many of them disagree.
    pub apart: u64,
    /// Of the window in which they are furthest apart: joules by the counter, and by its power added up over time.
    pub worst: Option<(f64, f64)>,
}

impl CrossCheck {
    /// Compares a counter with power that was added up over time, over the time that both know.
    pub fn of(counted: &EnergyLine, added_up: &EnergyLine) -> Self {
        let mut check = Self::default();
        let (Some(a), Some(b)) = (counted.span(), added_up.span()) else { return check };
        let (start_ns, end_ns) = (a.start.max(b.start), a.end.min(b.end));
        let ns = end_ns.saturating_sub(start_ns);
        if ns < SHORTEST_NS {
            return check;
        }
        let window_ns = WINDOW_NS.min(ns);
        let mut furthest = 0.0;
        for back in 0..(ns / window_ns).min(MOST_WINDOWS) {
            let window = end_ns - (back + 1) * window_ns..end_ns - back * window_ns;
            if [counted, added_up].iter().any(|line| line.unknown_share(window.clone()) > MOST_UNKNOWN) {
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

    /// Whether they disagree anywhere.
    pub fn is_doubtful(&self) -> bool {
        self.apart > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Energy at so many watts by second.
    fn line(seconds: u64, watts: impl Fn(u64) -> u64) -> EnergyLine {
        let mut line = EnergyLine::new();
        (0..=seconds).for_each(|s| line.add(s * SECOND, 0, watts(s) * 1_000_000));
        line
    }

    #[test]
    fn each_half_minute_is_compared() {
        let check = CrossCheck::of(&line(120, |_| 100), &line(120, |s| if s > 90 { 140 } else { 95 }));
        assert_eq!((check.windows, check.apart, check.worst), (4, 1, Some((3000.0, 4200.0))));
        assert!(check.is_doubtful());
        assert!(!CrossCheck::of(&line(120, |_| 100), &line(120, |_| 124)).is_doubtful(), "within a quarter");
    }

    #[test]
    fn a_short_session_is_compared_as_a_whole_and_a_shorter_one_not() {
        // zeus #181: 187 J counted and 327 J added up in five seconds.
        let check = CrossCheck::of(&line(5, |_| 37), &line(5, |_| 65));
        assert_eq!((check.windows, check.apart, check.worst), (1, 1, Some((185.0, 325.0))));
        assert_eq!(CrossCheck::of(&line(4, |_| 37), &line(4, |_| 65)), CrossCheck::default());
        assert_eq!(CrossCheck::of(&line(60, |_| 0), &line(60, |_| 0)).apart, 0, "nothing is not apart from nothing");
    }

    #[test]
    fn gaps_say_nothing() {
        let mut counted = line(10, |_| 100);
        counted.add_gap(60 * SECOND, crate::energy::GapReason::Absent);
        assert_eq!(CrossCheck::of(&counted, &line(60, |_| 200)).windows, 0);
    }
}
