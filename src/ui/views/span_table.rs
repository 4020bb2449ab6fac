//! What the lanes of the tracks show, in figures: the spans of the time in view by track and name, those that take most
//! first. There is no sum for the time of which not every span is kept.
//!
//! ```text
//! ─spans in view ──────────────── count ─── total ─ share ── longest ──
//!  B backward           main          3   66.0 ms    44 %    22.0 ms
//!    layer 0            main          3   18.0 ms    12 %    6.00 ms
//! ```

use std::collections::HashMap;
use std::ops::Range;

use gnntop_wire::NameId;

use crate::ui::headings::rule;
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip};
use gnntop_analysis::figures::{count, duration, percent};
use gnntop_analysis::store::Track;

/// With fewer rows there is no table.
const LEAST_ROWS: u16 = 4;
/// Screens with fewer columns have none either.
const LEAST_WIDTH: u16 = 60;
/// Spans that are added up: more would make a picture take long.
const MOST_SPANS: usize = 50_000;
/// Columns of a figure with the space before it.
const FIGURE: u16 = 11;
/// The figures of a row.
const HEADS: [&str; 4] = ["count", "total", "share", "longest"];

/// The spans of one name on one track.
#[derive(Clone, Copy, Default)]
struct Sum {
    count: u64,
    /// Their time that is in view, in nanoseconds.
    total_ns: u64,
    longest_ns: u64,
}

/// Draws the table, if there is room for it.
pub fn draw(sheet: &mut Sheet<'_>, range: &Range<u64>, tracks: &[&Track], scene: &Scene<'_>) {
    if sheet.height() < LEAST_ROWS || sheet.width() < LEAST_WIDTH {
        return;
    }
    let name = sheet.width() - FIGURE * HEADS.len() as u16 - 2;
    let Some(sums) = sums(range, tracks) else {
        let note = format!("more than {}: zoom in for figures", count(MOST_SPANS as u64));
        return rule(sheet, 0, "spans in view", &note, scene);
    };
    let kept_from_ns = tracks.iter().filter_map(|track| track.lane()).map(|lane| lane.full_from_ns()).max();
    let left_out = kept_from_ns.filter(|from_ns| *from_ns > range.start && *from_ns < u64::MAX);
    let note = left_out.map(|from_ns| format!("newest {}", duration(range.end.saturating_sub(from_ns))));
    rule(sheet, 0, "spans in view", &note.unwrap_or_default(), scene);
    for (at, head) in (1..).zip(HEADS) {
        sheet.text_ending(0, name + at * FIGURE + 1, 0, &format!(" {head} "), scene.theme.plain());
    }
    for (y, (track, span, sum)) in (1..sheet.height()).zip(&sums) {
        // Shares are of the time of which every span is kept.
        let kept = tracks[*track].lane().map_or(0, |lane| lane.full_from_ns()).max(range.start)..range.end;
        draw_row(&mut sheet.part(0, y, u16::MAX, 1), name, (tracks[*track], *span, *sum), &kept, scene);
    }
}

/// Sums by index of the track and name, the largest first; `None` if there are too many spans.
fn sums(range: &Range<u64>, tracks: &[&Track]) -> Option<Vec<(usize, NameId, Sum)>> {
    let mut sums: HashMap<(usize, NameId), Sum> = HashMap::new();
    let mut seen = 0;
    for (at, lane) in tracks.iter().enumerate().filter_map(|(at, track)| Some((at, track.lane()?))) {
        let kept_from_ns = lane.full_from_ns().max(range.start);
        lane.each_box(kept_from_ns..range.end, |inner, _| {
            seen += 1;
            if seen <= MOST_SPANS {
                let sum = sums.entry((at, inner.name)).or_default();
                let in_view = inner.end_ns.min(range.end).saturating_sub(inner.start_ns.max(kept_from_ns));
                sum.count += 1;
                sum.total_ns = sum.total_ns.saturating_add(in_view);
                sum.longest_ns = sum.longest_ns.max(inner.end_ns - inner.start_ns);
            }
        });
    }
    let mut sums: Vec<_> = sums.into_iter().map(|((track, name), sum)| (track, name, sum)).collect();
    sums.sort_by_key(|(track, name, sum)| (std::cmp::Reverse(sum.total_ns), *track, name.0));
    (seen <= MOST_SPANS).then_some(sums)
}

fn draw_row(
    sheet: &mut Sheet<'_>,
    name_room: u16,
    (track, span, sum): (&Track, NameId, Sum),
    range: &Range<u64>,
    scene: &Scene<'_>,
) {
    let theme = scene.theme;
    let name = scene.store.name(span);
    if let Some(look) = scene.phase_style(name) {
        sheet.cell(1, 0, look.letter, theme.strong());
    }
    let half = name_room.saturating_sub(4) / 2;
    sheet.text(3, 0, &clip(name, half.saturating_sub(1), theme), theme.plain());
    sheet.text(3 + half, 0, &clip(&track.text, half.saturating_sub(1), theme), theme.dim());
    let share = sum.total_ns as f64 / range.end.saturating_sub(range.start).max(1) as f64;
    let texts = [count(sum.count), duration(sum.total_ns), percent(share), duration(sum.longest_ns)];
    for (at, text) in (1..).zip(texts) {
        sheet.text_ending(name_room, name_room + at * FIGURE, 0, &text, theme.plain());
    }
}
