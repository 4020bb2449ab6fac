//! The phase table: how long each phase took last, its percentiles since the start, and its share of the wall clock. The
//! gap is a row like any other, since phases and gap together are all the time there is. Where there is room, the spans inside
//! the phases follow below.
//!
//! ```text
//!  phases  1,234 steps ───── last ───── p50 ───── p90 ───── p99 ───── max ─────── share
//!  ░░ F  forward          17.1 ms   17.0 ms   18.2 ms   21.0 ms   40.3 ms   38 % ▆▆▆▆
//!  ██ B  backward         21.3 ms   21.0 ms   22.4 ms   27.1 ms   61.0 ms   47 % ▆▆▆▆▆
//!  ·· .  gap               104 µs    101 µs    140 µs    1.2 ms    9.1 ms  0.4 %
//!        period           45.2 ms   44.9 ms   48.0 ms   60.2 ms    312 ms
//! ```

use ratatui::style::Style;

use crate::app::{Panel, Target};
use crate::ui::headings::Title;
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, clip_inside, first_scrolled, width};
use gnntop_analysis::figures::{count, counted, duration, percent};
use gnntop_analysis::store::{DeviceTime, Distribution, Phase, SpanStatistics, StepRow};

/// Columns of swatch and letter.
const SWATCH: u16 = 6;
/// Columns of a figure with the space before it.
const FIGURE: u16 = 9;
/// Columns of the share in figures.
const SHARE: u16 = 7;
/// Columns of the title without its note.
const TITLE: u16 = 9;
/// Columns of a name that is worth showing.
const NAME_LEAST: u16 = 10;
/// Longest bar of a share.
const BAR_MOST: u16 = 24;

/// Rows that the whole table takes.
pub fn rows(scene: &Scene<'_>) -> u16 {
    u16::try_from(phases(scene).count()).unwrap_or(u16::MAX).saturating_add(2)
}

/// The phases of the run with their places among all: those that a step has spent time in. Others belong to workers alone, or stand
/// for what has not happened. Before the first step, it is all of them.
fn phases<'a>(scene: &Scene<'a>) -> impl Iterator<Item = (usize, &'a Phase)> {
    let (phases, statistics) = (scene.store.phases(), scene.store.statistics());
    let is_shown = |phase: &Phase| statistics.steps() == 0 || statistics.phase(phase.slot).is_some();
    phases.iter().enumerate().filter(move |(_, phase)| is_shown(phase))
}

/// A column of figures.
struct FigureColumn {
    name: &'static str,
    figure: FigureKind,
    /// The narrower the table, the fewer columns: this one goes at its turn, the highest first.
    goes: u8,
}

#[derive(Clone, Copy)]
enum FigureKind {
    Last,
    Percentile(f64),
    Max,
}

const COLUMNS: [FigureColumn; 5] = [
    FigureColumn { name: "last", figure: FigureKind::Last, goes: 1 },
    FigureColumn { name: "p50", figure: FigureKind::Percentile(0.5), goes: 0 },
    FigureColumn { name: "p90", figure: FigureKind::Percentile(0.9), goes: 4 },
    FigureColumn { name: "p99", figure: FigureKind::Percentile(0.99), goes: 2 },
    FigureColumn { name: "max", figure: FigureKind::Max, goes: 3 },
];

/// Which columns fit, and how wide names and bars are.
struct PhaseTableLayout {
    columns: Vec<&'static FigureColumn>,
    name: u16,
    bar: u16,
}

impl PhaseTableLayout {
    fn new(width: u16) -> Self {
        let room = width.saturating_sub(SWATCH + NAME_LEAST + SHARE);
        let fitting = usize::from(room / FIGURE);
        let columns: Vec<_> = COLUMNS.iter().filter(|column| usize::from(column.goes) < fitting).collect();
        let spare = room.saturating_sub(FIGURE * columns.len() as u16);
        let bar = spare.saturating_sub(4).min(BAR_MOST) / 2 * 2;
        Self { columns, name: NAME_LEAST + spare - bar, bar }
    }

