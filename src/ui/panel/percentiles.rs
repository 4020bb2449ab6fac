//! The table of percentiles: the period, its phases, the step and the spans inside them. A percentile that there are too few
//! durations for is a dash: it would only be the longest one.
//!
//! ```text
//! ─percentiles ────────── p50 ───── p90 ───── p99 ─── p99.9 ── p99.99 ───── max ─
//! ▌      period       40.0 ms   40.0 ms ▸ 85.0 ms         —         —    310 ms
//!  ░░ F  forward      10.0 ms   10.0 ms   10.0 ms         —         —   10.0 ms
//! ```

use std::borrow::Cow;

use crate::app::{LatencyLine, QUANTILES, StepScope, View};
use crate::ui::headings::rule;
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, clip_inside, selected_and_first, width};
use gnntop_analysis::figures::{count, counted, duration};
use gnntop_analysis::store::Distribution;

/// Columns of swatch and letter.
const SWATCH: u16 = 6;
/// Columns of a figure with the space and the mark before it.
const FIGURE: u16 = 10;
/// Columns of a name that is worth showing.
const NAME_LEAST: u16 = 10;
/// Longest name.
const NAME_MOST: u16 = 40;
/// Heads of the percentiles, as in [`QUANTILES`].
const HEADS: [&str; QUANTILES.len()] = ["p50", "p90", "p99", "p99.9", "p99.99", "max"];

/// The head of a percentile.
pub fn head(column: usize) -> &'static str {
    HEADS.get(column).copied().unwrap_or("max")
}

/// Which percentiles fit, and where.
struct PercentileLayout {
    name: u16,
    /// Places among [`QUANTILES`].
    columns: Vec<usize>,
    has_count: bool,
}

impl PercentileLayout {
    /// With too little room, columns around the selected one.
    fn new(width: u16, selected: usize) -> Self {
        let room = width.saturating_sub(SWATCH + NAME_LEAST + 1);
        let fitting = usize::from(room / FIGURE).clamp(1, HEADS.len());
        let first = selected.saturating_sub(fitting.saturating_sub(1)).min(HEADS.len() - fitting);
        let spare = room.saturating_sub(FIGURE * fitting as u16);
        let has_count = spare >= FIGURE;
        let name = (NAME_LEAST + spare - if has_count { FIGURE } else { 0 }).min(NAME_MOST);
        Self { name, columns: (first..first + fitting).collect(), has_count }
    }

    /// The column after the `n`th figure.
    fn end(&self, n: u16) -> u16 {
        SWATCH + self.name + FIGURE * (n + 1)
    }
}

/// Draws the table.
pub fn draw(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let theme = scene.theme;
    let layout = PercentileLayout::new(sheet.width(), scene.app.latency().column());
    rule(sheet, 0, "percentiles", "", scene);
    let heads = layout.has_count.then_some("count").into_iter();
    for (n, name) in (0..).zip(heads.chain(layout.columns.iter().map(|column| head(*column)))) {
        sheet.text_ending(0, layout.end(n) + 1, 0, &format!(" {name} "), theme.plain());
    }
    let lines = scene.app.latency_lines();
    let rows = sheet.height().saturating_sub(1);
    let (selected, first) = selected_and_first(sheet, scene.app.line(View::Latency), lines.len(), rows);
    for (y, (at, line)) in (1..=rows).zip(lines.iter().enumerate().skip(first)) {
        draw_line(&mut sheet.part(0, y, u16::MAX, 1), line, at == selected, &layout, scene);
    }
    let below = lines.len() as u16 + 1;
    if below < sheet.height() {
        let note = format!("{}; a dash: too few steps", over(scene));
        sheet.text(SWATCH, below, &clip(&note, sheet.width().saturating_sub(SWATCH + 1), theme), theme.dim());
    }
}

/// The durations of a line of the table, if any.
pub fn distribution<'a>(line: &LatencyLine<'a>, scene: &Scene<'a>) -> Option<&'a Distribution> {
    line.durations(scene.app.latency_figures())
}

/// What a line of the table is about.
pub fn name<'a>(line: &LatencyLine<'a>, scene: &Scene<'a>) -> Cow<'a, str> {
    match line {
        LatencyLine::Period => Cow::Borrowed("period"),
        LatencyLine::Step => Cow::Borrowed("step"),
        LatencyLine::Phase(_, phase) => scene.phase_name(phase),
        LatencyLine::Span(span) => Cow::Borrowed(scene.store.name(span.name)),
    }
}

fn draw_line(
    sheet: &mut Sheet<'_>,
    line: &LatencyLine<'_>,
    is_selected: bool,
    layout: &PercentileLayout,
    scene: &Scene<'_>,
) {
    let theme = scene.theme;
    if is_selected {
        sheet.cell(0, 0, theme.glyph('▌', '>'), theme.accent());
    }
    if let LatencyLine::Phase(at, _) = line
        && let Some(look) = scene.phase_styles.get(*at)
    {
        (1..3).for_each(|x| sheet.cell(x, 0, look.fill, look.style()));
        sheet.cell(4, 0, look.letter, theme.strong());
    }
    let style = if is_selected { theme.strong() } else { theme.plain() };
    sheet.text(SWATCH, 0, &clip_inside(&name(line, scene), layout.name - 1, theme), style);
    let all = distribution(line, scene).filter(|all| all.count() > 0);
    let mut n = 0;
    if layout.has_count {
        let count = all.map_or(0, Distribution::count);
        sheet.text_ending(SWATCH, layout.end(0), 0, &gnntop_analysis::figures::count(count), theme.dim());
        n = 1;
    }
    for (n, column) in (n..).zip(&layout.columns) {
        let text = all.and_then(|all| figure(all, *column));
        let (start, end) = (layout.end(n).saturating_sub(FIGURE), layout.end(n));
        let is_cursor = is_selected && *column == scene.app.latency().column();
        let style = if is_cursor { theme.accent() } else { theme.plain() };
        let text = text.unwrap_or_else(|| theme.text("—", "-").to_owned());
        if is_cursor {
            let x = end.saturating_sub(width(&text) + 1).max(start);
            sheet.cell(x, 0, theme.glyph('▸', '>'), style);
        }
        sheet.text_ending(start + 1, end, 0, &text, style);
    }
}

/// A percentile, if there are enough durations to distinguish it from the longest.
fn figure(all: &Distribution, column: usize) -> Option<String> {
    match QUANTILES.get(column) {
        Some(quantile) if *quantile < 1.0 => {
            all.percentile(*quantile).filter(|_| all.resolves(*quantile)).map(duration)
        }
        _ => all.max_ns().map(duration),
    }
}

/// How many steps the table is over, in words.
pub fn over(scene: &Scene<'_>) -> String {
    let steps = scene.app.latency_figures().steps();
    let clock = scene.app.phases().describe_clock().map(|clock| format!("; {clock}")).unwrap_or_default();
    let said = match scene.app.latency().range() {
        None => format!("{} since the start", counted(steps, "step", "steps")),
        Some(range) => {
            let wanted = range.end - range.start;
            let what = match scene.app.latency().scope() {
                StepScope::Newest(_) => "newest",
                _ => "selected",
            };
            let noun = if steps == 1 { "step" } else { "steps" };
            let is_summed = scene.app.phases().device().is_none() && range.start < scene.store.steps().discarded();
            match is_summed {
                true => format!("about {} {what} {noun}, older ones to within 3 %", count(steps)),
                false if steps < wanted => format!("the {} {what} {noun} of {}", count(steps), count(wanted)),
                false => format!("the {} {what} {noun}", count(steps)),
            }
        }
    };
    said + &clock
}
