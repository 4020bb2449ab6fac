//! What was published: values, beside ours as ratios to the first setting, since times of other machines say nothing by
//! themselves but which way they go does; and conclusions, which of two numbers is larger, and whether it is here.

use std::collections::BTreeMap;

use serde::Deserialize;

use gnntop_analysis::catalogue::FigureId;

/// Ratios within this of 1 are no difference.
const LEVEL: f64 = 0.05;

/// Published values of one measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// What it is, for a heading.
    pub what: String,
    /// Which of our measures it is compared with.
    pub measure: FigureId,
    /// The unit of the values, in the publication's words.
    pub unit: String,
    /// Where it was published.
    pub source: String,
    /// Whether the values are an illustration and no measurement.
    pub is_placeholder: bool,
    /// By the name of the setting; all above 0.
    pub values: BTreeMap<String, f64>,
}

/// Whether a published direction holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Both go the same way, or neither goes anywhere.
    Yes,
    /// They do not.
    No,
    /// Runs of the two settings overlap, so it is undecided.
    Unclear,
}

impl Holds {
    /// As words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Yes => "holds",
            Self::No => "does not hold",
            Self::Unclear => "unclear: the runs overlap",
        }
    }
}

/// A setting compared with the first one, in the publication and here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedComparison {
    /// The published value as a multiple of the first setting's.
    pub published_ratio: f64,
    /// Ours as a multiple of the first setting's.
    pub own_ratio: f64,
    /// Whether they go the same way.
    pub holds: Holds,
}

/// Which way a ratio goes.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Direction {
    Down,
    Level,
    Up,
}

impl Direction {
    /// Of this ratio.
    pub(super) fn from_ratio(ratio: f64) -> Self {
        match ratio {
            _ if ratio > 1.0 + LEVEL => Self::Up,
            _ if ratio < 1.0 / (1.0 + LEVEL) => Self::Down,
            _ => Self::Level,
        }
    }
}

impl PublishedComparison {
    /// Compares. `first` and `other` are one number a run, of the two settings; the medians are compared. `None` for
    /// no runs, or where ratios mean nothing.
    pub fn new(published: (f64, f64), first: &[f64], other: &[f64]) -> Option<Self> {
        let own_ratio = median(other)? / median(first)?;
        let published_ratio = published.1 / published.0;
        if !own_ratio.is_finite() || !published_ratio.is_finite() || own_ratio <= 0.0 {
            return None;
        }
        let own = Direction::from_ratio(own_ratio);
        let holds = match own == Direction::from_ratio(published_ratio) {
            _ if own != Direction::Level && overlap(first, other) => Holds::Unclear,
            true => Holds::Yes,
            false => Holds::No,
        };
        Some(Self { published_ratio, own_ratio, holds })
    }
}

/// Whether the ranges of two settings have something in common. One run each has no range to speak of.
pub(super) fn overlap(first: &[f64], other: &[f64]) -> bool {
    let range = |values: &[f64]| values.iter().fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(*v), high.max(*v)));
    let ((a, b), (c, d)) = (range(first), range(other));
    first.len().min(other.len()) > 1 && a <= d && c <= b
}

/// The median, between the middle two where there are two; `None` for none.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.get(sorted.len().saturating_sub(1) / 2)?, sorted.get(sorted.len() / 2)?);
    Some((low + high) / 2.0)
}

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

    fn holds(published: f64, first: &[f64], other: &[f64]) -> Option<Holds> {
        PublishedComparison::new((1.0, published), first, other).map(|comparison| comparison.holds)
    }

    #[test]
    fn directions_are_compared_and_not_sizes() {
        assert_eq!(holds(7.5, &[1.0], &[2.0]), Some(Holds::Yes));
        assert_eq!(holds(0.5, &[1.0], &[2.0]), Some(Holds::No));
        assert_eq!(holds(1.02, &[1.0], &[0.97]), Some(Holds::Yes));
        assert_eq!(holds(1.02, &[1.0], &[1.5]), Some(Holds::No));
        assert_eq!(holds(1.5, &[1.0], &[1.01]), Some(Holds::No));
    }

    #[test]
    fn overlapping_runs_are_unclear() {
        assert_eq!(holds(2.0, &[1.0, 1.6], &[1.4, 1.8]), Some(Holds::Unclear));
        assert_eq!(holds(2.0, &[1.0, 1.1], &[1.4, 1.8]), Some(Holds::Yes));
    }

    #[test]
    fn missing_numbers_are_not_compared() {
        assert_eq!(holds(2.0, &[], &[1.0]), None);
        assert_eq!(holds(2.0, &[0.0], &[1.0]), None);
        assert_eq!(holds(2.0, &[1.0], &[0.0]), None);
    }

    #[test]
    fn median_of_odd_even_and_no_numbers() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

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
