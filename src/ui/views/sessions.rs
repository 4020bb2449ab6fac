//! The choice of what to look at.
//!
//! ```text
//! ─sessions  live, ended, and the recordings of this folder ────────────────────
//! ▌live       pna             pid 4711    2s ago    71.7 KiB  gnntop train pna
//!  recording  old.gnntop                  3h ago    1.20 MiB
//! ─selected ────────────────────────────────────────────────────────────────────
//!  step 400, started 3m 02s ago in /home/me/a: gnntop train pna
//! ```

use crate::app::{CatalogEntry, EntryKind, Target, View};
use crate::ui::headings::rule;
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, selected_and_first};
use crate::wrap::wrapped;
use gnntop_analysis::figures::{bytes, count, elapsed_time};
use gnntop_wire::text::clean;

/// Columns of what an entry is.
const KIND: u16 = 11;
/// Columns of age and size, each with the space before it.
const FIGURE: u16 = 12;
/// Columns of a process id.
const PID: u16 = 12;
/// Most columns of a name.
const NAME_MOST: u16 = 36;
/// Rows of what is said of the selected entry, with their rule, in a view of at least this many.
const DETAIL_ROWS: u16 = 3;
const DETAILED: u16 = 10;
/// From this width on there is room for process id and command line.
const WIDE: u16 = 70;

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    rule(body, 0, "sessions", "live, ended, and the recordings of this folder", scene);
    let entries = scene.app.entries();
    let problem = scene.app.sessions_problem();
    let top = 1 + u16::from(problem.is_some());
    let room = body.width().saturating_sub(2);
    if let Some(problem) = problem {
        body.text(1, 1, &clip(problem, room, scene.theme), scene.theme.warning());
    }
    if entries.is_empty() {
        let text = if scene.app.filter().is_empty() { "no sessions or recordings" } else { "no name matches" };
        body.text(1, top, text, scene.theme.dim());
        return;
    }
    let below = if body.height() >= DETAILED { DETAIL_ROWS } else { 0 };
    let rows = body.height().saturating_sub(top + below);
    let (selected, first) = selected_and_first(body, scene.app.line(View::Sessions), entries.len(), rows);
    for (y, (line, entry)) in (top..top + rows).zip(entries.iter().enumerate().skip(first)) {
        body.offer(0, y, u16::MAX, 1, Target::Line(line));
        draw_entry(&mut body.part(0, y, u16::MAX, 1), entry, line == selected, scene);
    }
    if let (Some(entry), 1..) = (entries.get(selected), below) {
        let mut detail = body.rows(top + rows, 0);
        rule(&mut detail, 0, "selected", "", scene);
        for (y, line) in (1..below).zip(wrapped(&describe(entry), usize::from(room))) {
            detail.text(1, y, &clip(&line, room, scene.theme), scene.theme.plain());
        }
    }
}

/// What tells an entry from others of the same name: how far it is, when it started, where, and all of its command.
fn describe(entry: &CatalogEntry) -> String {
    let folder = entry.folder.as_ref().map(|folder| clean(folder.as_os_str().as_encoded_bytes()));
    let place = match (entry.started, folder) {
        (Some(started), Some(folder)) => Some(format!("started {} ago in {folder}", elapsed_time(started))),
        (Some(started), None) => Some(format!("started {} ago", elapsed_time(started))),
        (None, _) => Some(clean(entry.path.as_os_str().as_encoded_bytes())),
    };
    let step = entry.latest.map(|latest| match latest.still {
        Some(still) => format!("step {}, none for {} since", count(latest.step), elapsed_time(still)),
        None => format!("step {}", count(latest.step)),
    });
    let text = step.into_iter().chain(place).collect::<Vec<_>>().join(", ");
    if entry.command.is_empty() { text } else { format!("{text}: {}", entry.command) }
}

fn draw_entry(sheet: &mut Sheet<'_>, entry: &CatalogEntry, is_selected: bool, scene: &Scene<'_>) {
    let theme = scene.theme;
    let (kind, style) = match entry.kind {
        EntryKind::Live => ("live", theme.good()),
        EntryKind::Ended => ("ended", theme.warning()),
        EntryKind::Recording => ("recording", theme.dim()),
    };
    if is_selected {
        sheet.cell(0, 0, theme.glyph('▌', '>'), theme.accent());
    }
    sheet.text_within(1, 0, KIND - 1, kind, style);
    let is_wide = sheet.width() >= WIDE;
    let figures = 2 * FIGURE + if is_wide { PID } else { 0 };
    let name_width = sheet.width().saturating_sub(KIND + 1 + figures).min(NAME_MOST);
    let name_style = if is_selected { theme.strong() } else { theme.plain() };
    sheet.text(KIND + 1, 0, &clip(&entry.name, name_width, theme), name_style);
    let mut x = KIND + 1 + name_width;
    if is_wide {
        let pid = entry.pid.map(|pid| format!("pid {pid}")).unwrap_or_default();
        sheet.text_ending(x, x + PID, 0, &pid, theme.dim());
        x += PID;
    }
    let age = entry.age.map(|age| format!("{} ago", elapsed_time(age))).unwrap_or_default();
    for text in [age, bytes(entry.size_bytes as f64)] {
        sheet.text_ending(x, x + FIGURE, 0, &text, theme.plain());
        x += FIGURE;
    }
    let room = sheet.width().saturating_sub(x + 3);
    sheet.text(x + 2, 0, &clip(&entry.command, room, theme), theme.dim());
}
