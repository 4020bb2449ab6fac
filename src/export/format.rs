//! What formats have in common: entries of tracks with what their ids mean, lanes in which spans nest, and numbers and texts as
//! JSON has them.

use std::io;

use super::stack_samples::SampledStack;
use gnntop_wire::{SessionInfo, Span, Step, TrackId, Unit};

/// One event with what its ids mean. Times are nanoseconds of the publisher's clock.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entry<'a> {
    Span { name: &'a str, is_phase: bool, span: Span },
    Step { step: Step },
    Counter { name: &'a str, t_ns: u64, value: f64 },
    Mark { name: &'a str, t_ns: u64, value: Option<f64> },
    Sample { name: &'a str, unit: Unit, t_ns: u64, value: i64 },
}

impl Entry<'_> {
    /// When it begins and ends.
    pub(super) fn time_ns(&self) -> (u64, u64) {
        match self {
            Self::Span { span, .. } => (span.start_ns, span.end_ns),
            Self::Step { step } => (step.start_ns, step.end_ns),
            Self::Counter { t_ns, .. } | Self::Mark { t_ns, .. } | Self::Sample { t_ns, .. } => (*t_ns, *t_ns),
        }
    }
}

/// Writes entries.
pub(super) trait FormatWriter {
    /// The session whose events follow; called at the beginning of every segment.
    fn session(&mut self, _info: &SessionInfo) {}
    /// A track, before its first entry.
    fn track(&mut self, track: TrackId, title: &str) -> io::Result<()>;
    /// An entry of a track.
    fn entry(&mut self, track: TrackId, entry: &Entry<'_>) -> io::Result<()>;
    /// The entries of a block are through.
    fn block_end(&mut self) -> io::Result<()> {
        Ok(())
    }
    /// Stacks that were taken of a track all the time: a form that has no place for them leaves them out. Comes last.
    fn stacks(&mut self, _track: TrackId, _title: &str, _stacks: &[SampledStack<'_>]) -> io::Result<()> {
        Ok(())
    }
    /// Nothing more follows.
    fn end(&mut self) -> io::Result<()>;
}

/// Microseconds with the nanoseconds after the point, not rounded by an `f64`.
pub(super) fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// A text as a JSON string.
pub(super) fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A number as JSON, `null` if it is not finite.
pub(super) fn json_number(value: f64) -> String {
    serde_json::Number::from_f64(value).map_or_else(|| "null".to_owned(), |number| number.to_string())
}

/// Lanes of a track; what finds no place in one of these goes to the last.
pub(super) const MAX_LANES: usize = 64;

/// Places for the spans of a track in which they nest, for formats in which an end always ends the span that began last.
///
/// Spans of one thread may overlap by a few hundred nanoseconds, and spans of asynchronous work by anything. Written
/// to one track such a form would exchange their ends, and with them their durations.
#[derive(Default)]
pub(super) struct Lanes {
    /// The ends of what is open in each lane, outer ones first.
    open_until_ns: Vec<Vec<u64>>,
}

impl Lanes {
    /// The first lane in which a span nests. Spans come in the order of their beginnings, longer ones first.
    pub(super) fn place(&mut self, start_ns: u64, end_ns: u64) -> usize {
        for (lane, open) in self.open_until_ns.iter_mut().enumerate() {
            while open.pop_if(|until_ns| *until_ns <= start_ns).is_some() {}
            if lane + 1 == MAX_LANES || open.last().is_none_or(|until_ns| end_ns <= *until_ns) {
                open.push(end_ns);
                return lane;
            }
        }
        self.open_until_ns.push(vec![end_ns]);
        self.open_until_ns.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_span_gets_next_lane_and_nested_span_stays() {
        let mut lanes = Lanes::default();
        let placed = [(0, 10), (5, 15), (6, 9), (10, 12), (12, 20), (14, 21), (15, 16)];
        assert_eq!(placed.map(|(start, end)| lanes.place(start, end)), [0, 1, 0, 0, 0, 2, 0]);
    }

    #[test]
    fn lanes_are_bounded() {
        let mut lanes = Lanes::default();
        let highest = (0..1000).map(|n| lanes.place(n, 2000 + n)).max();
        assert_eq!(highest, Some(MAX_LANES - 1));
    }
}
