//! Percentiles as a curve: how long something takes, from the median to the rarest. Each further column is rarer by the
//! same factor, so that the tail has as much room as the bulk.
//!
//! ```text
//!                                              89.0 ms                         312 ms
//! 400 ms┤                                                                   ▄▄▄██████
//! 200 ms┤                                               ▁▁▁▂▂▂▂▃▃▃▃▄▄▄▅▅▇▇███████████
//!       │▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▄▄▄▄▄▄▅▅▅▅▆▆▆▇▇▇█████████████████████████████████
//!              p50                   p90       p99                             p99.9
//! ```

use crate::app::AXIS_WIDTH;
use crate::ui::chart::bars::{BarCell, BarStack};
use crate::ui::chart::labels::Labels;
use crate::ui::chart::scale::ChartScale;
use crate::ui::chart::step_chart::{EIGHTHS, draw_axis};
use crate::ui::scene::Scene;
use crate::ui::sheet::Sheet;
use gnntop_analysis::figures::duration;
use gnntop_analysis::store::Distribution;

/// Quantiles with a label.
const LABELLED: [(f64, &str); 6] =
    [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9"), (0.9999, "p99.99"), (0.99999, "p99.999")];

/// Draws the curve of `all`, with the quantile `marked` standing out.
pub fn draw(sheet: &mut Sheet<'_>, all: &Distribution, marked: Option<f64>, scene: &Scene<'_>) {
    draw_curve(sheet, all, None, marked, scene);
}

/// Draws the curve of `all` with that of `other` as a line over it.
pub fn draw_over(sheet: &mut Sheet<'_>, all: &Distribution, other: Option<&Distribution>, scene: &Scene<'_>) {
    draw_curve(sheet, all, other, None, scene);
    let legend = format!(" A {}  B {} ", scene.theme.text("█", "#"), scene.theme.text("━", "="));
    let below = sheet.height().saturating_sub(1);
    sheet.text(0, below, &legend, scene.theme.dim());
}

fn draw_curve(
    sheet: &mut Sheet<'_>,
    all: &Distribution,
    other: Option<&Distribution>,
    marked: Option<f64>,
    scene: &Scene<'_>,
) {
    let axis = AXIS_WIDTH.min(sheet.width());
    let columns = sheet.width() - axis;
    let rows = sheet.height().saturating_sub(2);
    if columns == 0 || rows == 0 || all.count() == 0 {
        return;
    }
    let at = |x: u16| all.percentile(quantile(x, columns, all.count())).unwrap_or(0);
    let over = |x: u16| other.and_then(|other| other.percentile(quantile(x, columns, all.count())));
    let mut ends: Vec<u64> = [at(0), at(columns - 1)].into_iter().chain(over(0)).chain(over(columns - 1)).collect();
    let scale = match scene.app.window().is_log() {
        true => ChartScale::logarithmic(&ends),
        false => ChartScale::linear(&mut ends),
    };
    draw_axis(&mut sheet.part(0, 1, axis, rows), &scale, scene.theme);
    let marked = marked.and_then(|marked| quantile_column(marked, columns, all.count()));
    let mut stack = BarStack::default();
    let mut bars = sheet.part(axis, 1, columns, rows);
    for x in 0..columns {
        let style = if marked == Some(x) { scene.theme.accent() } else { scene.theme.series() };
        for (row, cell) in (0..).zip(stack.cut([at(x)].into_iter(), scale.linear_top_ns(at(x), rows), rows)) {
            let c = match cell {
                BarCell::Empty => continue,
                BarCell::Split { eighths, .. } if !scene.theme.ascii() => EIGHTHS[usize::from(*eighths) % 8],
                _ => scene.theme.glyph('█', '#'),
            };
            bars.cell(x, rows - 1 - row, c, style);
        }
        if let Some(row) = over(x).and_then(|ns| scale.bar_rows(ns, rows).checked_sub(1)) {
            bars.cell(x, rows - 1 - row, scene.theme.glyph('━', '='), scene.theme.accent());
        }
    }
    draw_labels(sheet, scene, all, marked);
}

/// The first column at or beyond a quantile, if it is on the screen.
fn quantile_column(wanted: f64, columns: u16, count: u64) -> Option<u16> {
    (0..columns).find(|x| quantile(*x, columns, count) >= wanted - 1e-12)
}

/// Writes each quantile that is on the screen below the curve and its value above; first the one that is marked.
fn draw_labels(sheet: &mut Sheet<'_>, scene: &Scene<'_>, all: &Distribution, marked: Option<u16>) {
    let (width, below) = (sheet.width(), sheet.height() - 1);
    let columns = width - AXIS_WIDTH;
    let (mut values, mut names) = (Labels::new(AXIS_WIDTH, width), Labels::new(AXIS_WIDTH, width));
    let mut labels: Vec<(u16, f64, &str)> = LABELLED
        .into_iter()
        .filter_map(|(wanted, name)| Some((quantile_column(wanted, columns, all.count())?, wanted, name)))
        .collect();
    labels.sort_by_key(|(x, ..)| marked != Some(*x));
    for (x, wanted, name) in labels {
        let (style, dim) = match marked == Some(x) {
            true => (scene.theme.accent(), scene.theme.accent()),
            false => (scene.theme.plain(), scene.theme.dim()),
        };
        let value = all.percentile(wanted).map(duration).unwrap_or_default();
        names.place_around(&mut sheet.part(0, below, width, 1), AXIS_WIDTH + x, name, dim);
        values.place_around(&mut sheet.part(0, 0, width, 1), AXIS_WIDTH + x, &value, style);
    }
}

/// The quantile of column `x` of `columns`: 1 - 10^(-decades x), up to where a single one is all that is left.
fn quantile(x: u16, columns: u16, count: u64) -> f64 {
    let decades = (count.max(1) as f64).log10().clamp(1.0, 5.0);
    1.0 - 10f64.powf(-decades * f64::from(x + 1) / f64::from(columns))
}

/// How far the tail is from the median.
pub fn spread(all: &Distribution) -> String {
    let longest = all.max_ns().map(|ns| format!("max {}", duration(ns))).unwrap_or_default();
    match (all.percentile(0.5), all.percentile(0.99)) {
        (Some(p50 @ 1..), Some(p99)) if all.resolves(0.99) => {
            format!("p99 {:.1} x p50, {longest}", p99 as f64 / p50 as f64)
        }
        _ => longest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_rise_to_the_last_step() {
        for steps in [0, 1, 10, 1000, u64::MAX] {
            let all: Vec<f64> = (0..70).map(|x| quantile(x, 70, steps)).collect();
            assert!(all.is_sorted() && all[0] > 0.0 && all[69] < 1.0, "{steps}");
        }
        assert!((quantile(69, 70, 1000) - 0.999).abs() < 1e-9);
        assert!((quantile(34, 70, 10_000) - 0.99).abs() < 1e-9, "half of four decades");
    }
}
