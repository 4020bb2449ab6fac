//! Why the program died, in full, above every view of it.
//!
//! ```text
//!  The kernel killed train.py because its control group, limited to 4.00 GiB, ran out of memory. It was in forward
//!  of step 812. Its memory grew from 954 MiB to 3.73 GiB in its last 60.0 s.
//! ```

use crate::app::View;
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip};
use crate::wrap::wrapped;

/// The paragraph takes at most this part of the screen, and a line of a low one, except in the overview.
const SHARE: u16 = 3;
const LOW: u16 = 20;

/// The paragraph in lines for a screen of this size; none if the program is not known to have died.
pub fn lines(scene: &Scene<'_>, width: u16, height: u16) -> Vec<String> {
    let is_about_it = !matches!(scene.app.view(), View::Sessions | View::Help);
    let Some(died) = scene.store.session().death_text().filter(|_| is_about_it) else { return Vec::new() };
    let mut lines = wrapped(died, usize::from(width.saturating_sub(2)));
    let is_overview = scene.app.view() == View::Overview;
    let room = if height < LOW && !is_overview { 1 } else { usize::from(height / SHARE) };
    if lines.len() > room {
        lines.truncate(room);
        lines.iter_mut().next_back().into_iter().for_each(|last| last.push_str(scene.theme.text(" …", " ...")));
    }
    lines
}

/// Draws these lines.
pub fn draw(sheet: &mut Sheet<'_>, lines: &[String], scene: &Scene<'_>) {
    for (y, line) in (0..sheet.height()).zip(lines) {
        let room = sheet.width().saturating_sub(2);
        sheet.text(1, y, &clip(line, room, scene.theme), scene.theme.warning());
    }
}
