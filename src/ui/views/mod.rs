//! The views: each a file with one draw function that fills what header and footer leave.
//!
//! ```text
//!  1 overview   overview.rs   steps, phases, hardware in one picture
//!  2 steps      steps.rs      the bars, large
//!  3 latency    latency.rs    percentile curve and table
//!  4 memory     memory.rs     live, peak, by phase
//!  5 hardware   hardware.rs   every sensor
//!  6 energy     energy.rs     power and energy
//!  7 tracks     tracks.rs     what each thread does
//!  8 findings   findings.rs   what is slow
//!  9 compare    compare.rs    this run beside another
//!  P pipeline   pipeline.rs   the stages of a pipeline in one step
//!  R ranks      ranks.rs      the ranks of a run side by side (ranks_facts.rs: in words)
//! ```

mod compare;
mod energy;
mod findings;
mod hardware;
mod latency;
mod memory;
mod overview;
mod pipeline;
mod ranks;
mod ranks_facts;
mod reading;
mod sessions;
mod span_table;
mod steps;
mod tracks;

use super::sheet::Sheet;
use super::{Scene, help, log, step_detail};
use crate::app::View;

/// Draws what fills the screen between header and footer.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    match scene.app.view() {
        View::Overview => overview::draw(body, scene),
        View::Steps => steps::draw(body, scene),
        View::Latency => latency::draw(body, scene),
        View::Memory => memory::draw(body, scene),
        View::Hardware => hardware::draw(body, scene),
        View::Energy => energy::draw(body, scene),
        View::Tracks => tracks::draw(body, scene),
        View::Findings => findings::draw(body, scene),
        View::Compare => compare::draw(body, scene),
        View::Ranks => ranks::draw(body, scene),
        View::Pipeline => pipeline::draw(body, scene),
        View::Step => step_detail::draw_below_bars(body, scene),
        View::Sessions => sessions::draw(body, scene),
        View::Log => log::draw(body, scene),
        View::Help => help::draw(body, scene),
    }
}

/// A rule with the name of what follows, and what to know to read it.
pub(super) fn rule(sheet: &mut Sheet<'_>, y: u16, name: &str, note: &str, scene: &Scene<'_>) {
    let theme = scene.theme;
    sheet.fill_row(0, y, theme.glyph('─', '-'), theme.dim());
    let x = sheet.text(1, y, name, theme.strong());
    let x = sheet.text(x, y, " ", theme.plain());
    if !note.is_empty() {
        let room = sheet.width().saturating_sub(x + 3);
        sheet.text(x, y, &format!(" {} ", super::sheet::clip(note, room, theme)), theme.dim());
    }
}

/// The first of `lines` lines to show in `rows` rows, so that the line `at` is among them, if possible in the middle.
pub(super) fn first_shown(at: usize, lines: usize, rows: u16) -> usize {
    let rows = usize::from(rows);
    at.min(lines.saturating_sub(1)).saturating_sub(rows / 2).min(lines.saturating_sub(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_line_is_shown_and_no_row_is_wasted() {
        for rows in 0..12u16 {
            for lines in 0..30 {
                for at in 0..40 {
                    let first = first_shown(at, lines, rows);
                    let shown = first..lines.min(first + usize::from(rows));
                    assert_eq!(shown.len(), lines.min(usize::from(rows)));
                    assert!(shown.is_empty() || shown.contains(&at.min(lines - 1)));
                }
            }
        }
    }
}
