//! Hardware over the steps as small curves, one above the other: cores in use, memory, and each GPU.

use std::fmt::Write;

use crate::report::document::markup::escaped;
use crate::report::document::svg::{LEFT, WIDTH, open};
use gnntop_analysis::figures::{bytes, percent, quantity};
use gnntop_analysis::store::{Store, TimeColumns};

/// Columns of a curve.
const COLUMNS: usize = 240;
/// Height of a curve with its title.
const CURVE: f64 = 62.0;
/// GPUs that are drawn.
const GPUS: usize = 8;

/// One quantity over the time of the steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// What it is.
    pub title: String,
    /// How its largest value is written.
    pub most_text: String,
    /// The largest value.
    pub most: f64,
    /// Means by column of time; `None` where nothing was read.
    pub values: Vec<Option<f64>>,
}

/// What was read while the steps from `skip` on ran. What was never read is not there.
pub(in crate::report) fn curves(store: &Store, skip: u64) -> Vec<Curve> {
    let (Some(first), Some(last)) = (store.steps().known_row(skip), store.steps().last()) else { return Vec::new() };
    let columns = TimeColumns::equal(first.period_start_ns()..last.end_ns(), COLUMNS);
    let gpus = store.hardware().gpus().into_iter().take(GPUS);
    let gpus = gpus.map(|index| (format!("gpu.{index}.util"), format!("GPU {index} utilisation"), 1e-5, PERCENT));
    let own: [(&str, &str, f64, Text); 3] = [
        ("process.cpu_time", "cores in use by the process", 1e-9, quantity),
        ("process.rss", "resident memory of the process", 1.0, bytes),
        ("machine.memory.used", "memory in use on the machine", 1.0, bytes),
    ];
    let own = own.into_iter().map(|(name, title, scale, text)| (name.to_owned(), title.to_owned(), scale, text));
    let curve = |(name, title, scale, text): (String, String, f64, Text)| {
        let signal = store.signals().find(&name)?;
        let bins = signal.columns(&columns, store.now_ns());
        let values: Vec<Option<f64>> = bins.into_iter().map(|bin| bin.map(|bin| bin.mean * scale)).collect();
        let most = values.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        (most.is_finite() && most > 0.0).then(|| Curve { title, most_text: text(most), most, values })
    };
    own.chain(gpus).filter_map(curve).collect()
}

type Text = fn(f64) -> String;
const PERCENT: Text = percent;

/// The curves as SVG; empty for none.
pub(in crate::report) fn to_svg(curves: &[Curve]) -> String {
    if curves.is_empty() {
        return String::new();
    }
    let mut svg = open("Hardware over the steps", CURVE * curves.len() as f64);
    for (at, curve) in curves.iter().enumerate() {
        let (top, bottom) = (CURVE * at as f64 + 16.0, CURVE * (at + 1) as f64 - 8.0);
        let y = |value: f64| bottom - (value / curve.most).clamp(0.0, 1.0) * (bottom - top);
        let _ = write!(svg, r#"<text x="{LEFT}" y="{:.1}">{}</text>"#, top - 4.0, escaped(&curve.title));
        let (x, text) = (LEFT - 6.0, escaped(&curve.most_text));
        let _ = write!(svg, r#"<text x="{x}" y="{:.1}" text-anchor="end">{text}</text>"#, top + 8.0);
        let _ = write!(svg, r#"<text x="{x}" y="{bottom:.1}" text-anchor="end">0</text>"#);
        let _ = write!(svg, r##"<line x1="{LEFT}" x2="{WIDTH}" y1="{bottom:.1}" y2="{bottom:.1}" stroke="#ddd"/>"##);
        let step = (WIDTH - LEFT - 4.0) / curve.values.len().max(1) as f64;
        // A stretch without readings is a break in the curve.
        let mut pen = 'M';
        let mut path = String::new();
        for (column, value) in curve.values.iter().enumerate() {
            let Some(value) = value else {
                pen = 'M';
                continue;
            };
            let _ = write!(path, "{pen}{:.1} {:.1}", LEFT + (column as f64 + 0.5) * step, y(*value));
            pen = 'L';
        }
        let _ = write!(svg, r##"<path d="{path}" fill="none" stroke="#1b9e77"/>"##);
    }
    svg + "</svg>"
}
