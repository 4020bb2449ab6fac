//! Every key, what it does and where: as data. Help, footer and key handling are all read off this table, so that no
//! key is advertised that does nothing and none does something in secret.

use super::command::Command;
pub use super::input::Key;
use super::situation::When;
use super::view::View;

/// One line of the key table.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// The keys; all of them do the same.
    pub keys: &'static [Key],
    /// What they do.
    pub command: Command,
    /// Where they do it.
    pub when: When,
    /// The keys' names, as people write them.
    pub name: &'static str,
    /// What they do, for the help.
    pub help: &'static str,
    /// Keys and word for the footer; `None` if it is not worth the room.
    pub footer: Option<(&'static str, &'static str)>,
    /// Its place in the footer, where there may be room for the first ones only.
    pub place: FooterPlace,
}

/// The order in which keys get room in the footer. Within a place, it is the table's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FooterPlace {
    /// How to get out, and where to read more.
    Always,
    /// What matters in the view.
    View,
    /// What matters to how the run is shown now: freezing, and moving about in a replay.
    Run,
    /// The rest.
    Elsewhere,
}

const fn binding(
    keys: &'static [Key],
    name: &'static str,
    when: When,
    command: Command,
    help: &'static str,
) -> Binding {
    Binding { keys, command, when, name, help, footer: None, place: FooterPlace::Elsewhere }
}

impl Binding {
    const fn with_footer(mut self, keys: &'static str, word: &'static str) -> Self {
        self.footer = Some((keys, word));
        self
    }

    const fn with_place(self, place: FooterPlace, keys: &'static str, word: &'static str) -> Self {
        Self { place, ..self.with_footer(keys, word) }
    }
}

use FooterPlace::{Always, Run};

use Key::{BackTab, Backspace, Char, Ctrl, Down, End, Enter, Esc, Home, Left, PageDown, PageUp, Right, Tab, Up};