    /// The column after the figures.
    fn figures_end(&self) -> u16 {
        SWATCH + self.name + FIGURE * self.columns.len() as u16
    }
}

/// Draws the panel.
pub fn draw(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    if sheet.height() == 0 {
        return;
    }
    let table = rows(scene);
    // A rule, a head and a span: less is not worth it.
    if sheet.height() >= table + 2 {
        draw_spans(&mut sheet.rows(table, 0), scene);
    }
    let mut sheet = sheet.part(0, 0, u16::MAX, table);
    draw_table(&mut sheet, scene);
}

fn draw_table(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let layout = PhaseTableLayout::new(sheet.width());
    let phases: Vec<(usize, &Phase)> = phases(scene).filter(|(_, phase)| scene.app.passes(&phase.text)).collect();
    let rows = sheet.height().saturating_sub(2);
    let first = first_scrolled(sheet, scene.app.line(scene.app.view()), phases.len(), rows);
    let shown = largest(&phases, first, usize::from(rows), scene);
    draw_heads(sheet, &layout, (shown.len(), phases.len()), scene);
    let row = scene.app.step_in_view().and_then(|ordinal| scene.app.phases().row(ordinal));
    for (y, phase) in (1u16..).zip(&shown) {
        draw_phase(&mut sheet.part(0, y, u16::MAX, 1), &layout, scene, *phase, row.as_ref());
    }
    let y = sheet.height() - 1;
    if y > 0 {
        draw_total(&mut sheet.part(0, y, u16::MAX, 1), &layout, scene, row.as_ref());
    }
}

/// As many of the phases as there are rows, from the `first` largest one on, in the order of a step.
fn largest<'a>(phases: &[(usize, &'a Phase)], first: usize, rows: usize, scene: &Scene<'_>) -> Vec<(usize, &'a Phase)> {
    let statistics = scene.app.phases().statistics();
    let mut by_share: Vec<(usize, &Phase)> = phases.to_vec();
    let share = |phase: &Phase| statistics.share(phase.slot).unwrap_or(0.0);
    by_share.sort_by(|(_, a), (_, b)| share(b).total_cmp(&share(a)));
    let mut shown: Vec<(usize, &Phase)> = by_share.into_iter().skip(first).take(rows).collect();
    shown.sort_by_key(|(index, _)| *index);
    shown
}

fn draw_heads(sheet: &mut Sheet<'_>, layout: &PhaseTableLayout, rows: (usize, usize), scene: &Scene<'_>) {
    let note = note(layout, rows, scene);
    Title { panel: Panel::Phases, name: "phases", note: &note, right: "" }
        .draw(&mut sheet.part(0, 0, SWATCH + layout.name + 2, 1), scene);
    let theme = scene.theme;
    sheet.fill_row(SWATCH + layout.name + 2, 0, theme.glyph('─', '-'), theme.dim());
    let mut end = SWATCH + layout.name;
    for column in &layout.columns {
        end += FIGURE;
        let name = match column.figure {
            FigureKind::Last if scene.app.window().cursor().is_some() => "selected",
            _ => column.name,
        };
        sheet.text_ending(0, end + 1, 0, &format!(" {name} "), theme.plain());
    }
    sheet.text_ending(0, end + SHARE + 1, 0, " share ", theme.plain());
}

/// How many of all rows are shown if some are not; else how many steps there are or, where there are two clocks, which is shown: in
/// full, or in two words.
fn note(layout: &PhaseTableLayout, (shown, all): (usize, usize), scene: &Scene<'_>) -> String {
    // The title has the columns up to the first figure.
    let room = (SWATCH + layout.name).saturating_sub(TITLE);
    let is_cut = shown < all;
    let Some(words) = scene.app.phases().describe_clock() else {
        let steps = scene.store.statistics().steps();
        let words = counted(steps, "step", "steps");
        return match is_cut {
            true => format!("{shown} of {all}"),
            false if width(&words) <= room => words,
            false => count(steps),
        };
    };
    let words = match scene.app.phases().timed_device() {
        _ if width(&words) <= room => words,
        _ if scene.app.phases().device().is_some() => "device time".to_owned(),
        Some(device) if device.is_synchronised() => "host, waits".to_owned(),
        _ => "handed over".to_owned(),
    };
    if is_cut { format!("{shown} of {all}, {words}") } else { words }
}

