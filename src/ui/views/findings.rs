//! What is slow, why, and what to try: a list of findings, the most severe first, and the selected one in full below.
//!
//! ```text
//! ─findings  of the newest 8,192 steps ────────────────── of the time ─ how sure ──
//! ▌! spikes                   4            3.1 %  certain  4 steps take 1.6 to 3.1 x
//!    data bound               1            12 %   likely   ...
//!  — not checked          12 kinds, for lack of data
//! ─spikes ─────────────────────────────────────────────────────────────── ↓ 2 more ─
//!  4 steps take 1.6 to 3.1 x their usual time and cost 3.1 %; the worst: step 41 ...
//!  evidence  other steps vary by ± 1.2 ms
//!  try       open one of these steps: its phases, marks, page faults and context switches
//! ▌step 41 took 110 ms, 3.1 x the usual: 68.0 ms more in backward
//!  step 70 took 85.0 ms, 2.0 x the usual: 45.0 ms more in backward
//! ```

use ratatui::style::Style;

use crate::app::{FindingLine, Target, View};
use crate::ui::chart::flags::sign;
use crate::ui::headings::{more, rule};
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, first_shown, selected_and_first};
use crate::ui::theme::Theme;
use crate::wrap::wrapped;
use gnntop_analysis::figures::{count, counted, percent};
use gnntop_analysis::findings::{Finding, FindingKind, NotEnough, Occurrence, Severity};

/// Columns before a finding's name: whether it is selected, and its sign above bars.
const SIGN: u16 = 4;
/// Columns of a finding's name, and of that where there is room.
const NAME: u16 = 20;
const WIDE_NAME: u16 = 28;
/// From this width on there is room.
const WIDE: u16 = 100;
/// From this width on there is room for what shares leave out.
const WITH_FIRST: u16 = 70;
/// Columns at the end of a rule that say how many lines are not shown.
const MORE: u16 = 16;
/// Narrower than this, a line is only a name and a share.
const NARROW: u16 = 50;
/// Columns of a count, a share and of how sure it is.
const COUNT: u16 = 7;
const SHARE: u16 = 8;
const SURE: u16 = 10;
/// Columns of what a line of the selected finding is.
const ABOUT: u16 = 10;
/// A finding with this many places may have more that are not listed.
const PLACES_MOST: u64 = 1024;
/// What a line of evidence is.
const EVIDENCE: &str = "evidence";
/// Rows below which the list has all of them.
const BOTH_LEAST: u16 = 9;
/// From this many rows on, summaries in the list may take several.
const TALL: u16 = 24;
/// Rows of the list at most where there are fewer than twice as many as it would take: what to try needs them more.
const LIST_LEAST: u16 = 4;
const SHORT: u16 = 16;

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let lines = scene.app.finding_lines();
    let height = body.height();
    let wanted = u16::try_from(nothing_found(scene).iter().count() + lines.len() + 1).unwrap_or(u16::MAX);
    let most = (height / 2).saturating_sub(wanted);
    let rows = lines.iter().map(|line| summary_rows(line, body.width()).len() as u16).collect::<Vec<u16>>();
    let further = rows.iter().map(|rows| rows.saturating_sub(1)).sum::<u16>();
    let above = match height {
        ..BOTH_LEAST => height,
        BOTH_LEAST..SHORT => wanted.min(LIST_LEAST),
        _ if height >= TALL && further <= most => wanted + further,
        _ => wanted.min(height / 2),
    };
    draw_list(&mut body.part(0, 0, u16::MAX, above), &lines, scene);
    draw_selected(&mut body.rows(above, 0), scene);
}

/// What to say where nothing was found.
fn nothing_found(scene: &Scene<'_>) -> Option<String> {
    let judgement = scene.app.judgement();
    // What bounds the run does not stand out.
    if judgement.findings.found.iter().any(|finding| finding.kind != FindingKind::Bound) {
        return None;
    }
    Some(match judgement.steps() {
        0 => "no steps yet".to_owned(),
        1 => "nothing wrong in the only step so far".to_owned(),
        steps if judgement.findings.found.is_empty() => format!("nothing wrong in the newest {} steps", count(steps)),
        steps => format!("nothing wrong in the newest {} steps; where their time goes:", count(steps)),
    })
}

