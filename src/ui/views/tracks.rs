//! The tracks: a lane for each thread, loader and stage, its spans as boxes in time, nested ones below; how much of the
//! time in view each was idle, and how deep the queues were.
//!
//! ```text
//! ─track ───────── idle ─ 120 ms, 1.67 ms a column ────────────────────────
//!  main            2.4 %  ░░F forward░░░░░B backward██████████████O▚W╱F forwa
//!                         ├layer 0┤                                 ├layer 0┤
//!  loader 0         95 %  ├collate┤               ┊├collate┤
//!  queue               3  ⣀⣀⣀⣀⣀⣀⣀⣤⣤⣤⣤⣤⣤⣤⣤⣤⣤⣤⣤⣤⣤⣤⣤⣤⣤⣤⣤⣤⣶⣶⣶⣶⣶⣶⣶⣶⣶⣶⣶⣶⣶⣶
//!                                        1,105   ▲               1,106
//! ```

use std::ops::Range;

use gnntop_wire::TrackRole;

use super::span_table;
use crate::app::View;
use crate::ui::chart::braille;
use crate::ui::chart::labels::Labels;
use crate::ui::chart::lanes::LaneCells;
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, first_scrolled, width};
use gnntop_analysis::figures::{count, duration, percent, quantity};
use gnntop_analysis::store::{StepRow, Store, TimeColumns, Track};

/// Columns of a track's name and its idle share, by the width of the screen: narrow, and with room.
const NAME: [u16; 2] = [9, 22];
/// Screens from this width on have room for long names.
const ROOMY: u16 = 64;
/// Columns of the idle share.
const IDLE: u16 = 6;
/// Most rows of a lane.
const DEPTH: usize = 8;
/// Counters that are shown.
const COUNTERS: usize = 6;
/// Rows that the counters leave to the lanes.
const LANES_LEAST: u16 = 6;
/// Steps in view are marked as long as there are this many columns for each.
const COLUMNS_A_STEP: usize = 4;

/// What the rows of the view are drawn on.
struct Area<'a> {
    columns: TimeColumns,
    /// First column of the boxes.
    left: u16,
    /// Steps in view, where there are not too many.
    steps: Vec<StepRow<'a>>,
    /// The instant under the cursor.
    cursor_ns: Option<u64>,
}

impl<'a> Area<'a> {
    fn new(width: u16, scene: &Scene<'a>) -> Self {
        let store = scene.store;
        let (app, window) = (scene.app, scene.app.window());
        let left = (NAME[usize::from(width >= ROOMY)] + 1).min(width);
        let range = app.time_window().range(store, window);
        let count = usize::from(width.saturating_sub(left));
        let columns = TimeColumns::equal(range.clone(), count);
        let steps = steps_within(store, &range, count / COLUMNS_A_STEP);
        Self { columns, left, steps, cursor_ns: app.time_window().middle_ns(store, window) }
    }

    /// The column of the screen for a time.
    fn x(&self, t_ns: u64) -> Option<u16> {
        Some(self.left + self.columns.column(t_ns)? as u16)
    }
}

