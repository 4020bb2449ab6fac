//! The slowest steps of each hour, with the spans recorded in them.

use gnntop_wire::Span;
use gnntop_wire::past::{SlowStep, StepFigures};

/// An hour, in nanoseconds.
pub const HOUR_NS: u64 = 3_600_000_000_000;
/// Steps kept of each hour.
pub const SLOWEST_AN_HOUR: usize = 100;
/// Spans kept of a step: the longest.
const MAX_SPANS: usize = 32;
/// Most spans remembered of the current step.
const MAX_REMEMBERED: usize = 4096;

/// The slowest steps of the current hour, and those of finished hours.
#[derive(Debug)]
pub(crate) struct Slowest {
    /// Steps to keep of each hour.
    an_hour: usize,
    of_run: SlowestOfRun,
    hour: u64,
    /// By period, the fastest last.
    kept: Vec<SlowStep>,
    over: Vec<SlowStep>,
    /// Spans of the training track since its last step.
    spans: Vec<Span>,
}

/// The slowest steps of the whole run, with all their spans.
#[derive(Debug, Default)]
struct SlowestOfRun {
    most: usize,
    /// By period, the fastest of them last.
    kept: Vec<SlowStep>,
}

impl SlowestOfRun {
    /// Takes a step, unless enough are slower.
    fn offer(&mut self, figures: &StepFigures, spans: &[Span]) {
        let at = insertion_index(&self.kept, figures);
        if at < self.most {
            self.kept.truncate(self.most - 1);
            self.kept.insert(at, SlowStep { figures: figures.clone(), spans: spans.to_vec() });
        }
    }
}

impl Slowest {
    /// Keeps this many steps of the whole run with all their spans.
    pub(crate) fn with_capacity(most: usize) -> Self {
        Self {
            // Each of them is among the slowest of its hour, too.
            an_hour: SLOWEST_AN_HOUR.max(most),
            of_run: SlowestOfRun { most, kept: Vec::new() },
            hour: 0,
            kept: Vec::new(),
            over: Vec::new(),
            spans: Vec::new(),
        }
    }

    /// A span ended on the training track.
    pub(crate) fn span(&mut self, span: &Span) {
        if self.spans.len() < MAX_REMEMBERED {
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
        self.of_run.offer(figures, &self.spans);
        let at = insertion_index(&self.kept, figures);
        if at < self.an_hour {
            self.kept.truncate(self.an_hour - 1);
            self.kept.insert(at, SlowStep { figures: figures.clone(), spans: longest(&self.spans) });
        }
        self.spans.clear();
    }

    /// A step ended that is not kept.
    pub(crate) fn skip_step(&mut self) {
        self.spans.clear();
    }

    /// Takes a slow step of an earlier time. So the current hour may have more of them than others.
    pub(crate) fn resume(&mut self, slow: SlowStep) {
        if slow.spans.len() > MAX_SPANS && self.of_run.most > 0 {
            // The longest of its spans are among those of its hour.
            return self.of_run.offer(&slow.figures, &slow.spans);
        }
        self.over.push(slow);
    }

    /// The slowest of the whole run that have more spans than are kept for an hour's.
    pub(crate) fn with_all_spans(&self) -> impl Iterator<Item = &SlowStep> {
        self.of_run.kept.iter().filter(|slow| slow.spans.len() > MAX_SPANS)
    }

    /// Those of finished hours, each once.
    pub(crate) fn take_closed(&mut self) -> Vec<SlowStep> {
        std::mem::take(&mut self.over)
    }

    /// The slow steps of the current hour.
    pub(crate) fn open(&self) -> &[SlowStep] {
        &self.kept
    }
}

/// Where a step belongs among the kept ones.
fn insertion_index(kept: &[SlowStep], figures: &StepFigures) -> usize {
    let period_ns = figures.period_ns();
    kept.partition_point(|slow| slow.figures.period_ns() >= period_ns)
}

/// The longest spans, in the order of arrival.
fn longest(spans: &[Span]) -> Vec<Span> {
    let length = |span: &Span| span.end_ns.saturating_sub(span.start_ns);
    let mut lengths: Vec<u64> = spans.iter().map(length).collect();
    if lengths.len() <= MAX_SPANS {
        return spans.to_vec();
    }
    lengths.sort_unstable_by_key(|ns| std::cmp::Reverse(*ns));
    let least = lengths[MAX_SPANS - 1];
    spans.iter().filter(|span| length(span) >= least).take(MAX_SPANS).copied().collect()
}
