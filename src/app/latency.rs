//! The state of the latency view: which steps it is about, which line and which percentile is selected, and which step
//! that is.

use std::ops::Range;

use super::{App, Command, View};
use gnntop_analysis::store::{Phase, PhaseSlot, SpanStatistics, StepRow, StepStatistics};

/// Percentiles of the table, as quantiles; the last one is the longest duration.
pub const QUANTILES: [f64; 6] = [0.5, 0.9, 0.99, 0.999, 0.9999, 1.0];
/// Most spans in the table, those with the most time.
const SPANS_MOST: usize = 64;

/// Which steps percentiles are over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Over {
    /// All steps since the start.
    #[default]
    Start,
    /// So many of the newest.
    Newest(u64),
    /// The range that is selected among the bars.
    Selected,
}

impl Over {
    const ALL: [Self; 4] = [Self::Start, Self::Newest(1000), Self::Newest(100), Self::Selected];
}

/// A line of the latency table.
#[derive(Clone, Copy, Debug)]
pub enum LatencyLine<'a> {
    /// The whole step.
    Step,
    /// A phase, or the gap, by its place among [`gnntop_analysis::store::Store::phases`].
    Phase(usize, &'a Phase),
    /// A span inside the phases, or beside them.
    Span(&'a SpanStatistics),
}

/// What the latency view shows beside what the store knows.
#[derive(Clone, Debug, Default)]
pub(super) struct Latency {
    over: Over,
    /// Place among [`QUANTILES`].
    column: usize,
    /// Steps of `over` with their figures, where they are not those since the start.
    figures: Option<(Range<u64>, StepStatistics)>,
}

impl App {
    /// Which steps the latency view is about.
    pub fn latency_over(&self) -> Over {
        self.latency.over
    }

    /// The steps that [`App::latency_figures`] are over, by their ordinals; `None` for all since the start.
    pub fn latency_range(&self) -> Option<Range<u64>> {
        self.latency.figures.as_ref().map(|(range, _)| range.clone())
    }

    /// Figures over the steps that the latency view is about.
    pub fn latency_figures(&self) -> &StepStatistics {
        self.latency.figures.as_ref().map_or(self.phase_statistics(), |(_, figures)| figures)
    }

    /// The place of the selected percentile among [`QUANTILES`].
    pub fn latency_column(&self) -> usize {
        self.latency.column
    }

    /// The lines of the latency table: the step, its phases and, since the start, spans by the time they took.
    pub fn latency_lines(&self) -> Vec<LatencyLine<'_>> {
        let phases = self.run.store().phases().iter().enumerate().map(|(at, phase)| LatencyLine::Phase(at, phase));
        let phases = phases.filter(|line| matches!(line, LatencyLine::Phase(_, phase) if self.passes(&phase.text)));
        let step = [LatencyLine::Step].into_iter().filter(|_| self.passes("step"));
        let mut lines: Vec<LatencyLine<'_>> = step.chain(phases).collect();
        if self.latency.figures.is_none() {
            let mut spans: Vec<&SpanStatistics> = self
                .run
                .store()
                .spans()
                .iter()
                .filter(|span| !span.is_phase && self.passes(self.run.store().name(span.name)))
                .collect();
            spans.sort_by_key(|span| std::cmp::Reverse(span.durations.total_ns()));
            lines.extend(spans.into_iter().take(SPANS_MOST).map(LatencyLine::Span));
        }
        lines
    }

    /// The line of the latency table that is selected.
    pub fn latency_line(&self) -> LatencyLine<'_> {
        let lines = self.latency_lines();
        lines.get(self.line(View::Latency)).or(lines.last()).copied().unwrap_or(LatencyLine::Step)
    }

    /// Whether the selected line is about steps, one of which can be shown.
    pub(super) fn can_show_percentile(&self) -> bool {
        !self.run.store().steps().is_empty() && !matches!(self.latency_line(), LatencyLine::Span(_))
    }

    /// Obeys the keys of the latency view.
    pub(super) fn change_latency(&mut self, command: Command) {
        match command {
            Command::NextRange => {
                let at = Over::ALL.iter().position(|over| *over == self.latency.over).unwrap_or(0);
                let can_select = self.window.range().is_some();
                let next = (1..=Over::ALL.len()).map(|by| Over::ALL[(at + by) % Over::ALL.len()]);
                self.latency.over =
                    next.into_iter().find(|over| *over != Over::Selected || can_select).unwrap_or_default();
            }
            Command::MovePercentile { by } => {
                let last = QUANTILES.len() - 1;
                self.latency.column = self.latency.column.saturating_add_signed(by).min(last);
            }
            Command::ShowPercentile => self.show_percentile(),
            _ => (),
        }
    }

    /// Forgets the figures, which are of another rank; not what they are to be over.
    pub(super) fn forget_figures(&mut self) {
        self.latency.figures = None;
    }

    /// Brings the figures up to date with the steps that they are to be over.
    pub(super) fn count_latency(&mut self) {
        let steps = self.run.store().steps();
        let range = match (self.latency.over, self.window.range()) {
            (Over::Newest(newest), _) => Some(steps.total().saturating_sub(newest)..steps.total()),
            (Over::Selected, Some(range)) => Some(range),
            (Over::Selected, None) => {
                self.latency.over = Over::Start;
                None
            }
            (Over::Start, _) => None,
        };
        if range != self.latency_range() || self.latency.over == Over::Start {
            self.latency.figures = range.map(|range| (range.clone(), self.figures_of(range)));
        }
    }

    /// Figures over a range of steps, by the clock that is shown.
    fn figures_of(&self, range: Range<u64>) -> StepStatistics {
        let steps = self.run.store().steps();
        let Some(device) = self.shown_device() else { return StepStatistics::of(steps.rows(range)) };
        let (mut first, mut last) = (None, None);
        for row in steps.rows(range) {
            first.get_or_insert(row.step());
            last = Some(row.step());
        }
        let ends = first.zip(last);
        ends.map_or_else(StepStatistics::default, |(first, last)| StepStatistics::of(device.rows(first, last)))
    }

    /// Selects the step that is the selected percentile, and shows it among the others.
    fn show_percentile(&mut self) {
        let slot = match self.latency_line() {
            LatencyLine::Step => None,
            LatencyLine::Phase(_, phase) => Some(phase.slot),
            LatencyLine::Span(_) => return,
        };
        if let Some(ordinal) = self.percentile_step(slot, QUANTILES[self.latency.column]) {
            let width = self.columns();
            self.window.show(ordinal, self.run.store().steps(), width);
            self.open(View::Steps);
        }
    }

    /// The step whose period, or whose time in a phase, comes nearest to a percentile; the newest of several.
    fn percentile_step(&self, slot: Option<PhaseSlot>, quantile: f64) -> Option<u64> {
        let figures = self.latency_figures();
        let all = slot.map_or(Some(figures.period()), |slot| figures.phase(slot))?;
        let wanted = if quantile < 1.0 { all.percentile(quantile) } else { all.max_ns() }?;
        let range = self.latency_range().unwrap_or(0..self.run.store().steps().total());
        let ns = |row: &StepRow<'_>| slot.map_or(row.period_ns(), |slot| row.phase_ns(slot));
        let shown = |row: StepRow<'_>| Some((ns(&self.phase_row(row.ordinal())?), row.ordinal()));
        let rows = self.run.store().steps().known_rows(range).filter_map(shown);
        rows.min_by_key(|(ns, ordinal)| (ns.abs_diff(wanted), std::cmp::Reverse(*ordinal))).map(|(_, ordinal)| ordinal)
    }
}
