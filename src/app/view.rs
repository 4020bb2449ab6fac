//! What can fill the screen: nine views that a digit shows, two that a letter shows where a run has several ranks or
//! stages, and six more that are opened on top of one of them.

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
    /// Where in the program the time goes: stacks as flames.
    Stacks,
    /// The program's output.
    Log,
    /// The keys.
    Help,
}

impl View {
    /// All views.
    pub const ALL: [Self; 17] = [
        Self::Overview,
        Self::Steps,
        Self::Latency,
        Self::Memory,
        Self::Hardware,
        Self::Energy,
        Self::Tracks,
        Self::Findings,
        Self::Compare,
        Self::Ranks,
        Self::Pipeline,
        Self::Step,
        Self::Sessions,
        Self::Marks,
        Self::Stacks,
        Self::Log,
        Self::Help,
    ];

    /// The main views, which have their own keys: nine digits, and letters for those that only some runs have.
    pub const MAIN: [Self; 11] = {
        let [one, two, three, four, five, six, seven, eight, nine, ranks, pipeline, ..] = Self::ALL;
        [one, two, three, four, five, six, seven, eight, nine, ranks, pipeline]
    };

    /// The key that shows this view; `None` if it is opened on top of another one.
    pub fn key(self) -> Option<char> {
        let at = Self::MAIN.iter().position(|view| *view == self)?;
        match self {
            Self::Ranks => Some('R'),
            Self::Pipeline => Some('P'),
            _ => char::from_digit(at as u32 + 1, 10),
        }
    }

    /// Whether only runs of several ranks have it.
    pub fn is_of_ranks(self) -> bool {
        matches!(self, Self::Ranks | Self::Pipeline)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.names().0
    }

    /// The main view with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::MAIN.into_iter().find(|view| view.name() == name)
    }

    /// Its short name.
    pub fn short_name(self) -> &'static str {
        self.names().1
    }

    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Overview => ("overview", "over"),
            Self::Steps => ("steps", "step"),
            Self::Latency => ("latency", "lat"),
            Self::Memory => ("memory", "mem"),
            Self::Hardware => ("hardware", "hw"),
            Self::Energy => ("energy", "nrg"),
            Self::Tracks => ("tracks", "trk"),
            Self::Findings => ("findings", "find"),
            Self::Compare => ("compare", "cmp"),
            Self::Ranks => ("ranks", "rank"),
            Self::Pipeline => ("pipeline", "pipe"),
            Self::Step => ("step", "step"),
            Self::Sessions => ("sessions", "open"),
            Self::Marks => ("marks", "mark"),
            Self::Stacks => ("stacks", "stk"),
            Self::Log => ("output", "out"),
            Self::Help => ("help", "help"),
        }
    }

    /// Its place among [`View::ALL`].
    pub(super) fn index(self) -> usize {
        self as usize
    }

    /// Whether its horizontal axis is time, so that moving and zooming goes by time.
    pub fn has_time_axis(self) -> bool {
        matches!(self, Self::Tracks | Self::Ranks)
    }

    /// Whether its horizontal axis is that of the step bars, or it shows the step under their cursor, so that their cursor
    /// and zoom are its own too.
    pub fn has_step_axis(self) -> bool {
        let of_bars = matches!(self, Self::Overview | Self::Steps | Self::Memory | Self::Hardware | Self::Energy);
        of_bars || matches!(self, Self::Step | Self::Pipeline)
    }
}

/// What a drawing learned of the lines of the view that it drew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The last line that can be selected or, where nothing can be selected, that the view can be scrolled to.
    pub last: usize,
    /// Lines that a page is.
    pub page: usize,
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
    fn every_view_has_its_place_and_eleven_have_a_key() {
        for (at, view) in View::ALL.into_iter().enumerate() {
            assert_eq!(view.index(), at);
        }
        let keys: String = View::ALL.iter().filter_map(|view| view.key()).collect();
        assert_eq!(keys, "123456789RP");
    }
}
