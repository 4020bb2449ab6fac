//! The slowest steps of each hour, with the spans recorded in them.

use gnntop_wire::Span;
use gnntop_wire::past::{SlowStep, StepFigures};

/// An hour, in nanoseconds.
pub const HOUR_NS: u64 = 3_600_000_000_000;
/// Steps kept of each hour.
pub const SLOWEST_AN_HOUR: usize = 100;
/// Spans kept of a step: the longest.
const MOST_SPANS: usize = 32;
/// Most spans remembered of the current step.
const MOST_REMEMBERED: usize = 4096;

/// The slowest steps of the current hour, and those of finished hours.
#[derive(Debug, Default)]
pub(crate) struct Slowest {
    hour: u64,
    /// By period, the fastest last.
    kept: Vec<SlowStep>,
    over: Vec<SlowStep>,
    /// Spans of the training track since its last step.
    spans: Vec<Span>,
}

impl Slowest {
    /// Takes a span that ended on the training track.
    pub(crate) fn span(&mut self, span: &Span) {
        if self.spans.len() < MOST_REMEMBERED {
            self.spans.push(*span);
        }
    }

    /// Takes a step that ended.
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

    /// Takes a slow step of an earlier time. The current hour may so have more of them than others.
    pub(crate) fn resume(&mut self, slow: SlowStep) {
        self.over.push(slow);
    }

    /// The slow steps of finished hours, each once.
    pub(crate) fn take_closed(&mut self) -> Vec<SlowStep> {
        std::mem::take(&mut self.over)
    }

    /// The slow steps of the current hour.
    pub(crate) fn open(&self) -> &[SlowStep] {
        &self.kept
    }
}

/// The longest spans, in their original order.
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