/// The steps that reach into a time, oldest first; none if there are more than `most`.
fn steps_within<'a>(store: &'a Store, range: &Range<u64>, most: usize) -> Vec<StepRow<'a>> {
    let newest = store.steps().row_at(range.end).map_or(0, |row| row.ordinal() + 1);
    let rows = store.steps().rows(newest.saturating_sub(most as u64 + 1)..newest);
    let within: Vec<StepRow<'a>> = rows.filter(|row| row.end_ns() >= range.start).collect();
    if within.len() > most { Vec::new() } else { within }
}

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let area = Area::new(body.width(), scene);
    let tracks = shown(scene);
    draw_title(&mut body.part(0, 0, u16::MAX, 1), &area, tracks.len(), scene);
    if tracks.is_empty() {
        let text = match scene.store.session().info() {
            None => "waiting for data",
            Some(_) if !scene.app.filter().is_empty() => "no track name matches",
            Some(_) => "no spans yet",
        };
        body.text(2, 2, text, scene.theme.dim());
        return;
    }
    let counters = scene.store.program_counters().count().min(COUNTERS) as u16;
    let counters = counters.min(body.height().saturating_sub(LANES_LEAST + 2));
    let has_reading = area.cursor_ns.is_some() && body.height() > LANES_LEAST;
    let below = counters + 1 + u16::from(has_reading);
    let used = draw_lanes(&mut body.rows(1, below), &area, &tracks, scene);
    let mut rest = body.rows(1 + used, 0);
    span_table::draw(&mut rest.rows(below + 1, 0), &area.columns.range(), &tracks, scene);
    draw_counters(&mut rest.part(0, 0, u16::MAX, counters), &area, scene);
    draw_steps(&mut rest.part(0, counters, u16::MAX, 1), &area, scene);
    if has_reading {
        draw_reading(&mut rest.part(0, counters + 1, u16::MAX, 1), &area, &tracks, scene);
    }
}

/// Tracks that have spans, or should have some, and pass the filter: the training track first.
fn shown<'a>(scene: &Scene<'a>) -> Vec<&'a Track> {
    let store = scene.store;
    let has_work =
        |track: &&Track| track.lane().is_some() || matches!(track.role, TrackRole::Training | TrackRole::Loader);
    let passes = |track: &&Track| scene.app.passes(&track.text);
    let mut tracks: Vec<&Track> = store.tracks().iter().filter(has_work).filter(passes).collect();
    let main = store.training_track().map(|track| track.id);
    tracks.sort_by_key(|track| Some(track.id) != main);
    tracks
}

fn draw_title(sheet: &mut Sheet<'_>, area: &Area<'_>, tracks: usize, scene: &Scene<'_>) {
    let theme = scene.theme;
    sheet.fill_row(0, 0, theme.glyph('─', '-'), theme.dim());
    let x = sheet.text(1, 0, "tracks ", theme.strong());
    if area.left > NAME[0] + 1 {
        sheet.text_ending(x, area.left, 0, " idle ", theme.plain());
    }
    let range = area.columns.range();
    let column_ns = (range.end - range.start) / (area.columns.count() as u64).max(1);
    let note = format!(" {}, {} a column ", duration(range.end - range.start), duration(column_ns));
    let x = sheet.text(area.left + 1, 0, &note, theme.dim());
    let end = sheet.width().saturating_sub(1);
    let room = end.saturating_sub(x + 2);
    let texts = reduced(scene.store, tracks).map(|text| format!(" {text} "));
    if let Some(text) = texts.iter().find(|text| text.len() > 2 && width(text) <= room) {
        sheet.text_ending(x + 1, end, 0, text, theme.dim());
    }
}

/// What is not kept in full, in many words and in few.
fn reduced(store: &Store, shown: usize) -> [String; 2] {
    let lanes = || store.tracks().iter().filter_map(Track::lane);
    let spans: u64 = lanes().map(|lane| lane.reduced()).sum();
    let widest = lanes().filter_map(|lane| lane.reduced_to_ns()).max();
    let without = store.tracks().iter().filter(|track| track.spans > 0 && track.lane().is_none()).count();
    match (widest, without) {
        (_, 1..) => [format!("{without} tracks beyond {shown} have no boxes"), format!("{without} more tracks")],
        (Some(ns), 0) => {
            let time = duration(ns);
            [format!("{} older spans are kept as shares of {time}", count(spans)), format!("older by {time}")]
        }
        (None, 0) => [String::new(), String::new()],
    }
}

