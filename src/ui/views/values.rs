//! The values that the program logs, such as its loss: the selected one over the steps, and all of them as a list.
//!
//! ```text
//! ▌steps  1 step a column ────────────────────────── 23.4 steps/s    the bars
//! ─loss  1 of 3 ──────────────────────────────────────────────────
//!  last            0.412                                    step 95
//!  least           0.377 at step 80
//!  2.31  ⣿⣦⣄⣀                                  ×                      the chart
//!  0.377 ⣿⣿⣿⣿⣷⣶⣶⣤⣤⣄⣀⣀⣀⣀⣀⣀⣀
//! ─values ───────────────────── last ─── least ── at step ── most ─
//! ▌loss                        0.412     0.377         80    2.31
//! ```

use crate::app::{Target, View};
use crate::ui::chart::time_axis::TimeAxis;
use crate::ui::headings::rule;
use crate::ui::panel::strips::{self, ChartSource, Label, StripRow};
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, selected_and_first};
use gnntop_analysis::figures::{count, significant};
use gnntop_analysis::store::{LoggedValue, Store, TimedValue};

/// Columns of a figure with the space before it.
const FIGURE: u16 = 12;
/// Fewest columns of a value's name.
const NAME_LEAST: u16 = 16;
/// Rows above the chart: its heading, the last and the least value.
const FACTS: u16 = 3;
/// Most rows of a chart.
const CHART_MOST: u16 = 14;
/// Fewest rows of a body that has a list below the chart.
const LIST_FROM: u16 = 8;
/// What to do where nothing is logged.
const NOTHING: &str = "no values yet: numbers that the program gives to wandb, TensorBoard, MLflow, trackio, tqdm or \
                       gnntop.counter() are drawn here; tensors are not read";

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let all = scene.store.logged_values();
    let Some(last) = all.len().checked_sub(1) else {
        return strips::draw(body, scene, 0, |_| vec![StripRow::heading("values", ""), nothing()]);
    };
    let height = body.height();
    let list = if height < LIST_FROM { 0 } else { (height / 3).min(all.len() as u16 + 1).max(2) };
    let at = scene.app.line(View::Values).min(last);
    let above = height - list;
    strips::draw(&mut body.part(0, 0, u16::MAX, above), scene, 0, |axis| lines(&all, at, above, axis, scene));
    draw_list(&mut body.rows(above, 0), &all, scene);
}

fn nothing<'a>() -> StripRow<'a> {
    StripRow::fact("", Err(NOTHING.to_owned()))
}

/// The selected value: what it is, what is wrong with it, and its chart.
fn lines<'a>(all: &[LoggedValue<'a>], at: usize, height: u16, axis: &TimeAxis, scene: &Scene<'a>) -> Vec<StripRow<'a>> {
    let (logged, store) = (all[at], scene.store);
    let place = format!("{} of {}", at + 1, all.len());
    let mut lines = vec![StripRow::Heading { name: logged.name.to_owned(), note: place }, last(&logged, axis, scene)];
    let least = logged.course().least.map(|least| format!("{}{}", significant(least.value), at_step(store, least)));
    lines.push(StripRow::fact("least", least.ok_or_else(|| "no number".to_owned())));
    lines.extend(warnings(&logged, store).into_iter().map(StripRow::Warning));
    let used = strips::bar_rows(height, scene) + FACTS + (lines.len() as u16).saturating_sub(FACTS);
    let rows = height.saturating_sub(used).clamp(1, CHART_MOST);
    lines.extend(StripRow::chart(ChartSource::Logged(logged), Label::Top(significant), None, rows));
    lines
}

/// The last value, or that at the selected step.
fn last<'a>(logged: &LoggedValue<'a>, axis: &TimeAxis, scene: &Scene<'a>) -> StripRow<'a> {
    let store = scene.store;
    if axis.cursor.is_some() {
        let value = ChartSource::Logged(*logged).at_cursor(axis, store.now_ns());
        let value = value.map(significant).ok_or_else(|| "not logged yet at the selected step".to_owned());
        return StripRow::Fact { about: "value".to_owned(), value, right: "at the selected step".to_owned() };
    }
    let newest = logged.counter.series.last();
    let value = newest.and_then(|point| point.value()).map(significant).ok_or_else(|| "not logged".to_owned());
    let step = newest.and_then(|point| store.step_before(point.t_ns()));
    let right = step.map(|row| format!("after step {}", count(row.step().0))).unwrap_or_default();
    StripRow::Fact { about: "last".to_owned(), value, right }
}

/// What is wrong with a value, one sentence each.
fn warnings(logged: &LoggedValue<'_>, store: &Store) -> Vec<String> {
    let trouble = [logged.describe_not_finite(store), logged.describe_divergence(store)];
    trouble.into_iter().flatten().collect()
}

fn at_step(store: &Store, timed: TimedValue) -> String {
    store.step_before(timed.t_ns).map(|row| format!(" at step {}", count(row.step().0))).unwrap_or_default()
}

fn draw_list(sheet: &mut Sheet<'_>, all: &[LoggedValue<'_>], scene: &Scene<'_>) {
    let rows = sheet.height().saturating_sub(1);
    let (selected, first) = selected_and_first(sheet, scene.app.line(View::Values), all.len(), rows);
    if sheet.height() == 0 {
        return;
    }
    rule(sheet, 0, "values", "", scene);
    let heads = ["last", "least", "at step", "most"];
    let figures = (sheet.width().saturating_sub(NAME_LEAST) / FIGURE).min(heads.len() as u16);
    let room = sheet.width().saturating_sub(figures * FIGURE + 1);
    for (at, head) in (1..=figures).zip(heads) {
        sheet.text_ending(0, room + at * FIGURE, 0, &format!(" {head} "), scene.theme.plain());
    }
    for (y, (at, logged)) in (1..sheet.height()).zip(all.iter().enumerate().skip(first)) {
        sheet.offer(0, y, u16::MAX, 1, Target::Line(at));
        let mut row = sheet.part(0, y, u16::MAX, 1);
        let is_wrong = !warnings(logged, scene.store).is_empty();
        let style = if is_wrong { scene.theme.warning() } else { scene.theme.plain() };
        if at == selected {
            row.cell(0, 0, scene.theme.glyph('▌', '>'), scene.theme.accent());
        }
        row.text(1, 0, &clip(logged.name, room.saturating_sub(2), scene.theme), style);
        for (at, text) in (1..=figures).zip(figures_of(logged, scene)) {
            row.text_ending(room, room + at * FIGURE, 0, &text, style);
        }
    }
}

/// The last value, the least one and its step, and the largest one.
fn figures_of(logged: &LoggedValue<'_>, scene: &Scene<'_>) -> [String; 4] {
    let course = logged.course();
    let dash = || scene.theme.glyph('–', '-').to_string();
    let value = |timed: Option<TimedValue>| timed.map_or_else(dash, |timed| significant(timed.value));
    let last = logged.counter.series.last().and_then(|point| point.value());
    let step = course.least.and_then(|least| scene.store.step_before(least.t_ns));
    [
        last.map_or_else(dash, significant),
        value(course.least),
        step.map_or_else(dash, |row| count(row.step().0)),
        value(course.most),
    ]
}
