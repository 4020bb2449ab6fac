//! Where each view stands: which of its lines is selected or, where nothing can be selected, how far it is scrolled.
//! Each view keeps its own place while others are shown.

use super::{App, Command, Panel, View};

/// Rows that a page of a scrolled view leaves out for orientation and for frame and footer.
const PAGE_MARGIN: usize = 6;
/// Lines that a step's detail has beside those of its phases.
const STEP_FACTS: usize = 14;
/// Facts, charts and headings of a device's memory beside its phases and kinds.
const DEVICE_LINES: usize = 12;
/// Lines of the memory view beside those of its phases, at most.
const MEMORY_LINES: usize = 40;
/// Headings of the hardware view.
const HARDWARE_LINES: usize = 12;
/// Lines of the help beside its keys, at most.
const HELP_NOTES: usize = 16;

/// A line for each view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lines([usize; View::ALL.len()]);

impl Lines {
    pub(super) fn get(&self, view: View) -> usize {
        self.0[view.index()]
    }

    pub(super) fn set(&mut self, view: View, line: usize) {
        self.0[view.index()] = line;
    }
}

impl App {
    /// The line of `view` that is selected or, where nothing can be selected, the first one shown. It may lie beyond the
    /// last one there is by now.
    pub fn line(&self, view: View) -> usize {
        self.lines.get(view)
    }

    /// The last line that `view` can stand at.
    pub(super) fn last_line(&self, view: View) -> usize {
        let lines = match view {
            View::Overview if self.focus() == Panel::Phases => self.run.store().phases().len(),
            View::Overview | View::Steps => 0,
            View::Latency => self.latency_lines().len(),
            // Facts, charts and headings: as many as there may be, less what is on the screen anyway.
            View::Memory => {
                let device = self.run.store().device_memory();
                let device = device.map_or(0, |device| device.phases.len() * 2 + device.kinds.len() + DEVICE_LINES);
                let phases = self.run.store().memory().phases().len() * 2;
                (phases + device + MEMORY_LINES).saturating_sub(self.page() / 2)
            }
            View::Energy => self.energy_lines().saturating_sub(self.page() / 2),
            View::Hardware => {
                let quantities = self.run.store().signals().all().len() + self.run.store().counters().len();
                (quantities * 2 + HARDWARE_LINES).saturating_sub(self.page() / 2)
            }
            View::Tracks => self.run.store().tracks().len(),
            View::Findings => self.finding_lines().len(),
            View::Compare => self.pairs().len(),
            View::Ranks | View::Pipeline => self.run.ranks().all().len(),
            View::Step => self.run.store().phases().len() + STEP_FACTS,
            View::Sessions => self.entries().len(),
            // The first lines of a log fill a page.
            View::Log => self.log().map_or(0, |log| log.lines.len().saturating_sub(self.page()) + 1),
            View::Help => self.keymap().rows().len() + HELP_NOTES,
        };
        lines.saturating_sub(1)
    }

    fn page(&self) -> usize {
        usize::from(self.size.1).saturating_sub(PAGE_MARGIN).max(1)
    }

    /// Moves the view that is shown by lines.
    pub(super) fn scroll(&mut self, command: Command) {
        let (down, lines) = match command {
            Command::Scroll { lines } => (lines > 0, lines.unsigned_abs() as usize),
            Command::ScrollPage { down } => (down, self.page()),
            Command::ScrollEnd { bottom } => (bottom, usize::MAX),
            _ => return,
        };
        let view = self.view();
        if view == View::Ranks {
            return self.walk_ranks(down, lines);
        }
        let last = self.last_line(view);
        let step =
            |at: usize, down: bool| if down { at.saturating_add(lines).min(last) } else { at.saturating_sub(lines) };
        match (view, &mut self.log) {
            // A log is read from its end.
            (View::Log, Some(log)) => log.lines_up = step(log.lines_up, !down),
            _ => self.lines.set(view, step(self.lines.get(view).min(last), down)),
        }
        if view == View::Findings {
            self.forget_place();
        }
    }
}
