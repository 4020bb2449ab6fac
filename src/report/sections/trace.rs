//! Step times over the run: the median and the slowest step of each column, with spikes and stalls.

use std::fmt::Write;

use super::steps::StepCounts;
use crate::report::pictures::plot::{HEIGHT, Plot, WIDTH, columns, grid, key};
use gnntop_analysis::figures::{count, duration};
use gnntop_analysis::findings::{Finding, FindingKind, Findings};
use gnntop_analysis::store::{StepColumn, Store};

/// Columns of a trace; more steps share one.
const COLUMNS: usize = 600;
/// The scale ends at this many times the 95th percentile of the columns; what is longer is cut and marked.
const HEADROOM: f64 = 3.0;

/// The steps of one column of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracePoint {
    /// The first step's ordinal.
    pub first: u64,
    /// Its number, as the program counts.
    pub step: u64,
    /// Time of the step that takes longest.
    pub worst_ns: u64,
    /// Time of the median step.
    pub median_ns: u64,
}

/// The steps from `skip` on, a point for each column.
pub(in crate::report) fn trace(store: &Store, skip: u64) -> Vec<TracePoint> {
    let columns = store.steps().columns(skip..u64::MAX, COLUMNS);
    let step = |ordinal: u64| store.steps().known_row(ordinal).map_or(ordinal, |row| row.step().0);
    let point = |column: &StepColumn<'_>| TracePoint {
        first: column.first,
        step: step(column.first),
        worst_ns: column.worst.period_ns(),
        median_ns: column.median.period_ns(),
    };
    columns.iter().map(point).collect()
}

/// The chart; empty for fewer than two columns. `top_ns` is where its scale ends, by itself where it is `None`.
pub(in crate::report) fn picture(
    trace: &[TracePoint],
    steps: &StepCounts,
    findings: &Findings,
    top_ns: Option<f64>,
) -> String {
    if trace.len() < 2 {
        return String::new();
    }
    let top_ns = top_ns.unwrap_or_else(|| scale_top_ns(trace));
    let height = |ns: u64| ns as f64 / top_ns;
    let mut drawing = grid(&[0.5, 1.0]);
    let worst = columns(trace.iter().map(|point| height(point.worst_ns)));
    let median = columns(trace.iter().map(|point| height(point.median_ns)));
    let _ = write!(
        drawing,
        "<path class=\"fill series faint\" d=\"{worst}\"/><path class=\"fill accent\" d=\"{median}\"/>"
    );
    let is_each = trace.len() as u64 >= steps.reported;
    let mut legend = if is_each {
        key("accent", "", "each step")
    } else {
        key("accent", "", "median") + &key("series faint", "", "slowest")
    };
    for (kind, class, word) in
        [(FindingKind::Spike, "warning", "spike"), (FindingKind::Stall, "alarm", "stall at a mark")]
    {
        let places = finding_columns(trace, &findings.found, &|finding| finding.kind == kind);
        let dot = |at: &usize| dot(class, *at, trace.len(), height(trace[*at].worst_ns));
        drawing.extend(places.iter().map(dot));
        legend += &if places.is_empty() { String::new() } else { key(class, "", word) };
    }
    let cut = trace.iter().filter(|point| point.worst_ns as f64 > top_ns * 1.001).count();
    if cut > 0 {
        let longest = trace.iter().map(|point| point.worst_ns).max().unwrap_or(0);
        legend += &format!("<span>cut at the top: up to {}</span>", duration(longest));
    }
    let scale = [top_ns, top_ns / 2.0, 0.0].map(|ns| if ns > 0.0 { duration(ns as u64) } else { "0".to_owned() });
    Plot {
        title: "Step times".to_owned(),
        scale: scale.to_vec(),
        below: ends(trace),
        values: values(trace, steps),
        drawing,
        legend,
        is_small: false,
    }
    .to_html()
}

/// Where the scale of these columns ends, in nanoseconds.
pub(in crate::report) fn scale_top_ns(trace: &[TracePoint]) -> f64 {
    let mut worst: Vec<u64> = trace.iter().map(|point| point.worst_ns).collect();
    worst.sort_unstable();
    let usual = worst.get(worst.len() * 95 / 100).copied().unwrap_or(1) as f64;
    (worst.last().copied().unwrap_or(1) as f64).min(usual * HEADROOM).max(1.0)
}

/// The same without a frame, the steps of one finding clear; empty if it has no place.
pub(super) fn finding_picture(trace: &[TracePoint], finding: &Finding) -> String {
    let places = finding_columns(trace, std::slice::from_ref(finding), &|_| true);
    if trace.len() < 2 || places.is_empty() {
        return String::new();
    }
    let top_ns = scale_top_ns(trace);
    let all = columns(trace.iter().map(|point| point.worst_ns as f64 / top_ns));
    let width = WIDTH / trace.len() as f64;
    let mut found = String::new();
    for at in &places {
        let top = (1.0 - (trace[*at].worst_ns as f64 / top_ns).min(1.0)) * HEIGHT;
        let _ = write!(found, "M{:.1} {HEIGHT}V{top:.1}H{:.1}V{HEIGHT}Z", *at as f64 * width, (at + 1) as f64 * width);
    }
    let drawing =
        format!("<path class=\"fill series faint\" d=\"{all}\"/><path class=\"band warning\" d=\"{found}\"/>");
    let below = ends(trace);
    Plot { drawing, below, ..Plot::default() }.to_html()
}

/// The columns with findings of one sort, each once.
fn finding_columns(trace: &[TracePoint], findings: &[Finding], is_meant: &dyn Fn(&Finding) -> bool) -> Vec<usize> {
    let mut all: Vec<usize> = Vec::new();
    for place in findings.iter().filter(|finding| is_meant(finding)).flat_map(|finding| &finding.places) {
        let first = trace.partition_point(|point| point.first <= place.ordinals.start).saturating_sub(1);
        let end = trace.partition_point(|point| point.first < place.ordinals.end);
        all.extend(first..end.max(first + 1).min(trace.len()));
    }
    all.sort_unstable();
    all.dedup();
    all
}

fn ends(trace: &[TracePoint]) -> Vec<(Option<f64>, String)> {
    let (first, last) = (trace.first().map_or(0, |point| point.step), trace.last().map_or(0, |point| point.step));
    vec![(None, format!("step {}", count(first))), (None, count(last))]
}

/// What the readout says of each column.
fn values(trace: &[TracePoint], steps: &StepCounts) -> Vec<String> {
    let value = |(at, point): (usize, &TracePoint)| {
        let end = trace.get(at + 1).map_or(steps.total, |next| next.first);
        let (first, median, worst) = (count(point.step), duration(point.median_ns), duration(point.worst_ns));
        match end.saturating_sub(point.first) {
            0 | 1 => format!("step {first}: {worst}"),
            more => format!("{more} steps from {first}: median {median}, slowest {worst}"),
        }
    };
    trace.iter().enumerate().map(value).collect()
}

/// A dot on the top of a column. A line without length has round ends, which stay round where the drawing is stretched.
fn dot(class: &str, at: usize, all: usize, height: f64) -> String {
    let x = (at as f64 + 0.5) * WIDTH / all as f64;
    let y = (1.0 - height.min(1.0)) * HEIGHT;
    format!("<path class=\"dot {class}\" d=\"M{x:.1} {y:.1}h0\"/>")
}
