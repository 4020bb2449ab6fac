//! Durations over the whole time: of steps, their gap and phases, and of all spans by name.

use gnntop_wire::NameId;
use gnntop_wire::past::{Durations, FINE_BITS, Past, Series as Of, StepFigures};

use crate::merge::entry;

/// Names of spans that durations are kept of; later ones are left out.
const MOST_NAMES: usize = 256;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct AllDurations {
    step: Durations,
    period: Durations,
    gap: Durations,
    phases: Vec<(NameId, Durations)>,
    spans: Vec<(NameId, (u64, Durations))>,
}

impl AllDurations {
    pub(crate) fn new() -> Self {
        let [step, period, gap] = [fine(), fine(), fine()];
        Self { step, period, gap, phases: Vec::new(), spans: Vec::new() }
    }

    pub(crate) fn step(&mut self, figures: &StepFigures) {
        self.step.record(figures.step.end_ns.saturating_sub(figures.step.start_ns));
        self.period.record(figures.period_ns());
        self.gap.record(figures.gap_ns);
        for (name, ns) in figures.phases.iter().filter(|(_, ns)| *ns > 0) {
            entry(&mut self.phases, *name, fine).record(*ns);
        }
    }

    pub(crate) fn span(&mut self, name: NameId, ns: u64, is_ahead: bool) {
        if self.spans.len() >= MOST_NAMES && self.spans.binary_search_by_key(&name, |(known, _)| *known).is_err() {
            return;
        }
        let (ahead_ns, durations) = entry(&mut self.spans, name, || (0, fine()));
        durations.record(ns);
        *ahead_ns = ahead_ns.saturating_add(if is_ahead { ns } else { 0 });
    }

    /// Adds durations of the time before.
    pub(crate) fn absorb(&mut self, of: Of, more: &Durations) {
        match of {
            Of::Step => self.step.merge(more),
            Of::Period => self.period.merge(more),
            Of::Gap => self.gap.merge(more),
            Of::Phase(name) => {
                if self.phases.len() < MOST_NAMES || self.phases.iter().any(|(known, _)| *known == name) {
                    entry(&mut self.phases, name, fine).merge(more);
                }
            }
            Of::Span { name, ahead_ns } => {
                if self.spans.len() < MOST_NAMES || self.spans.iter().any(|(known, _)| *known == name) {
                    let (ahead, durations) = entry(&mut self.spans, name, || (0, fine()));
                    durations.merge(more);
                    *ahead = ahead.saturating_add(ahead_ns);
                }
            }
        }
    }

    /// All of them that are not empty.
    pub(crate) fn entries(&self) -> Vec<Past> {
        let steps = [(Of::Step, &self.step), (Of::Period, &self.period), (Of::Gap, &self.gap)];
        let phases = self.phases.iter().map(|(name, durations)| (Of::Phase(*name), durations));
        let span = |(name, (ahead_ns, durations)): &'_ (NameId, (u64, Durations))| {
            Past::Durations(Of::Span { name: *name, ahead_ns: *ahead_ns }, durations.clone())
        };
        let steps = steps.into_iter().chain(phases).filter(|(_, durations)| !durations.is_empty());
        steps.map(|(of, durations)| Past::Durations(of, durations.clone())).chain(self.spans.iter().map(span)).collect()
    }
}

fn fine() -> Durations {
    Durations::new(FINE_BITS)
}
