//! How long steps take by percentile, up to the longest: one curve, or several runs' over each other.

use super::plot::{Plot, grid, key, line};
use crate::report::sections::percentile_curve::PercentileCurve;
use gnntop_analysis::figures::duration;

/// Percentiles that get a mark.
const MARKS: [f64; 6] = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];
/// Longest over shortest from which on the scale is logarithmic.
const WIDE: f64 = 8.0;
/// Class and sign of each curve.
const CURVES: [(&str, &str); 2] = [("p5", "line"), ("p3", "dash")];

/// The curves of one run or of two, each with a name; empty if one has none.
pub(in crate::report) fn of_curves(curves: &[(&str, &PercentileCurve)]) -> String {
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

    #[test]
    fn marks_are_where_the_curve_reaches() {
        let curve = PercentileCurve { ns: (1..=100).collect(), decades: 3.0 };
        let page = of_curves(&[("", &curve)]);
        assert!(page.contains(">p50<") && page.contains(">p99<") && !page.contains(">p99.99<"), "{page}");
        assert_eq!(of_curves(&[("", &PercentileCurve::default())]), "");
    }

    #[test]
    fn percentages_have_as_many_digits_as_they_need() {
        assert_eq!([0.5, 0.9, 0.99, 0.999, 0.9999].map(percentage), ["50", "90", "99", "99.9", "99.99"]);
        assert_eq!([0.0, 0.123].map(percentage), ["0", "12"]);
    }
}
