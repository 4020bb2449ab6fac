//! The ranks: a lane for each over time, with waiting and reducing distinguished; which one is slowest, and by how
//! much.
//!
//! ```text
//! ─ranks ─own ───── wait ─ 120 ms, 1.67 ms a column ───────────────────────
//! ▌0      33.0 ms   12 %  ░░F forward░░░░░B backward████·wait···A R▚O▚
//!  1 <    38.0 ms  0.0 %  ░░F forward░░░░░B backward█████████████A R▚O▚
//!                                                 59'              60'
//!  step 60: rank 1 is the slowest, 5.00 ms (12 %) behind the fastest
//! ```

use std::ops::Range;

use ratatui::style::{Color, Modifier, Style};

use super::ranks_facts::{SeenWaits, facts, legend};
use crate::app::Target;
use crate::ui::chart::labels::Labels;
use crate::ui::headings::rule;
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, selected_and_first, width};
use crate::ui::theme::PhaseStyle;
use crate::wrap::wrapped;
use gnntop_analysis::figures::{count, duration, percent};
use gnntop_analysis::ranks::{Activity, Presence, Rank, Ranks, RunWork, StripColumn, quantile, strip};
use gnntop_analysis::store::StepRow;

/// Steps that the figures are over, the newest that all ranks have.
const STEPS: usize = 100;
/// Columns before the lanes, by the width of the screen: narrow, and with room for each rank's own time.
const LEFT: [u16; 2] = [14, 25];
/// Screens from this width on have that room.
const ROOMY: u16 = 64;
/// Columns that are filled less than this are drawn thin.
const THIN: f64 = 0.5;
/// Steps in view are marked as long as there are this many columns for each.
const COLUMNS_A_STEP: u16 = 6;
/// Time in no phase has its name where it has this many columns.
const GAP_NAMED: usize = 5;
/// Rows that facts leave to the lanes.
const LANES_LEAST: u16 = 3;

/// What the view is drawn from.
struct RankLanes<'a> {
    ranks: Ranks<'a>,
    /// Those that figures are about.
    going: Ranks<'a>,
    work: RunWork,
    /// The time in view, on the run's clock.
    range: Range<u64>,
    /// First column of the lanes.
    left: u16,
    /// Looks of the phases of all ranks.
    phase_styles: Vec<(&'a str, PhaseStyle)>,
}

impl<'a> RankLanes<'a> {
    fn new(width: u16, scene: &Scene<'a>) -> Self {
        let app = scene.app;
        let ranks = app.run.ranks();
        let going = ranks.running();
        let work = going.work(0, STEPS);
        let own = app.time_window().range(scene.store, app.window());
        let selected = app.run.rank().and_then(|rank| ranks.get(rank));
        let range = selected.map_or(own.clone(), |rank| rank.run_ns(own.start)..rank.run_ns(own.end));
        let phase_styles = phase_styles(&ranks, scene);
        Self { ranks, going, work, range, left: LEFT[usize::from(width >= ROOMY)].min(width), phase_styles }
    }

    fn phase_style(&self, name: &str) -> Option<&PhaseStyle> {
        self.phase_styles.iter().find(|(known, _)| *known == name).map(|(_, look)| look)
    }

    /// The place of a rank among those that figures are about.
    fn place(&self, rank: &Rank<'_>) -> Option<usize> {
        self.going.all().iter().position(|other| other.place.rank == rank.place.rank)
    }
}

/// A look for each phase of any rank, those of the selected rank as in the other views.
fn phase_styles<'a>(ranks: &Ranks<'a>, scene: &Scene<'a>) -> Vec<(&'a str, PhaseStyle)> {
    let mut names: Vec<&str> = Vec::new();
    let stores = std::iter::once(scene.store).chain(ranks.all().iter().map(|rank| rank.store));
    for phase in stores.flat_map(|store| store.phases()).filter(|phase| !phase.is_gap()) {
        if !names.contains(&phase.text.as_str()) {
            names.push(&phase.text);
        }
    }
    let looks = scene.theme.phase_styles(names.iter().map(|name| Some(*name)));
    names.into_iter().zip(looks).collect()
}

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let picture = RankLanes::new(body.width(), scene);
    if picture.ranks.all().is_empty() {
        rule(body, 0, "ranks", "", scene);
        body.text(2, 2, "this run is one session: it has no ranks", scene.theme.dim());
        return;
    }
    draw_title(&mut body.part(0, 0, u16::MAX, 1), &picture, scene);
    let room = body.width().saturating_sub(2);
    let wrap = |(text, style): (String, Style)| {
        wrapped(&text, usize::from(room)).into_iter().map(move |line| (line, style)).collect::<Vec<_>>()
    };
    let mut facts: Vec<(String, Style)> =
        facts(&picture.ranks, &picture.going, &picture.work, scene).into_iter().flat_map(wrap).collect();
    let spare = body.height().saturating_sub(2 + LANES_LEAST.min(picture.ranks.all().len() as u16));
    let facts_rows = (facts.len() as u16 + 1).min(spare);
    let (lanes, seen) = draw_lanes(&mut body.rows(1, 1 + facts_rows), &picture, scene);
    draw_steps(&mut body.part(0, 1 + lanes, u16::MAX, 1), &picture, scene);
    facts.extend(wrap((legend(seen, scene), scene.theme.dim())));
    let mut below = body.rows(2 + lanes, 0);
    for (y, (text, style)) in (0..below.height()).zip(&facts) {
        below.text(1, y, &clip(text, room, scene.theme), *style);
    }
}