fn draw_phase<'a>(
    sheet: &mut Sheet<'_>,
    layout: &PhaseTableLayout,
    scene: &Scene<'a>,
    (index, phase): (usize, &'a Phase),
    row: Option<&StepRow<'_>>,
) {
    let theme = scene.theme;
    let Some(look) = scene.phase_styles.get(index) else { return };
    sheet.offer(0, 0, SWATCH + layout.name, 1, Target::Phase(phase.slot));
    (1..3).for_each(|x| sheet.cell(x, 0, look.fill, look.style()));
    sheet.cell(4, 0, look.letter, theme.strong());
    sheet.text_within(SWATCH, 0, layout.name, &clip(&scene.phase_name(phase), layout.name, theme), theme.plain());
    let statistics = scene.app.phases().statistics();
    draw_figures(sheet, layout, scene, row.map(|row| row.phase_ns(phase.slot)), statistics.phase(phase.slot));
    let Some(share) = statistics.share(phase.slot) else { return };
    let end = layout.figures_end() + SHARE;
    sheet.text_ending(layout.figures_end(), end, 0, &percent(share), theme.plain());
    let bar = (share.clamp(0.0, 1.0) * f64::from(layout.bar)).round() as u16;
    (0..bar).for_each(|x| sheet.cell(end + 1 + x, 0, look.fill, look.style()));
}

fn draw_figures(
    sheet: &mut Sheet<'_>,
    layout: &PhaseTableLayout,
    scene: &Scene<'_>,
    last_ns: Option<u64>,
    all: Option<&Distribution>,
) {
    let theme = scene.theme;
    let mut end = SWATCH + layout.name;
    for column in &layout.columns {
        end += FIGURE;
        let ns = match column.figure {
            FigureKind::Last => last_ns,
            // Of too few, it is the longest, as in the latency view.
            FigureKind::Percentile(quantile) => {
                all.filter(|all| all.resolves(quantile)).and_then(|all| all.percentile(quantile))
            }
            FigureKind::Max => all.and_then(Distribution::max_ns),
        };
        let (text, style): (String, Style) = match ns {
            Some(ns) => (duration(ns), theme.plain()),
            None => (theme.text("—", "-").to_owned(), theme.dim()),
        };
        sheet.text_ending(end - FIGURE, end, 0, &text, style);
    }
}

fn draw_total(sheet: &mut Sheet<'_>, layout: &PhaseTableLayout, scene: &Scene<'_>, row: Option<&StepRow<'_>>) {
    let theme = scene.theme;
    let error = scene.app.phases().device().and_then(DeviceTime::error_ns);
    let with_error = error.map(|ns| format!("period{}{}", theme.text("±", "+-"), duration(ns)));
    // A number without its unit says nothing.
    let name = with_error.filter(|name| width(name) <= layout.name).unwrap_or_else(|| "period".to_owned());
    sheet.text_within(SWATCH, 0, layout.name, &name, theme.strong());
    let period = scene.app.phases().statistics().period();
    draw_figures(sheet, layout, scene, row.map(StepRow::period_ns), Some(period));
}

/// Figures: count, total, p50, p90, p99, max.
const HEADS: [&str; 6] = ["count", "total", "p50", "p90", "p99", "max"];

/// Draws as many spans as fit, those with the most time first.
pub fn draw_spans(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
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
        sheet.text(1, y, &clip_inside(scene.store.name(span.name), name_width.saturating_sub(1), theme), theme.plain());
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
