//! The two parts of making a batch: its items, and `collate`, which puts them together.

use std::fmt;
use std::ops::Range;

use gnntop_wire::Reported;
use gnntop_wire::phase::DATA_WAIT;

use crate::findings::evidence::StepEvidence;
use crate::store::{LaneBox, Store, Track};

/// A part of making a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BatchPart {
    Items,
    Collate,
}

impl fmt::Display for BatchPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Items => "the items",
            Self::Collate => Reported::Collate.text(),
        })
    }
}

impl BatchPart {
    /// What takes its time, for a sentence.
    pub(super) fn work(self) -> &'static str {
        match self {
            Self::Items => "making the items",
            Self::Collate => Reported::Collate.text(),
        }
    }
}

/// The time that batches take to make, and how much of it their items are put together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BatchTimes {
    all_ns: f64,
    collate_ns: f64,
}

impl BatchTimes {
    /// Of the batches that the training thread makes itself while the loop waits; `None` if it makes none, or the program does not
    /// say when it puts items together.
    pub(super) fn in_waits(evidence: &StepEvidence<'_>) -> Option<Self> {
        let mut times = Self::default();
        times.add(evidence.store, evidence.store.training_track()?, &evidence.span_ns()?, |phase| phase == DATA_WAIT);
        times.known()
    }

    /// Of the batches that the workers of these tracks make.
    pub(super) fn of_workers<'a>(
        store: &Store,
        tracks: impl Iterator<Item = &'a Track>,
        span: &Range<u64>,
    ) -> Option<Self> {
        let mut times = Self::default();
        tracks.for_each(|track| times.add(store, track, span, |_| true));
        times.known()
    }

    fn known(self) -> Option<Self> {
        Some(self).filter(|times| times.collate_ns > 0.0)
    }

    /// The part that takes longer, and its share (0 to 1).
    pub(super) fn longer(&self) -> (BatchPart, f64) {
        let collate = self.collate_ns / self.all_ns;
        if collate > 0.5 { (BatchPart::Collate, collate) } else { (BatchPart::Items, 1.0 - collate) }
    }

    /// Adds the outermost phases of a track in which it makes batches. Only what is kept of every span counts.
    fn add(&mut self, store: &Store, track: &Track, span: &Range<u64>, makes_batches: impl Fn(&str) -> bool) {
        let Some(lane) = track.lane() else { return };
        let mut around: Option<(LaneBox, bool)> = None;
        lane.each_box(span.start.max(lane.full_from_ns())..span.end, |inner, _| {
            let length_ns = (inner.end_ns - inner.start_ns) as f64;
            match around.filter(|(outer, _)| outer.start_ns <= inner.start_ns) {
                Some((_, is_made)) if is_made && store.reported(inner.name) == Some(Reported::Collate) => {
                    self.collate_ns += length_ns;
                }
                Some(_) => {}
                None => {
                    let Some(phase) = store.phase_text(inner.name) else { return };
                    let is_made = makes_batches(phase);
                    self.all_ns += if is_made { length_ns } else { 0.0 };
                    around = Some((*inner, is_made));
                }
            }
        });
    }
}
