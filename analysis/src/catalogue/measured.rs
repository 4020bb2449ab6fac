//! The value of a figure in one run, with what it rests on.

use std::fmt;

use thiserror::Error;

use crate::figures::{FigureUnit, counted};
use crate::ranks::quantile;
use crate::store::{Distribution, Series, Value};

use super::statistic::Statistic;

/// What a figure was in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The number.
    pub value: f64,
    /// What it is a number of.
    pub unit: FigureUnit,
    /// Between which numbers it is: 95 % of a mean or a percentile, assuming independent values, or the bounds of an
    /// energy; `None` where nothing is known of that.
    pub interval: Option<(f64, f64)>,
    /// What it was computed from.
    pub population: Population,
}

impl Measured {
    /// What its interval is: `95 %` of a mean or a percentile, or the `bounds` of an energy.
    pub fn interval_word(&self) -> &'static str {
        if matches!(self.unit, FigureUnit::Energy | FigureUnit::Carbon) { "bounds" } else { "95 %" }
    }
}

/// What a figure was computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Population {
    /// All that was recorded.
    Recording,
    /// A number of steps, spans or readings.
    Samples {
        /// How many.
        count: u64,
        /// What they are: one and many.
        nouns: [&'static str; 2],
    },
}

/// Why a run does not have a figure.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct AbsentFigure(pub String);

/// The nouns of populations.
pub(super) const STEPS: [&str; 2] = ["step", "steps"];
pub(super) const SPANS: [&str; 2] = ["span", "spans"];
pub(super) const EPOCHS: [&str; 2] = ["epoch", "epochs"];
pub(super) const READINGS: [&str; 2] = ["reading", "readings"];

/// A number before its unit is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FoundValue {
    pub value: f64,
    pub interval: Option<(f64, f64)>,
    pub population: Population,
}

/// What a row of the catalogue gives.
pub(super) type FigureResult = Result<FoundValue, AbsentFigure>;

impl AbsentFigure {
    pub(super) fn because<T>(reason: impl Into<String>) -> Result<T, Self> {
        Err(Self(reason.into()))
    }
}

impl FoundValue {
    /// A number from everything that was recorded.
    pub(super) fn from_everything(value: Option<f64>, missing: &str) -> FigureResult {
        Self::new(value, Population::Recording, missing)
    }

    /// A number from `count` of these.
    pub(super) fn from_count(value: Option<f64>, count: u64, nouns: [&'static str; 2], missing: &str) -> FigureResult {
        Self::new(value, Population::Samples { count, nouns }, missing)
    }

    fn new(value: Option<f64>, population: Population, missing: &str) -> FigureResult {
        match value.filter(|value| value.is_finite()) {
            Some(value) => Ok(Self { value, interval: None, population }),
            None => AbsentFigure::because(missing),
        }
    }

    /// A statistic of durations.
    pub(super) fn from_durations(all: &Distribution, statistic: Statistic, nouns: [&'static str; 2]) -> FigureResult {
        let ns = |ns: Option<u64>| ns.map(|ns| ns as f64);
        let value = match statistic {
            Statistic::Percentile(_) => ns(statistic.quantile().and_then(|quantile| all.percentile(quantile))),
            Statistic::Mean => all.mean_ns(),
            Statistic::Sd => all.sd_ns(),
            Statistic::Min => ns(all.min_ns()),
            Statistic::Max => ns(all.max_ns()),
            Statistic::Count => Some(all.count() as f64),
            Statistic::Total => Some(all.total_ns() as f64),
            _ => None,
        };
        let missing = if all.count() == 0 { "there are none" } else { "there are too few" };
        Ok(Self { interval: interval(all, statistic), ..Self::from_count(value, all.count(), nouns, missing)? })
    }

    /// A statistic of durations in ascending order, however long they are.
    pub(super) fn from_sorted(all_ns: &[u64], statistic: Statistic, nouns: [&'static str; 2]) -> FigureResult {
        let at = |share: f64| quantile(all_ns, share).map(|ns| ns as f64);
        let total = || all_ns.iter().map(|ns| *ns as f64).sum::<f64>();
        let value = match statistic {
            Statistic::Percentile(_) => statistic.quantile().and_then(at),
            Statistic::Min => at(0.0),
            Statistic::Max => at(1.0),
            Statistic::Mean => Some(total() / all_ns.len() as f64),
            Statistic::Count => Some(all_ns.len() as f64),
            _ => None,
        };
        Self::from_count(value, all_ns.len() as u64, nouns, "there are none")
    }

    /// A statistic of readings, each times `scale`.
    pub(super) fn from_readings<T: Value>(series: &Series<T>, statistic: Statistic, scale: f64) -> FigureResult {
        let summary = series.summary();
        let read = |value: f64| (summary.count > 0).then_some(value);
        let value = match statistic {
            Statistic::Mean => summary.mean(),
            Statistic::Min => read(summary.min),
            Statistic::Max | Statistic::Peak => read(summary.max),
            Statistic::Count => Some(summary.count as f64),
            Statistic::Last => series.last().and_then(|point| point.value()).map(Value::as_f64),
            Statistic::PerS => summary.rate_per_s(),
            Statistic::Total => (summary.increase_ns > 0).then_some(summary.increase),
            _ => None,
        };
        let missing = if summary.count == 0 { "it was never read" } else { "it was read only once" };
        let scale = if statistic == Statistic::Count { 1.0 } else { scale };
        Self::from_count(value.map(|value| value * scale), summary.count, READINGS, missing)
    }
}

/// The 95 % interval of a percentile or a mean, if durations are independent.
fn interval(all: &Distribution, statistic: Statistic) -> Option<(f64, f64)> {
    match statistic {
        Statistic::Percentile(_) => {
            let (low, high) = all.percentile_interval(statistic.quantile()?)?;
            Some((low as f64, high as f64))
        }
        Statistic::Mean => {
            let half = 1.96 * all.sd_ns()? / (all.count() as f64).sqrt();
            all.mean_ns().map(|mean| (mean - half, mean + half))
        }
        _ => None,
    }
}

impl fmt::Display for Population {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recording => f.write_str("the whole recording"),
            Self::Samples { count, nouns: [one, many] } => f.write_str(&counted(*count, one, many)),
        }
    }
}
