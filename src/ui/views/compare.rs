//! Two sessions side by side, A from before and B the one that is shown: how much faster the work gets done, whether both ran the same, then the step and its
//! phases. Above, the percentile curves of the selected line, one over the other.
//!
//! ```text
//! ─compare  A pna.gnntop, 95 of 100 steps   B pna-fused.gnntop, 95 of 100 ─────────
//!  B does 1.31 x the work of A: 6.27 k and 8.21 k graphs/s (95 %: 1.30 to 1.32 x)
//!  both ran the same, as far as recorded: batches of 256 graphs, the same phases
//! 100 ms┤                     ███████
//! 50 ms ┤━━━━━━━━━━━━━━━━━━━━━━━━━━━━  A █  B ━
//! ─phases ─────── mean A ─ mean B ─ change ─ p90 A ── p90 B ─ change ─ share A ── B
//! ▌     step     39.0 ms  29.3 ms   -25 %  39.0 ms  30.0 ms   -23 %
//! ```

use crate::app::{ComparedSession, View};
use crate::ui::chart::curve;
use crate::ui::headings::rule;
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, selected_and_first};
use crate::wrap::wrapped;
use gnntop_analysis::comparison::{Change, Compared, Comparison, Line};
use gnntop_analysis::figures::{count, difference, duration, percent, shorten_pair};

/// Columns of swatch and letter.
const SWATCH: u16 = 6;
/// Columns of a name that is worth showing, and of one that is never cut.
const NAME_LEAST: u16 = 10;
const NAME_MOST: u16 = 30;
/// Columns of a duration, of a change, and of a share, each with the space before it.
const FIGURE: u16 = 9;
const CHANGE: u16 = 9;
const SHARE: u16 = 7;
/// Rows of a curve that says something, and most rows of a sentence above it.
const CURVE_LEAST: u16 = 5;
const SENTENCE_MOST: usize = 2;
/// Columns of a title that are not the sessions' names.
const TITLE_REST: u16 = 52;
/// Names of sessions in the title are not cut below this.
const TITLE_LEAST: u16 = 10;
/// Statistics, the most important first: as many as there is room for.
const STATISTICS: [&str; 4] = ["mean", "p90", "p50", "p99"];
/// Their order on the screen.
const IN_ORDER: [&str; 4] = ["mean", "p50", "p90", "p99"];

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let Some((other, comparison)) = scene.app.other().and_then(|other| Some((other, other.comparison()?))) else {
        return draw_alone(body, scene);
    };
    rule(body, 0, "compare", &titles(scene, other, comparison, body.width()), scene);
    let below = draw_sentences(body, comparison, scene);
    let lines = &comparison.lines;
    let at = scene.app.line(View::Compare).min(lines.len().saturating_sub(1));
    let table = (lines.len() as u16).saturating_add(2);
    let above = body.height().saturating_sub(below + table);
    let above = if above < CURVE_LEAST { 0 } else { above };
    if let (Some(line), 1..) = (lines.get(at), above) {
        draw_curves(&mut body.part(0, below, u16::MAX, above), line, scene);
    }
    draw_table(&mut body.rows(below + above, 0), lines, scene);
}

fn draw_alone(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    rule(body, 0, "compare", "", scene);
    let lines = [
        "only one run is open; add an older one to compare it with:",
        "",
        "  gnntop replay new.gnntop --against old.gnntop",
        "  gnntop attach 4711 --against old.gnntop",
    ];
    for (y, line) in (1..).zip(lines) {
        body.text(1, y, line, scene.theme.plain());
    }
}

/// Which sessions these are, and how many of their steps are compared.
fn titles(scene: &Scene<'_>, other: &ComparedSession, comparison: &Comparison, columns: u16) -> String {
    let title = |title: &str, store: &gnntop_analysis::store::Store| match title {
        "" => store.session().info().map(|info| info.name.clone()).unwrap_or_default(),
        title => title.to_owned(),
    };
    let titles = [title(&other.status().title, other.store()), title(&scene.app.status().title, scene.store)];
    // For recordings the file's name is enough if it distinguishes them.
    let files = titles.clone().map(|title| title.rsplit('/').next().unwrap_or_default().to_owned());
    let names = if files[0] == files[1] { titles } else { files };
    let room = columns.saturating_sub(TITLE_REST).max(2 * TITLE_LEAST) / 2;
    let names = shorten_pair([&names[0], &names[1]], usize::from(room), scene.theme.glyph('…', '~'));
    let [a, b] = [0, 1].map(|side: usize| {
        let of = &comparison.sides[side];
        format!("{}, {} of {} steps", names[side], count(of.compared_steps), count(of.steps))
    });
    format!("A {a}   B {b}")
}

/// What follows, in words. Gives the row below.
fn draw_sentences(body: &mut Sheet<'_>, comparison: &Comparison, scene: &Scene<'_>) -> u16 {
    let room = body.width().saturating_sub(2);
    let most = if body.height() < 12 { 1 } else { SENTENCE_MOST };
    let mut y = 1;
    let sentences =
        [(comparison.headline(), scene.theme.strong()), (comparison.sameness.sentence(), scene.theme.plain())];
    for (sentence, style) in sentences {
        let lines = wrapped(&sentence, usize::from(room));
        let shown = lines.len().min(most);
        // What does not fit into the last line is cut off with a sign.
        let last = lines.get(shown.saturating_sub(1)..).unwrap_or_default().join(" ");
        let lines = lines.iter().take(shown.saturating_sub(1)).chain([&last]);
        for line in lines {
            body.text(1, y, &clip(line, room, scene.theme), style);
            y += 1;
        }
    }
    y
}

