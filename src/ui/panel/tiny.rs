//! What remains on a screen too small for panels: the run's state, the last step, and a row of bars.

use crate::ui::panel::{header, steps};
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip};
use gnntop_analysis::figures::{count, duration};

/// Below this width the screen is tiny...
pub const WIDTH: u16 = 30;
/// ...and below this height.
pub const HEIGHT: u16 = 6;

/// Bars from nothing to full.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The same in ASCII.
const ASCII_BARS: [char; 8] = ['_', '_', '.', '-', '=', '+', '*', '#'];

/// Draws as much as there are rows for.
pub fn draw(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let theme = scene.theme;
    let (state, style) = header::state(scene);
    let step = step_words(scene);
    let width = sheet.width();
    match sheet.height() {
        0 => (),
        1 => {
            let words = if scene.store.steps().is_empty() { &state } else { &step };
            sheet.text(0, 0, &clip(words, width, theme), theme.plain());
        }
        2 => {
            sheet.text(0, 0, &clip(&state, width, theme), style);
            sheet.text(0, 1, &clip(&step, width, theme), theme.plain());
        }
        height => {
            sheet.text(0, 0, &clip(&state, width, theme), style);
            sheet.text(0, 1, &clip(&step, width, theme), theme.plain());
            let mut y = 2;
            if height >= 4 {
                sheet.text(0, 2, &clip(&header::verdict(scene), width, theme), theme.plain());
                y = 3;
            }
            if height >= 5 {
                steps::draw(&mut sheet.rows(y, 0), scene);
            } else {
                draw_bars(sheet, y, scene);
            }
        }
    }
}

fn step_words(scene: &Scene<'_>) -> String {
    if let Some(open) = scene.open_phase() {
        return open.name.map_or_else(|| open.text(), |name| format!("{} {name}", duration(open.ns)));
    }
    if let Some(after) = scene.after_last_step() {
        return after;
    }
    match scene.store.steps().last() {
        Some(row) => format!("{} {}", duration(row.period_ns()), count(row.step().0)),
        None => "no steps".to_owned(),
    }
}

fn draw_bars(sheet: &mut Sheet<'_>, y: u16, scene: &Scene<'_>) {
    let columns = scene.store.steps().newest_columns(None, 1, usize::from(sheet.width()));
    let worst = columns.iter().map(|column| column.worst.period_ns()).max().unwrap_or(0).max(1);
    let bars = if scene.theme.ascii() { &ASCII_BARS } else { &BARS };
    let left = sheet.width().saturating_sub(columns.len() as u16);
    for (x, column) in (left..).zip(&columns) {
        let share = column.worst.period_ns() as f64 / worst as f64;
        sheet.cell(x, y, bars[(share * 7.0).round() as usize], scene.theme.series());
    }
}
