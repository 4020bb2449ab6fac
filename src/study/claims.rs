//! Published conclusions: which of two numbers is larger according to a publication, and whether it is here.

use serde::Deserialize;

use gnntop_analysis::catalogue::FigureId;

use super::published::{Direction, Holds, median, overlap};

/// A published conclusion, as a relation between two measured numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The conclusion in words.
    pub says: String,
    /// A note on it, such as what its own data say; may be empty.
    pub note: String,
    /// What the other is compared with.
    pub first: Subject,
    /// What the conclusion is about.
    pub second: Subject,
    /// The expected relation of the second to the first.
    pub expected: Expected,
}

/// A number of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The setting, by the name under which values are published.
    pub setting: String,
    /// What is measured of it.
    pub measure: FigureId,
}

/// The expected relation of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// The second is more, by at least 5 %.
    More,
    /// The second is less, by at least 5 %.
    Less,
    /// They are within 5 % of each other.
    Same,
}

impl Expected {
    /// As a word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::More => "more",
            Self::Less => "less",
            Self::Same => "the same within 5 %",
        }
    }

    fn direction(self) -> Direction {
        match self {
            Self::More => Direction::Up,
            Self::Less => Direction::Down,
            Self::Same => Direction::Level,
        }
    }

    /// Whether it is so here, by one number a run; `None` if one was not measured.
    pub fn holds(self, first: &[f64], second: &[f64]) -> Option<Holds> {
        let own = match (median(first)?, median(second)?) {
            // A ratio to nothing is no number.
            (0.0, 0.0) => Direction::Level,
            (0.0, _) => Direction::Up,
            (first, second) => Direction::from_ratio(second / first),
        };
        Some(match own == self.direction() {
            _ if own != Direction::Level && overlap(first, second) => Holds::Unclear,
            true => Holds::Yes,
            false => Holds::No,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claim_holds_where_numbers_agree() {
        let holds = |expected: Expected, second| expected.holds(&[2.0], &[second]);
        assert_eq!(holds(Expected::More, 2.2), Some(Holds::Yes));
        assert_eq!(holds(Expected::More, 2.05), Some(Holds::No));
        assert_eq!(holds(Expected::Less, 1.0), Some(Holds::Yes));
        assert_eq!(holds(Expected::Less, 3.0), Some(Holds::No));
        assert_eq!(holds(Expected::Same, 2.05), Some(Holds::Yes));
        assert_eq!(holds(Expected::Same, 3.0), Some(Holds::No));
    }

    #[test]
    fn counts_may_be_zero_and_numbers_may_be_missing() {
        assert_eq!(Expected::More.holds(&[0.0], &[4.0]), Some(Holds::Yes));
        assert_eq!(Expected::Same.holds(&[0.0], &[0.0]), Some(Holds::Yes));
        assert_eq!(Expected::Less.holds(&[4.0], &[0.0]), Some(Holds::Yes));
        assert_eq!(Expected::More.holds(&[], &[4.0]), None);
    }

    #[test]
    fn overlapping_runs_leave_claim_undecided() {
        assert_eq!(Expected::More.holds(&[1.0, 1.6], &[1.4, 1.8]), Some(Holds::Unclear));
        assert_eq!(Expected::Same.holds(&[1.0, 1.1], &[1.02, 1.08]), Some(Holds::Yes));
    }
}