fn draw_title(sheet: &mut Sheet<'_>, picture: &RankLanes<'_>, scene: &Scene<'_>) {
    let theme = scene.theme;
    sheet.fill_row(0, 0, theme.glyph('─', '-'), theme.dim());
    sheet.text(1, 0, "ranks ", theme.strong());
    if picture.left > LEFT[0] {
        sheet.text_ending(8, picture.left - 8, 0, " own ", theme.plain());
    }
    sheet.text_ending(picture.left.saturating_sub(7), picture.left, 0, " wait ", theme.plain());
    let range = &picture.range;
    let columns = u64::from(sheet.width().saturating_sub(picture.left)).max(1);
    let ns = range.end.saturating_sub(range.start);
    let note = format!(" {}, {} a column ", duration(ns), duration(ns / columns));
    sheet.text(picture.left + 1, 0, &note, theme.dim());
}

/// Draws as many lanes as there is room for, including the selected rank's, and returns how many, and which waits they show.
fn draw_lanes(sheet: &mut Sheet<'_>, picture: &RankLanes<'_>, scene: &Scene<'_>) -> (u16, SeenWaits) {
    let all = picture.ranks.all();
    let selected = scene.app.run.rank();
    let at = all.iter().position(|rank| Some(rank.place.rank) == selected).unwrap_or(0);
    let rows = sheet.height();
    let (at, first) = selected_and_first(sheet, at, all.len(), rows);
    let columns = usize::from(sheet.width().saturating_sub(picture.left));
    let rows = rows.min((all.len() - first) as u16);
    let mut seen = SeenWaits::default();
    for (y, (place, rank)) in (0..rows).zip(all.iter().enumerate().skip(first)) {
        sheet.offer(0, y, u16::MAX, 1, Target::Line(place));
        draw_name(&mut sheet.part(0, y, picture.left, 1), picture, rank, place == at, scene);
        let strip = strip(rank, &picture.range, columns);
        strip.iter().flatten().for_each(|column| seen.add(column.what));
        draw_strip(&mut sheet.part(picture.left, y, u16::MAX, 1), &strip, picture, scene);
    }
    (rows, seen)
}

/// A rank's number, whether it is the slowest, and its figures; instead of them, a word if it has stopped.
fn draw_name(sheet: &mut Sheet<'_>, picture: &RankLanes<'_>, rank: &Rank<'_>, is_selected: bool, scene: &Scene<'_>) {
    let theme = scene.theme;
    if is_selected {
        sheet.cell(0, 0, theme.glyph('▌', '>'), theme.accent());
    }
    let x = sheet.text(1, 0, &rank.place.rank.to_string(), if is_selected { theme.strong() } else { theme.plain() });
    let end = sheet.width().saturating_sub(1);
    let others_go_on = || picture.ranks.all().iter().any(|other| picture.ranks.presence(other) == Presence::Here);
    let word = match picture.ranks.presence(rank) {
        Presence::Gone => Some("gone: killed?".to_owned()),
        Presence::Silent(ns) => Some(format!("silent {}", duration(ns))),
        Presence::Ended if others_go_on() => Some("ended".to_owned()),
        Presence::Here | Presence::Ended => None,
    };
    if let Some(word) = word {
        let room = end.saturating_sub(x + 1);
        sheet.text(x + 1, 0, &clip(&word, room, theme), theme.alarm());
        return;
    }
    let place = picture.place(rank);
    if place.is_some() && place == picture.work.usually_slowest().map(|(at, _)| at) {
        sheet.text(x + 1, 0, theme.text("◀", "<"), theme.warning());
    }
    let Some(work) = place.and_then(|at| picture.work.ranks.get(at)) else { return };
    let dash = || theme.text("—", "-").to_owned();
    if sheet.width() >= LEFT[1] {
        let own = quantile(&work.own_ns, 0.5).map_or_else(dash, duration);
        sheet.text_ending(x + 2, sheet.width() - 9, 0, &own, theme.plain());
    }
    let wait = work.wait_ns.map(|ns| percent(ns as f64 / work.period_ns.max(1) as f64));
    sheet.text_ending(end.saturating_sub(7), end, 0, &wait.unwrap_or_else(dash), theme.plain());
}

