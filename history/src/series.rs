//! Durations over the whole time: of steps, their gap and phases, and of all spans by name.

use gnntop_wire::NameId;
use gnntop_wire::past::{DurationSeries as Of, Durations, FINE_BITS, PastEntry, StepFigures};

use crate::merge::entry;

/// Most names with durations of their spans; later ones are left out.
const MAX_NAMES: usize = 256;

/// Most name ids that are kept apart.
const MAX_IDS: usize = 1 << 16;
/// Marks a name without an index.
const NOWHERE: u16 = u16::MAX;
/// Counters reserved together: those of a power of two.
const TOGETHER: usize = 1 << (FINE_BITS - 1);

/// All spans of a name.
#[derive(Debug)]
struct SpanDurations {
    name: NameId,
    /// Their time on loaders' tracks, in nanoseconds.
    ahead_ns: u64,
    durations: FineHistogram,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct AllDurations {
    step: FineHistogram,
    period: FineHistogram,
    gap: FineHistogram,
    phases: Vec<(NameId, FineHistogram)>,
    spans: Vec<SpanDurations>,
    /// By id of the name: its index in `spans`, or [`NOWHERE`].
    places: Vec<u16>,
}

impl AllDurations {
    pub(crate) fn new() -> Self {
        let [step, period, gap] = [FineHistogram::new(), FineHistogram::new(), FineHistogram::new()];
        Self { step, period, gap, phases: Vec::new(), spans: Vec::new(), places: Vec::new() }
    }

    pub(crate) fn step(&mut self, figures: &StepFigures) {
        self.step.record(figures.step.end_ns.saturating_sub(figures.step.start_ns));
        self.period.record(figures.period_ns());
        self.gap.record(figures.gap_ns);
        for (name, ns) in figures.phases.iter().filter(|(_, ns)| *ns > 0) {
            entry(&mut self.phases, *name, FineHistogram::new).record(*ns);
        }
    }

    pub(crate) fn span(&mut self, name: NameId, ns: u64, is_ahead: bool) {
        let known = self.places.get(name.0 as usize).copied().unwrap_or(NOWHERE);
        let at = if known == NOWHERE { self.index_of(name) } else { usize::from(known) };
        let Some(span) = self.spans.get_mut(at) else { return };
        span.durations.record(ns);
        span.ahead_ns = span.ahead_ns.saturating_add(if is_ahead { ns } else { 0 });
    }

    /// The index of a name, assigned now if there is room for it.
    #[cold]
    fn index_of(&mut self, name: NameId) -> usize {
        let id = name.0 as usize;
        if self.spans.len() >= MAX_NAMES || id >= MAX_IDS {
            return MAX_NAMES;
        }
        if id >= self.places.len() {
            self.places.resize(id + 1, NOWHERE);
        }
        if self.places[id] == NOWHERE {
            self.places[id] = self.spans.len() as u16;
            self.spans.push(SpanDurations { name, ahead_ns: 0, durations: FineHistogram::new() });
        }
        usize::from(self.places[id])
    }

    /// Adds durations of an earlier time.
    pub(crate) fn add_past(&mut self, of: Of, more: &Durations) {
        match of {
            Of::Step => self.step.merge(more),
            Of::Period => self.period.merge(more),
            Of::Gap => self.gap.merge(more),
            Of::Phase(name) => {
                if self.phases.len() < MAX_NAMES || self.phases.iter().any(|(known, _)| *known == name) {
                    entry(&mut self.phases, name, FineHistogram::new).merge(more);
                }
            }
            Of::Span { name, ahead_ns } => {
                let known = self.spans.iter().position(|span| span.name == name);
                let at = known.unwrap_or_else(|| self.index_of(name));
                if let Some(span) = self.spans.get_mut(at) {
                    span.durations.merge(more);
                    span.ahead_ns = span.ahead_ns.saturating_add(ahead_ns);
                }
            }
        }
    }

    /// All non-empty series.
    pub(crate) fn entries(&self) -> Vec<PastEntry> {
        let steps = [(Of::Step, &self.step), (Of::Period, &self.period), (Of::Gap, &self.gap)];
        let phases = self.phases.iter().map(|(name, durations)| (Of::Phase(*name), durations));
        let span = |span: &SpanDurations| {
            let SpanDurations { name, ahead_ns, durations } = span;
            PastEntry::Durations(Of::Span { name: *name, ahead_ns: *ahead_ns }, durations.durations())
        };
        let mut spans: Vec<&SpanDurations> = self.spans.iter().collect();
        spans.sort_unstable_by_key(|span| span.name);
        let steps = steps.into_iter().chain(phases).filter(|(_, durations)| !durations.is_empty());
        let steps = steps.map(|(of, durations)| PastEntry::Durations(of, durations.durations()));
        steps.chain(spans.into_iter().map(span)).collect()
    }
}

/// Durations with a counter for each bin, for fast counting; [`Durations`] has a sorted list of non-empty bins.
#[derive(Debug)]
pub(crate) struct FineHistogram {
    /// Count, total and extremes. Its bins are only those of the resumed past.
    figures: Durations,
    counters: Vec<Option<Box<[u64; TOGETHER]>>>,
}

impl FineHistogram {
    pub(crate) fn new() -> Self {
        Self { figures: Durations::new(FINE_BITS), counters: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.figures.is_empty()
    }

    #[inline]
    pub(crate) fn record(&mut self, ns: u64) {
        self.figures.record_without_bin(ns);
        let bin = self.figures.bin_index(ns) as usize;
        match self.counters.get_mut(bin / TOGETHER) {
            Some(Some(counters)) => counters[bin % TOGETHER] += 1,
            _ => self.record_first(bin),
        }
    }

    #[cold]
    fn record_first(&mut self, bin: usize) {
        let at = bin / TOGETHER;
        if at >= self.counters.len() {
            self.counters.resize_with(at + 1, || None);
        }
        self.counters[at].get_or_insert_with(|| Box::new([0; TOGETHER]))[bin % TOGETHER] += 1;
    }

    pub(crate) fn merge(&mut self, more: &Durations) {
        self.figures.merge(more);
    }

    /// All durations.
    pub(crate) fn durations(&self) -> Durations {
        let mut all = self.figures.clone();
        for (at, counters) in self.counters.iter().enumerate() {
            for (bin, count) in counters.iter().flat_map(|counters| counters.iter().enumerate()) {
                if *count > 0 {
                    all.add_to_bin((at * TOGETHER + bin) as u32, *count);
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn fine_histogram_equals_durations(
            before in prop::collection::vec(0u64..10_000_000, 0..20),
            all in prop::collection::vec(prop_oneof![any::<u64>(), 0u64..3000, 0u64..10_000_000], 0..200),
        ) {
            let (mut fine, mut expected, mut past) = (FineHistogram::new(), Durations::new(FINE_BITS), Durations::new(FINE_BITS));
            before.iter().for_each(|ns| past.record(*ns));
            before.iter().chain(&all).for_each(|ns| expected.record(*ns));
            all.iter().for_each(|ns| fine.record(*ns));
            fine.merge(&past);
            let found = fine.durations();
            prop_assert_eq!((found.count, found.total_ns), (expected.count, expected.total_ns));
            prop_assert_eq!((found.min_ns, found.max_ns), (expected.min_ns, expected.max_ns));
            prop_assert_eq!(found.bins().collect::<Vec<_>>(), expected.bins().collect::<Vec<_>>());
        }
    }
}
