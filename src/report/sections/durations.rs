//! The duration tables of a report: phases, gap, whole step, spans.

use std::cmp::Reverse;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::report::document::plain;
use crate::report::options::Options;
use gnntop_analysis::figures::{count, duration, percent};
use gnntop_analysis::store::{Distribution, Phase, StepStatistics, Store};

/// Durations of one thing. `null` where there is none, or where percentiles were not kept.
#[derive(Clone, Debug, Serialize)]
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
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug)]
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
    pub(in crate::report) fn of(distribution: &Distribution, percentages: &[f64]) -> Self {
        let percentile = |p: &f64| (*p, distribution.percentile(p / 100.0));
        let interval = |p: &f64| (*p, distribution.percentile_interval(p / 100.0));
        let sd_ns = distribution.sd_ns();
        Self {
            sd_ns,
            mean_ci_ns: sd_ns.map(|sd| 1.96 * sd / (distribution.count() as f64).sqrt()),
            intervals: Intervals(percentages.iter().map(interval).collect()),
            count: distribution.count(),
            mean_ns: distribution.mean_ns(),
            min_ns: distribution.min_ns(),
            percentiles: Percentiles(percentages.iter().map(percentile).collect()),
            max_ns: distribution.max_ns(),
            total_ns: distribution.total_ns(),
        }
    }
}

/// A phase's time per step, over the steps that spend any in it; the gap's and the whole step's over all steps.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseLine {
    /// The phase's name, `gap`, `period` (the step with the gap before it: the phases and the gap add up to it) or `step`
    /// (from its own start).
    pub name: String,
    /// How it is inferred; absent of a phase that is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inferred: Option<String>,
    /// Its durations.
    #[serde(flatten)]
    pub durations: Durations,
    /// Share (0 to 1) of the steps' wall time; `null` without a step.
    pub share: Option<f64>,
}

impl PhaseLine {
    /// The name as people read it: with a star where the phase is inferred.
    pub fn marked_name(&self) -> String {
        format!("{}{}", self.name, if self.inferred.is_some() { "*" } else { "" })
    }
}

/// Durations of all spans of one name.
#[derive(Clone, Debug, Serialize)]
pub struct SpanLine {
    /// The name.
    pub name: String,
    /// Its durations.
    #[serde(flatten)]
    pub durations: Durations,
    /// Total as a share of the time covered; more than 1 where threads run side by side.
    pub share: Option<f64>,
}

pub(in crate::report) fn phase_lines(
    store: &Store,
    statistics: &StepStatistics,
    percentages: &[f64],
) -> Vec<PhaseLine> {
    if statistics.steps() == 0 {
        return Vec::new();
    }
    let line = |phase: &Phase| {
        let durations = Durations::of(statistics.phase(phase.slot)?, percentages);
        let inferred = store.session().inferred(&phase.text).map(str::to_owned);
        Some(PhaseLine { name: phase.text.clone(), inferred, durations, share: statistics.share(phase.slot) })
    };
    let whole = |name: &str, all: &Distribution| PhaseLine {
        name: name.to_owned(),
        inferred: None,
        durations: Durations::of(all, percentages),
        share: Some(all.total_ns() as f64 / statistics.tiled_ns().max(1) as f64),
    };
    let both = [whole("period", statistics.period()), whole("step", statistics.step())];
    // Where the program names no phases, all time is in none: that is no gap.
    let phases = store.phases().iter().filter(|_| store.phases().len() > 1);
    phases.filter_map(line).chain(both).collect()
}

/// The spans with the largest totals. Phases are left out where there are steps, which show them.
pub(in crate::report) fn span_lines(store: &Store, options: &Options) -> Vec<SpanLine> {
    let has_steps = store.statistics().steps() > 0;
    let mut spans: Vec<_> = store.spans().iter().filter(|span| !(span.is_phase && has_steps)).collect();
    spans.sort_by_key(|span| (Reverse(span.durations.total_ns()), span.name));
    let covered = store.elapsed_ns();
    let line = |span: &&gnntop_analysis::store::SpanStatistics| SpanLine {
        name: store.name(span.name).to_owned(),
        durations: Durations::of(&span.durations, &options.percentiles),
        share: (covered > 0).then(|| span.durations.total_ns() as f64 / covered as f64),
    };
    spans.iter().take(options.top_spans).map(line).collect()
}

fn duration_cells(durations: &Durations) -> Vec<String> {
    let cell = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), duration);
    let mut cells = vec![count(durations.count), cell(durations.mean_ns.map(|ns| ns.round() as u64))];
    cells.extend(durations.percentiles.0.iter().map(|(_, ns)| cell(*ns)));
    cells.extend([cell(durations.max_ns), duration(durations.total_ns)]);
    cells
}

/// Writes a table of durations under a head that begins with `title`.
pub(in crate::report) fn write<'a, N: Into<String>>(
    out: &mut String,
    title: &str,
    lines: impl Iterator<Item = (N, &'a Durations, Option<f64>)>,
) {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (name, durations, share) in lines {
        if rows.is_empty() {
            let mut head: Vec<String> = [title, "count", "mean"].map(str::to_owned).into();
            head.extend(durations.percentiles.0.iter().map(|(percentage, _)| format!("p{percentage}")));
            head.extend(["max", "total", "share"].map(str::to_owned));
            rows.push(head);
        }
        let mut row = vec![name.into()];
        row.extend(duration_cells(durations));
        row.push(share.map_or_else(|| "-".to_owned(), percent));
        rows.push(row);
    }
    plain::write(out, &rows);
    if !rows.is_empty() {
        out.push('\n');
    }
}
