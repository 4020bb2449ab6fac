//! What a figure says about its subject: a percentile, a mean, a share.

use std::fmt;
use std::str::FromStr;

/// Which number of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Statistic {
    /// A percentile, in thousandths of a percent.
    Percentile(u32),
    /// Mean.
    Mean,
    /// Standard deviation.
    Sd,
    /// Smallest.
    Min,
    /// Largest.
    Max,
    /// The most memory.
    Peak,
    /// The first one.
    First,
    /// The newest one.
    Last,
    /// How many.
    Count,
    /// All together.
    Total,
    /// Part of a whole.
    Share,
    /// For each second.
    PerS,
    /// For each step.
    PerStep,
    /// For each epoch.
    PerEpoch,
    /// For each graph of a batch.
    PerGraph,
    /// For each node of a batch.
    PerNode,
    /// For each edge of a batch.
    PerEdge,
    /// For each seed node of a batch.
    PerSeed,
}

/// Their texts, except those of percentiles.
const TEXTS: [(Statistic, &str); 17] = [
    (Statistic::Mean, "mean"),
    (Statistic::Sd, "sd"),
    (Statistic::Min, "min"),
    (Statistic::Max, "max"),
    (Statistic::Peak, "peak"),
    (Statistic::First, "first"),
    (Statistic::Last, "last"),
    (Statistic::Count, "count"),
    (Statistic::Total, "total"),
    (Statistic::Share, "share"),
    (Statistic::PerS, "per_s"),
    (Statistic::PerStep, "per_step"),
    (Statistic::PerEpoch, "per_epoch"),
    (Statistic::PerGraph, "per_graph"),
    (Statistic::PerNode, "per_node"),
    (Statistic::PerEdge, "per_edge"),
    (Statistic::PerSeed, "per_seed"),
];
/// Thousandths of a percent in a whole.
const WHOLE: u32 = 100_000;

impl Statistic {
    /// The percentile with this percentage, to a thousandth.
    pub fn percentile(percentage: f64) -> Self {
        Self::Percentile((percentage.clamp(0.0, 100.0) * 1000.0).round() as u32)
    }

    /// The share (0 to 1) of values that a percentile is not below; `None` of other statistics.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Self::Percentile(thousandths) => Some(f64::from(thousandths) / f64::from(WHOLE)),
            _ => None,
        }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percentile(thousandths) => write!(f, "p{}", f64::from(*thousandths) / 1000.0),
            _ => f.write_str(TEXTS.iter().find(|(of, _)| of == self).map_or("", |(_, text)| text)),
        }
    }
}

impl FromStr for Statistic {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let lower = text.to_ascii_lowercase().replace('-', "_");
        if let Some((statistic, _)) = TEXTS.iter().find(|(_, known)| *known == lower) {
            return Ok(*statistic);
        }
        let digits = lower.strip_prefix('p').filter(|p| p.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'));
        let percentage = digits.and_then(|digits| digits.parse::<f64>().ok()).filter(|p| *p <= 100.0).ok_or(())?;
        let statistic = Self::percentile(percentage);
        // Finer ones would be read as another percentile.
        let is_exact = statistic.quantile().is_some_and(|quantile| (quantile * 100.0 - percentage).abs() < 1e-9);
        if is_exact { Ok(statistic) } else { Err(()) }
    }
}