/// All keys. Of several lines with the same key, the first that applies wins.
pub const BINDINGS: &[Binding] = &[
    binding(&[Char('q')], "q", When::FromTable, Command::ShowRuns, "back to the table of runs")
        .with_place(Always, "q", "runs"),
    binding(&[Ctrl('c')], "Ctrl-C", When::FromTable, Command::Quit, "quit the viewer; the run continues"),
    binding(
        &[Char('q'), Ctrl('c')],
        "q  Ctrl-C",
        When::NotFromTable,
        Command::Quit,
        "quit the viewer; the run continues",
    )
    .with_place(Always, "q", "quit"),
    binding(&[Char('Q')], "Q", When::Started, Command::Wait, "leave the view and wait for the program's exit code"),
    binding(&[Char('?')], "?", When::Always, Command::ToggleHelp, "this help").with_place(Always, "?", "help"),
    binding(&[Enter], "Enter", When::Choosing, Command::OpenSelected, "open the selected run or recording").with_place(
        FooterPlace::View,
        "Enter",
        "open",
    ),
    binding(&[Esc, Backspace], "Esc", When::Away, Command::Back, "back; with a step selected, follow the newest again")
        .with_footer("Esc", "back"),
    binding(&[Char(' ')], "Space", When::Live, Command::ToggleFreeze, "freeze the picture, or catch up")
        .with_place(Run, "Space", "freeze"),
    binding(&[Char(' ')], "Space", When::Frozen, Command::ToggleFreeze, "resume: catch up with the run")
        .with_place(Run, "Space", "resume"),
    binding(&[Char(' ')], "Space", When::Paused, Command::TogglePause, "resume the replay")
        .with_place(Run, "Space", "resume"),
    binding(&[Char(' ')], "Space", When::Playing, Command::TogglePause, "pause or resume the replay")
        .with_place(Run, "Space", "pause"),
    binding(&[End], "End", When::Replay, Command::GoToEnd, "go to the end of the replay, as :end does")
        .with_place(Run, "End", "end"),
    binding(&[Char(',')], ",", When::Replay, Command::StepFrame { forward: false }, "one frame back")
        .with_footer(", .", "frame"),
    binding(&[Char('.')], ".", When::Replay, Command::StepFrame { forward: true }, "one frame forward"),
    binding(&[Char('<')], "<", When::Replay, Command::Slower, "slower").with_place(Run, "< >", "speed"),
    binding(&[Char('>')], ">", When::Replay, Command::Faster, "faster"),
    binding(
        &[Char(':')],
        ":",
        When::Replay,
        Command::AskTime,
        "go to a time or a step: 90, 1:30, +5, 50%, step 120, end",
    )
    .with_place(Run, ":", "go to"),
    binding(&[Char('%')], "%", When::Replay, Command::AskTime, "the same as :"),
    binding(&[Char('L')], "L", When::Replay, Command::ToggleLoop, "loop at the end, on or off"),
    binding(&[Char('a')], "a", When::Replay, Command::MarkRange, "loop a part: set its start, its end, then clear it")
        .with_footer("a", "loop"),
    binding(&[Char('3')], "3", When::Range, Command::RangePercentiles, "latency: percentiles of the selected range")
        .with_place(FooterPlace::View, "3", "percentiles"),
    binding(&[Left, Char('h')], "←  h", When::Steps, Command::MoveCursor { columns: -1 }, "select the previous step")
        .with_place(FooterPlace::View, "←→", "step"),
    binding(&[Right, Char('l')], "→  l", When::Steps, Command::MoveCursor { columns: 1 }, "select the next step"),
    binding(&[Enter], "Enter", When::Steps, Command::ToggleDetail, "show the selected or newest step in full")
        .with_place(FooterPlace::View, "Enter", "more"),
    binding(&[PageUp], "PgUp", When::StepPages, Command::MovePage { forward: false }, "a screen of steps back"),
    binding(&[PageDown], "PgDn", When::StepPages, Command::MovePage { forward: true }, "a screen of steps forward"),
    binding(&[Char('g'), Home], "g  Home", When::Steps, Command::FirstStep, "the first step"),
    binding(&[Char('G'), End], "G  End", When::Steps, Command::FollowNewest, "follow the newest step"),
    binding(&[Char('+'), Char('=')], "+", When::Steps, Command::Zoom { inward: true }, "fewer steps per column")
        .with_footer("+ -", "zoom"),
    binding(
        &[Char('-')],
        "-",
        When::Steps,
        Command::Zoom { inward: false },
        "more steps per column: bar is the median, line the worst",
    ),
    binding(&[Char('w')], "w", When::Steps, Command::ToggleWhole, "the whole run, or step by step"),
    binding(&[Char('v')], "v", When::Steps, Command::ToggleRange, "start a range at the selected step, or clear it")
        .with_place(FooterPlace::View, "v", "range"),
    binding(&[Char('z')], "z", When::Range, Command::ZoomToRange, "put the selected range into view, with its verdict")
        .with_place(FooterPlace::View, "z", "zoom to range"),
    binding(&[Char('s')], "s", When::Steps, Command::ShowSlowest, "the slowest step; again: the next slowest")
        .with_footer("s", "slowest"),
    binding(&[Char('u')], "u", When::Bars, Command::NextMeasure, "unit: time per step, or per graph, seed or edge"),
    binding(&[Char('x')], "x", When::Steps, Command::ToggleTime, "columns of equal time, or of equal numbers of steps"),
    binding(&[Char('y')], "y", When::Axis, Command::ToggleLog, "logarithmic axis, or linear"),
    binding(&[Left, Char('h')], "←  h", When::Latency, Command::MovePercentile { by: -1 }, "a more common percentile")
        .with_place(FooterPlace::View, "←→", "percentile"),
    binding(&[Right, Char('l')], "→  l", When::Latency, Command::MovePercentile { by: 1 }, "a rarer percentile"),
    binding(
        &[Enter],
        "Enter",
        When::Percentile,
        Command::ShowPercentile,
        "show the step that is the selected percentile",
    )
    .with_place(FooterPlace::View, "Enter", "show step"),
    binding(&[Char('r')], "r", When::Latency, Command::NextRange, "range: all steps, the newest, or the selected ones")
        .with_place(FooterPlace::View, "r", "range"),
    binding(
        &[Left, Char('h')],
        "←  h",
        When::Tracks,
        Command::MoveCursor { columns: -1 },
        "an eighth of a screen back",
    )
    .with_place(FooterPlace::View, "←→", "time"),
    binding(
        &[Right, Char('l')],
        "→  l",
        When::Tracks,
        Command::MoveCursor { columns: 1 },
        "an eighth of a screen forward",
    ),
    binding(&[PageUp], "PgUp", When::Tracks, Command::MovePage { forward: false }, "a screen of time back"),
    binding(&[PageDown], "PgDn", When::Tracks, Command::MovePage { forward: true }, "a screen of time forward"),
    binding(&[Char('g'), Home], "g  Home", When::Tracks, Command::FirstStep, "the oldest kept time"),
    binding(&[Char('G'), End], "G  End", When::Tracks, Command::FollowNewest, "follow the newest step"),
    binding(&[Char('+'), Char('=')], "+", When::Tracks, Command::Zoom { inward: true }, "half the time on the screen")
        .with_footer("+ -", "zoom"),
    binding(&[Char('-')], "-", When::Tracks, Command::Zoom { inward: false }, "twice the time on the screen"),
    binding(&[Char('w')], "w", When::Tracks, Command::ToggleWhole, "the whole run, or a few steps"),
    binding(
        &[Enter],
        "Enter",
        When::Tracks,
        Command::ToggleDetail,
        "show the step under the cursor, or the newest, in full",
    ),
    binding(
        &[Left, Char('h')],
        "←  h",
        When::FoundHere,
        Command::MovePlace { forward: false },
        "the next longer place of the finding",
    )
    .with_place(FooterPlace::View, "←→", "place"),
    binding(
        &[Right, Char('l')],
        "→  l",
        When::FoundHere,
        Command::MovePlace { forward: true },
        "the next shorter place of the finding",
    ),
    binding(&[Enter], "Enter", When::FoundHere, Command::ShowPlace, "show the selected place in the steps view")
        .with_place(FooterPlace::View, "Enter", "show step"),
    binding(
        &[Char('[')],
        "[",
        When::Found,
        Command::ShowFinding { forward: false },
        "the previous step with a finding",
    )
    .with_footer("[ ]", "finding"),
    binding(&[Char(']')], "]", When::Found, Command::ShowFinding { forward: true }, "the next step with a finding"),
    binding(&[Tab], "Tab", When::Overview, Command::NextPanel, "next panel").with_footer("Tab", "panel"),
    binding(&[BackTab], "Shift-Tab", When::Overview, Command::PreviousPanel, "previous panel"),
    binding(&[Char('e')], "e", When::Overview, Command::Enlarge, "the panel's own view").with_footer("e", "enlarge"),
    binding(&[Char('e')], "e", When::MainView, Command::Show(View::Overview), "back to the overview"),
    binding(&[Char('p')], "p", When::Bars, Command::TogglePercentiles, "percentiles instead of bars"),
    binding(&[Char('c')], "c", When::Device, Command::ToggleClock, "phases by the device's clock, or by the host's")
        .with_footer("c", "clock"),
    binding(&[Char('1')], "1", When::Open, Command::Show(View::Overview), "overview: the run at a glance"),
    binding(&[Char('2')], "2", When::Open, Command::Show(View::Steps), "steps: where each step's time goes"),
    binding(
        &[Char('3')],
        "3",
        When::Open,
        Command::Show(View::Latency),
        "latency: percentiles of steps, phases and spans",
    ),
    binding(&[Char('4')], "4", When::Open, Command::Show(View::Memory), "memory: live, at its peak, by phase"),
    binding(&[Char('5')], "5", When::Open, Command::Show(View::Hardware), "hardware: processor, memory, GPU, queues"),
    binding(&[Char('6')], "6", When::Open, Command::Show(View::Energy), "energy: power and energy by component"),
    binding(&[Char('7')], "7", When::Open, Command::Show(View::Tracks), "tracks: what each thread does"),
    binding(
        &[Char('8')],
        "8",
        When::Open,
        Command::Show(View::Findings),
        "findings: what is slow, why, and what to try",
    ),
    binding(&[Char('9')], "9", When::Open, Command::Show(View::Compare), "compare: this run with another"),
    binding(&[Char('R')], "R", When::Ranks, Command::Show(View::Ranks), "ranks: who waits for whom")
        .with_footer("R", "ranks"),
    binding(
        &[Char('P')],
        "P",
        When::Stages,
        Command::Show(View::Pipeline),
        "pipeline: stages, their bubble, a better split",
    )
    .with_footer("P", "pipeline"),
    binding(
        &[Char('m')],
        "m",
        When::Open,
        Command::Show(View::Marks),
        "marks: how often, and how long their steps take",
    ),
    binding(&[Char('V')], "V", When::Open, Command::Show(View::Values), "values: the loss and all else that is logged"),
    binding(&[Up, Char('k')], "↑  k", When::Values, Command::Scroll { lines: -1 }, "the previous value").with_place(
        FooterPlace::View,
        "↑↓",
        "value",
    ),
    binding(&[Down, Char('j')], "↓  j", When::Values, Command::Scroll { lines: 1 }, "the next value"),
    binding(&[Char('f')], "f", When::Open, Command::Show(View::Stacks), "stacks: where in the program the time goes"),
    binding(&[Char('s')], "s", When::Table, Command::SortByNext, "sort by the next column").with_place(
        FooterPlace::View,
        "s",
        "sort",
    ),
    binding(&[Char('r')], "r", When::Table, Command::ReverseOrder, "sort the other way round").with_place(
        FooterPlace::View,
        "r",
        "reverse",
    ),
    binding(&[Up, Char('k')], "↑  k", When::Stacks, Command::Scroll { lines: -1 }, "the caller of the selected frame"),
    binding(&[Down, Char('j')], "↓  j", When::Stacks, Command::Scroll { lines: 1 }, "what it calls most").with_place(
        FooterPlace::View,
        "↑↓",
        "caller, called",
    ),
    binding(
        &[Left, Char('h')],
        "←  h",
        When::Stacks,
        Command::MoveCursor { columns: -1 },
        "the previous frame of that caller",
    )
    .with_place(FooterPlace::View, "←→", "beside"),
    binding(
        &[Right, Char('l')],
        "→  l",
        When::Stacks,
        Command::MoveCursor { columns: 1 },
        "the next frame of that caller",
    ),
    binding(
        &[Char('+'), Char('=')],
        "+",
        When::Stacks,
        Command::Zoom { inward: true },
        "give the selected frame the whole width",
    )
    .with_place(FooterPlace::View, "+ -", "zoom"),
    binding(&[Enter], "Enter", When::Stacks, Command::ToggleDetail, "the same as +"),
    binding(
        &[Char('-')],
        "-",
        When::Stacks,
        Command::Zoom { inward: false },
        "give it to the caller; Esc: to all stacks",
    ),
    binding(&[Char('g'), Home], "g  Home", When::Stacks, Command::ScrollEnd { bottom: false }, "all stacks"),
    binding(&[Char('G'), End], "G  End", When::Stacks, Command::ScrollEnd { bottom: true }, "the innermost frame"),
    binding(&[Char('{')], "{", When::Ranks, Command::TurnRank { forward: false }, "the previous rank, in every view")
        .with_footer("{ }", "rank"),
    binding(&[Char('}')], "}", When::Ranks, Command::TurnRank { forward: true }, "the next rank, in every view"),
    binding(&[Char('o')], "o", When::Log, Command::ToggleOutput, "the program's output").with_footer("o", "output"),
    binding(&[Up, Char('k')], "↑  k", When::Findings, Command::Scroll { lines: -1 }, "the finding above").with_place(
        FooterPlace::View,
        "↑↓",
        "finding",
    ),
    binding(&[Down, Char('j')], "↓  j", When::Findings, Command::Scroll { lines: 1 }, "the finding below"),
    binding(
        &[PageUp],
        "PgUp",
        When::Findings,
        Command::ScrollPage { down: false },
        "a page up in the text about the finding",
    ),
    binding(
        &[PageDown],
        "PgDn",
        When::Findings,
        Command::ScrollPage { down: true },
        "a page down in the text about the finding",
    )
    .with_place(FooterPlace::View, "PgDn", "text"),
    binding(&[Up, Char('k')], "↑  k", When::RankLanes, Command::Scroll { lines: -1 }, "the rank above, in every view")
        .with_place(FooterPlace::View, "↑↓", "rank, in all views"),
    binding(&[Down, Char('j')], "↓  j", When::RankLanes, Command::Scroll { lines: 1 }, "the rank below, in every view"),
    binding(&[Up, Char('k')], "↑  k", When::Lines, Command::Scroll { lines: -1 }, "scroll up"),
    binding(&[Down, Char('j')], "↓  j", When::Lines, Command::Scroll { lines: 1 }, "scroll down"),
    binding(&[PageUp], "PgUp", When::Lines, Command::ScrollPage { down: false }, "scroll a page up"),
    binding(&[PageDown], "PgDn", When::Lines, Command::ScrollPage { down: true }, "scroll a page down"),
    binding(&[Char('g'), Home], "g  Home", When::Lines, Command::ScrollEnd { bottom: false }, "to the top"),
    binding(&[Char('G'), End], "G  End", When::Lines, Command::ScrollEnd { bottom: true }, "to the bottom"),
    binding(&[Char('O')], "O", When::Sessions, Command::ToggleSessions, "open another session or recording"),
    binding(
        &[Char('T')],
        "T",
        When::Traceable,
        Command::AskTrace,
        "trace: every operator of the next steps; asks first",
    ),
    binding(&[Char('/')], "/", When::Names, Command::AskFilter, "show only names that contain a text"),
    binding(&[Char('t')], "t", When::Always, Command::NextPalette, "the next palette"),
    binding(&[Ctrl('z')], "Ctrl-Z", When::Always, Command::Suspend, "suspend the viewer; the run continues"),
    binding(&[Ctrl('l')], "Ctrl-L", When::Always, Command::Redraw, "redraw the screen"),
];

