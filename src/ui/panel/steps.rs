//! The step bars with their title: what a column is, and how fast the run goes.
//!
//! ```text
//! ▌steps  1 step a column ──────────────────────── 23.4 steps/s · 3.0 k graphs/s    title
//!  60 ms┤                             ▲                 ┊                           step_chart.rs
//!  30 ms┤▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
//! ```

use crate::app::Panel;
use crate::ui::chart::curve;
use crate::ui::chart::step_chart::StepChart;
use crate::ui::headings::Title;
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip};
use gnntop_analysis::figures::{count, counted, duration, lasting, quantity};

/// Throughput is that of this last while.
const THROUGHPUT_WINDOW_NS: u64 = 2_000_000_000;
/// Rows that the percentiles need: title, values, a row of curve, names.
const LEAST_FOR_CURVE: u16 = 4;

/// From this many rows on, the bars can spare a row for signs.
const SIGNS_FROM: u16 = 10;
/// A note longer than this needs the room that the rates would take.
const LONG_NOTE: usize = 24;

/// Draws the panel.
pub fn draw(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    if !draw_percentiles(sheet, scene) {
        draw_chart(sheet, sheet.height() >= SIGNS_FROM, scene);
    }
}

/// Draws the panel with signs above the bars and, in a row below, what they mean.
pub fn draw_with_legend(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    if draw_percentiles(sheet, scene) {
        return;
    }
    let y = sheet.height().saturating_sub(1);
    let legend = draw_chart(&mut sheet.rows(0, 1), true, scene);
    let room = sheet.width().saturating_sub(2);
    sheet.text(1, y, &clip(&legend.unwrap_or_default(), room, scene.theme), scene.theme.dim());
}

/// Draws percentiles instead of bars if requested and there is room; returns whether it did.
fn draw_percentiles(sheet: &mut Sheet<'_>, scene: &Scene<'_>) -> bool {
    let is_shown =
        scene.app.shows_percentiles() && !scene.store.steps().is_empty() && sheet.height() >= LEAST_FOR_CURVE;
    if is_shown {
        let all = scene.store.statistics().period();
        let note = format!("percentiles of {} periods", count(all.count()));
        Title { panel: Panel::Steps, name: "steps", note: &note, right: &curve::spread(all) }.draw(sheet, scene);
        curve::draw(&mut sheet.rows(1, 0), all, None, scene);
    }
    is_shown
}

/// Draws title and chart; gives the meaning of the signs above the bars, if there are any.
fn draw_chart(sheet: &mut Sheet<'_>, has_flags: bool, scene: &Scene<'_>) -> Option<String> {
    let titled = sheet.height() >= 3;
    let chart = StepChart::plan(sheet.width(), sheet.height() - u16::from(titled), has_flags, scene);
    if titled {
        draw_title(sheet, &chart, scene);
    }
    let mut sheet = sheet.rows(u16::from(titled), 0);
    if chart.is_empty() {
        let y = sheet.height() / 2;
        sheet.text(2.min(sheet.width()), y, nothing_yet(scene), scene.theme.dim());
        return None;
    }
    chart.draw(&mut sheet, scene);
    chart.legend(scene.theme)
}

fn nothing_yet(scene: &Scene<'_>) -> &'static str {
    if scene.store.session().info().is_none() { "waiting for data" } else { "no steps yet" }
}

fn draw_title(sheet: &mut Sheet<'_>, chart: &StepChart<'_>, scene: &Scene<'_>) {
    let note = note(chart, scene);
    let right = match selected(scene) {
        Some(text) => text,
        None => throughput(note.len() > LONG_NOTE, scene),
    };
    let name = match scene.app.window().measure().unit_name() {
        Some(piece) => format!("time per {piece}"),
        None => "steps".to_owned(),
    };
    Title { panel: Panel::Steps, name: &name, note: &note, right: &right }.draw(sheet, scene);
}

/// What a column and its height are.
fn note(chart: &StepChart<'_>, scene: &Scene<'_>) -> String {
    let window = scene.app.window();
    let most = chart.most_steps();
    let mut note = match (chart.ns_per_column(), most) {
        (Some(ns), 0..=1) => format!("{} a column", duration(ns)),
        (Some(ns), _) => format!("{} a column, line up to the worst", duration(ns)),
        (None, 1) => "1 step a column".to_owned(),
        (None, steps) => format!("{} steps a column, line up to the worst", count(steps)),
    };
    if window.is_log() {
        note.push_str("; logarithmic, parts are shares");
    }
    if chart.is_reduced() {
        note.push_str("; older reduced");
    }
    if scene.app.phases().device().is_some() {
        note.push_str("; device time");
    }
    note
}

/// What is selected.
fn selected(scene: &Scene<'_>) -> Option<String> {
    let window = scene.app.window();
    let row = scene.store.steps().known_row(window.cursor()?)?;
    Some(match window.range() {
        Some(range) => format!("{} selected", counted(range.end - range.start, "step", "steps")),
        None => {
            let time = scene.app.phases().step_ns(row).map(duration).unwrap_or_else(|| "not reported".to_owned());
            format!("step {} selected: {time}", count(row.step().0))
        }
    })
}

/// The run's throughput, in short only in steps; while it makes no step, for how long it has not.
fn throughput(in_short: bool, scene: &Scene<'_>) -> String {
    if let Some(after) = scene.after_last_step() {
        return after;
    }
    let recent = scene.store.recent_throughput(THROUGHPUT_WINDOW_NS);
    let stands = recent.steps_per_s == Some(0.0);
    if stands || scene.open_phase().is_some() {
        let last_ns = scene.store.steps().last().map(|row| row.end_ns());
        let since = last_ns.map(|last| lasting(scene.store.now_ns().saturating_sub(last)));
        let what = if stands { "0 steps/s" } else { "no step" };
        return since.map(|since| format!("{what} for {since}")).unwrap_or_default();
    }
    let items = [(recent.graphs_per_s, "graphs/s"), (recent.seeds_per_s, "seeds/s")];
    let items = items.into_iter().find(|(rate, _)| rate.is_some());
    let items = items.unwrap_or_else(|| (scene.store.recent_samples_per_s(THROUGHPUT_WINDOW_NS), "samples/s"));
    let rates = [(recent.steps_per_s, "steps/s"), items, (recent.edges_per_s, "edges/s")];
    let shown = if in_short { &rates[..1] } else { &rates[..] };
    let texts: Vec<String> =
        shown.iter().filter_map(|(rate, unit)| Some(format!("{} {unit}", quantity((*rate)?)))).collect();
    texts.join(scene.theme.text(" · ", " | "))
}
