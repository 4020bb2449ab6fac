//! The state of the latency view: which steps it is about, which line and which percentile is selected, and which step
//! that is.

use std::ops::Range;

use super::presentation::ClockedPhases;
use gnntop_analysis::store::{Distribution, Phase, SpanStatistics, StepRow, StepStatistics, Store};

/// Percentiles of the table, as quantiles; the last one is the longest duration.
pub const QUANTILES: [f64; 6] = [0.5, 0.9, 0.99, 0.999, 0.9999, 1.0];
/// Most spans in the table, those with the most time.
const SPANS_MOST: usize = 64;

/// Which steps percentiles are over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepScope {
    /// All steps since the start.
    #[default]
    Start,
    /// This many of the newest.
    Newest(u64),
    /// The range that is selected among the bars.
    Selected,
}

impl StepScope {
    const ALL: [Self; 4] = [Self::Start, Self::Newest(1000), Self::Newest(100), Self::Selected];
}

/// A line of the latency table.
#[derive(Clone, Copy, Debug)]
pub enum LatencyLine<'a> {
    /// The step with the gap before it.
    Period,
    /// The step from its own start.
    Step,
    /// A phase, or the gap, by its place among [`gnntop_analysis::store::Store::phases`].
    Phase(usize, &'a Phase),
    /// A span that is not a phase.
    Span(&'a SpanStatistics),
}

impl<'a> LatencyLine<'a> {
    /// The durations of the line; `None` if there are none.
    pub fn durations(&self, figures: &'a StepStatistics) -> Option<&'a Distribution> {
        match self {
            Self::Period => Some(figures.period()),
            Self::Step => Some(figures.step()),
            Self::Phase(_, phase) => figures.phase(phase.slot),
            Self::Span(span) => Some(&span.durations),
        }
    }
}

/// The latency view's own state.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    scope: StepScope,
    /// Place among [`QUANTILES`].
    column: usize,
    /// Steps of `over` with their figures, where they are not those since the start.
    figures: Option<(Range<u64>, StepStatistics)>,
}

impl Latency {
    /// Which steps the view is about.
    pub fn scope(&self) -> StepScope {
        self.scope
    }

    /// The steps that the figures are over, by their ordinals; `None` for all since the start.
    pub fn range(&self) -> Option<Range<u64>> {
        self.figures.as_ref().map(|(range, _)| range.clone())
    }

    /// Figures over the steps that the view is about.
    pub(super) fn figures<'a>(&'a self, phases: ClockedPhases<'a>) -> &'a StepStatistics {
        self.figures.as_ref().map_or(phases.statistics(), |(_, figures)| figures)
    }

    /// The place of the selected percentile among [`QUANTILES`].
    pub fn column(&self) -> usize {
        self.column
    }

    /// The lines of the table with names that are shown: the period, the phases that add up to it, the step and, since the
    /// start, spans by their time.
    pub(super) fn lines<'a>(&self, store: &'a Store, is_shown: impl Fn(&str) -> bool) -> Vec<LatencyLine<'a>> {
        let period = [LatencyLine::Period].into_iter().filter(|_| is_shown("period"));
        let step = [LatencyLine::Step].into_iter().filter(|_| is_shown("step"));
        let phases = store.phases().iter().enumerate().filter(|(_, phase)| is_shown(&phase.text));
        let mut lines: Vec<LatencyLine<'a>> =
            period.chain(phases.map(|(at, phase)| LatencyLine::Phase(at, phase))).chain(step).collect();
        if self.figures.is_none() {
            let is_wanted = |span: &&SpanStatistics| !span.is_phase && is_shown(store.name(span.name));
            let mut spans: Vec<&SpanStatistics> = store.spans().iter().filter(is_wanted).collect();
            spans.sort_by_key(|span| std::cmp::Reverse(span.durations.total_ns()));
            lines.extend(spans.into_iter().take(SPANS_MOST).map(LatencyLine::Span));
        }
        lines
    }

    /// Advances to the next set of steps that has figures; a range only where one is selected.
    pub(super) fn next_range(&mut self, can_select: bool) {
        let at = StepScope::ALL.iter().position(|over| *over == self.scope).unwrap_or(0);
        let mut next = (1..=StepScope::ALL.len()).map(|by| StepScope::ALL[(at + by) % StepScope::ALL.len()]);
        self.scope = next.find(|over| *over != StepScope::Selected || can_select).unwrap_or_default();
    }

    /// Is about the selected range from now on.
    pub(super) fn show_selected(&mut self) {
        self.scope = StepScope::Selected;
    }

    /// Selects a rarer percentile, or a more common one if negative.
    pub(super) fn move_percentile(&mut self, by: isize) {
        self.column = self.column.saturating_add_signed(by).min(QUANTILES.len() - 1);
    }

    /// Forgets the figures, which are of another rank or by another clock; keeps the chosen range.
    pub(super) fn forget_figures(&mut self) {
        self.figures = None;
    }

    /// Updates the figures to the steps of the chosen range.
    pub(super) fn count(&mut self, phases: ClockedPhases<'_>, selected: Option<Range<u64>>) {
        let total = phases.store().steps().total();
        let range = match (self.scope, selected) {
            (StepScope::Newest(newest), _) => Some(total.saturating_sub(newest)..total),
            (StepScope::Selected, Some(range)) => Some(range),
            (StepScope::Selected, None) => {
                self.scope = StepScope::Start;
                None
            }
            (StepScope::Start, _) => None,
        };
        if range != self.range() || self.scope == StepScope::Start {
            self.figures = range.map(|range| (range.clone(), compute_figures(range, phases)));
        }
    }

    /// The step whose time in a line of the table is nearest to the selected percentile; the newest of several. `None`
    /// for spans, which are not steps.
    pub(super) fn percentile_step(&self, phases: ClockedPhases<'_>, line: &LatencyLine<'_>) -> Option<u64> {
        let figures = self.figures(phases);
        let all = line.durations(figures).filter(|_| !matches!(line, LatencyLine::Span(_)))?;
        let quantile = QUANTILES[self.column];
        let wanted = if quantile < 1.0 { all.percentile(quantile) } else { all.max_ns() }?;
        let steps = phases.store().steps();
        let range = self.range().unwrap_or(0..steps.total());
        let ns = |row: &StepRow<'_>| match line {
            LatencyLine::Phase(_, phase) => row.phase_ns(phase.slot),
            LatencyLine::Step => row.work_ns(),
            _ => row.period_ns(),
        };
        let shown = |row: StepRow<'_>| Some((ns(&phases.row(row.ordinal())?), row.ordinal()));
        let rows = steps.known_rows(range).filter_map(shown);
        rows.min_by_key(|(ns, ordinal)| (ns.abs_diff(wanted), std::cmp::Reverse(*ordinal))).map(|(_, ordinal)| ordinal)
    }
}

/// Figures over a range of steps, by the clock that is shown.
fn compute_figures(range: Range<u64>, phases: ClockedPhases<'_>) -> StepStatistics {
    let steps = phases.store().steps();
    let Some(device) = phases.device() else { return steps.statistics(range) };
    let (mut first, mut last) = (None, None);
    for row in steps.rows(range) {
        first.get_or_insert(row.step());
        last = Some(row.step());
    }
    let ends = first.zip(last);
    ends.map_or_else(StepStatistics::default, |(first, last)| StepStatistics::from_rows(device.rows(first, last)))
}
