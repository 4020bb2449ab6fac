//! Hardware over the steps as small curves, one above the other.

use super::plot::{Plot, grid, line};
use crate::report::sections::curves::Curve;

/// The curves; empty for none.
pub(in crate::report) fn of_curves(curves: &[Curve]) -> String {
    curves.iter().map(|curve| plot(curve, curve.title.clone(), true).to_html()).collect::<Vec<String>>().join("\n")
}

/// The first curve whose title begins so, without a frame; empty for none.
pub(super) fn of_one(curves: &[Curve], title: &str) -> String {
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