impl Binding {
    /// The name of the line's action in the settings.
    pub fn action(&self) -> &'static str {
        match (self.command, self.when) {
            // The way back from `enlarge`, which would replace `enlarge` if it worked everywhere.
            (Command::Show(View::Overview), When::MainView) => "shrink",
            (command, _) => command.name(),
        }
    }
}

/// Both arrow keys where only ASCII is drawn...
pub const ASCII_ARROWS: &str = "Left/Right";
/// ...and the letters that do the same everywhere.
pub const ARROW_LETTERS: &str = "h l";

/// A key's name where only ASCII is drawn.
pub fn ascii(name: &str) -> String {
    let words = [("←→", ASCII_ARROWS), ("←", "Left"), ("→", "Right"), ("↑", "Up"), ("↓", "Down")];
    words.iter().fold(name.to_owned(), |name, (arrow, word)| name.replace(arrow, word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{KeyMap, Panel, Situation};

    fn command(key: Key, situation: &Situation) -> Option<Command> {
        KeyMap::default().command(key, situation)
    }

    fn situations() -> Vec<Situation> {
        let mut all = Vec::new();
        for view in View::ALL {
            for focus in Panel::ALL {
                for bits in 0..1024 {
                    let bit = |n: u32| bits >> n & 1 == 1;
                    let (steps, selected, percentile) = (bit(0), bit(1), bit(2));
                    let (live, replay, log, sessions, open) = (bit(3), bit(4), bit(5), bit(6), bit(7));
                    let (found, table) = (bit(8), bit(9));
                    all.push(Situation {
                        view,
                        focus,
                        steps,
                        selected,
                        percentile,
                        found,
                        live,
                        frozen: live && percentile,
                        replay,
                        paused: percentile,
                        range: selected,
                        log,
                        torch: log,
                        sessions,
                        ranks: log,
                        stages: log,
                        device: log,
                        open,
                        started: open,
                        table,
                    });
                }
            }
        }
        all
    }

    #[test]
    fn each_line_of_the_table_can_be_reached() {
        for binding in BINDINGS {
            for key in binding.keys {
                let reached = situations().iter().any(|s| command(*key, s) == Some(binding.command));
                assert!(reached, "{key:?} never does {:?}", binding.command);
            }
        }
    }

    #[test]
    fn quit_and_help_work_in_every_situation() {
        for situation in situations() {
            let leaves = if situation.table && situation.open { Command::ShowRuns } else { Command::Quit };
            assert_eq!(command(Key::Char('q'), &situation), Some(leaves));
            assert_eq!(command(Key::Ctrl('c'), &situation), Some(Command::Quit));
            assert_eq!(command(Key::Char('?'), &situation), Some(Command::ToggleHelp));
        }
    }

    #[test]
    fn footer_and_help_show_only_keys_that_work() {
        for situation in situations() {
            for bound in KeyMap::default().available(&situation) {
                assert!(bound.keys.iter().any(|key| command(*key, &situation) == Some(bound.binding.command)));
            }
        }
    }

    #[test]
    fn letters_equal_arrow_keys() {
        for binding in BINDINGS.iter().filter(|binding| binding.footer.is_some_and(|(keys, _)| keys == "←→")) {
            assert!(binding.keys.contains(&Char('h')), "{:?}", binding.command);
        }
    }

    #[test]
    fn space_freezes_what_is_live_and_pauses_a_replay() {
        let mut situation = situations()[0];
        situation.live = true;
        assert_eq!(command(Key::Char(' '), &situation), Some(Command::ToggleFreeze));
        situation.replay = true;
        assert_eq!(command(Key::Char(' '), &situation), Some(Command::TogglePause));
        (situation.live, situation.replay) = (false, false);
        assert_eq!(command(Key::Char(' '), &situation), None);
    }
}