fn draw_list(sheet: &mut Sheet<'_>, lines: &[FindingLine<'_>], scene: &Scene<'_>) {
    let steps = scene.app.judgement().steps();
    let note = match steps {
        0 => String::new(),
        1 => "of the only step".to_owned(),
        steps => format!("of the newest {} steps", count(steps)),
    };
    rule(sheet, 0, "findings", &note, scene);
    let without = scene.app.findings().without_first;
    if sheet.width() >= WITH_FIRST && without > 0 {
        let text = format!(" shares after the first {} ", count(without));
        sheet.text_ending(0, sheet.width().saturating_sub(MORE), 0, &text, scene.theme.dim());
    }
    if sheet.width() >= WIDE {
        let end = name_end(sheet.width()) + COUNT;
        sheet.text_ending(end, end + SHARE + 1, 0, " share ", scene.theme.dim());
    }
    let mut top = 1;
    if let Some(text) = nothing_found(scene) {
        let room = sheet.width().saturating_sub(SIGN + 1);
        sheet.text(SIGN, top, &clip(&text, room, scene.theme), scene.theme.plain());
        top += 1;
    }
    let rows = sheet.height().saturating_sub(top);
    let (selected, first) = selected_and_first(sheet, scene.app.line(View::Findings), lines.len(), rows);
    more(sheet, 0, first, lines.len().saturating_sub(first + usize::from(rows)), scene);
    let has_room = usize::from(rows) > lines.len();
    for (at, line) in lines.iter().enumerate().skip(first) {
        let height = if has_room { summary_rows(line, sheet.width()).len().max(1) as u16 } else { 1 };
        if top + height > sheet.height() {
            break;
        }
        sheet.offer(0, top, u16::MAX, height, Target::Line(at));
        let mut sheet = sheet.part(0, top, u16::MAX, height);
        if at == selected {
            sheet.cell(0, 0, scene.theme.glyph('▌', '>'), scene.theme.accent());
        }
        draw_line(&mut sheet, line, at == selected, scene);
        top += height;
    }
}

/// The column of a finding's summary.
fn summary_column(width: u16) -> u16 {
    name_end(width) + COUNT + SHARE + 2 + SURE
}

/// A finding's summary in rows, where a row has room for it.
fn summary_rows(line: &FindingLine<'_>, width: u16) -> Vec<String> {
    match line {
        FindingLine::Found(finding) if width >= NARROW => {
            wrapped(&finding.summary, usize::from(width.saturating_sub(summary_column(width) + 1)))
        }
        _ => vec![String::new()],
    }
}

/// The column after a finding's name.
fn name_end(width: u16) -> u16 {
    SIGN + if width >= WIDE { WIDE_NAME } else { NAME }
}

fn draw_line(sheet: &mut Sheet<'_>, line: &FindingLine<'_>, is_selected: bool, scene: &Scene<'_>) {
    let theme = scene.theme;
    let is_narrow = sheet.width() < NARROW;
    let end = if is_narrow { sheet.width().saturating_sub(SHARE + 1).max(SIGN) } else { name_end(sheet.width()) };
    let name = |kind: FindingKind| clip(kind.title(), (end - SIGN).saturating_sub(1), theme);
    match line {
        FindingLine::Found(finding) => {
            let style = weight(finding, scene);
            if !finding.places.is_empty() {
                sheet.cell(2, 0, sign(finding.kind, theme).0, style);
            }
            sheet.text(SIGN, 0, &name(finding.kind), if is_selected { theme.strong() } else { style });
            let mut x = end;
            if !is_narrow {
                sheet.text_ending(x, x + COUNT, 0, &times(finding), theme.plain());
                x += COUNT;
            }
            sheet.text_ending(x, x + SHARE, 0, &share(finding, scene), theme.plain());
            if !is_narrow {
                x = (x + SHARE + 2).min(sheet.width());
                sheet.text_within(x, 0, SURE - 1, finding.confidence.as_str(), theme.dim());
                draw_summary(sheet, line, &finding.summary, theme);
            }
        }
        FindingLine::Over(over) => {
            sheet.cell(2, 0, theme.glyph('✓', 'v'), theme.dim());
            sheet.text(SIGN, 0, &name(over.finding.kind), theme.dim());
            let text = format!("gone since step {}: {}", count(over.last_step), over.finding.summary);
            let room = sheet.width().saturating_sub(end + 2);
            sheet.text(end + 1, 0, &clip(&text, room, theme), theme.dim());
        }
        FindingLine::NotEnough(all) => {
            sheet.cell(2, 0, theme.glyph('—', '-'), theme.dim());
            sheet.text_within(SIGN, 0, end - SIGN, "not checked", theme.dim());
            let room = sheet.width().saturating_sub(end + 2);
            sheet.text(end + 1, 0, &clip(&not_checked(all), room, theme), theme.dim());
        }
    }
}

