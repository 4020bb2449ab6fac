//! Many runs in one table, each with what a person looks for first; of the selected one, more below.
//!
//! ```text
//! gnntop top  12 runs live, 1 without a step, 20 ended                             by state
//!  NAME         STATE             STEPS/S   USUAL  BOUND BY       WORST FINDING       GPU
//! ▌job-17       no step for 40s      0.00  -100 %  backward 52 %  no progress        0.0 %
//!  pna          live                 24.6    -2 %  data wait 61 % waiting for data    31 %
//! ─selected ────────────────────────────────────────────────────────────────────────────
//!  step 12,400, started 3h 02m ago on elm, oak; figures of 8 of 16 ranks, 12s old
//! ```

use ratatui::style::Style;

use crate::app::{RunRow, RunState, Target, View};
use crate::runs_table::{Column, FittedColumn};
use crate::ui::headings::rule;
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, selected_and_first, width};
use crate::ui::theme::Theme;
use crate::wrap::wrapped;
use gnntop_analysis::figures::{count, counted, elapsed_time};

/// The mark of the selected run comes before the first column.
const MARK: u16 = 1;
/// Rows that say more of the selected run, with their rule, in a view of at least this many.
const DETAIL_ROWS: u16 = 4;
const DETAILED: u16 = 12;
/// A pace that is lower than usual by more than this share stands out.
const SLOWER: f64 = 0.1;
/// With fewer rows there are no headings.
const HEADED: u16 = 4;

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let rows = scene.app.runs();
    draw_summary(body, scene);
    let headings = u16::from(body.height() >= HEADED);
    let columns = scene.app.runs_columns(&rows);
    if headings > 0 {
        draw_headings(&mut body.part(0, 1, u16::MAX, 1), &columns, scene);
    }
    let top = 1 + headings;
    if rows.is_empty() {
        body.text(MARK, top, empty_words(scene), scene.theme.dim());
        return;
    }
    let below = if body.height() >= DETAILED { DETAIL_ROWS } else { 0 };
    let shown = body.height().saturating_sub(top + below);
    let (selected, first) = selected_and_first(body, scene.app.line(View::Runs), rows.len(), shown);
    for (y, (line, row)) in (top..top + shown).zip(rows.iter().enumerate().skip(first)) {
        body.offer(0, y, u16::MAX, 1, Target::Line(line));
        draw_row(&mut body.part(0, y, u16::MAX, 1), row, &columns, line == selected, scene);
    }
    if let (Some(row), 1..) = (rows.get(selected), below) {
        draw_detail(&mut body.rows(top + shown, 0), row, scene);
    }
}

/// How many there are of each kind, or what is wrong, and by what they are sorted.
fn draw_summary(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let (theme, order) = (scene.theme, scene.app.runs_order());
    let way = if order.is_reversed { ", reversed" } else { "" };
    let sorted = format!("by {}{way}", order.column.name());
    let has_room = body.width() >= 40;
    let x = if has_room { body.text(MARK, 0, "gnntop top", theme.accent()) + 2 } else { MARK };
    let end = body.width().saturating_sub(1);
    let room = end.saturating_sub(x + if has_room { width(&sorted) + 2 } else { 0 });
    let (text, style) = match scene.app.runs_problem() {
        Some(problem) => (problem.to_owned(), theme.warning()),
        None => (summary(scene.app.all_runs()), theme.strong()),
    };
    let x = body.text(x, 0, &clip(&text, room, theme), style);
    if has_room {
        body.text_ending(x + 1, end, 0, &sorted, theme.dim());
    }
}

fn summary(rows: &[RunRow]) -> String {
    let of = |is_one: fn(RunState) -> bool| rows.iter().filter(|row| is_one(row.state)).count() as u64;
    let live = of(|state| !matches!(state, RunState::Ended(_)));
    let others = [
        (of(|state| matches!(state, RunState::Silent(_))), "silent"),
        (of(|state| matches!(state, RunState::Still(_))), "without a step"),
        (of(|state| matches!(state, RunState::Ended(_))), "ended"),
    ];
    let others = others.iter().filter(|(number, _)| *number > 0).map(|(number, word)| format!(", {number} {word}"));
    format!("{} live", counted(live, "run", "runs")) + &others.collect::<String>()
}

