//! Two sessions side by side, phase by phase: their medians and tails, what changed, and whether that is more than chance.
//! Above, the percentile curves of the selected line, one over the other.
//!
//! ```text
//! ─compare  A pna, 100 steps   B pna-fused, 100 steps ─────────────────────────────
//!  B takes 0.76 x the time of A at the median step: 40.0 ms to 30.3 ms
//! 100 ms┤                     ███████
//! 50 ms ┤━━━━━━━━━━━━━━━━━━━━━━━━━━━━  A █  B ━
//! ─phases ──────── p50 A ── p50 B ─ change ─ p99 A ── p99 B ─ change ─ share A ── B
//! ▌     step     40.0 ms  30.3 ms   -24 %  85.0 ms  31.0 ms   -64 %
//! ```

use crate::app::{Other, Pair, View};
use crate::ui::chart::curve;
use crate::ui::headings::rule;
use crate::ui::scene::Scene;
use crate::ui::scroll::selected_and_first;
use crate::ui::sheet::{Sheet, clip};
use gnntop_analysis::figures::{count, difference, duration, percent, quantity};
use gnntop_analysis::store::{Distribution, Store};

/// Columns of swatch and letter.
const SWATCH: u16 = 6;
/// Columns of a name that is worth showing.
const NAME_LEAST: u16 = 10;
/// Columns of a duration, of a change, and of a share, each with the space before it.
const FIGURE: u16 = 9;
const CHANGE: u16 = 9;
const SHARE: u16 = 7;
/// Rows of a curve that says something.
const CURVE_LEAST: u16 = 5;
/// Longest name of a session in the title.
const TITLE_MOST: u16 = 24;

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let Some(other) = scene.app.other() else { return draw_alone(body, scene) };
    rule(body, 0, "compare", &titles(scene, other), scene);
    let room = body.width().saturating_sub(2);
    body.text(1, 1, &clip(&verdict(scene, other), room, scene.theme), scene.theme.strong());
    body.text(1, 2, &clip(&throughput(scene, other), room, scene.theme), scene.theme.plain());
    let pairs = scene.app.pairs();
    let at = scene.app.line(View::Compare).min(pairs.len().saturating_sub(1));
    let table = (pairs.len() as u16).saturating_add(2);
    let above = body.height().saturating_sub(3 + table);
    let above = if above < CURVE_LEAST { 0 } else { above };
    if let (Some(pair), 1..) = (pairs.get(at), above) {
        draw_curves(&mut body.part(0, 3, u16::MAX, above), pair, scene);
    }
    draw_table(&mut body.rows(3 + above, 0), &pairs, scene);
}

fn draw_alone(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    rule(body, 0, "compare", "", scene);
    let lines = [
        "only one run is open; add another one to compare them:",
        "",
        "  gnntop replay A.gnntop --against B.gnntop",
        "  gnntop attach 4711 --against before.gnntop",
    ];
    for (y, line) in (1..).zip(lines) {
        body.text(1, y, line, scene.theme.plain());
    }
}

/// Which sessions these are and how many steps each has.
fn titles(scene: &Scene<'_>, other: &Other) -> String {
    let title = |letter: char, store: &Store, source: &str| {
        let name = store.session().info().map_or(source, |info| info.name.as_str());
        let name = clip(name, TITLE_MOST, scene.theme);
        format!("{letter} {name}, {} steps", count(store.statistics().steps()))
    };
    let one = title('A', scene.store, &scene.app.status().title);
    format!("{one}   {}", title('B', other.store(), &other.status().title))
}

/// How the median steps stand to each other.
fn verdict(scene: &Scene<'_>, other: &Other) -> String {
    let periods = [scene.store.statistics().period(), other.store().statistics().period()];
    match periods.map(|all| all.percentile(0.5)) {
        [Some(a @ 1..), Some(b)] => {
            let ratio = quantity(b as f64 / a as f64);
            let [from, to] = [a, b].map(duration);
            match periods[0].differs(periods[1], 0.5) {
                true => format!("B takes {ratio} x the time of A at the median step: {from} to {to}"),
                false => format!("A and B do not differ at the median step by more than chance: {from} and {to}"),
            }
        }
        _ => "one of the runs has no steps yet".to_owned(),
    }
}

/// Work per second in both, of each kind that both tell.
fn throughput(scene: &Scene<'_>, other: &Other) -> String {
    let [a, b] = [scene.store, other.store()].map(|store| store.statistics().throughput());
    let rates = [
        (a.steps_per_s, b.steps_per_s, "steps/s"),
        (a.graphs_per_s, b.graphs_per_s, "graphs/s"),
        (a.seeds_per_s, b.seeds_per_s, "seeds/s"),
        (a.edges_per_s, b.edges_per_s, "edges/s"),
    ];
    let arrow = scene.theme.text("→", "->");
    let both =
        rates.into_iter().filter_map(|(a, b, unit)| Some(format!("{} {arrow} {} {unit}", quantity(a?), quantity(b?))));
    both.collect::<Vec<_>>().join(scene.theme.text(" · ", " | "))
}

