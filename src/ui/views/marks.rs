//! The marks of the run by their text: how many, what they took and where they are, if known, how far apart, and how
//! long steps with one take compared with the others.
//!
//! ```text
//! ─marks ──────────── count ──────── took ── of the time ──── between ───── every ──
//!  gc                    44        6.30 s          4.8 %           44     4 steps
//!  epoch                 12             –              –           12    25 steps
//! ```

use crate::app::View;
use crate::ui::headings::rule;
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, first_scrolled};
use gnntop_analysis::figures::{count, duration, percent};
use gnntop_analysis::store::MarkTotals;

/// Columns of a figure with the space before it.
const FIGURE: u16 = 14;
/// Fewest columns of a mark's text.
const TEXT_LEAST: u16 = 16;

/// A figure of a row. If there is no room for all, the last ones are left out.
#[derive(Clone, Copy)]
enum MarkFigure {
    Count,
    Took,
    Share,
    Outside,
    Every,
    Newest,
    StepWithIt,
    OtherSteps,
}

/// The figures where marks have durations.
const TIMED: [MarkFigure; 8] = [
    MarkFigure::Count,
    MarkFigure::Took,
    MarkFigure::Share,
    MarkFigure::Outside,
    MarkFigure::Every,
    MarkFigure::Newest,
    MarkFigure::StepWithIt,
    MarkFigure::OtherSteps,
];
/// The figures where none has.
const UNTIMED: [MarkFigure; 5] =
    [MarkFigure::Count, MarkFigure::Every, MarkFigure::Newest, MarkFigure::StepWithIt, MarkFigure::OtherSteps];

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let kinds = scene.store.marks_by_text();
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
    let is_timed = kinds.iter().any(|(_, marks)| marks.total_ns.is_some());
    let figures: &[MarkFigure] = if is_timed { &TIMED } else { &UNTIMED };
    let room = (body.width().saturating_sub(TEXT_LEAST) / FIGURE).min(figures.len() as u16);
    let figures = &figures[..usize::from(room)];
    let text_room = body.width().saturating_sub(room * FIGURE + 1);
    for (at, figure) in (1u16..).zip(figures) {
        body.text_ending(0, text_room + at * FIGURE, 0, &format!(" {} ", figure.head()), scene.theme.plain());
    }
    let rows = body.height().saturating_sub(1);
    let first = first_scrolled(body, scene.app.line(View::Marks), kinds.len(), rows);
    for (y, (text, marks)) in (1..body.height()).zip(kinds.iter().skip(first)) {
        let mut row = body.part(0, y, u16::MAX, 1);
        row.text(1, 0, &clip(text, text_room.saturating_sub(2), scene.theme), scene.theme.plain());
        for (at, figure) in (1u16..).zip(figures) {
            let told = figure.text(marks, scene).unwrap_or_else(|| scene.theme.glyph('–', '-').to_string());
            row.text_ending(text_room, text_room + at * FIGURE, 0, &told, scene.theme.plain());
        }
    }
}

impl MarkFigure {
    fn head(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Took => "took",
            Self::Share => "of the time",
            Self::Outside => "not in steps",
            Self::Every => "every",
            Self::Newest => "newest",
            Self::StepWithIt => "step with it",
            Self::OtherSteps => "other steps",
        }
    }

    /// The figure for the marks of one text; `None` if it is unknown.
    fn text(self, marks: &MarkTotals, scene: &Scene<'_>) -> Option<String> {
        match self {
            Self::Count => Some(count(marks.count)),
            Self::Took => marks.total_ns.map(duration),
            Self::Share => Some(percent(scene.store.marks_share(marks)?)),
            Self::Outside => Some(count(marks.count.saturating_sub(marks.inside))),
            Self::Every => every(marks),
            Self::Newest => Some(format!("{} ago", duration(scene.store.now_ns().saturating_sub(marks.newest_ns)))),
            Self::StepWithIt => median(marks.steps.iter().map(|(_, period_ns)| *period_ns).collect()).map(duration),
            Self::OtherSteps => scene.store.statistics().period().percentile(0.5).map(duration),
        }
    }
}

/// Usual number of steps from one mark to the next.
fn every(marks: &MarkTotals) -> Option<String> {
    let apart = marks.steps.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].0));
    Some(match median(apart.collect())? {
        1 => "step".to_owned(),
        steps => format!("{} steps", count(steps)),
    })
}

fn median(mut numbers: Vec<u64>) -> Option<u64> {
    numbers.sort_unstable();
    numbers.get(numbers.len() / 2).copied()
}
