//! The marks of the run by their text: how many, how far apart, and how long steps with one take beside the others.
//!
//! ```text
//! ─marks of the newest 4,096 ───── count ──── every ── newest ── step with it ──
//!  gc                                 44   20 steps   3 s ago   143 ms   2.0 x
//! ```

use std::collections::BTreeMap;

use crate::app::View;
use crate::ui::headings::rule;
use crate::ui::scene::Scene;
use crate::ui::scroll::first_scrolled;
use crate::ui::sheet::{Sheet, clip};
use gnntop_analysis::figures::{count, duration};

/// Columns of a figure with the space before it.
const FIGURE: u16 = 14;
/// The figures of a row, the first ones first where there is not room for all.
const HEADS: [&str; 5] = ["count", "every", "newest", "step with it", "other steps"];
/// Columns that a mark's text has at least.
const TEXT_LEAST: u16 = 16;

/// All marks of one text that are kept.
#[derive(Default)]
struct Kind {
    count: u64,
    newest_ns: u64,
    /// Ordinals of the steps with one, each once, with how long their periods are.
    steps: Vec<(u64, u64)>,
}

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let kinds = kinds(scene);
    let marks = scene.store.marks();
    let note = match marks.discarded() {
        0 => String::new(),
        _ => format!("the newest {}", count(marks.iter().len() as u64)),
    };
    rule(body, 0, "marks", &note, scene);
    if kinds.is_empty() {
        let text = "no marks yet: the program makes them, such as mark(\"checkpoint\")";
        body.text(1, 1, &clip(text, body.width().saturating_sub(2), scene.theme), scene.theme.dim());
        return;
    }
    let figures = (body.width().saturating_sub(TEXT_LEAST) / FIGURE).min(HEADS.len() as u16);
    let text_room = body.width().saturating_sub(figures * FIGURE + 1);
    for (at, head) in (1..=figures).zip(HEADS) {
        body.text_ending(0, text_room + at * FIGURE, 0, &format!(" {head} "), scene.theme.plain());
    }
    let rows = body.height().saturating_sub(1);
    let first = first_scrolled(body, scene.app.line(View::Marks), kinds.len(), rows);
    for (y, (text, kind)) in (1..body.height()).zip(kinds.iter().skip(first)) {
        let mut row = body.part(0, y, u16::MAX, 1);
        row.text(1, 0, &clip(text, text_room.saturating_sub(2), scene.theme), scene.theme.plain());
        for (at, figure) in (1..=figures).zip(kind.figures(scene)) {
            row.text_ending(text_room, text_room + at * FIGURE, 0, &figure, scene.theme.plain());
        }
    }
}

/// The marks by their text, the most frequent first.
fn kinds<'a>(scene: &Scene<'a>) -> Vec<(&'a str, Kind)> {
    let mut kinds: BTreeMap<&str, Kind> = BTreeMap::new();
    for mark in scene.store.marks().iter() {
        let kind = kinds.entry(scene.store.name(mark.name)).or_default();
        kind.count += 1;
        kind.newest_ns = kind.newest_ns.max(mark.t_ns);
        if let Some(row) = scene.store.steps().at_time(mark.t_ns)
            && kind.steps.last().is_none_or(|(last, _)| *last != row.ordinal())
        {
            kind.steps.push((row.ordinal(), row.period_ns()));
        }
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, kind)| std::cmp::Reverse(kind.count));
    kinds
}

impl Kind {
    /// What [`HEADS`] names; a dash where it cannot be told.
    fn figures(&self, scene: &Scene<'_>) -> [String; 5] {
        let dash = || scene.theme.glyph('–', '-').to_string();
        let median = |numbers: &mut Vec<u64>| {
            numbers.sort_unstable();
            numbers.get(numbers.len() / 2).copied()
        };
        let mut apart: Vec<u64> = self.steps.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].0)).collect();
        let mut with: Vec<u64> = self.steps.iter().map(|(_, period_ns)| *period_ns).collect();
        let every = median(&mut apart).map(|steps| match steps {
            1 => "step".to_owned(),
            steps => format!("{} steps", count(steps)),
        });
        let ago = duration(scene.store.now_ns().saturating_sub(self.newest_ns));
        let other = scene.store.statistics().period().percentile(0.5);
        [
            count(self.count),
            every.unwrap_or_else(dash),
            format!("{ago} ago"),
            median(&mut with).map_or_else(dash, duration),
            other.map_or_else(dash, duration),
        ]
    }
}
