//! Hardware over the time of the steps: cores in use, memory, and each GPU, as small curves, one above the other.

use crate::report::pictures::plot::{Plot, grid, line};
use gnntop_analysis::figures::{bytes, percent, quantity};
use gnntop_analysis::store::{Store, TimeColumns};
use gnntop_wire::{Metric, Quantity};

/// Columns of a curve.
const COLUMNS: usize = 240;
/// GPUs that are drawn.
const GPUS: usize = 8;

/// One quantity over the time of the steps.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What it is.
    pub title: String,
    /// How its largest value is written.
    pub most_text: String,
    /// The largest value.
    pub most: f64,
    /// Means by column of time; `None` if nothing was read.
    pub values: Vec<Option<f64>>,
    /// How a value is written.
    pub text: Text,
}

/// Readings taken while the steps from `skip` on ran. Signals without readings are left out.
pub(in crate::report) fn curves(store: &Store, skip: u64) -> Vec<Curve> {
    let (Some(first), Some(last)) = (store.steps().known_row(skip), store.steps().last()) else { return Vec::new() };
    let columns = TimeColumns::equal(first.period_start_ns()..last.end_ns(), COLUMNS);
    let gpus = store.hardware().gpus().into_iter().take(GPUS);
    let gpus =
        gpus.map(|index| (Quantity::GpuUtil.with_instance(index), format!("GPU {index} utilisation"), 1e-5, PERCENT));
    let own: [(Quantity, &str, f64, Text); 3] = [
        (Quantity::ProcessCpuTime, "cores in use by the process", 1e-9, quantity),
        (Quantity::ProcessRss, "resident memory of the process", 1.0, bytes),
        (Quantity::MachineMemoryUsed, "memory in use on the machine", 1.0, bytes),
    ];
    let own = own.into_iter().map(|(measured, title, scale, text)| (measured.into(), title.to_owned(), scale, text));
    let curve = |(metric, title, scale, text): (Metric, String, f64, Text)| {
        let signal = store.signals().find(metric)?;
        let bins = signal.columns(&columns, store.now_ns());
        let values: Vec<Option<f64>> = bins.into_iter().map(|bin| bin.map(|bin| bin.mean * scale)).collect();
        let most = values.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        (most.is_finite() && most > 0.0).then(|| Curve { title, most_text: text(most), most, values, text })
    };
    own.chain(gpus).filter_map(curve).collect()
}

/// The curves; empty for none.
pub(in crate::report) fn picture(curves: &[Curve]) -> String {
    curves.iter().map(|curve| plot(curve, curve.title.clone(), true).to_html()).collect::<Vec<String>>().join("\n")
}

/// The first curve whose title begins so, without a frame; empty for none.
pub(super) fn single_curve(curves: &[Curve], title: &str) -> String {
    let Some(curve) = curves.iter().find(|curve| curve.title.starts_with(title)) else { return String::new() };
    let below = vec![(None, curve.title.clone()), (None, format!("at most {}", curve.most_text))];
    Plot { below, ..plot(curve, String::new(), false) }.to_html()
}

fn plot(curve: &Curve, title: String, is_small: bool) -> Plot {
    let data = line(curve.values.iter().map(|value| Some((*value)? / curve.most)));
    let value = |value: &Option<f64>| value.map_or_else(|| "not read".to_owned(), curve.text);
    let scale = if title.is_empty() { Vec::new() } else { vec![curve.most_text.clone(), "0".to_owned()] };
    Plot {
        title,
        scale,
        values: curve.values.iter().map(value).collect(),
        drawing: format!("{}<path class=\"series\" d=\"{data}\"/>", grid(&[1.0])),
        is_small,
        ..Plot::default()
    }
}

/// How a value is written, with its unit.
pub type Text = fn(f64) -> String;
const PERCENT: Text = percent;
