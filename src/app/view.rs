//! What can fill the screen: nine views that a digit shows, two that a letter shows where a run has several ranks or
//! stages, seven more that are opened on top of one of them, and the table of all runs, below which there is nothing.

/// What fills the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum View {
    /// The whole run at a glance.
    #[default]
    Overview,
    /// The step bars, large.
    Steps,
    /// Percentiles of steps, phases and spans.
    Latency,
    /// Memory, live and at its peak.
    Memory,
    /// Processor, memory, GPU, pressure, I/O.
    Hardware,
    /// Power and energy.
    Energy,
    /// A lane for each track.
    Tracks,
    /// What is slow, and why.
    Findings,
    /// This run beside another one.
    Compare,
    /// The ranks of a run side by side.
    Ranks,
    /// The stages of a pipeline in one step.
    Pipeline,
    /// One step in full, below the bars.
    Step,
    /// The choice of what to look at.
    Sessions,
    /// The marks of the run, by their text.
    Marks,
    /// The values that the program logs, such as its loss, over its steps.
    Values,
    /// Where in the program the time goes: stacks as flames.
    Stacks,
    /// The program's output.
    Log,
    /// The keys.
    Help,
    /// Many runs, of which one can be opened.
    Runs,
}

/// The horizontal axis of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// None.
    Nothing,
    /// That of the step bars, or it shows the step under their cursor, so that their cursor and zoom are its own too.
    Steps,
    /// Time, so that moving and zooming goes by time.
    Time,
}

/// What the lines of a view are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// It has none.
    Nothing,
    /// Text or pictures, which are scrolled.
    Text,
    /// The phases of a panel.
    Phases,
    /// The step, its phases and spans, with percentiles.
    Durations,
    /// Findings.
    Findings,
    /// Ranks of the run, of which one is selected in every view.
    Ranks,
    /// Values that the program logs, of which one is drawn large.
    Values,
    /// Sessions and recordings.
    Sessions,
    /// Runs, live in a table.
    Runs,
    /// Frames of stacks.
    Frames,
    /// The program's output, read from its end.
    Log,
}

/// What a view shows beside its lines, for keys and news that are about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewPart {
    /// The step bars, alone or with others.
    Bars,
    /// An axis that can be logarithmic.
    Scale,
    /// Phases, by one of two clocks.
    Phases,
    /// Names, which can be filtered.
    Names,
    /// Energy.
    Energy,
    /// Ranks, if the run has several.
    Ranks,
    /// Stages, if the run has several.
    Stages,
}

/// All there is to know of a view, but how it is drawn.
#[derive(Debug)]
struct ViewRow {
    view: View,
    name: &'static str,
    short_name: &'static str,
    key: Option<char>,
    axis: Axis,
    lines: LineKind,
    parts: &'static [ViewPart],
}

