//! How long steps take by percentile, up to the longest: one curve, or several runs' over each other.

use crate::report::pictures::plot::{Plot, grid, key, line};
use gnntop_analysis::figures::duration;
use gnntop_analysis::store::Distribution;

/// Points of the curve.
const POINTS: usize = 150;
/// Fewest durations for a curve.
const FEWEST: u64 = 10;
/// Percentiles that get a mark.
const MARKS: [f64; 6] = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];
/// Longest over shortest from which on the scale is logarithmic.
const WIDE: f64 = 8.0;
/// Class and sign of each curve.
const CURVES: [(&str, &str); 2] = [("p5", "line"), ("p3", "dash")];

/// Durations by percentile, from the shortest towards the longest. The quantile of a point is `1 - 10^-(decades * x)`, x
/// running from 0 to 1: each decade leaves out nine tenths of the steps that the one before leaves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PercentileCurve {
    /// Durations at equal distances along the curve; none for fewer than ten, or where percentiles are not kept.
    pub ns: Vec<u64>,
    /// How far the curve reaches.
    pub decades: f64,
}

impl PercentileCurve {
    /// Of these durations, up to the longest.
    pub(in crate::report) fn new(durations: &Distribution) -> Self {
        Self::with_decades(durations, (durations.count().max(FEWEST) as f64).log10())
    }

    /// Of two runs, as far as the shorter one reaches.
    pub(in crate::report) fn pair(both: [&Distribution; 2]) -> [Self; 2] {
        let least = both[0].count().min(both[1].count()).max(FEWEST);
        both.map(|durations| Self::with_decades(durations, (least as f64).log10()))
    }

    fn with_decades(durations: &Distribution, decades: f64) -> Self {
        if durations.count() < FEWEST {
            return Self::default();
        }
        let quantile = |at: usize| quantile(decades, at as f64 / (POINTS - 1) as f64);
        let ns = (0..POINTS).map_while(|at| durations.percentile(quantile(at))).collect();
        Self { ns, decades }
    }

    /// The quantile (0 to 1) of a point.
    fn quantile(&self, at: usize) -> f64 {
        quantile(self.decades, at as f64 / (self.ns.len().max(2) - 1) as f64)
    }

    /// How far along the curve (0 to 1) a quantile is; more than 1 where it is beyond.
    fn place(&self, quantile: f64) -> f64 {
        -(1.0 - quantile).log10() / self.decades
    }
}

fn quantile(decades: f64, x: f64) -> f64 {
    1.0 - 10_f64.powf(-decades * x)
}

/// The curves of one run or of two, each with a name; empty if one has none.
pub(in crate::report) fn picture(curves: &[(&str, &PercentileCurve)]) -> String {
    let all = || curves.iter().flat_map(|(_, curve)| &curve.ns).copied();
    let (Some(least), Some(most), Some((_, first))) = (all().min(), all().max(), curves.first()) else {
        return String::new();
    };
    if curves.iter().any(|(_, curve)| curve.ns.len() != first.ns.len()) {
        return String::new();
    }
    let (least, most) = (least.max(1) as f64, most.max(2) as f64);
    let is_wide = most / least > WIDE;
    let height = |ns: f64| match is_wide {
        true => (ns.max(least) / least).ln() / (most / least).ln(),
        false => ns / most,
    };
    let mut drawing = grid(&[0.5, 1.0]);
    let mut legend = String::new();
    for ((name, curve), (class, sign)) in curves.iter().zip(CURVES) {
        let data = line(curve.ns.iter().map(|ns| Some(height(*ns as f64))));
        drawing += &format!("<path class=\"{class} {sign}\" d=\"{data}\"/>");
        legend += &if name.is_empty() { String::new() } else { key(class, sign, name) };
    }
    let scale = match is_wide {
        true => [most, (most * least).sqrt(), least].map(|ns| duration(ns as u64)),
        false => [duration(most as u64), duration((most / 2.0) as u64), "0".to_owned()],
    };
    legend += if is_wide { "<span>logarithmic scale</span>" } else { "" };
    let marks = MARKS.iter().map(|mark| (first.place(*mark), format!("p{}", percentage(*mark))));
    Plot {
        title: "Step time by percentile".to_owned(),
        scale: scale.to_vec(),
        below: marks.filter(|(at, _)| *at < 0.97).map(|(at, text)| (Some(at), text)).collect(),
        values: (0..first.ns.len()).map(|at| value(curves, at, first.quantile(at))).collect(),
        drawing,
        legend,
        is_small: false,
    }
    .to_html()
}

fn value(curves: &[(&str, &PercentileCurve)], at: usize, quantile: f64) -> String {
    let one = |(name, curve): &(&str, &PercentileCurve)| {
        let name = if name.is_empty() { String::new() } else { format!("{name} ") };
        format!("{name}{}", duration(curve.ns[at]))
    };
    let all: Vec<String> = curves.iter().map(one).collect();
    format!("p{}: {}", percentage(quantile), all.join(", "))
}

/// A quantile in percent, with as many digits as distinguish it from 100.
fn percentage(quantile: f64) -> String {
    let digits = (-(1.0 - quantile).max(1e-9).log10() - 1.0).ceil().clamp(0.0, 6.0) as usize;
    let text = format!("{:.digits$}", quantile * 100.0);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(count: u64) -> Distribution {
        let mut all = Distribution::new();
        (1..=count).for_each(|at| all.record(at * 1_000_000));
        all
    }

    #[test]
    fn the_curve_rises_from_the_shortest_to_the_longest() {
        let curve = PercentileCurve::new(&times(1000));
        let about = |ns: u64, ms: f64| (ns as f64 / 1e6 - ms).abs() <= ms * 0.01;
        assert!(curve.ns.is_sorted() && curve.ns.len() == POINTS, "{curve:?}");
        assert!(about(curve.ns[0], 1.0) && about(curve.ns[POINTS - 1], 999.0), "{curve:?}");
        assert!((curve.quantile(POINTS - 1) - 0.999).abs() < 1e-9 && (curve.place(0.9) - 1.0 / 3.0).abs() < 1e-9);
        assert!(PercentileCurve::new(&times(9)).ns.is_empty(), "too few");
    }

    #[test]
    fn two_curves_reach_as_far_as_the_shorter_run() {
        let [first, second] = PercentileCurve::pair([&times(1000), &times(100)]);
        assert_eq!((first.decades, second.decades), (2.0, 2.0));
    }

    #[test]
    fn picture_marks_only_reached_percentiles() {
        let curve = PercentileCurve { ns: (1..=100).collect(), decades: 3.0 };
        let page = picture(&[("", &curve)]);
        assert!(page.contains(">p50<") && page.contains(">p99<") && !page.contains(">p99.99<"), "{page}");
        assert_eq!(picture(&[("", &PercentileCurve::default())]), "");
    }

    #[test]
    fn percentages_have_as_many_digits_as_they_need() {
        assert_eq!([0.5, 0.9, 0.99, 0.999, 0.9999].map(percentage), ["50", "90", "99", "99.9", "99.99"]);
        assert_eq!([0.0, 0.123].map(percentage), ["0", "12"]);
    }
}
