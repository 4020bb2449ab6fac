//! The pipeline: each stage's work on each micro-batch over the time of one step, what stages wait for, and how long the
//! step would take by the recurrence, as it is split and balanced.
//!
//! ```text
//! ─pipeline  step 11, the newest ─────────── GPipe, 4 stages x 5 micro-batches ─
//!  stage   busy  live
//!  0      100 %   5/5  F0░░F1░░F2░░F3░░F4░░······B0████B1████B2████B3████B4████
//!  1       34 %   5/5  ····F0··F1··F2··F3··F4··B0···B1···B2···B3···B4··········
//!                      0 ms                                              108 ms
//!  bubble          51 % measured, 51 % by the recurrence, 38 % by (S-1)/(M+S-1)
//!  a balanced split 3/3/3/3 (now 6/2/2/2) would give 72.0 ms: 1.50 x as fast
//! ```

use gnntop_wire::phase::{BACKWARD, FORWARD};
use ratatui::style::{Modifier, Style};

use crate::app::View;
use crate::ui::headings::rule;
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, first_scrolled, width};
use gnntop_analysis::figures::{count, duration, percent};
use gnntop_analysis::ranks::Ranks;
use gnntop_analysis::ranks::pipeline::{PipelineStep, Stage, WorkBox};
use gnntop_analysis::ranks::schedule::Direction;

/// Columns before the lanes, by the width of the screen: narrow, and with room for what is live.
const LEFT: [u16; 2] = [14, 21];
/// Screens from this width on have that room.
const ROOMY: u16 = 64;
/// Rows that the words below the lanes take.
const WORDS: u16 = 4;
/// Fewest lanes that need room.
const LANES_LEAST: u16 = 2;
/// Rows from which on the stages' times are listed too.
const TABLE_FROM: u16 = 6;

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let ranks = scene.app.run.ranks();
    let found = step(&ranks, scene);
    draw_title(&mut body.part(0, 0, u16::MAX, 1), found.as_ref().ok(), scene);
    let step = match &found {
        Ok(step) => step,
        Err(reason) => {
            let room = body.width().saturating_sub(4);
            body.text(2, 2, &clip(reason, room, scene.theme), scene.theme.dim());
            return;
        }
    };
    let left = LEFT[usize::from(body.width() >= ROOMY)].min(body.width());
    draw_head(&mut body.part(0, 1, left, 1), scene);
    let room = body.height().saturating_sub(3 + WORDS).max(LANES_LEAST);
    let lanes = (step.stages.len() as u16).min(room);
    let first = first_scrolled(body, scene.app.line(View::Pipeline), step.stages.len(), lanes);
    for (y, (at, stage)) in (2..2 + lanes).zip(step.stages.iter().enumerate().skip(first)) {
        draw_facts(&mut body.part(0, y, left, 1), step, at, stage, scene);
        draw_lane(&mut body.part(left, y, u16::MAX, 1), step, stage, scene);
    }
    draw_axis(&mut body.part(left, 2 + lanes, u16::MAX, 1), step, scene);
    let mut words = body.rows(3 + lanes, 0);
    for (y, line) in (0..words.height()).zip(lines(step)) {
        let room = words.width().saturating_sub(2);
        words.text(1, y, &clip(&line, room, scene.theme), scene.theme.plain());
    }
    let used = (lines(step).len() as u16).min(words.height());
    draw_table(&mut words.rows(used, 0), step, scene);
}

/// The selected step, or the newest one that all stages have.
fn step(ranks: &Ranks<'_>, scene: &Scene<'_>) -> Result<PipelineStep, String> {
    let copy = scene.app.run.member().place().map_or(0, |place| place.copy);
    let selected = scene.app.window().cursor().and_then(|ordinal| scene.store.steps().row(ordinal));
    let step = match selected {
        Some(row) => row.step(),
        None => ranks.common_steps().next().ok_or("no step of all stages yet")?.step,
    };
    PipelineStep::from_ranks(ranks, copy, step).map_err(|missing| missing.to_string())
}

