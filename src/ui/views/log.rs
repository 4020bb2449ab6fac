//! The program's output: the end of its log, which may be scrolled.

use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, first_scrolled};

/// Draws the log.
pub fn draw(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let theme = scene.theme;
    let Some(log) = scene.app.log() else { return };
    sheet.fill_row(0, 0, theme.glyph('─', '-'), theme.dim());
    let mut x = sheet.text(1, 0, "the program's output ", theme.strong());
    if log.lines_up() > 0 {
        x = sheet.text(x, 0, &format!("{} lines up from the end ", log.lines_up()), theme.warning());
    }
    if let Some(error) = log.error() {
        let room = sheet.width().saturating_sub(x + 1);
        sheet.text(x, 0, &format!("{} ", clip(error, room, theme)), theme.warning());
    }
    let mut sheet = sheet.rows(1, 0);
    if log.lines().is_empty() {
        sheet.text(1, 0, "nothing yet", theme.dim());
    }
    let rows = sheet.height();
    let up = first_scrolled(&mut sheet, log.lines_up(), log.lines().len(), rows);
    let end = log.lines().len() - up;
    let start = end.saturating_sub(usize::from(rows));
    let room = sheet.width().saturating_sub(2);
    for (y, line) in (0..).zip(&log.lines()[start..end]) {
        sheet.text(1, y, &clip(line, room, theme), theme.plain());
    }
}
