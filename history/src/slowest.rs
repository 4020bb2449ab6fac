//! The slowest steps of each hour, with what was recorded in them.

use gnntop_wire::Span;
use gnntop_wire::past::{SlowStep, StepFigures};

/// An hour, in nanoseconds.
pub const HOUR_NS: u64 = 3_600_000_000_000;
/// Steps that are kept of each hour.
pub const SLOWEST_AN_HOUR: usize = 100;
/// Spans of a step that are kept: the longest.
const MOST_SPANS: usize = 32;
/// Spans of the step that goes on which are remembered.
const MOST_REMEMBERED: usize = 4096;

/// The slowest steps of the hour that goes on, and those of the hours that are over.
#[derive(Debug, Default)]
pub(crate) struct Slowest {
    hour: u64,
    /// By period, the fastest of them last.
    kept: Vec<SlowStep>,
    over: Vec<SlowStep>,
    /// Spans of the training track since its last step.
    spans: Vec<Span>,
}

impl Slowest {
    /// A span ended on the training track.
    pub(crate) fn span(&mut self, span: &Span) {
        if self.spans.len() < MOST_REMEMBERED {
            self.spans.push(*span);
        }
    }

    /// A step ended.
    pub(crate) fn step(&mut self, figures: &StepFigures) {
        let hour = figures.step.end_ns / HOUR_NS;
        if hour > self.hour {
            self.hour = hour;
            self.over.append(&mut self.kept);
        }
        let period_ns = figures.period_ns();
        let at = self.kept.partition_point(|slow| slow.figures.period_ns() >= period_ns);
        if at < SLOWEST_AN_HOUR {
            self.kept.truncate(SLOWEST_AN_HOUR - 1);
            self.kept.insert(at, SlowStep { figures: figures.clone(), spans: longest(&self.spans) });
        }
        self.spans.clear();
    }

    /// Takes one of the time before. Of the hour that goes on there may so be more than of others.
    pub(crate) fn resume(&mut self, slow: SlowStep) {
        self.over.push(slow);
    }

    /// Those of the hours that are over, each once.
    pub(crate) fn take_closed(&mut self) -> Vec<SlowStep> {
        std::mem::take(&mut self.over)
    }

    /// Those of the hour that goes on.
    pub(crate) fn open(&self) -> &[SlowStep] {
        &self.kept
    }
}

/// The longest spans, in the order in which they came.
fn longest(spans: &[Span]) -> Vec<Span> {
    let length = |span: &Span| span.end_ns.saturating_sub(span.start_ns);
    let mut lengths: Vec<u64> = spans.iter().map(length).collect();
    if lengths.len() <= MOST_SPANS {
        return spans.to_vec();
    }
    lengths.sort_unstable_by_key(|ns| std::cmp::Reverse(*ns));
    let least = lengths[MOST_SPANS - 1];
    spans.iter().filter(|span| length(span) >= least).take(MOST_SPANS).copied().collect()
}
