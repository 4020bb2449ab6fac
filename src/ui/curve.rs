//! The percentiles of the step as a curve, in the place of the bars: how long the steps take, from the median to the rarest.
//! Each further column is rarer by the same factor, so that the tail has as much room as the bulk.
//!
//! ```text
//! ▌steps  percentiles of 12,345 steps ─────────────────── p99 2.9 x p50, max 310 ms
//!                                              89.0 ms                         312 ms
//! 400 ms┤                                                                   ▄▄▄██████
//! 200 ms┤                                               ▁▁▁▂▂▂▂▃▃▃▃▄▄▄▅▅▇▇███████████
//!       │▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▄▄▄▄▄▄▅▅▅▅▆▆▆▇▇▇█████████████████████████████████
//!              p50                   p90       p99                             p99.9
//! ```

use super::bars::{Cell, Stack};
use super::chart::{EIGHTHS, draw_axis};
use super::labels::Labels;
use super::scale::Scale;
use super::scene::{Scene, Title};
use super::sheet::Sheet;
use crate::app::{AXIS_WIDTH, Panel};
use crate::figures::{count, duration};
use crate::store::Distribution;

/// Quantiles with a label.
const LABELLED: [(f64, &str); 6] =
    [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9"), (0.9999, "p99.99"), (0.99999, "p99.999")];

/// Draws the curve.
pub fn draw(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let all = scene.store.statistics().period();
    let note = format!("percentiles of {} steps", count(all.count()));
    Title { panel: Panel::Steps, name: "steps", note: &note, right: &spread(all) }.draw(sheet, scene);
    let axis = AXIS_WIDTH.min(sheet.width());
    let columns = sheet.width() - axis;
    let rows = sheet.height().saturating_sub(3);
    if columns == 0 || rows == 0 {
        return;
    }
    let rarest_ns = all.percentile(quantile(columns - 1, columns, all.count())).unwrap_or(0);
    let scale = Scale::linear(&mut [rarest_ns]);
    draw_axis(&mut sheet.part(0, 2, axis, rows), &scale, scene.theme);
    let mut stack = Stack::default();
    let mut bars = sheet.part(axis, 2, columns, rows);
    for x in 0..columns {
        let ns = all.percentile(quantile(x, columns, all.count())).unwrap_or(0);
        for (row, cell) in (0..).zip(stack.cut([ns].into_iter(), scale.top_ns(), rows)) {
            let c = match cell {
                Cell::Empty => continue,
                Cell::Split { eighths, .. } if !scene.theme.ascii() => EIGHTHS[usize::from(*eighths) % 8],
                _ => scene.theme.glyph('█', '#'),
            };
            bars.cell(x, rows - 1 - row, c, scene.theme.series());
        }
    }
    draw_labels(sheet, scene, all);
}

/// Writes each quantile below the curve and its value above, where it lies on the screen.
fn draw_labels(sheet: &mut Sheet<'_>, scene: &Scene<'_>, all: &Distribution) {
    let (width, below) = (sheet.width(), sheet.height() - 1);
    let columns = width - AXIS_WIDTH;
    let (mut values, mut names) = (Labels::new(AXIS_WIDTH, width), Labels::new(AXIS_WIDTH, width));
    for (wanted, name) in LABELLED {
        let Some(x) = (0..columns).find(|x| quantile(*x, columns, all.count()) >= wanted) else { break };
        let value = all.percentile(wanted).map(duration).unwrap_or_default();
        names.place_around(&mut sheet.part(0, below, width, 1), AXIS_WIDTH + x, name, scene.theme.dim());
        values.place_around(&mut sheet.part(0, 1, width, 1), AXIS_WIDTH + x, &value, scene.theme.plain());
    }
}

/// The quantile of column `x` of `columns`: 1 - 10^(-decades x), up to where a single step is all that is left.
fn quantile(x: u16, columns: u16, steps: u64) -> f64 {
    let decades = (steps.max(1) as f64).log10().clamp(1.0, 5.0);
    1.0 - 10f64.powf(-decades * f64::from(x + 1) / f64::from(columns))
}

/// How far the tail lies from the median.
fn spread(all: &Distribution) -> String {
    match (all.percentile(0.5), all.percentile(0.99)) {
        (Some(p50 @ 1..), Some(p99)) => {
            let longest = all.max_ns().map(duration).unwrap_or_default();
            format!("p99 {:.1} x p50, max {longest}", p99 as f64 / p50 as f64)
        }
        _ => String::new(),
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
