//! One step read out in a few rows, below the bars: what is selected, else the newest. The phases' fills and letters
//! are beside their names, so that this is also the legend of the bars.
//!
//! ```text
//! ─step 70  epoch 2 ───────────────────────── 85.0 ms, x 2.12 against the median ─
//!  ╱ W data wait   4.00 ms   ░ F forward     10.0 ms   █ B backward    67.0 ms
//!  256 graphs, 3,584 nodes, 7,680 edges; 332 µs a graph, 11.1 µs an edge; loss 0.0143
//! ```

use crate::app::RangeSummary;
use crate::ui::panel::step_detail::{self, draw_title};
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, width};
use gnntop_analysis::figures::{count, counted, difference, duration};
use gnntop_analysis::store::{Phase, StepRow, StepStatistics};

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
    let range = usize::from(scene.app.range_summary().is_some());
    u16::try_from(phases + 3 + range).unwrap_or(u16::MAX)
}

/// Cells beside each other.
fn across(columns: u16) -> u16 {
    (columns / CELL_LEAST).clamp(1, 4)
}

/// Draws the readout: with fewer rows, first the facts go, then the smallest phases.
pub fn draw(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let row = scene.app.step_in_view().and_then(|ordinal| scene.store.steps().known_row(ordinal));
    let (Some(row), true) = (row, sheet.height() > 0) else { return };
    match scene.app.range_summary() {
        Some(range) => {
            draw_range(sheet, scene, range);
            let median = |phase: &Phase| range.statistics.phase(phase.slot).and_then(|all| all.percentile(0.5));
            draw_phases(&mut sheet.rows(2, 0), scene, scene.store.statistics(), |phase| median(phase).unwrap_or(0));
        }
        None => {
            draw_title(&mut sheet.part(0, 0, u16::MAX, 1), scene, &row);
            // By the clock of the bars and of the title above.
            let timed = scene.app.phases().by_clock(row);
            let usual = scene.app.phases().statistics();
            let below = timed.map_or(0, |timed| {
                draw_phases(&mut sheet.rows(1, 0), scene, usual, |phase| timed.phase_ns(phase.slot))
            });
            let room = sheet.width().saturating_sub(2);
            let facts = lines(&facts(scene, &row), usize::from(room));
            for (y, line) in (1 + below..sheet.height()).zip(facts) {
                sheet.text(1, y, &clip(&line, room, scene.theme), scene.theme.plain());
            }
        }
    }
}

/// Draws the phases with a time each, and how that differs from the usual one. Gives the row below all of them.
fn draw_phases(sheet: &mut Sheet<'_>, scene: &Scene<'_>, usual: &StepStatistics, ns: impl Fn(&Phase) -> u64) -> u16 {
    let across = across(sheet.width());
    let cell = sheet.width() / across;
    let phases = scene.store.phases();
    let wanted = (phases.len() as u16).div_ceil(across);
    let places = usize::from(sheet.height().min(wanted) * across);
    for (at, (phase, index)) in (0..).zip(largest(phases, &ns, places)) {
        let mut sheet = sheet.part(at % across * cell, at / across, cell, 1);
        let median = usual.phase(phase.slot).and_then(|all| all.percentile(0.5));
        let differs = median.and_then(|median| difference(ns(phase), median));
        draw_phase(&mut sheet, scene, (ns(phase), differs), phase, index);
    }
    wanted
}

/// Draws a rule with the selected range and its median, and below what is found in it.
fn draw_range(sheet: &mut Sheet<'_>, scene: &Scene<'_>, range: &RangeSummary) {
    let theme = scene.theme;
    sheet.fill_row(0, 0, theme.glyph('─', '-'), theme.dim());
    let number = |ordinal: u64| scene.store.steps().known_row(ordinal).map_or(ordinal + 1, |row| row.step().0);
    let (first, last) = (number(range.ordinals.start), number(range.ordinals.end - 1));
    let x = sheet.text(1, 0, &format!("steps {} to {} ", count(first), count(last)), theme.strong());
    let of_run = scene.store.statistics().period().percentile(0.5);
    let median = range.statistics.period().percentile(0.5).map(|ns| {
        let against =
            of_run.and_then(|of_run| difference(ns, of_run)).map(|text| format!(", {text} against the run's"));
        format!(" median {}{} ", duration(ns), against.unwrap_or_default())
    });
    sheet.text_ending(x, sheet.width().saturating_sub(1), 0, &median.unwrap_or_default(), theme.plain());
    let room = sheet.width().saturating_sub(2);
    sheet.text(1, 1, &clip(&range.verdict, room, theme), theme.strong());
}

/// The phases that took most time, in their own order, with their places among all.
fn largest(phases: &[Phase], ns: impl Fn(&Phase) -> u64, most: usize) -> Vec<(&Phase, usize)> {
    let mut shown: Vec<(&Phase, usize)> = phases.iter().zip(0..).collect();
    shown.sort_by_key(|(phase, _)| std::cmp::Reverse(ns(phase)));
    shown.truncate(most);
    shown.sort_by_key(|(_, index)| *index);
    shown
}

fn draw_phase<'a>(
    sheet: &mut Sheet<'_>,
    scene: &Scene<'a>,
    (ns, differs): (u64, Option<String>),
    phase: &'a Phase,
    index: usize,
) {
    let (theme, Some(look)) = (scene.theme, scene.phase_styles.get(index)) else { return };
    sheet.cell(1, 0, look.fill, look.style());
    sheet.cell(3, 0, look.letter, theme.strong());
    let has_difference = sheet.width() >= CELL_WITH_DIFFERENCE;
    let end = sheet.width().saturating_sub(1 + if has_difference { DIFFERENCE } else { 0 });
    let name = end.saturating_sub(SWATCH + FIGURE);
    sheet.text(SWATCH, 0, &clip(&scene.phase_name(phase), name, theme), theme.plain());
    sheet.text_ending(SWATCH + name, end, 0, &duration(ns), theme.plain());
    if let Some(text) = differs.filter(|_| has_difference) {
        sheet.text_ending(end, end + DIFFERENCE, 0, &text, theme.dim());
    }
}

/// What else is known of the step, the most telling first.
fn facts(scene: &Scene<'_>, row: &StepRow<'_>) -> Vec<String> {
    let usage = scene.store.steps().shared_usage(row.ordinal()).map(|(usage, sharing)| {
        let faults = usage.minor_faults.saturating_add(usage.major_faults);
        let switches = usage.voluntary_switches.saturating_add(usage.involuntary_switches);
        let [faults, switches] = [(faults, "page fault", "page faults"), (switches, "switch", "switches")]
            .map(|(n, one, many)| counted(n, one, many));
        format!("{faults}, {switches}{}", step_detail::sharing_in_words(&sharing))
    });
    let loss = row.loss().map(|loss| format!("loss {loss:.6}"));
    let found = step_detail::summarised(scene, row).into_iter().chain(step_detail::finding_lines(scene, row));
    let facts = [
        step_detail::batch(scene, row),
        step_detail::times_per(scene, row),
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
