//! Every key, what it does and where: as data. Help, footer and key handling are all read off this table, so that no
//! key is advertised that does nothing and none does something in secret.

use super::command::Command;
pub use super::key::Key;
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

const fn key(keys: &'static [Key], name: &'static str, when: When, command: Command, help: &'static str) -> Binding {
    Binding { keys, command, when, name, help, footer: None, place: FooterPlace::Elsewhere }
}

impl Binding {
    const fn footer(mut self, keys: &'static str, word: &'static str) -> Self {
        self.footer = Some((keys, word));
        self
    }

    const fn at(mut self, place: FooterPlace) -> Self {
        self.place = place;
        self
    }
}

use FooterPlace::{Always, Run};

use Key::{BackTab, Backspace, Char, Ctrl, Down, End, Enter, Esc, Home, Left, PageDown, PageUp, Right, Tab, Up};

/// All keys. Of several lines with the same key, the first that applies wins.
pub const BINDINGS: &[Binding] = &[
    key(&[Char('q'), Ctrl('c')], "q  Ctrl-C", When::Always, Command::Quit, "quit the viewer; the run continues")
        .footer("q", "quit")
        .at(Always),
    key(&[Char('Q')], "Q", When::Started, Command::Wait, "leave the view and wait for the program's exit code"),
    key(&[Char('?')], "?", When::Always, Command::ToggleHelp, "this help").footer("?", "help").at(Always),
    key(&[Enter], "Enter", When::Choosing, Command::OpenSelected, "open the selected session or recording")
        .footer("Enter", "open")
        .at(FooterPlace::View),
    key(&[Esc, Backspace], "Esc", When::Away, Command::Back, "back; with a step selected, follow the newest again")
        .footer("Esc", "back"),
    key(&[Char(' ')], "Space", When::Live, Command::ToggleFreeze, "freeze the picture, or catch up")
        .footer("Space", "freeze")
        .at(Run),
    key(&[Char(' ')], "Space", When::Frozen, Command::ToggleFreeze, "resume: catch up with the run")
        .footer("Space", "resume")
        .at(Run),
    key(&[Char(' ')], "Space", When::Paused, Command::TogglePause, "resume the replay")
        .footer("Space", "resume")
        .at(Run),
    key(&[Char(' ')], "Space", When::Playing, Command::TogglePause, "pause or resume the replay")
        .footer("Space", "pause")
        .at(Run),
    key(&[Char(',')], ",", When::Replay, Command::StepFrame { forward: false }, "one frame back")
        .footer(", .", "frame"),
    key(&[Char('.')], ".", When::Replay, Command::StepFrame { forward: true }, "one frame forward"),
    key(&[Char('<')], "<", When::Replay, Command::Slower, "slower").footer("< >", "speed").at(Run),
    key(&[Char('>')], ">", When::Replay, Command::Faster, "faster"),
    key(&[Char(':')], ":", When::Replay, Command::AskTime, "go to a time or a step: 90, 1:30, +5, 50%, step 120")
        .footer(":", "go to")
        .at(Run),
    key(&[Char('%')], "%", When::Replay, Command::AskTime, "the same as :"),
    key(&[Char('L')], "L", When::Replay, Command::ToggleLoop, "loop at the end, on or off"),
    key(&[Char('a')], "a", When::Replay, Command::MarkRange, "loop a part: set its start, its end, then clear it")
        .footer("a", "loop")
        .at(Run),
    key(&[Char('3')], "3", When::Range, Command::RangePercentiles, "latency: percentiles of the selected range")
        .footer("3", "percentiles")
        .at(FooterPlace::View),
    key(&[Left, Char('h')], "←  h", When::Steps, Command::MoveCursor { columns: -1 }, "select the previous step")
        .footer("←→", "step")
        .at(FooterPlace::View),
    key(&[Right, Char('l')], "→  l", When::Steps, Command::MoveCursor { columns: 1 }, "select the next step"),
    key(&[Enter], "Enter", When::Steps, Command::ToggleDetail, "show the selected or newest step in full")
        .footer("Enter", "more")
        .at(FooterPlace::View),
    key(&[PageUp], "PgUp", When::Steps, Command::MovePage { forward: false }, "a screen of steps back"),
    key(&[PageDown], "PgDn", When::Steps, Command::MovePage { forward: true }, "a screen of steps forward"),
    key(&[Char('g'), Home], "g  Home", When::Steps, Command::FirstStep, "the first step"),
    key(&[Char('G'), End], "G  End", When::Steps, Command::FollowNewest, "follow the newest step"),
    key(&[Char('+'), Char('=')], "+", When::Steps, Command::Zoom { inward: true }, "fewer steps per column")
        .footer("+ -", "zoom"),
    key(
        &[Char('-')],
        "-",
        When::Steps,
        Command::Zoom { inward: false },
        "more steps per column: bar is the median, line the worst",
    ),
    key(&[Char('w')], "w", When::Steps, Command::ToggleWhole, "the whole run, or step by step"),
    key(&[Char('v')], "v", When::Steps, Command::ToggleRange, "start a range at the selected step, or clear it")
        .footer("v", "range")
        .at(FooterPlace::View),
    key(&[Char('u')], "u", When::Bars, Command::NextMeasure, "unit: time per step, or per graph, seed or edge"),
    key(&[Char('x')], "x", When::Steps, Command::ToggleTime, "columns of equal time, or of equal numbers of steps"),
    key(&[Char('y')], "y", When::Axis, Command::ToggleLog, "logarithmic axis, or linear"),
    key(&[Left, Char('h')], "←  h", When::Latency, Command::MovePercentile { by: -1 }, "a more common percentile")
        .footer("←→", "percentile")
        .at(FooterPlace::View),
    key(&[Right, Char('l')], "→  l", When::Latency, Command::MovePercentile { by: 1 }, "a rarer percentile"),
    key(&[Enter], "Enter", When::Percentile, Command::ShowPercentile, "show the step that is the selected percentile")
        .footer("Enter", "show step")
        .at(FooterPlace::View),
    key(&[Char('r')], "r", When::Latency, Command::NextRange, "range: all steps, the newest, or the selected ones")
        .footer("r", "range")
        .at(FooterPlace::View),
    key(&[Left, Char('h')], "←  h", When::Tracks, Command::MoveCursor { columns: -1 }, "an eighth of a screen back")
        .footer("←→", "time")
        .at(FooterPlace::View),
    key(&[Right, Char('l')], "→  l", When::Tracks, Command::MoveCursor { columns: 1 }, "an eighth of a screen forward"),
    key(&[PageUp], "PgUp", When::Tracks, Command::MovePage { forward: false }, "a screen of time back"),
    key(&[PageDown], "PgDn", When::Tracks, Command::MovePage { forward: true }, "a screen of time forward"),
    key(&[Char('g'), Home], "g  Home", When::Tracks, Command::FirstStep, "the oldest kept time"),
    key(&[Char('G'), End], "G  End", When::Tracks, Command::FollowNewest, "follow the newest step"),
    key(&[Char('+'), Char('=')], "+", When::Tracks, Command::Zoom { inward: true }, "half the time on the screen")
        .footer("+ -", "zoom"),
    key(&[Char('-')], "-", When::Tracks, Command::Zoom { inward: false }, "twice the time on the screen"),
    key(&[Char('w')], "w", When::Tracks, Command::ToggleWhole, "the whole run, or a few steps"),
    key(
        &[Enter],
        "Enter",
        When::Tracks,
        Command::ToggleDetail,
        "show the step under the cursor, or the newest, in full",
    ),
    key(
        &[Left, Char('h')],
        "←  h",
        When::FoundHere,
        Command::MovePlace { forward: false },
        "the next longer place of the finding",
    )
    .footer("←→", "place")
    .at(FooterPlace::View),
    key(
        &[Right, Char('l')],
        "→  l",
        When::FoundHere,
        Command::MovePlace { forward: true },
        "the next shorter place of the finding",
    ),
    key(&[Enter], "Enter", When::FoundHere, Command::ShowPlace, "show the selected place in the steps view")
        .footer("Enter", "show step")
        .at(FooterPlace::View),
    key(&[Char('[')], "[", When::Found, Command::ShowFinding { forward: false }, "the previous step with a finding")
        .footer("[ ]", "finding"),
    key(&[Char(']')], "]", When::Found, Command::ShowFinding { forward: true }, "the next step with a finding"),
    key(&[Tab], "Tab", When::Overview, Command::NextPanel, "next panel").footer("Tab", "panel"),
    key(&[BackTab], "Shift-Tab", When::Overview, Command::PreviousPanel, "previous panel"),
    key(&[Char('e')], "e", When::Overview, Command::Enlarge, "the panel's own view").footer("e", "enlarge"),
    key(&[Char('e')], "e", When::MainView, Command::Show(View::Overview), "back to the overview"),
    key(&[Char('p')], "p", When::Bars, Command::TogglePercentiles, "percentiles instead of bars"),
    key(&[Char('c')], "c", When::Device, Command::ToggleClock, "phases by the device's clock, or by the host's")
        .footer("c", "clock"),
    key(&[Char('1')], "1", When::Open, Command::Show(View::Overview), "overview: the run at a glance"),
    key(&[Char('2')], "2", When::Open, Command::Show(View::Steps), "steps: where each step's time goes"),
    key(&[Char('3')], "3", When::Open, Command::Show(View::Latency), "latency: percentiles of steps, phases and spans"),
    key(&[Char('4')], "4", When::Open, Command::Show(View::Memory), "memory: live, at its peak, by phase"),
    key(&[Char('5')], "5", When::Open, Command::Show(View::Hardware), "hardware: processor, memory, GPU, queues"),
    key(&[Char('6')], "6", When::Open, Command::Show(View::Energy), "energy: power and energy by component"),
    key(&[Char('7')], "7", When::Open, Command::Show(View::Tracks), "tracks: what each thread does"),
    key(&[Char('8')], "8", When::Open, Command::Show(View::Findings), "findings: what is slow, why, and what to try"),
    key(&[Char('9')], "9", When::Open, Command::Show(View::Compare), "compare: this run with another"),
    key(&[Char('R')], "R", When::Ranks, Command::Show(View::Ranks), "ranks: who waits for whom").footer("R", "ranks"),
    key(
        &[Char('P')],
        "P",
        When::Stages,
        Command::Show(View::Pipeline),
        "pipeline: stages, their bubble, a better split",
    )
    .footer("P", "pipeline"),
    key(&[Char('m')], "m", When::Open, Command::Show(View::Marks), "marks: how often, and how long their steps take"),
    key(&[Char('f')], "f", When::Open, Command::Show(View::Stacks), "stacks: where in the program the time goes"),
    key(&[Up, Char('k')], "↑  k", When::Stacks, Command::Scroll { lines: -1 }, "the caller of the selected frame"),
    key(&[Down, Char('j')], "↓  j", When::Stacks, Command::Scroll { lines: 1 }, "what it calls most")
        .footer("↑↓", "caller, called")
        .at(FooterPlace::View),
    key(
        &[Left, Char('h')],
        "←  h",
        When::Stacks,
        Command::MoveCursor { columns: -1 },
        "the previous frame of that caller",
    )
    .footer("←→", "beside")
    .at(FooterPlace::View),
    key(&[Right, Char('l')], "→  l", When::Stacks, Command::MoveCursor { columns: 1 }, "the next frame of that caller"),
    key(
        &[Char('+'), Char('=')],
        "+",
        When::Stacks,
        Command::Zoom { inward: true },
        "give the selected frame the whole width",
    )
    .footer("+ -", "zoom")
    .at(FooterPlace::View),
    key(&[Enter], "Enter", When::Stacks, Command::ToggleDetail, "the same as +"),
    key(&[Char('-')], "-", When::Stacks, Command::Zoom { inward: false }, "give it to the caller; Esc: to all stacks"),
    key(&[Char('g'), Home], "g  Home", When::Stacks, Command::ScrollEnd { bottom: false }, "all stacks"),
    key(&[Char('G'), End], "G  End", When::Stacks, Command::ScrollEnd { bottom: true }, "the innermost frame"),
    key(&[Char('{')], "{", When::Ranks, Command::TurnRank { forward: false }, "the previous rank, in every view")
        .footer("{ }", "rank"),
    key(&[Char('}')], "}", When::Ranks, Command::TurnRank { forward: true }, "the next rank, in every view"),
    key(&[Char('o')], "o", When::Log, Command::ToggleOutput, "the program's output").footer("o", "output"),
    key(&[Up, Char('k')], "↑  k", When::Lines, Command::Scroll { lines: -1 }, "scroll up"),
    key(&[Down, Char('j')], "↓  j", When::Lines, Command::Scroll { lines: 1 }, "scroll down"),
    key(&[PageUp], "PgUp", When::Lines, Command::ScrollPage { down: false }, "scroll a page up"),
    key(&[PageDown], "PgDn", When::Lines, Command::ScrollPage { down: true }, "scroll a page down"),
    key(&[Char('g'), Home], "g  Home", When::Lines, Command::ScrollEnd { bottom: false }, "to the top"),
    key(&[Char('G'), End], "G  End", When::Lines, Command::ScrollEnd { bottom: true }, "to the bottom"),
    key(&[Char('O')], "O", When::Sessions, Command::ToggleSessions, "open another session or recording"),
    key(&[Char('T')], "T", When::Traceable, Command::AskTrace, "trace: every operator of the next steps; asks first"),
    key(&[Char('/')], "/", When::Names, Command::AskFilter, "show only names that contain a text"),
    key(&[Char('t')], "t", When::Always, Command::NextPalette, "the next palette"),
    key(&[Ctrl('z')], "Ctrl-Z", When::Always, Command::Suspend, "suspend the viewer; the run continues"),
    key(&[Ctrl('l')], "Ctrl-L", When::Always, Command::Redraw, "redraw the screen"),
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
                for bits in 0..512 {
                    let bit = |n: u32| bits >> n & 1 == 1;
                    let (steps, selected, percentile) = (bit(0), bit(1), bit(2));
                    let (live, replay, log, sessions, open) = (bit(3), bit(4), bit(5), bit(6), bit(7));
                    let found = bit(8);
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
    fn one_can_always_quit_and_ask_for_help() {
        for situation in situations() {
            assert_eq!(command(Key::Char('q'), &situation), Some(Command::Quit));
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
    fn letters_do_what_arrows_do() {
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
