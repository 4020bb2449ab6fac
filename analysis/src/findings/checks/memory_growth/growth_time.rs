//! Where growth is looked for, the readings there, and how much is worth reporting.

use std::ops::Range;

use crate::findings::evidence::StepEvidence;
use crate::store::{Series, TimeColumns, Value};

/// Stretches into which the time is divided. The lowest reading of each counts, so that what a step takes and gives
/// back does not.
pub(super) const STRETCHES: usize = 8;
/// Smaller growth is not reported...
pub(super) const LEAST_BYTES: f64 = 32e6;
/// ...nor is growth by a smaller share.
pub(super) const LEAST_SHARE: f64 = 0.05;
/// A run of at least this many nanoseconds is long...
const LONG_RUN_NS: u64 = 1_800_000_000_000;
/// ...if it is this many times as long as the steps looked at.
const LONGER: u64 = 2;
/// This fraction of a run is its beginning, in which a program takes its memory.
const BEGINNING: u64 = 20;
/// Readings needed in a stretch.
const READINGS: usize = 3;

/// Where growth is looked for.
#[derive(Debug)]
pub(super) enum GrowthTime {
    /// In the steps that are looked at.
    Steps(Range<u64>),
    /// In the whole run: the newest steps may show nothing of a slow leak.
    Run(Range<u64>),
}

impl GrowthTime {
    /// The time of the whole run up to these steps, without its beginning, if it is much longer than theirs.
    pub(super) fn whole_run(evidence: &StepEvidence<'_>, steps_ns: &Range<u64>) -> Option<Self> {
        let first_ns = evidence.store.first_ns()?;
        let ns = steps_ns.end.saturating_sub(first_ns);
        let is_long = ns >= LONG_RUN_NS && ns / LONGER >= steps_ns.end - steps_ns.start;
        is_long.then(|| Self::Run(first_ns + ns / BEGINNING..steps_ns.end))
    }

    pub(super) fn span(&self) -> &Range<u64> {
        match self {
            Self::Steps(span) | Self::Run(span) => span,
        }
    }

    pub(super) fn len_ns(&self) -> u64 {
        self.span().end - self.span().start
    }

    /// Lowest readings of the stretches; `None` where there are too few readings.
    pub(super) fn lowest<T: Value>(&self, series: &Series<T>) -> Option<[f64; STRETCHES]> {
        let span = self.span();
        if let Self::Run(_) = self {
            let stretches = TimeColumns::equal(span.clone(), STRETCHES);
            let bins = series.value_columns(&stretches, span.end, Some(0));
            let lowest: Option<Vec<f64>> = bins.into_iter().map(|bin| Some(bin?.min)).collect();
            return lowest?.try_into().ok();
        }
        let mut lowest = [f64::INFINITY; STRETCHES];
        let mut readings = [0; STRETCHES];
        for (t_ns, value) in self.readings(series) {
            let at = (u128::from(t_ns - span.start) * STRETCHES as u128 / u128::from(self.len_ns())) as usize;
            lowest[at] = lowest[at].min(value);
            readings[at] += 1;
        }
        readings.iter().all(|n| *n >= READINGS).then_some(lowest)
    }

    /// The single readings, as far as they are kept.
    pub(super) fn readings<T: Value>(&self, series: &Series<T>) -> Vec<(u64, f64)> {
        let within = series.points().filter(|point| self.span().contains(&point.t_ns()));
        within.filter_map(|point| Some((point.t_ns(), point.value()?.as_f64()))).collect()
    }
}