fn draw_title(sheet: &mut Sheet<'_>, step: Option<&PipelineStep>, scene: &Scene<'_>) {
    let Some(step) = step else { return rule(sheet, 0, "pipeline", "", scene) };
    let newest = if scene.app.window().cursor().is_none() { ", the newest" } else { "" };
    let copies = scene.app.run.member().place().map_or(1, |place| place.copies);
    let copy = if copies > 1 { format!(", copy {}", step.copy) } else { String::new() };
    rule(sheet, 0, "pipeline", &format!("step {}{newest}{copy}", count(step.step.0)), scene);
    let said = if step.has_schedule { "" } else { " (inferred)" };
    let shape = format!(
        " {}{said}, {} stages x {} micro-batches ",
        step.schedule.title(),
        step.stages.len(),
        step.micro_batches
    );
    let end = sheet.width().saturating_sub(1);
    if sheet.width() >= 30 + width(&shape) {
        sheet.text_ending(0, end, 0, &shape, scene.theme.plain());
    }
}

fn draw_head(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    sheet.text(1, 0, "stage", scene.theme.dim());
    sheet.text_ending(6, 13, 0, "busy", scene.theme.dim());
    if sheet.width() > LEFT[0] {
        sheet.text_ending(13, 20, 0, "live", scene.theme.dim());
    }
}

/// A stage's number, its rank, how busy it is and how many micro-batches it holds, of the most that it should.
fn draw_facts(sheet: &mut Sheet<'_>, step: &PipelineStep, at: usize, stage: &Stage, scene: &Scene<'_>) {
    let theme = scene.theme;
    let is_slowest = step.slowest().is_some_and(|(slowest, ratio)| slowest == at && ratio > 1.1);
    let style = if is_slowest { theme.warning() } else { theme.plain() };
    let mark = if is_slowest { " <" } else { "" };
    sheet.text(1, 0, &format!("{at}{mark}"), style);
    let busy = stage.busy_ns as f64 / step.makespan_ns().max(1) as f64;
    sheet.text_ending(6, 13, 0, &percent(busy.min(1.0)), style);
    if sheet.width() > LEFT[0] {
        let most = step.schedule.live_most(step.stages.len(), at, step.micro_batches);
        let style = if stage.live > most as u64 { theme.warning() } else { theme.plain() };
        sheet.text_ending(13, 20, 0, &format!("{}/{most}", stage.live), style);
    }
}

/// The column of a time of the step.
fn column(step: &PipelineStep, t_ns: u64, columns: u16) -> u16 {
    let share = t_ns.saturating_sub(step.start_ns) as f64 / step.makespan_ns().max(1) as f64;
    (share * f64::from(columns)).round().min(f64::from(columns)) as u16
}

/// A stage's boxes over the step, with dots where it has nothing to do.
fn draw_lane(sheet: &mut Sheet<'_>, step: &PipelineStep, stage: &Stage, scene: &Scene<'_>) {
    let columns = sheet.width().saturating_sub(1);
    (0..columns).for_each(|x| sheet.cell(x, 0, scene.theme.glyph('·', '.'), scene.theme.dim()));
    for work in &stage.boxes {
        let from = column(step, work.start_ns, columns);
        let to = column(step, work.end_ns, columns).max(from + 1).min(columns);
        draw_box(&mut sheet.part(from, 0, to.saturating_sub(from), 1), work, scene);
    }
}

fn draw_box(sheet: &mut Sheet<'_>, work: &WorkBox, scene: &Scene<'_>) {
    let (name, letter) = match work.work.direction {
        Direction::Forward => (FORWARD, 'F'),
        Direction::Backward => (BACKWARD, 'B'),
    };
    let (fill, style, color) = match scene.phase_style(name) {
        Some(look) => (look.fill, look.style(), Some(look.color)),
        None => (letter, scene.theme.plain(), None),
    };
    (0..sheet.width()).for_each(|x| sheet.cell(x, 0, fill, style));
    let number = work.work.micro_batch.to_string();
    let label = format!("{letter}{number}");
    let text_style = match color.filter(|_| scene.theme.has_color()) {
        Some(color) => Style::new().fg(ratatui::style::Color::Black).bg(color).add_modifier(Modifier::BOLD),
        None => Style::new().add_modifier(Modifier::REVERSED),
    };
    // With no room for both, which way it goes shows by the fill.
    if width(&label) <= sheet.width() {
        sheet.text(0, 0, &label, text_style);
    } else if width(&number) < sheet.width() {
        sheet.text(0, 0, &number, text_style);
    }
}

fn draw_axis(sheet: &mut Sheet<'_>, step: &PipelineStep, scene: &Scene<'_>) {
    let end = sheet.width().saturating_sub(1);
    sheet.text(0, 0, "0 ms", scene.theme.dim());
    sheet.text_ending(5, end, 0, &duration(step.makespan_ns()), scene.theme.dim());
}

