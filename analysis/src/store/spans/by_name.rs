//! Durations of spans by name, over all tracks.

use gnntop_wire::NameId;
use gnntop_wire::past::Durations;

use super::distribution::Distribution;
use crate::store::ids::names::NameTable;

/// Durations of all spans with one name.
#[derive(Clone, Debug)]
pub struct SpanStatistics {
    /// The name.
    pub name: NameId,
    /// Whether its spans are phases.
    pub is_phase: bool,
    /// The durations of single spans.
    pub durations: Distribution,
    /// Their time on loaders' tracks: work done ahead, in parallel with steps.
    pub ahead_ns: u64,
}

/// Span statistics by name, with percentiles for a bounded number of names.
#[derive(Clone, Debug)]
pub(in crate::store) struct Spans {
    all: Vec<SpanStatistics>,
    /// Most names with a histogram.
    capacity: usize,
}

impl Spans {
    pub(in crate::store) fn new(capacity: usize) -> Self {
        Self { all: Vec::new(), capacity }
    }

    pub(in crate::store) fn all(&self) -> &[SpanStatistics] {
        &self.all
    }

    #[inline]
    pub(in crate::store) fn record(&mut self, index: u32, ns: u64, is_ahead: bool) {
        if let Some(statistics) = self.all.get_mut(index as usize) {
            statistics.durations.record(ns);
            statistics.ahead_ns = statistics.ahead_ns.saturating_add(if is_ahead { ns } else { 0 });
        }
    }

    /// Adds durations that are no longer kept individually.
    pub(in crate::store) fn add_past(&mut self, index: u32, past: &Durations, ahead_ns: u64) {
        if let Some(statistics) = self.all.get_mut(index as usize) {
            statistics.durations.add_past(past);
            statistics.ahead_ns = statistics.ahead_ns.saturating_add(ahead_ns);
        }
    }

    /// Index of a name's statistics, assigned now. Names with the same text share them.
    #[cold]
    pub(in crate::store) fn assign(&mut self, name: NameId, names: &NameTable) -> u32 {
        let text = names.text(name);
        let same = |s: &SpanStatistics| s.name == name || (text.is_some() && names.text(s.name) == text);
        // Only names with percentiles are compared: with more, hostile input could make this slow.
        if let Some(index) = self.all.iter().take(self.capacity).position(same) {
            return index as u32;
        }
        let room = self.all.len() < self.capacity;
        let durations = if room { Distribution::new() } else { Distribution::without_percentiles() };
        let is_phase = names.kind(name) == Some(gnntop_wire::NameKind::Phase);
        self.all.push(SpanStatistics { name, is_phase, durations, ahead_ns: 0 });
        self.all.len() as u32 - 1
    }
}
