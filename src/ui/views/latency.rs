//! How long steps, phases and spans take, and how rarely: percentile curve and histogram of what is selected, above the
//! table of all.
//!
//! ```text
//! ─latency of step  100 steps since the start ────── p99 2.1 x p50, max 310 ms ─
//! 100 ms┤                     ███████   │█                                         curve.rs, histogram.rs
//! 50 ms ┤▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆███████   │█▁      ▁              ▁
//!         p50      p90            p99   │16.2 ms              310 ms
//! ─percentiles ─────────── p50 ──── p90 ──── p99 ── p99.9 ─ p99.99 ──── max ──     percentiles.rs
//! ```

use crate::app::{Panel, QUANTILES};
use crate::ui::chart::curve;
use crate::ui::chart::histogram;
use crate::ui::headings::Title;
use crate::ui::panel::percentiles;
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip};
use gnntop_analysis::store::Distribution;

/// Rows of a curve that says something, with its title.
const CURVE_LEAST: u16 = 6;
/// From this width on, the histogram is beside the curve.
const WIDE: u16 = 72;
/// Longest name in the title.
const NAME_MOST: u16 = 30;

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let table = scene.app.latency_lines().len().min(usize::from(body.height())) as u16 + 1;
    let above = body.height().saturating_sub(table).max(body.height() * 9 / 20);
    let above = if above < CURVE_LEAST { 0 } else { above };
    if above > 0 {
        draw_selected(&mut body.part(0, 0, u16::MAX, above), scene);
    }
    percentiles::draw(&mut body.rows(above, 0), scene);
}

fn draw_selected(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let line = scene.app.latency_line();
    let name = format!("latency of {}", clip(&percentiles::name(&line, scene), NAME_MOST, scene.theme));
    let all = percentiles::distribution(&line, scene).filter(|all| all.count() > 0);
    let spread = all.map(curve::spread).unwrap_or_default();
    let title = Title { panel: Panel::Steps, name: &name, note: &percentiles::over(scene), right: &spread };
    title.draw(sheet, scene);
    let Some(all) = all else {
        sheet.text(1, 1, "it did not occur in these steps", scene.theme.dim());
        return;
    };
    draw_pictures(&mut sheet.rows(1, 0), all, scene);
}

fn draw_pictures(sheet: &mut Sheet<'_>, all: &Distribution, scene: &Scene<'_>) {
    let marked = QUANTILES.get(scene.app.latency().column()).copied().filter(|quantile| *quantile < 1.0);
    let (width, height) = (sheet.width(), sheet.height());
    let left = if width >= WIDE { width * 3 / 5 } else { width };
    curve::draw(&mut sheet.part(0, 0, left, height), all, marked, scene);
    if left < width {
        histogram::draw(&mut sheet.part(left, 0, u16::MAX, height), all, scene);
    }
}
