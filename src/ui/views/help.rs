//! The keys that do something here, read off the key table, and what the picture means.

use crate::app::{BoundAction, Panel, Situation, View, keys};
use crate::ui::headings::more;
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, first_scrolled};
use crate::wrap::wrapped;

/// Columns of the keys' names.
const NAMES: u16 = 14;

/// Notes for every view.
const NOTES: [&str; 2] = [
    "Percentiles and shares are over all steps since the start, unless a view says otherwise.",
    "A dash means not available, with the reason. It never means zero.",
];

/// What keys do to a run that was started elsewhere...
const READER: &str = "The viewer only reads. No key touches the run: if you quit, freeze or suspend, it continues.";
/// ...to one that is over...
const REPLAY: &str = "This is a recording: no key changes it.";
/// ...and to one that was started for this view.
const OWNER: &str = "The run continues if you quit, freeze or suspend. Ctrl-C asks first; only its s stops the run.";

/// What help says of keys that leave a run as it is. A recording has none.
const CONTINUES: &str = "; the run continues";

/// Notes for a view.
fn notes(view: View) -> &'static [&'static str] {
    match view {
        View::Overview => &[
            "A bar is a step, from the end of the previous one to its own end: its phases and the gap between them.",
            "The axis fits ordinary steps. A longer step is cut off, with its length above it.",
            "Signs above bars are findings (key 8) and marks; the steps view explains them.",
            "A phase with a star, such as forward*, is inferred; a step's detail says how.",
        ],
        View::Steps => &[
            "If steps share a column, the bar is the median step and a line goes up to the worst.",
            "The oldest steps of a long run are reduced: each group keeps its worst and its median step.",
            "On a logarithmic axis the height is the whole step, and its parts show their shares.",
            "A partial batch is short per step and ordinary per graph: change the unit with u.",
        ],
        View::Latency => &[
            "The curve goes from the median to the rarest steps; each column is rarer by the same factor.",
            "A dash means too few steps to distinguish the percentile from the longest step.",
        ],
        View::Memory => &[
            "A leak: live memory at the ends of steps rises in both halves of the run, with a 95 % interval above 0.",
            "Behind the peak are the large allocations that were live then; releases are matched by size.",
        ],
        View::Hardware => &[
            "Charts share the columns of the bars: filled to the mean, a dot at the maximum. Blank means no reading.",
            "Steal is time that the host gave to other guests; pressure is time in which tasks waited for a resource.",
        ],
        View::Energy => &[
            "measured: a counter; measured~: interpolated, or power added up; fitted: by phase; modelled: a formula of load.",
            "± is the 95 % interval; a model has its band in brackets. Device is the whole device, job the process's part.",
        ],
        View::Tracks => &[
            "A phase is filled, another span is in brackets; nested spans are below.",
            "If spans are too many or too short to draw, the column shows how full it is.",
            "Idle is the share of the visible time that no span of the track covers.",
        ],
        View::Findings => &[
            "Findings cover the newest 8,192 steps; for slowdowns, slow rhythms and memory growth, the whole run.",
            "Those with the largest share of the time come first.",
            "certain: measured directly; likely: the evidence points to it; possible: other causes fit as well.",
        ],
        View::Ranks => &[
            "A lane is a rank's training track, on the clock of the lowest rank. Dots are waits in the all-reduce.",
            "Own is a step without that wait: the median of the newest 100 steps that all ranks have. Skew is its spread.",
            "A rank is silent if the others have published for 2 s since its last event.",
        ],
        View::Pipeline => &[
            "F and B are a micro-batch's forward and backward pass, with its number; dots mean that the stage is idle.",
            "Live is how many micro-batches a stage holds, and the most that its schedule needs.",
            "The recurrence uses the stages' own times without communication; the rest is communication.",
        ],
        View::Compare => &[
            "Start with --against: gnntop replay NEW --against OLD, or gnntop attach NEW --against OLD.",
            "~ marks a change that may be chance: the 95 % ranges of the two percentiles overlap.",
        ],
        _ => &[],
    }
}

/// Draws the help.
pub fn draw(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let theme = scene.theme;
    sheet.fill_row(0, 0, theme.glyph('─', '-'), theme.dim());
    let view = scene.app.main_view();
    sheet.text(1, 0, &format!("keys in {} ", view.name()), theme.strong());
    let lines = lines(scene, sheet.width().saturating_sub(2));
    let rows = sheet.height().saturating_sub(1);
    let first = first_scrolled(sheet, scene.app.line(View::Help), lines.len(), rows);
    more(sheet, 0, first, lines.len().saturating_sub(first + usize::from(rows)), scene);
    let mut sheet = sheet.rows(1, 0);
    for (y, line) in (0..sheet.height()).zip(lines.iter().skip(first)) {
        match line {
            HelpRow::Key(name, text) => {
                let name = name.as_deref().unwrap_or_default();
                let name = if theme.ascii() { keys::ascii(name) } else { name.to_owned() };
                sheet.text_within(1, y, NAMES, &name, theme.accent());
                sheet.text(1 + NAMES, y, text, theme.plain());
            }
            HelpRow::Note(text) => {
                sheet.text(1, y, text, theme.dim());
            }
        }
    }
}

/// A row of the screen.
enum HelpRow {
    /// What a key does; only its first row has the key.
    Key(Option<String>, String),
    Note(String),
}

/// All rows, at most this many columns wide.
fn lines(scene: &Scene<'_>, columns: u16) -> Vec<HelpRow> {
    let behind = behind(scene);
    let can_be = |bound: &&BoundAction| !bound.keys.is_empty() && behind.iter().any(|s| s.allows(bound.binding.when));
    let bound = scene.app.keymap().rows().iter().filter(can_be);
    let here = scene.app.situation();
    let owner = match (here.replay, here.started) {
        (true, _) => REPLAY,
        (_, true) => OWNER,
        _ => READER,
    };
    let notes = notes(scene.app.main_view()).iter().chain([&owner]).chain(&NOTES);
    let key = |bound: &BoundAction| {
        let help = if here.replay { bound.binding.help.trim_end_matches(CONTINUES) } else { bound.binding.help };
        let texts = wrapped(help, usize::from(columns.saturating_sub(NAMES))).into_iter();
        let mut name = Some(name(bound, &behind, scene));
        texts.map(|text| HelpRow::Key(name.take(), text)).collect::<Vec<HelpRow>>()
    };
    let notes = notes.flat_map(|note| wrapped(note, usize::from(columns))).map(HelpRow::Note);
    bound.flat_map(key).chain([HelpRow::Note(String::new())]).chain(notes).collect()
}

/// A line's keys without those that do something else here.
fn name(bound: &BoundAction, behind: &[Situation], scene: &Scene<'_>) -> String {
    let keymap = scene.app.keymap();
    let names = behind.iter().map(|situation| keymap.name_here(bound, situation));
    names.max_by_key(String::len).filter(|name| !name.is_empty()).unwrap_or_else(|| bound.name.to_string())
}

/// The situations that the reader may be in after leaving the help: the view below, with each panel in focus.
fn behind(scene: &Scene<'_>) -> Vec<Situation> {
    let here = Situation { view: scene.app.main_view(), steps: true, selected: true, ..scene.app.situation() };
    Panel::ALL.iter().map(|focus| Situation { focus: *focus, ..here }).collect()
}
