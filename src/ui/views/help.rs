//! The keys that do something here, read off the key table, and what the picture means.

use crate::app::{Bound, Panel, Situation, View, keys};
use crate::ui::scene::Scene;
use crate::ui::scroll::first_scrolled;
use crate::ui::sheet::{Sheet, clip};

/// Columns of the keys' names.
const NAMES: u16 = 14;

/// What every reader of the screen should know, whatever the keys.
const NOTES: [&str; 2] = [
    "Percentiles and shares are over all steps since the start, where nothing else is said.",
    "A dash is a value that is not there, with the reason. It is never a zero.",
];

/// What keys do to the run, where it was started elsewhere...
const READER: &str = "The viewer only reads. No key touches the run: quit, freeze or suspend, and it goes on.";
/// ...and where it was started for this view.
const OWNER: &str = "The run goes on without the view: quit, freeze or suspend. Ctrl-C asks, and only there s ends it.";

/// What the reader of a view should know.
fn notes(view: View) -> &'static [&'static str] {
    match view {
        View::Overview => &[
            "A bar is a step from the end of the one before to its own end: its phases and the gap between them.",
            "The axis follows the ordinary steps. A longer one is cut off, with its length written above it.",
            "Signs above bars are findings (key 8) and marks, where there is room; the steps view says what each means.",
            "A phase with a star, as forward*, is inferred: a step's detail says how.",
        ],
        View::Steps => &[
            "Where steps share a column, the bar is the median one and a line goes up to the worst.",
            "The oldest steps of a long run are reduced: of each group the worst and the median are kept.",
            "On a logarithmic axis the height is the whole step, and its parts are shares of it.",
            "A partial batch is short by the step and ordinary by the graph: see the unit.",
        ],
        View::Latency => &[
            "The curve goes from the median to the rarest; each column is rarer by the same factor.",
            "A percentile with too few steps to tell it from the longest is a dash.",
        ],
        View::Memory => &[
            "A leak is a slope of what is live at the ends of steps, steady in both halves of them, whose 95 % interval is above 0.",
            "Behind the peak stand the large allocations that were live then; a release is matched by its size.",
        ],
        View::Hardware => &[
            "Charts share the columns of the bars: filled to the mean, a dot at the largest. Nothing drawn is nothing read.",
            "Steal is time that the host gave to others; pressure is time in which tasks stood still for want of something.",
        ],
        View::Energy => &[
            "measured is a counter's, measured~ one interpolated or power added up, fitted by phase, modelled a formula of load.",
            "+- is the 95 % interval; a model has its band in brackets. The device is the whole of it, the job what it used.",
        ],
        View::Tracks => &[
            "A phase is filled with its look, another span stands between brackets; nested ones stand below.",
            "Where spans are too many or too short to be seen, the column shows how full it is.",
            "Idle is the share of the time in view that no span of the track covers.",
        ],
        View::Findings => &[
            "Findings are of the newest 8,192 steps, those with the largest share of the time first.",
            "certain is measured directly, likely is what the evidence points to, possible has other causes too.",
        ],
        View::Ranks => &[
            "A lane is a rank's training, all on the clock of the lowest rank. Dots are waiting for others in the all-reduce.",
            "Own is a step without that wait, the median of the newest 100 steps that all ranks have; the skew is of it.",
            "A rank is silent when others have spoken for 2 s since its last word.",
        ],
        View::Pipeline => &[
            "F and B are a micro-batch forward and backward, with its number; dots are time in which a stage has nothing to do.",
            "Live is how many micro-batches a stage holds, of those that its schedule needs at most.",
            "The recurrence knows the stages' own times and hands over at once; what is beyond it is communication.",
        ],
        View::Compare => &[
            "Start with --against: gnntop replay A --against B, or gnntop attach A --against B.",
            "~ is a change that may be chance: the 95 % ranges of the two percentiles overlap.",
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
    let mut sheet = sheet.rows(1, 0);
    let lines = lines(scene);
    let rows = sheet.height();
    let first = first_scrolled(&mut sheet, scene.app.line(View::Help), lines.len(), rows);
    for (y, line) in (0..sheet.height()).zip(lines.iter().skip(first)) {
        let room = sheet.width().saturating_sub(2);
        match line {
            HelpRow::Key(bound) => {
                let name = if theme.ascii() { keys::ascii(&bound.name) } else { bound.name.to_string() };
                sheet.text_within(1, y, NAMES, &name, theme.accent());
                let room = room.saturating_sub(NAMES);
                sheet.text(1 + NAMES, y, &clip(bound.binding.help, room, theme), theme.plain());
            }
            HelpRow::Note(note) => {
                sheet.text(1, y, &clip(note, room, theme), theme.dim());
            }
            HelpRow::Nothing => (),
        }
    }
}

enum HelpRow<'a> {
    Key(&'a Bound),
    Note(&'static str),
    Nothing,
}

fn lines<'a>(scene: &Scene<'a>) -> Vec<HelpRow<'a>> {
    let behind = behind(scene);
    let can_be = |bound: &&Bound| !bound.keys.is_empty() && behind.iter().any(|s| s.allows(bound.binding.when));
    let bound = scene.app.keymap().rows().iter().filter(can_be);
    let owner = if scene.app.situation().started { OWNER } else { READER };
    let notes = notes(scene.app.main_view()).iter().chain([&owner]).chain(&NOTES).map(|note| HelpRow::Note(note));
    bound.map(HelpRow::Key).chain([HelpRow::Nothing]).chain(notes).collect()
}

/// The situations that the reader may be in after leaving the help: the view below, with each panel in focus.
fn behind(scene: &Scene<'_>) -> Vec<Situation> {
    let here = Situation { view: scene.app.main_view(), steps: true, selected: true, ..scene.app.situation() };
    Panel::ALL.iter().map(|focus| Situation { focus: *focus, ..here }).collect()
}