/// Draws as many lanes as there is room for and returns the rows they take.
fn draw_lanes(sheet: &mut Sheet<'_>, area: &Area<'_>, tracks: &[&Track], scene: &Scene<'_>) -> u16 {
    let rows = sheet.height().max(1);
    let first = first_scrolled(sheet, scene.app.line(View::Tracks), tracks.len(), rows);
    let rows = usize::from(sheet.height());
    let tracks = &tracks[first..tracks.len().min(first + rows)];
    let mut spare = rows.saturating_sub(tracks.len());
    let mut y = 0;
    for track in tracks {
        let cells = track
            .lane()
            .map(|lane| LaneCells::new(lane, area.columns.range(), area.columns.count(), DEPTH.min(1 + spare)));
        let depth = cells.as_ref().map_or(1, |cells| cells.depth().max(1));
        spare -= (depth - 1).min(spare);
        for row in 0..depth as u16 {
            let mut line = sheet.part(0, y + row, u16::MAX, 1);
            draw_step_edges(&mut line, area, scene);
            if let Some(cells) = &cells {
                cells.draw(&mut line.part(area.left, 0, u16::MAX, 1), usize::from(row), scene);
            }
        }
        draw_open(&mut sheet.part(0, y, u16::MAX, 1), area, track, cells.as_ref(), scene);
        draw_name(&mut sheet.part(0, y, area.left, 1), area, track, scene);
        y += depth as u16;
    }
    y
}

fn draw_name(sheet: &mut Sheet<'_>, area: &Area<'_>, track: &Track, scene: &Scene<'_>) {
    let theme = scene.theme;
    let has_idle = sheet.width() > NAME[0] + 1;
    let room = sheet.width().saturating_sub(2 + if has_idle { IDLE + 1 } else { 0 });
    let name = if track.text.is_empty() { "(no name)" } else { &track.text };
    sheet.text(1, 0, &clip(name, room, theme), theme.plain());
    if !has_idle {
        return;
    }
    let range = area.columns.range();
    let known = range.start..range.end.min(scene.store.now_ns());
    let idle = track.lane().and_then(|lane| lane.busy(known).idle_share());
    let (text, style) = match idle {
        Some(share) => (percent(share), theme.plain()),
        None => (theme.text("—", "-").to_owned(), theme.dim()),
    };
    let end = sheet.width().saturating_sub(1);
    sheet.text_ending(end.saturating_sub(IDLE), end, 0, &text, style);
}

/// Ends of steps, as lines behind the boxes.
fn draw_step_edges(sheet: &mut Sheet<'_>, area: &Area<'_>, scene: &Scene<'_>) {
    let theme = scene.theme;
    for x in area.steps.iter().filter_map(|row| area.x(row.end_ns())) {
        sheet.cell(x, 0, theme.glyph('┊', ':'), theme.dim());
    }
}

/// What is open on a track now: stripes from its start on, where no box is.
fn draw_open(sheet: &mut Sheet<'_>, area: &Area<'_>, track: &Track, cells: Option<&LaneCells>, scene: &Scene<'_>) {
    let Some((_, open)) = scene.store.open_spans().find(|(open, _)| open.id == track.id) else { return };
    let (range, now_ns) = (area.columns.range(), scene.store.now_ns());
    if open.since_ns >= range.end || now_ns < range.start {
        return;
    }
    let name = scene.store.name(open.name);
    let look = scene.phase_style(name);
    let (fill, style) =
        look.map_or((scene.theme.glyph('╎', '|'), scene.theme.plain()), |look| (look.fill, look.style()));
    let from = area.columns.column(open.since_ns.max(range.start)).unwrap_or(0);
    let to = area.columns.column(now_ns.min(range.end - 1)).unwrap_or(0);
    for at in (from..=to).step_by(2).filter(|at| cells.is_none_or(|cells| cells.is_free(*at))) {
        sheet.cell(area.left + at as u16, 0, fill, style);
    }
    let text = format!(" {name} open for {} ", duration(now_ns.saturating_sub(open.since_ns)));
    let room = (to.saturating_sub(from) as u16).min(sheet.width());
    if width(&text) < room {
        sheet.text(area.left + from as u16 + 1, 0, &text, scene.theme.warning());
    }
}