fn empty_words(scene: &Scene<'_>) -> &'static str {
    match (scene.app.all_runs().is_empty(), scene.app.runs_problem()) {
        (_, Some(_)) => "",
        (true, None) => "no runs; start one: gnntop run -- python train.py",
        (false, None) => "no run matches",
    }
}

fn draw_headings(sheet: &mut Sheet<'_>, columns: &[FittedColumn], scene: &Scene<'_>) {
    let sorted = scene.app.runs_order().column;
    for fitted in columns {
        let style = if fitted.column == sorted { scene.theme.strong() } else { scene.theme.dim() };
        draw_cell(sheet, fitted, fitted.column.heading(), style, scene.theme);
    }
}

fn draw_row(sheet: &mut Sheet<'_>, row: &RunRow, columns: &[FittedColumn], is_selected: bool, scene: &Scene<'_>) {
    let theme = scene.theme;
    if is_selected {
        sheet.cell(0, 0, theme.glyph('▌', '>'), theme.accent());
    }
    for fitted in columns {
        let column = fitted.column;
        match column.text(row) {
            Some(text) => draw_cell(sheet, fitted, &text, style(column, row, is_selected, theme), theme),
            None if column.is_awaited(row) => draw_cell(sheet, fitted, theme.text("…", "."), theme.dim(), theme),
            None => draw_cell(sheet, fitted, theme.text("—", "-"), theme.dim(), theme),
        }
    }
}

fn draw_cell(sheet: &mut Sheet<'_>, fitted: &FittedColumn, text: &str, style: Style, theme: &Theme) {
    let (x, columns) = (MARK + fitted.x as u16, fitted.width as u16);
    let text = clip(text, columns, theme);
    if fitted.column.is_figure() {
        sheet.text_ending(x, x + columns, 0, &text, style);
    } else {
        sheet.text_within(x, 0, columns, &text, style);
    }
}

fn style(column: Column, row: &RunRow, is_selected: bool, theme: &Theme) -> Style {
    match (column, row.state) {
        (Column::Name, _) if is_selected => theme.strong(),
        (Column::State, RunState::Live) => theme.good(),
        (Column::State, RunState::Ended(_)) => theme.dim(),
        (_, RunState::Ended(_)) => theme.dim(),
        (Column::State, _) => theme.warning(),
        (Column::Usual, _) if row.change().is_some_and(|change| change < -SLOWER) => theme.warning(),
        (Column::User | Column::Host | Column::Ranks | Column::Age, _) => theme.dim(),
        _ => theme.plain(),
    }
}

/// What tells a run from others, and its worst finding as a sentence.
fn draw_detail(sheet: &mut Sheet<'_>, row: &RunRow, scene: &Scene<'_>) {
    rule(sheet, 0, "selected", "", scene);
    let room = usize::from(sheet.width().saturating_sub(2)).max(1);
    let figures = row.figures.as_ref().map(|figures| &figures.value);
    let worst =
        figures.and_then(|figures| figures.died.clone().or(figures.finding.as_ref().map(|f| f.summary.clone())));
    let mut lines = vec![facts(row)];
    lines.extend(worst.map(|worst| wrapped(&worst, room).into_iter().next().unwrap_or_default()));
    lines.push(row.command.clone());
    for (y, line) in (1..DETAIL_ROWS).zip(lines) {
        sheet.text(MARK, y, &clip(&line, room as u16, scene.theme), scene.theme.plain());
    }
}

fn facts(row: &RunRow) -> String {
    let step = row.step.map(|step| format!("step {}", count(step)));
    let started = row.running_for.map(|time| format!("started {} ago", elapsed_time(time)));
    let place = format!("pid {} on {}", row.pid, row.hosts.join(", "));
    let of_some = row.figures.as_ref().map(|figures| figures.value.sessions).filter(|(read, all)| read < all);
    let of_some = of_some.map(|(read, all)| format!("figures of {read} of {all} ranks"));
    let age = row.age().map(|age| format!("read {} ago", elapsed_time(age)));
    [step, started, Some(place), of_some, age].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