/// Draws a summary in all rows of its line; cut off if that is one.
fn draw_summary(sheet: &mut Sheet<'_>, line: &FindingLine<'_>, summary: &str, theme: &Theme) {
    let x = summary_column(sheet.width());
    if sheet.height() > 1 {
        for (y, row) in (0..sheet.height()).zip(summary_rows(line, sheet.width())) {
            sheet.text(x, y, &row, theme.plain());
        }
        return;
    }
    let room = sheet.width().saturating_sub(x + 1);
    sheet.text(x, 0, &clip(summary, room, theme), theme.plain());
}

/// How many kinds could not be looked for.
fn not_checked(all: &[NotEnough]) -> String {
    format!("{}, for lack of data", counted(all.len() as u64, "kind", "kinds"))
}

/// How loud a finding is.
fn weight(finding: &Finding, scene: &Scene<'_>) -> Style {
    match finding.severity {
        Severity::Major => scene.theme.warning(),
        Severity::Minor => scene.theme.plain(),
        Severity::Note => scene.theme.dim(),
    }
}

/// How often it was seen, where it has places.
fn times(finding: &Finding) -> String {
    if finding.places.is_empty() { String::new() } else { count(finding.count) }
}

/// The share of the time that it costs.
fn share(finding: &Finding, scene: &Scene<'_>) -> String {
    if let Some(elsewhere) = finding.counted_elsewhere() {
        return format!("({})", percent(elsewhere));
    }
    finding.share.map_or_else(|| scene.theme.text("—", "-").to_owned(), percent)
}

/// Draws the selected line in full: its words, as far as they are scrolled, then as many of its places as there is room for.
fn draw_selected(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let Some(line) = scene.app.finding_line() else { return };
    let (places, at) = scene.app.finding_places();
    let (title, note) = match line {
        FindingLine::Found(finding) => (finding.kind.title(), in_short(finding)),
        FindingLine::Over(over) => (over.finding.kind.title(), format!("gone since step {}", count(over.last_step))),
        FindingLine::NotEnough(all) => ("not checked", not_checked(all)),
    };
    rule(sheet, 0, title, &note, scene);
    // At least one place is seen, however long the words are.
    let for_places = if places.len() > 1 { 2 } else { 0 };
    let rows = sheet.height().saturating_sub(1 + for_places);
    let columns = sheet.width();
    let mut text = text_rows(facts(line, scene), columns);
    if text.len() > usize::from(rows) {
        text = text_rows(most_useful_first(facts(line, scene)), columns);
    }
    sheet.set_text_extent(text.len(), rows);
    let first = scene.app.finding_text_line().min(text.len().saturating_sub(usize::from(rows)));
    more(sheet, 0, first, text.len().saturating_sub(first + usize::from(rows)), scene);
    for (y, row) in (1..=rows).zip(text.iter().skip(first)) {
        sheet.text(1, y, row.about, scene.theme.dim());
        let style = if row.is_plain { scene.theme.plain() } else { scene.theme.strong() };
        sheet.text(row.x, y, &clip(&row.text, columns.saturating_sub(row.x + 1), scene.theme), style);
    }
    if let (FindingLine::Found(finding), 2..) = (line, places.len()) {
        let sentences: Vec<&str> = places.iter().map(|place| place.sentence.as_str()).collect();
        let y = 1 + rows.min(text.len() as u16);
        draw_places(&mut sheet.rows(y, 0), finding, &sentences, at, scene);
    }
}

