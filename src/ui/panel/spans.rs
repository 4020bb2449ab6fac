//! Spans inside the phases, by name: shown below the phase table where it has the whole screen.

use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip};
use gnntop_analysis::figures::{count, duration};
use gnntop_analysis::store::SpanStatistics;

/// Columns of a figure with the space before it.
const FIGURE: u16 = 9;
/// Figures: count, total, p50, p90, p99, max.
const HEADS: [&str; 6] = ["count", "total", "p50", "p90", "p99", "max"];

/// Draws as many spans as fit, those with the most time first.
pub fn draw(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let theme = scene.theme;
    let figures = usize::from(sheet.width().saturating_sub(16) / FIGURE).min(HEADS.len());
    let name_width = sheet.width().saturating_sub(FIGURE * figures as u16 + 2);
    sheet.fill_row(0, 0, theme.glyph('─', '-'), theme.dim());
    sheet.text(1, 0, "spans ", theme.strong());
    for (i, head) in (1..).zip(&HEADS[..figures]) {
        sheet.text_ending(0, name_width + i * FIGURE + 1, 0, &format!(" {head} "), theme.plain());
    }
    let mut spans: Vec<&SpanStatistics> = scene
        .store
        .spans()
        .iter()
        .filter(|span| !span.is_phase && scene.app.passes(scene.store.name(span.name)))
        .collect();
    spans.sort_by_key(|span| std::cmp::Reverse(span.durations.total_ns()));
    for (y, span) in (1..sheet.height()).zip(spans) {
        sheet.text(1, y, &clip(scene.store.name(span.name), name_width.saturating_sub(1), theme), theme.plain());
        let all = &span.durations;
        let texts = [
            Some(count(all.count())),
            Some(duration(all.total_ns())),
            all.percentile(0.5).map(duration),
            all.percentile(0.9).map(duration),
            all.percentile(0.99).map(duration),
            all.max_ns().map(duration),
        ];
        for (i, text) in (1..).zip(texts.into_iter().take(figures)) {
            let text = text.unwrap_or_else(|| theme.text("—", "-").to_owned());
            sheet.text_ending(name_width, name_width + i * FIGURE, y, &text, theme.plain());
        }
    }
}