fn draw_curves(sheet: &mut Sheet<'_>, line: &Line, scene: &Scene<'_>) {
    match &line.durations {
        [Some(a), other] => curve::draw_over(sheet, a, other.as_ref(), scene),
        [None, Some(b)] => curve::draw(sheet, b, None, scene),
        [None, None] => (),
    }
}

/// Which columns fit: as many statistics as there is room for, then the shares.
struct CompareLayout {
    name: u16,
    statistics: Vec<&'static str>,
    has_shares: bool,
}

impl CompareLayout {
    fn new(width: u16) -> Self {
        let statistic = 2 * FIGURE + CHANGE;
        let room = width.saturating_sub(SWATCH + NAME_LEAST + 1);
        let count = (room / statistic).clamp(1, STATISTICS.len() as u16);
        let room = room.saturating_sub(count * statistic);
        let has_shares = count > 1 && room >= 2 * SHARE;
        let room = room.saturating_sub(if has_shares { 2 * SHARE } else { 0 });
        let shown = &STATISTICS[..usize::from(count)];
        let statistics = IN_ORDER.into_iter().filter(|name| shown.contains(name)).collect();
        Self { name: (NAME_LEAST + room).min(NAME_MOST), statistics, has_shares }
    }

    /// Widths of the columns after the name, with their heads.
    fn columns(&self) -> Vec<(u16, String)> {
        let mut columns = Vec::new();
        for name in &self.statistics {
            columns.extend([
                (FIGURE, format!("{name} A")),
                (FIGURE, format!("{name} B")),
                (CHANGE, "change".to_owned()),
            ]);
        }
        if self.has_shares {
            columns.extend([(SHARE, "% A".to_owned()), (SHARE, "% B".to_owned())]);
        }
        columns
    }
}

fn draw_table(sheet: &mut Sheet<'_>, lines: &[Line], scene: &Scene<'_>) {
    let theme = scene.theme;
    let layout = CompareLayout::new(sheet.width());
    rule(sheet, 0, "times", "", scene);
    let mut end = SWATCH + layout.name;
    for (width, head) in layout.columns() {
        end += width;
        sheet.text_ending(0, end + 1, 0, &format!(" {head} "), theme.plain());
    }
    let rows = sheet.height().saturating_sub(1);
    let (selected, first) = selected_and_first(sheet, scene.app.line(View::Compare), lines.len(), rows);
    for (y, (at, line)) in (1..=rows).zip(lines.iter().enumerate().skip(first)) {
        draw_line(&mut sheet.part(0, y, u16::MAX, 1), line, at == selected, &layout, scene);
    }
    let note = "~ may be chance, or is too small to matter; step: from its own start; period: with the gap before it";
    let below = lines.len() as u16 + 1;
    sheet.text(SWATCH, below, &clip(note, sheet.width().saturating_sub(SWATCH + 1), theme), theme.dim());
}

fn draw_line(sheet: &mut Sheet<'_>, line: &Line, is_selected: bool, layout: &CompareLayout, scene: &Scene<'_>) {
    let theme = scene.theme;
    if is_selected {
        sheet.cell(0, 0, theme.glyph('▌', '>'), theme.accent());
    }
    let phase = scene.store.phases().iter().position(|phase| phase.text == line.name);
    if let Some(look) = phase.and_then(|at| scene.phase_styles.get(at)) {
        (1..3).for_each(|x| sheet.cell(x, 0, look.fill, look.style()));
        sheet.cell(4, 0, look.letter, theme.strong());
    }
    let style = if is_selected { theme.strong() } else { theme.plain() };
    sheet.text(SWATCH, 0, &clip(&line.name, layout.name - 1, theme), style);
    let mut texts: Vec<Option<String>> = layout.statistics.iter().flat_map(|name| figures(line, name)).collect();
    if layout.has_shares {
        texts.extend(line.shares.map(|share| share.map(percent)));
    }
    let mut end = SWATCH + layout.name;
    for ((width, head), text) in layout.columns().into_iter().zip(texts) {
        let start = end;
        end += width;
        let absent = if head == "change" || head.starts_with('%') { "" } else { theme.text("—", "-") };
        let style = if head == "change" { theme.strong() } else { theme.plain() };
        sheet.text_ending(start, end, 0, text.as_deref().unwrap_or(absent), style);
    }
}

/// A number of both, and its change, with a sign if that may be chance or does not matter; nothing if there are too few
/// steps.
fn figures(line: &Line, statistic: &str) -> [Option<String>; 3] {
    let Some(number) = line.numbers.iter().find(|number| number.statistic == statistic) else {
        return alone(line, statistic);
    };
    let Compared { first_ns, second_ns, verdict, .. } = number;
    let sign = match verdict {
        Change::Faster | Change::Slower => "",
        Change::Negligible | Change::NoEvidence => "~",
        Change::TooFew => return [Some(duration(*first_ns as u64)), Some(duration(*second_ns as u64)), None],
    };
    let change = difference(*second_ns as u64, *first_ns as u64).map(|text| format!("{sign}{text}"));
    [Some(duration(*first_ns as u64)), Some(duration(*second_ns as u64)), change]
}

/// A number of the side that alone has the phase.
fn alone(line: &Line, statistic: &str) -> [Option<String>; 3] {
    let [a, b] = [0, 1].map(|side: usize| {
        let all = line.durations[side].as_ref()?;
        let ns = match statistic.strip_prefix('p').and_then(|p| p.parse::<f64>().ok()) {
            Some(p) => all.percentile(p / 100.0)?,
            None => all.mean_ns()? as u64,
        };
        Some(duration(ns))
    });
    [a, b, None]
}
