//! Figures of a report as SVG: step times over the run, and shares of the phases. They need no script and print in grey as
//! well.

use std::fmt::Write;

use super::contents::Report;
use super::document::markup::escaped;
use super::document::svg::{COLOURS, GREY, HEIGHT, LEFT, WIDTH, open};
use super::sections::trace::TracePoint;
use gnntop_analysis::figures::{duration, percent};
use gnntop_analysis::findings::Kind;
use gnntop_analysis::store::GAP;

/// Step times over the run, with spikes marked. Empty for fewer than two columns.
pub(super) fn step_times(report: &Report) -> String {
    let trace = &report.trace;
    let (Some(first), Some(last)) = (trace.first(), trace.last()) else { return String::new() };
    let most_ns = trace.iter().map(|point| point.worst_ns).max().unwrap_or(0).max(1) as f64;
    if trace.len() < 2 {
        return String::new();
    }
    let span = (last.first - first.first).max(1) as f64;
    let x = |ordinal: u64| LEFT + (ordinal.saturating_sub(first.first)) as f64 / span * (WIDTH - LEFT - 4.0);
    let y = |ns: f64| 8.0 + (1.0 - (ns / most_ns).min(1.0)) * (HEIGHT - 28.0);
    let mut svg = open("Step times", HEIGHT);
    for share in [0.0, 0.5, 1.0] {
        let (at, text) = (y(share * most_ns), duration((share * most_ns) as u64));
        let _ = write!(svg, r##"<line x1="{LEFT}" x2="{WIDTH}" y1="{at:.1}" y2="{at:.1}" stroke="#ddd"/>"##);
        let _ = write!(svg, r#"<text x="{}" y="{:.1}" text-anchor="end">{text}</text>"#, LEFT - 6.0, at + 4.0);
    }
    let line = |of: &dyn Fn(&TracePoint) -> u64| {
        let points = trace.iter().map(|point| format!("{:.1},{:.1}", x(point.first), y(of(point) as f64)));
        points.collect::<Vec<String>>().join(" ")
    };
    let (worst, median) = (line(&|point| point.worst_ns), line(&|point| point.median_ns));
    let _ = write!(svg, r##"<polyline points="{worst}" fill="none" stroke="#bbb"/>"##);
    let _ = write!(svg, r##"<polyline points="{median}" fill="none" stroke="#1b9e77" stroke-width="1.5"/>"##);
    let spikes = report.findings.found.iter().filter(|finding| finding.kind == Kind::Spike);
    for place in spikes.flat_map(|finding| &finding.places) {
        let ns = trace.iter().rev().find(|point| point.first <= place.ordinals.start).map_or(0, |point| point.worst_ns);
        let (at, height) = (x(place.ordinals.start), y(ns as f64));
        let title = escaped(&place.sentence);
        let _ = write!(
            svg,
            r##"<circle cx="{at:.1}" cy="{height:.1}" r="3" fill="#d95f02"><title>{title}</title></circle>"##
        );
    }
    let stalls = report.findings.found.iter().filter(|finding| finding.kind == Kind::Stall);
    let mut told = "";
    for place in stalls.flat_map(|finding| &finding.places) {
        let (at, bottom, title) = (x(place.ordinals.start), y(0.0), escaped(&place.sentence));
        let _ = write!(svg, r##"<path d="M{at:.1} {bottom:.1}v-10" stroke="#7570b3" stroke-width="2">"##);
        let _ = write!(svg, "<title>{title}</title></path>");
        told = ", stalls at marks (violet)";
    }
    let (first, last) = (first.first + 1, report.steps.total);
    let foot = format!("steps {first} to {last}: median (green), slowest (grey), spikes (orange){told}");
    let _ = write!(svg, r#"<text x="{LEFT}" y="{}">{foot}</text></svg>"#, HEIGHT - 4.0);
    svg
}

/// Shares of the phases and the gap in the wall time, as one bar. Empty without steps.
pub(super) fn phase_shares(report: &Report) -> String {
    let phases = report.phases.iter().filter(|line| !matches!(line.name.as_str(), "period" | "step"));
    let shares: Vec<(&str, f64)> = phases.filter_map(|line| Some((line.name.as_str(), line.share?))).collect();
    if shares.is_empty() {
        return String::new();
    }
    let height = 52.0 + 16.0 * shares.len().div_ceil(4) as f64;
    let mut svg = open("Shares of the wall time", height);
    let mut at = 0.0;
    for (i, (name, share)) in shares.iter().enumerate() {
        let colour = if *name == GAP { GREY } else { COLOURS[i % COLOURS.len()] };
        let (width, name) = (share * WIDTH, escaped(name));
        let _ = write!(
            svg,
            r#"<rect x="{at:.1}" y="4" width="{width:.1}" height="28" fill="{colour}"><title>{name}</title></rect>"#
        );
        at += width;
        let (column, row) = ((i % 4) as f64 * 190.0, 50.0 + 16.0 * (i / 4) as f64);
        let _ = write!(svg, r#"<rect x="{column}" y="{}" width="10" height="10" fill="{colour}"/>"#, row - 9.0);
        let _ = write!(svg, r#"<text x="{}" y="{row}">{name} {}</text>"#, column + 16.0, percent(*share));
    }
    svg + "</svg>"
}