const fn row(
    view: View,
    names: [&'static str; 2],
    key: Option<char>,
    axis: Axis,
    lines: LineKind,
    parts: &'static [ViewPart],
) -> ViewRow {
    ViewRow { view, name: names[0], short_name: names[1], key, axis, lines, parts }
}

/// The views in the order of [`View`], main ones first. A new one is a variant there and a row here.
static ROWS: [ViewRow; 19] = {
    use ViewPart::{Bars, Energy, Names, Phases, Ranks, Scale, Stages};
    [
        row(
            View::Overview,
            ["overview", "over"],
            Some('1'),
            Axis::Steps,
            LineKind::Phases,
            &[Bars, Scale, Phases, Names, Energy],
        ),
        row(View::Steps, ["steps", "step"], Some('2'), Axis::Steps, LineKind::Nothing, &[Bars, Scale]),
        row(View::Latency, ["latency", "lat"], Some('3'), Axis::Nothing, LineKind::Durations, &[Scale, Phases, Names]),
        row(View::Memory, ["memory", "mem"], Some('4'), Axis::Steps, LineKind::Text, &[]),
        row(View::Hardware, ["hardware", "hw"], Some('5'), Axis::Steps, LineKind::Text, &[]),
        row(View::Energy, ["energy", "nrg"], Some('6'), Axis::Steps, LineKind::Text, &[Energy]),
        row(View::Tracks, ["tracks", "trk"], Some('7'), Axis::Time, LineKind::Text, &[Names]),
        row(View::Findings, ["findings", "find"], Some('8'), Axis::Nothing, LineKind::Findings, &[]),
        row(View::Compare, ["compare", "cmp"], Some('9'), Axis::Nothing, LineKind::Text, &[]),
        row(View::Ranks, ["ranks", "rank"], Some('R'), Axis::Time, LineKind::Ranks, &[Ranks]),
        row(View::Pipeline, ["pipeline", "pipe"], Some('P'), Axis::Steps, LineKind::Text, &[Stages]),
        row(View::Step, ["step", "step"], None, Axis::Steps, LineKind::Text, &[Phases, Energy]),
        row(View::Sessions, ["sessions", "open"], None, Axis::Nothing, LineKind::Sessions, &[Names]),
        row(View::Marks, ["marks", "mark"], None, Axis::Nothing, LineKind::Text, &[]),
        row(View::Values, ["values", "val"], None, Axis::Steps, LineKind::Values, &[Scale]),
        row(View::Stacks, ["stacks", "stk"], None, Axis::Nothing, LineKind::Frames, &[]),
        row(View::Log, ["output", "out"], None, Axis::Nothing, LineKind::Log, &[]),
        row(View::Help, ["help", "help"], None, Axis::Nothing, LineKind::Text, &[]),
        row(View::Runs, ["runs", "runs"], None, Axis::Nothing, LineKind::Runs, &[Names]),
    ]
};

impl View {
    /// All views.
    pub const ALL: [Self; ROWS.len()] = {
        let mut all = [Self::Overview; ROWS.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = ROWS[at].view;
            at += 1;
        }
        all
    };

    /// The main views, which have their own keys: nine digits, and letters for those that only some runs have.
    pub const MAIN: [Self; 11] = {
        let [one, two, three, four, five, six, seven, eight, nine, ranks, pipeline, ..] = Self::ALL;
        [one, two, three, four, five, six, seven, eight, nine, ranks, pipeline]
    };

    fn row(self) -> &'static ViewRow {
        &ROWS[self.index()]
    }

    /// Its place among [`View::ALL`].
    pub(super) fn index(self) -> usize {
        self as usize
    }

    /// The key that shows this view; `None` if it is opened on top of another one.
    pub fn key(self) -> Option<char> {
        self.row().key
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The main view with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::MAIN.into_iter().find(|view| view.name() == name)
    }

    /// Its short name.
    pub fn short_name(self) -> &'static str {
        self.row().short_name
    }

    /// Its horizontal axis.
    pub fn axis(self) -> Axis {
        self.row().axis
    }

    /// What its lines are.
    pub fn lines(self) -> LineKind {
        self.row().lines
    }

    /// Whether it shows this.
    pub fn has(self, part: ViewPart) -> bool {
        self.row().parts.contains(&part)
    }

    /// Whether only runs of several ranks have it.
    #[cfg(test)]
    pub(crate) fn is_of_ranks(self) -> bool {
        self.has(ViewPart::Ranks) || self.has(ViewPart::Stages)
    }
}

/// What a drawing learned of the lines of the view that it drew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineExtent {
    /// The last line that can be selected or, where nothing can be selected, that the view can be scrolled to.
    pub last: usize,
    /// Lines that a page is.
    pub page: usize,
    /// How far the text about the selected line can be scrolled, and the lines of its page.
    pub text: (usize, usize),
}

/// A panel of the overview.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Panel {
    /// The step bars.
    #[default]
    Steps,
    /// The phase table.
    Phases,
    /// Processor, memory, GPU, queues.
    Hardware,
}

impl Panel {
    /// All panels, in the order of Tab.
    pub const ALL: [Self; 3] = [Self::Steps, Self::Phases, Self::Hardware];

    /// The view that shows it large.
    pub fn view(self) -> View {
        match self {
            Self::Steps => View::Steps,
            Self::Phases => View::Latency,
            Self::Hardware => View::Hardware,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn view_rows_are_in_order_and_eleven_have_a_key() {
        for (at, (view, row)) in View::ALL.into_iter().zip(&ROWS).enumerate() {
            assert_eq!((view.index(), row.view), (at, view));
        }
        let keys: String = View::ALL.iter().filter_map(|view| view.key()).collect();
        assert_eq!(keys, "123456789RP");
    }
}