/// The step in words: what matters most first.
fn lines(step: &PipelineStep) -> Vec<String> {
    let bubble = format!(
        "bubble  {} measured, {} by the recurrence, {} by (S-1)/(M+S-1)",
        percent(step.bubble()),
        percent(step.plan.bubble()),
        percent(step.formula())
    );
    let takes = format!(
        "step    {} measured, {} by the recurrence",
        duration(step.makespan_ns()),
        duration(step.plan.makespan_ns as u64)
    );
    let idle = format!(
        "idle    {} waiting for a neighbour's work, {} with input ready",
        percent(step.share(|stage| stage.waiting_ns)),
        percent(step.share(|stage| stage.late_ns))
    );
    let communication: Vec<String> = [
        mean("receive", step, |stage| stage.receive_ns),
        mean("send", step, |stage| stage.send_ns),
        mean("all-reduce", step, |stage| stage.all_reduce_ns),
    ]
    .into_iter()
    .flatten()
    .collect();
    let communication = if communication.is_empty() {
        String::new()
    } else {
        format!("; a stage on average: {}", communication.join(", "))
    };
    vec![balanced(step), bubble, takes, idle + &communication]
}

/// What stages take in a phase, on average of those that have it; `None` if none has.
fn mean(name: &str, step: &PipelineStep, of: fn(&Stage) -> Option<u64>) -> Option<String> {
    let times: Vec<u64> = step.stages.iter().filter_map(of).collect();
    let sum_ns = times.iter().copied().fold(0u64, u64::saturating_add);
    Some(format!("{name} {}", duration(sum_ns.checked_div(times.len() as u64)?)))
}

/// What another split would give.
fn balanced(step: &PipelineStep) -> String {
    let gain = step.balanced_gain();
    if gain < 1.005 {
        return "the split is balanced: no other split is faster".to_owned();
    }
    let better = duration(step.balanced_plan.makespan_ns as u64);
    let slashed = |blocks: &[usize]| blocks.iter().map(usize::to_string).collect::<Vec<String>>().join("/");
    let now: Option<Vec<usize>> = step.stages.iter().map(|stage| stage.blocks).collect();
    match (&step.balanced.blocks, now) {
        (Some(blocks), Some(now)) => format!(
            "a balanced split {} (now {}) would give {better}: {gain:.2} x as fast",
            slashed(blocks),
            slashed(&now)
        ),
        _ => format!(
            "an even split would give {better}: {gain:.2} x as fast; stages do not say how many blocks they have"
        ),
    }
}

/// The times of each stage, if there is room.
fn draw_table(sheet: &mut Sheet<'_>, step: &PipelineStep, scene: &Scene<'_>) {
    const HEADS: [&str; 7] = ["forward", "backward", "blocks", "receive", "send", "all-reduce", "optimizer"];
    if sheet.height() < TABLE_FROM.min(step.stages.len() as u16 + 2) {
        return;
    }
    rule(sheet, 0, "stages", "forward and backward of a micro-batch, the rest of the step", scene);
    let columns: Vec<&str> = HEADS.into_iter().take(usize::from(sheet.width().saturating_sub(12) / 11)).collect();
    sheet.text(1, 1, "stage  rank", scene.theme.dim());
    for (x, head) in (12..).step_by(11).zip(&columns) {
        sheet.text_ending(x, x + 11, 1, head, scene.theme.dim());
    }
    for (y, (at, stage)) in (2..sheet.height()).zip(step.stages.iter().enumerate()) {
        sheet.text(1, y, &at.to_string(), scene.theme.plain());
        sheet.text_ending(6, 12, y, &stage.rank.to_string(), scene.theme.plain());
        let absent = || scene.theme.text("—", "-").to_owned();
        let time = |ns: Option<u64>| ns.map_or_else(absent, duration);
        let cells = [
            duration(stage.cost.forward_ns as u64),
            duration(stage.cost.backward_ns as u64),
            stage.blocks.map_or_else(absent, |blocks| blocks.to_string()),
            time(stage.receive_ns),
            time(stage.send_ns),
            time(stage.all_reduce_ns),
            time(stage.optimizer_ns),
        ];
        for (x, (cell, _)) in (12..).step_by(11).zip(cells.iter().zip(&columns)) {
            sheet.text_ending(x, x + 11, y, cell, scene.theme.plain());
        }
    }
}