/// A row of the text about a finding.
struct TextRow<'t> {
    about: &'t str,
    x: u16,
    text: String,
    is_plain: bool,
}

/// What is said, in rows of this many columns.
fn text_rows(facts: Vec<(&'static str, String)>, columns: u16) -> Vec<TextRow<'static>> {
    let rows = |(about, text): (&'static str, String)| {
        let x = if about.is_empty() { 1 } else { ABOUT + 1 };
        let lines = wrapped(&text, usize::from(columns.saturating_sub(x + 1))).into_iter().enumerate();
        lines.map(move |(nth, text)| TextRow {
            about: if nth == 0 { about } else { "" },
            x,
            text,
            is_plain: !about.is_empty(),
        })
    };
    facts.into_iter().flat_map(rows).collect()
}

/// The same with what to try before the evidence, for where not all of it fits.
fn most_useful_first(mut facts: Vec<(&'static str, String)>) -> Vec<(&'static str, String)> {
    facts.sort_by_key(|(about, _)| *about == EVIDENCE);
    facts
}

/// Confidence and cost of a finding.
fn in_short(finding: &Finding) -> String {
    if let Some(elsewhere) = finding.counted_elsewhere() {
        return format!("{}, counted elsewhere ({})", finding.confidence.as_str(), percent(elsewhere));
    }
    let cost = finding.share.map(|share| format!(", {} of the time", percent(share))).unwrap_or_default();
    format!("{}{cost}", finding.confidence.as_str())
}

/// What a line says: of a finding, what it rests on and what to try.
fn facts(line: FindingLine<'_>, scene: &Scene<'_>) -> Vec<(&'static str, String)> {
    let finding = match line {
        FindingLine::Found(finding) => finding,
        FindingLine::Over(over) => &over.finding,
        FindingLine::NotEnough(all) => {
            return all.iter().map(|it| ("", format!("{}: {}", it.kind.title(), it.reason))).collect();
        }
    };
    let mut facts = vec![("", finding.summary.clone())];
    // The only place is selected, and a list of one would say no more.
    if let [place] = finding.places.as_slice() {
        let is_said = place.sentence == finding.summary;
        facts.push(("where", if is_said { steps_of(place, scene) } else { place.sentence.clone() }));
    }
    facts.extend(finding.evidence.iter().map(|text| (EVIDENCE, text.clone())));
    facts.extend(finding.advice.iter().map(|text| ("try", text.clone())));
    facts
}

/// The steps of a place, as the program numbers them.
fn steps_of(place: &Occurrence, scene: &Scene<'_>) -> String {
    let number = |ordinal: u64| scene.store.steps().known_row(ordinal).map_or(ordinal + 1, |row| row.step().0);
    let (first, last) = (number(place.ordinals.start), number(place.ordinals.end.saturating_sub(1)));
    match first == last {
        true => format!("step {}", count(first)),
        false => format!("steps {} to {}", count(first), count(last)),
    }
}

fn draw_places(sheet: &mut Sheet<'_>, finding: &Finding, sentences: &[&str], at: usize, scene: &Scene<'_>) {
    let theme = scene.theme;
    let listed = sentences.len() as u64;
    let all = if listed >= PLACES_MOST { format!(" ({} in all)", count(finding.count)) } else { String::new() };
    let note = format!("{} of {}{all}, the longest first", at + 1, count(listed));
    rule(sheet, 0, "places", &note, scene);
    let first = first_shown(at, sentences.len(), sheet.height().saturating_sub(1));
    for (y, (nth, sentence)) in (1..sheet.height()).zip(sentences.iter().enumerate().skip(first)) {
        let style = if nth == at { theme.strong() } else { theme.plain() };
        if nth == at {
            sheet.cell(0, y, theme.glyph('▌', '>'), theme.accent());
        }
        sheet.text(1, y, &clip(sentence, sheet.width().saturating_sub(2), theme), style);
    }
}
