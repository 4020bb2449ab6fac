//! Resumes a digest from the past of an earlier time.

use gnntop_wire::past::{PastEntry, PastTotals, Slice, Unfinished};

use crate::digest::Digest;
use crate::slices::SECOND_NS;
use crate::tiling::WaitingPhases;

/// More than any run reaches; larger numbers are clamped to this, so that no sum overflows.
const MAX_COUNT: u64 = 1 << 56;

impl Digest {
    /// Takes the past before the first event; ignored once a step was seen.
    pub(crate) fn resume(&mut self, past: PastEntry) {
        match past {
            PastEntry::Totals(whole) if self.steps_before.is_none() && self.totals.steps == 0 => {
                self.resume_totals(*whole)
            }
            PastEntry::Durations(of, durations) if self.is_resuming() => self.durations.add_past(of, &durations),
            PastEntry::Slice(slice) if self.is_resuming() => self.resume_slice(*slice),
            PastEntry::Slow(slow) if self.is_resuming() => self.slowest.resume(*slow),
            _ => (),
        }
    }

    /// Whether no step has followed the past yet.
    fn is_resuming(&self) -> bool {
        self.steps_before.is_some_and(|steps| steps == self.totals.steps)
    }

    fn resume_totals(&mut self, mut whole: PastTotals) {
        whole.steps = whole.steps.min(MAX_COUNT);
        whole.epochs.2 = whole.epochs.2.min(MAX_COUNT);
        whole.files = Vec::new();
        if self.has_begun {
            whole.last_ns = whole.last_ns.max(self.totals.last_ns);
        }
        self.has_begun = true;
        self.steps_before = Some(whole.steps);
        whole.tracks.iter().for_each(|end| self.tracks.resume(end));
        whole.unfinished.iter().for_each(|unfinished| self.resume_tiling(unfinished));
        self.last.resume(&whole.signals, &whole.counters);
        self.totals = whole;
    }

    fn resume_tiling(&mut self, unfinished: &Unfinished) {
        let Unfinished { track, last_end_ns, last_step, phases } = unfinished;
        let phases = phases.iter();
        let phases =
            phases.filter_map(|(name, start_ns, end_ns)| Some((self.slot(*name)?, *start_ns, *end_ns))).collect();
        let waiting = WaitingPhases { last_end_ns: *last_end_ns, last_step: *last_step, phases };
        let (next_seq, dropped) =
            self.tracks.get(*track).map_or((0, 0), |track| (track.end.next_seq, track.end.dropped));
        self.tracks.begin(*track, next_seq, dropped);
        if self.tracks.claim_steps(*track, *last_step)
            && let Some(tiling) = self.tracks.get(*track).and_then(|track| track.tiling.as_mut())
        {
            tiling.resume(&waiting);
        }
    }

    /// Adds seconds to their minute; passes minutes on unchanged.
    fn resume_slice(&mut self, slice: Slice) {
        if slice.to_ns.saturating_sub(slice.from_ns) <= SECOND_NS {
            self.slices.close(slice);
        } else {
            self.slices.resume_minute(slice);
        }
    }
}
