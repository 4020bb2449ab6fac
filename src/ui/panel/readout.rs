//! One step read out in a few rows, below the bars: what is selected, else the newest. The phases' fills and letters
//! are beside their names, so that this is also the legend of the bars.
//!
//! ```text
//! ─step 70  epoch 2 ───────────────────────── 85.0 ms, x 2.12 against the median ─
//!  ╱ W data wait   4.00 ms   ░ F forward     10.0 ms   █ B backward    67.0 ms
//!  256 graphs, 3,584 nodes, 7,680 edges; 332 µs a graph, 11.1 µs an edge; loss 0.0143
//! ```

use crate::ui::panel::step_detail::{self, draw_title};
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, width};
use gnntop_analysis::figures::{count, difference, duration};
use gnntop_analysis::store::{Phase, StepRow};

/// Narrowest cell of a phase: fill, letter, name, time.
const CELL_LEAST: u16 = 26;
/// From this width on a cell has room for the difference from the median too.
const CELL_WITH_DIFFERENCE: u16 = 36;
/// Columns before a phase's name, and of its time.
const SWATCH: u16 = 5;
const FIGURE: u16 = 9;
/// Columns of the difference from the median.
const DIFFERENCE: u16 = 8;

/// Rows that the readout takes at this width.
pub fn rows(columns: u16, scene: &Scene<'_>) -> u16 {
    let phases = scene.store.phases().len().div_ceil(usize::from(across(columns)));
    u16::try_from(phases + 3).unwrap_or(u16::MAX)
}

/// Cells beside each other.
fn across(columns: u16) -> u16 {
    (columns / CELL_LEAST).clamp(1, 4)
}

/// Draws the readout: with fewer rows, first the facts go, then the smallest phases.
pub fn draw(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let row = scene.app.step_in_view().and_then(|ordinal| scene.store.steps().known_row(ordinal));
    let (Some(row), true) = (row, sheet.height() > 0) else { return };
    draw_title(&mut sheet.part(0, 0, u16::MAX, 1), scene, &row);
    let across = across(sheet.width());
    let cell = sheet.width() / across;
    let below = sheet.height() - 1;
    let phases = scene.store.phases();
    let wanted = (phases.len() as u16).div_ceil(across);
    let places = usize::from(below.min(wanted) * across);
    for (at, (phase, index)) in (0..).zip(largest(phases, &row, places)) {
        let mut sheet = sheet.part(at % across * cell, 1 + at / across, cell, 1);
        draw_phase(&mut sheet, scene, &row, phase, index);
    }
    let room = usize::from(sheet.width().saturating_sub(2));
    let facts = lines(&facts(scene, &row), room);
    for (y, line) in (1 + wanted..sheet.height()).zip(facts) {
        sheet.text(1, y, &clip(&line, room as u16, scene.theme), scene.theme.plain());
    }
}

/// The phases that took most time, in their own order, with their places among all.
fn largest<'p>(phases: &'p [Phase], row: &StepRow<'_>, most: usize) -> Vec<(&'p Phase, usize)> {
    let mut shown: Vec<(&Phase, usize)> = phases.iter().zip(0..).collect();
    shown.sort_by_key(|(phase, _)| std::cmp::Reverse(row.phase_ns(phase.slot)));
    shown.truncate(most);
    shown.sort_by_key(|(_, index)| *index);
    shown
}

fn draw_phase<'a>(sheet: &mut Sheet<'_>, scene: &Scene<'a>, row: &StepRow<'_>, phase: &'a Phase, index: usize) {
    let (theme, Some(look)) = (scene.theme, scene.phase_styles.get(index)) else { return };
    let ns = row.phase_ns(phase.slot);
    sheet.cell(1, 0, look.fill, look.style());
    sheet.cell(3, 0, look.letter, theme.strong());
    let has_difference = sheet.width() >= CELL_WITH_DIFFERENCE;
    let end = sheet.width().saturating_sub(1 + if has_difference { DIFFERENCE } else { 0 });
    let name = end.saturating_sub(SWATCH + FIGURE);
    sheet.text(SWATCH, 0, &clip(&scene.phase_name(phase), name, theme), theme.plain());
    sheet.text_ending(SWATCH + name, end, 0, &duration(ns), theme.plain());
    let median = scene.store.statistics().phase(phase.slot).and_then(|all| all.percentile(0.5));
    if let Some(text) = median.filter(|_| has_difference).and_then(|median| difference(ns, median)) {
        sheet.text_ending(end, end + DIFFERENCE, 0, &text, theme.dim());
    }
}

/// What else is known of the step, the most telling first.
fn facts(scene: &Scene<'_>, row: &StepRow<'_>) -> Vec<String> {
    let usage = scene.store.steps().shared_usage(row.ordinal()).map(|(usage, sharing)| {
        let faults = count(usage.minor_faults.saturating_add(usage.major_faults));
        let switches = count(usage.voluntary_switches.saturating_add(usage.involuntary_switches));
        format!("{faults} page faults, {switches} switches{}", step_detail::sharing_in_words(&sharing))
    });
    let loss = row.loss().map(|loss| format!("loss {loss:.6}"));
    let found = step_detail::summarised(scene, row).into_iter().chain(step_detail::finding_lines(scene, row));
    let facts = [
        step_detail::batch(row),
        step_detail::times_per(row),
        loss,
        usage,
        Some(step_detail::period_start(scene, row)),
    ];
    found.chain(facts.into_iter().flatten()).collect()
}

/// Facts joined into lines of at most `room` columns, each fact whole where it can be.
fn lines(facts: &[String], room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for fact in facts {
        match lines.last_mut() {
            Some(line) if usize::from(width(line)) + 2 + usize::from(width(fact)) <= room => {
                line.push_str("; ");
                line.push_str(fact);
            }
            _ => lines.push(fact.clone()),
        }
    }
    lines
}