/// Draws the columns of a rank: neighbours that are alike share one name.
fn draw_strip(sheet: &mut Sheet<'_>, strip: &[Option<StripColumn<'_>>], picture: &RankLanes<'_>, scene: &Scene<'_>) {
    let mut at = 0;
    while at < strip.len() {
        let Some(first) = &strip[at] else {
            let columns = strip[at..].iter().take_while(|column| column.is_none()).count();
            // At the ends, it may be time that is not known.
            if columns >= GAP_NAMED && at > 0 && at + columns < strip.len() {
                sheet.text(at as u16, 0, " gap", scene.theme.dim());
            }
            at += columns;
            continue;
        };
        let same = |column: &&Option<StripColumn<'_>>| column.is_some_and(|other| other.what == first.what);
        let columns = strip[at..].iter().take_while(same).count();
        draw_part(&mut sheet.part(at as u16, 0, columns as u16, 1), &strip[at..at + columns], picture, scene);
        at += columns;
    }
}

fn draw_part(sheet: &mut Sheet<'_>, columns: &[Option<StripColumn<'_>>], picture: &RankLanes<'_>, scene: &Scene<'_>) {
    let (theme, room) = (scene.theme, sheet.width());
    let Some(Some(first)) = columns.first() else { return };
    let (name, look) = match first.what {
        Activity::Wait => {
            sheet.fill_row(0, 0, theme.glyph('·', '.'), theme.warning());
            if room >= 6 {
                sheet.text(1, 0, "wait", theme.warning());
            }
            return;
        }
        Activity::Open(name) => {
            (0..room).step_by(2).for_each(|x| sheet.cell(x, 0, theme.glyph('╎', '|'), theme.warning()));
            sheet.text(1, 0, &clip(&format!(" {name} is open "), room.saturating_sub(2), theme), theme.warning());
            return;
        }
        Activity::Phase(name) => match picture.phase_style(name) {
            Some(look) => (name, *look),
            // A span that is no phase, where it contains none.
            None => {
                sheet.fill_row(0, 0, theme.glyph('─', '-'), theme.dim());
                if room > width(name) + 2 {
                    sheet.text(1, 0, name, theme.dim());
                }
                return;
            }
        },
    };
    for (x, column) in (0..).zip(columns) {
        let is_thin = column.is_some_and(|column| column.share < THIN);
        let thin = (theme.glyph('▏', '!'), Style::new().fg(look.color));
        let (c, style) = if is_thin { thin } else { (look.fill, look.style()) };
        sheet.cell(x, 0, c, style);
    }
    if room >= 2 {
        let full = format!("{} {name}", look.letter);
        let text = if room > width(&full) { full } else { look.letter.to_string() };
        let style = match theme.has_color() {
            true => Style::new().fg(Color::Black).bg(look.color).add_modifier(Modifier::BOLD),
            false => Style::new().add_modifier(Modifier::REVERSED),
        };
        sheet.text(0, 0, &text, style);
    }
}

/// The numbers of the steps where they end on the selected rank, and the cursor.
fn draw_steps(sheet: &mut Sheet<'_>, picture: &RankLanes<'_>, scene: &Scene<'_>) {
    let (theme, store) = (scene.theme, scene.store);
    let selected = scene.app.run.rank().and_then(|rank| picture.ranks.get(rank));
    let Some(rank) = selected else { return };
    let columns = sheet.width().saturating_sub(picture.left);
    let x = |t_ns: u64| {
        let run_ns = rank.run_ns(t_ns);
        let span_ns = picture.range.end.saturating_sub(picture.range.start).max(1);
        let into_ns = run_ns.checked_sub(picture.range.start).filter(|ns| *ns < span_ns)?;
        Some(picture.left + (into_ns as f64 * f64::from(columns) / span_ns as f64) as u16)
    };
    let mut labels = Labels::new(picture.left, sheet.width());
    let cursor_ns = scene.app.time_window().middle_ns(store, scene.app.window());
    if let Some(x) = cursor_ns.and_then(x) {
        labels.place_around(sheet, x, theme.text("▲", "^"), theme.accent());
    }
    let most = u64::from(columns / COLUMNS_A_STEP);
    let newest = store.steps().row_at(rank.own_ns(picture.range.end)).map_or(0, |row| row.ordinal() + 1);
    let rows: Vec<StepRow<'_>> = store.steps().rows(newest.saturating_sub(most)..newest).collect();
    for row in rows.iter().rev() {
        if let Some(x) = x(row.end_ns().saturating_sub(1)) {
            let text = format!("{}{}", count(row.step().0), theme.glyph('╵', '\''));
            labels.place_ending(sheet, x + 1, &text, theme.dim());
        }
    }
}
