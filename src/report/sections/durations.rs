//! Durations in a report: their figures, and tables of them.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::report::document::Block;
use gnntop_analysis::catalogue::{Statistic, Subject};
use gnntop_analysis::figures::{count, duration, percent};

/// Columns that a narrow page lacks.
pub(super) const DETAILS: [&str; 3] = ["± mean", "sd", "min"];

/// Durations of one thing. `null` where there is none, or where percentiles were not kept.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Durations {
    /// How many.
    pub count: u64,
    /// Mean.
    pub mean_ns: Option<f64>,
    /// Standard deviation; `null` for fewer than two.
    pub sd_ns: Option<f64>,
    /// Half the width of the mean's 95 % confidence interval, if durations are independent.
    pub mean_ci_ns: Option<f64>,
    /// Shortest.
    pub min_ns: Option<u64>,
    /// Percentiles as asked for, such as `p99_ns`.
    #[serde(flatten)]
    pub percentiles: Percentiles,
    /// 95 % confidence interval of each percentile, as `p99_ci_ns`; `null` for too few.
    #[serde(flatten)]
    pub intervals: Intervals,
    /// Longest.
    pub max_ns: Option<u64>,
    /// Sum.
    pub total_ns: u64,
}

/// Percentiles as `(percentage, duration)`, in JSON as fields such as `p50_ns` and `p99_9_ns`.
#[derive(Clone, Debug, Default)]
pub struct Percentiles(pub Vec<(f64, Option<u64>)>);

impl Serialize for Percentiles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (percentage, ns) in &self.0 {
            map.serialize_entry(&format!("p{percentage}_ns").replace('.', "_"), ns)?;
        }
        map.end()
    }
}

/// Confidence intervals as `(percentage, (lowest, highest))`, in JSON as fields such as `p50_ci_ns`.
#[derive(Clone, Debug, Default)]
pub struct Intervals(pub Vec<(f64, Option<(u64, u64)>)>);

impl Serialize for Intervals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (percentage, interval) in &self.0 {
            map.serialize_entry(&format!("p{percentage}_ci_ns").replace('.', "_"), interval)?;
        }
        map.end()
    }
}

impl Durations {
    /// The durations of a subject of the catalogue.
    pub(in crate::report) fn new(figures: Subject<'_, '_>, percentages: &[f64]) -> Self {
        let interval = |statistic: Statistic| figures.get(statistic).ok().and_then(|measured| measured.interval);
        let whole = |(low, high): (f64, f64)| (low as u64, high as u64);
        let all = || percentages.iter().map(|percentage| (*percentage, Statistic::percentile(*percentage)));
        Self {
            count: figures.whole(Statistic::Count).unwrap_or(0),
            mean_ns: figures.value(Statistic::Mean),
            sd_ns: figures.value(Statistic::Sd),
            mean_ci_ns: interval(Statistic::Mean).map(|(low, high)| (high - low) / 2.0),
            min_ns: figures.whole(Statistic::Min),
            percentiles: Percentiles(all().map(|(p, statistic)| (p, figures.whole(statistic))).collect()),
            intervals: Intervals(all().map(|(p, statistic)| (p, interval(statistic).map(whole))).collect()),
            max_ns: figures.whole(Statistic::Max),
            total_ns: figures.whole(Statistic::Total).unwrap_or(0),
        }
    }
}

/// A table of durations under a head that begins with `title`, with shares if any is known; `None` without lines.
pub(super) fn table<'a>(
    title: &str,
    lines: impl Iterator<Item = (String, &'a Durations, Option<f64>)>,
) -> Option<Block> {
    let lines: Vec<_> = lines.collect();
    let (_, first, _) = lines.first()?;
    let has_shares = lines.iter().any(|(.., share)| share.is_some());
    let percentiles = first.percentiles.0.iter().map(|(percentage, _)| format!("p{percentage}"));
    let before = [title, "count", "mean"].map(str::to_owned).into_iter().chain(percentiles);
    let after = ["max", "total"].into_iter().chain(has_shares.then_some("share")).chain(DETAILS).map(str::to_owned);
    let row = |(name, durations, share): (String, &Durations, Option<f64>)| {
        let share = share.map_or_else(|| "-".to_owned(), percent);
        let middle = durations.cells().into_iter().chain(has_shares.then_some(share));
        std::iter::once(name).chain(middle).chain(durations.details()).collect()
    };
    let rows = std::iter::once(before.chain(after).collect()).chain(lines.into_iter().map(row)).collect();
    Some(Block::Table { rows, details: DETAILS.len() })
}

fn cell(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), duration)
}

impl Durations {
    /// Count, mean, percentiles, longest and total.
    fn cells(&self) -> Vec<String> {
        let mut cells = vec![count(self.count), cell(self.mean_ns.map(|ns| ns.round() as u64))];
        cells.extend(self.percentiles.0.iter().map(|(_, ns)| cell(*ns)));
        cells.extend([cell(self.max_ns), duration(self.total_ns)]);
        cells
    }

    /// The cells of [`DETAILS`].
    fn details(&self) -> [String; 3] {
        let rounded = |ns: Option<f64>| cell(ns.map(|ns| ns.round() as u64));
        [rounded(self.mean_ci_ns), rounded(self.sd_ns), cell(self.min_ns)]
    }

    /// The mean with its confidence interval, and each percentile, with their names.
    pub(super) fn with_names(&self) -> Vec<(String, String)> {
        let half = self.mean_ci_ns.map_or_else(String::new, |half| format!(" ± {}", duration(half.round() as u64)));
        let mean = self.mean_ns.map_or_else(|| "-".to_owned(), |ns| format!("{}{half}", duration(ns.round() as u64)));
        let percentile = |(percentage, ns): &(f64, Option<u64>)| (format!("p{percentage}"), cell(*ns));
        std::iter::once(("mean".to_owned(), mean)).chain(self.percentiles.0.iter().map(percentile)).collect()
    }
}