fn draw_curves(sheet: &mut Sheet<'_>, pair: &Pair<'_>, scene: &Scene<'_>) {
    match pair.durations {
        [Some(a), other] => curve::draw_over(sheet, a, other, scene),
        [None, Some(b)] => curve::draw(sheet, b, None, scene),
        [None, None] => (),
    }
}

/// Which columns fit: the medians always, then the tails, then the shares.
struct Layout {
    name: u16,
    has_tails: bool,
    has_shares: bool,
}

impl Layout {
    fn of(width: u16) -> Self {
        let pair = 2 * FIGURE + CHANGE;
        let room = width.saturating_sub(SWATCH + NAME_LEAST + pair + 1);
        let has_tails = room >= pair;
        let room = room.saturating_sub(if has_tails { pair } else { 0 });
        let has_shares = has_tails && room >= 2 * SHARE;
        let room = room.saturating_sub(if has_shares { 2 * SHARE } else { 0 });
        Self { name: NAME_LEAST + room.min(30), has_tails, has_shares }
    }

    /// Widths of the columns after the name, with their heads.
    fn columns(&self) -> Vec<(u16, &'static str)> {
        let mut columns = vec![(FIGURE, "p50 A"), (FIGURE, "p50 B"), (CHANGE, "change")];
        if self.has_tails {
            columns.extend([(FIGURE, "p99 A"), (FIGURE, "p99 B"), (CHANGE, "change")]);
        }
        if self.has_shares {
            columns.extend([(SHARE, "% A"), (SHARE, "% B")]);
        }
        columns
    }
}

fn draw_table(sheet: &mut Sheet<'_>, pairs: &[Pair<'_>], scene: &Scene<'_>) {
    let theme = scene.theme;
    let layout = Layout::of(sheet.width());
    rule(sheet, 0, "phases", "", scene);
    let mut end = SWATCH + layout.name;
    for (width, head) in layout.columns() {
        end += width;
        sheet.text_ending(0, end + 1, 0, &format!(" {head} "), theme.plain());
    }
    let rows = sheet.height().saturating_sub(1);
    let (selected, first) = selected_and_first(sheet, scene.app.line(View::Compare), pairs.len(), rows);
    for (y, (at, pair)) in (1..=rows).zip(pairs.iter().enumerate().skip(first)) {
        draw_pair(&mut sheet.part(0, y, u16::MAX, 1), pair, at == selected, &layout, scene);
    }
    let note = "~ a change that may be chance: the ranges of the percentiles overlap";
    let below = pairs.len() as u16 + 1;
    sheet.text(SWATCH, below, &clip(note, sheet.width().saturating_sub(SWATCH + 1), theme), theme.dim());
}

fn draw_pair(sheet: &mut Sheet<'_>, pair: &Pair<'_>, is_selected: bool, layout: &Layout, scene: &Scene<'_>) {
    let theme = scene.theme;
    if is_selected {
        sheet.cell(0, 0, theme.glyph('▌', '>'), theme.accent());
    }
    if let Some(look) = pair.phase.and_then(|at| scene.looks.get(at)) {
        (1..3).for_each(|x| sheet.cell(x, 0, look.fill, look.style()));
        sheet.cell(4, 0, look.letter, theme.strong());
    }
    let style = if is_selected { theme.strong() } else { theme.plain() };
    sheet.text(SWATCH, 0, &clip(pair.name, layout.name - 1, theme), style);
    let mut texts: Vec<Option<String>> = figures(pair, 0.5).into();
    if layout.has_tails {
        texts.extend(figures(pair, 0.99));
    }
    if layout.has_shares {
        texts.extend(pair.shares.map(|share| share.map(percent)));
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

/// A percentile of both, and its change with a sign where that may be chance; nothing where there are too few to tell.
fn figures(pair: &Pair<'_>, quantile: f64) -> [Option<String>; 3] {
    let told = pair.durations.map(|all| all.filter(|all| all.tells(quantile)));
    let [a, b] = told.map(|all| all.and_then(|all: &Distribution| all.percentile(quantile)));
    let change = match (told, a, b) {
        ([Some(all), Some(other)], Some(a), Some(b)) => {
            let sign = if all.differs(other, quantile) { "" } else { "~" };
            difference(b, a).map(|text| format!("{sign}{text}"))
        }
        _ => None,
    };
    [a.map(duration), b.map(duration), change]
}
