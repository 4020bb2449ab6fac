//! Rules with names: the first row of a panel, and of a part of a view.

use super::scene::Scene;
use super::sheet::{Sheet, clip, width};
use crate::app::{Panel, View};

/// A rule with the name of what follows, and what to know to read it.
pub fn rule(sheet: &mut Sheet<'_>, y: u16, name: &str, note: &str, scene: &Scene<'_>) {
    let theme = scene.theme;
    sheet.fill_row(0, y, theme.glyph('─', '-'), theme.dim());
    let x = sheet.text(1, y, name, theme.strong());
    let x = sheet.text(x, y, " ", theme.plain());
    if !note.is_empty() {
        let room = sheet.width().saturating_sub(x + 3);
        sheet.text(x, y, &format!(" {} ", clip(note, room, theme)), theme.dim());
    }
}

/// Says at the end of a rule how many lines are above and below those shown, if there are any.
pub fn more(sheet: &mut Sheet<'_>, y: u16, above: usize, below: usize, scene: &Scene<'_>) {
    let theme = scene.theme;
    let side = |lines: usize, arrow: &str| if lines > 0 { format!("{arrow} {lines} ") } else { String::new() };
    let text = side(above, theme.text("↑", "^")) + &side(below, theme.text("↓", "v"));
    if !text.is_empty() {
        let end = sheet.width().saturating_sub(1);
        sheet.text_ending(1, end, y, &format!(" {text}more "), theme.warning());
    }
}

/// The first row of a panel: a rule with its name, and where the focus is.
pub struct Title<'t> {
    /// The panel.
    pub panel: Panel,
    /// Its name.
    pub name: &'t str,
    /// What to know to read it.
    pub note: &'t str,
    /// A figure that sums it up.
    pub right: &'t str,
}

impl Title<'_> {
    /// Draws the title into the sheet's first row.
    pub fn draw(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let theme = scene.theme;
        let focused = scene.app.view() == View::Overview && scene.app.focus() == self.panel;
        sheet.fill_row(0, 0, theme.glyph('─', '-'), theme.dim());
        if focused {
            sheet.cell(0, 0, theme.glyph('▌', '>'), theme.accent());
        }
        let style = if focused { theme.accent() } else { theme.strong() };
        let mut x = sheet.text(1, 0, self.name, style);
        x = sheet.text(x, 0, " ", theme.plain());
        let right_width = width(self.right);
        let room = sheet.width().saturating_sub(x);
        // The figure matters more than the note.
        let right_room = right_width.min(room.saturating_sub(3));
        let note_room = room.saturating_sub(if right_room > 0 { right_room + 6 } else { 3 });
        if !self.note.is_empty() && note_room >= 8 {
            x = sheet.text(x, 0, &format!(" {} ", clip(self.note, note_room, theme)), theme.dim());
        }
        if right_room > 0 {
            let text = format!(" {} ", clip(self.right, right_room, theme));
            let end = sheet.width().saturating_sub(1);
            sheet.text_ending(x, end, 0, &text, theme.plain());
        }
    }
}