/// The program's counters, such as the depths of queues.
fn draw_counters(sheet: &mut Sheet<'_>, area: &Area<'_>, scene: &Scene<'_>) {
    let theme = scene.theme;
    let halves = area.columns.halved();
    for (y, counter) in (0..sheet.height()).zip(scene.store.program_counters()) {
        let bins = counter.columns(&halves, scene.store.now_ns());
        let full = bins.iter().flatten().map(|bin| bin.max).fold(0.0, f64::max);
        let mut line = sheet.part(0, y, u16::MAX, 1);
        braille::draw(
            &mut line,
            area.left,
            &bins,
            braille::BrailleRow { at: 0, rows: 1, low: 0.0, full, is_log: false },
            None,
            theme,
        );
        let at = area.cursor_ns.and_then(|t_ns| area.columns.column(t_ns)).map(|at| at * 2);
        let value = match at {
            Some(at) => bins.get(at).copied().flatten().map(|bin| bin.mean),
            None => counter.series.last().and_then(|point| point.value()),
        };
        let value = value.map_or_else(|| theme.text("—", "-").to_owned(), quantity);
        let room = area.left.saturating_sub(2 + width(&value) + 1);
        line.text(1, 0, &clip(scene.store.name(counter.name), room, theme), theme.dim());
        line.text_ending(1, area.left.saturating_sub(1), 0, &value, theme.plain());
    }
}

/// The numbers of the steps where they end, and the cursor.
fn draw_steps(sheet: &mut Sheet<'_>, area: &Area<'_>, scene: &Scene<'_>) {
    let theme = scene.theme;
    let mut labels = Labels::new(area.left, sheet.width());
    if let Some(x) = area.cursor_ns.and_then(|t_ns| area.x(t_ns)) {
        labels.place_around(sheet, x, theme.text("▲", "^"), theme.accent());
    }
    for row in area.steps.iter().rev() {
        if let Some(x) = area.x(row.end_ns().saturating_sub(1)) {
            let text = format!("{}{}", count(row.step().0), theme.glyph('╵', '\''));
            labels.place_ending(sheet, x + 1, &text, theme.dim());
        }
    }
    if area.steps.is_empty() {
        let range = area.columns.range();
        let number = |t_ns: u64| scene.store.steps().row_at(t_ns).map(|row| format!("step {}", count(row.step().0)));
        let (first, last) = (number(range.start), number(range.end));
        labels.place_ending(sheet, sheet.width(), &last.unwrap_or_default(), theme.dim());
        labels.place_from(sheet, area.left, &first.unwrap_or_default(), theme.dim());
    }
}

/// What every track did at the instant under the cursor.
fn draw_reading(sheet: &mut Sheet<'_>, area: &Area<'_>, tracks: &[&Track], scene: &Scene<'_>) {
    let (theme, store) = (scene.theme, scene.store);
    let Some(t_ns) = area.cursor_ns else { return };
    let mut parts = Vec::new();
    if let Some(row) = store.steps().row_at(t_ns) {
        let into_ns = t_ns.saturating_sub(row.period_start_ns());
        parts.push(format!("step {} after {}", count(row.step().0), duration(into_ns)));
    }
    for track in tracks {
        let around = track.lane().map(|lane| lane.enclosing_names(t_ns)).unwrap_or_default();
        let names: Vec<&str> = around.iter().map(|name| store.name(*name)).collect();
        let doing = if names.is_empty() { "idle".to_owned() } else { names.join(" > ") };
        parts.push(format!("{}: {doing}", track.text));
    }
    let room = sheet.width().saturating_sub(2);
    let text = parts.join(theme.text(" · ", " | "));
    sheet.text(1, 0, &clip(&format!("{} {text}", theme.text("▲", "^")), room, theme), theme.plain());
}
