//! Applies a session's summary of the time before its oldest segment, so that figures cover the whole run.
//!
//! It comes before all events. Durations go into the distributions, slices into the oldest, reduced parts of the table and
//! the series, and slow steps beside them. Summaries after the first step are ignored.

use std::ops::Range;

use gnntop_history::WaitingPhases;
use gnntop_wire::past::{
    DurationSeries, Durations, PastEntry, PastTotals, Slice, SlowStep, StepFigures, TrackEnd, Unfinished,
};
use gnntop_wire::{Mark, NameId, SignalKind};

use super::contents::{PastExtent, Store};
use super::ids::names::assign_slot;
use super::ids::phases::MAX_PHASES;
use super::instants::StoredMark;
use super::steps::reduced_steps::{PastSlowStep, StepGroup, StoredStep};
use super::steps::stretches::Stretch;

/// A gauge of power is valid for less than a minute, so its mean stands in for its readings this often.
const POWER_EVERY_NS: u64 = 5_000_000_000;
/// Most times that a slice stands in for a gauge.
const MAX_POWERS: u64 = 64;
/// More than any run reaches; larger numbers are clamped to this, so that no sum overflows.
const MAX_COUNT: u64 = 1 << 56;

impl Store {
    /// Applies entries; ignores those that come after events of this session.
    pub(super) fn apply_past(&mut self, entries: Vec<PastEntry>) {
        for past in entries {
            match past {
                PastEntry::Totals(whole) if !self.has_past && self.steps.total() == self.attempts.first_ordinal() => {
                    self.begin_after_past(&whole)
                }
                PastEntry::Durations(of, durations) if self.accepts_past() => self.add_past_durations(of, &durations),
                PastEntry::Slice(slice) if self.accepts_past() => self.push_slice(&slice),
                PastEntry::Slow(slow) if self.accepts_past() => self.push_slow(&slow),
                _ => self.losses.unknown_frames += 1,
            }
        }
    }

    /// Whether no event has followed the past yet.
    fn accepts_past(&self) -> bool {
        self.has_past && self.steps.is_empty()
    }

    fn begin_after_past(&mut self, whole: &PastTotals) {
        self.has_past = true;
        let before = self.past.map_or(0, |past| past.steps);
        self.past =
            Some(PastExtent { steps: before.saturating_add(whole.steps.min(MAX_COUNT)), last_ns: whole.last_ns });
        if self.attempts.is_restarted() {
            self.steps.reduce_all();
            self.signals.reduce_all();
            self.counters.reduce_all();
        } else {
            self.session.note_past();
        }
        self.note_time(whole.first_ns.min(whole.last_ns));
        self.note_time(whole.last_ns);
        self.steps.begin_after(whole.steps.min(MAX_COUNT));
        self.statistics.resume(whole);
        whole.tracks.iter().for_each(|end| self.resume_track(end));
        whole.unfinished.iter().for_each(|unfinished| self.resume_tiling(unfinished));
        whole.memory.iter().for_each(|memory| _ = self.memory.add_phase(*memory));
        whole.signals.iter().for_each(|(signal, readings)| self.signals.resume(*signal, readings));
        whole.counters.iter().for_each(|(name, readings)| self.counters.resume(*name, readings));
    }

    fn resume_track(&mut self, end: &TrackEnd) {
        if let Some(index) = self.tracks.index(end.track) {
            let TrackEnd { events, spans, steps, .. } = *end;
            let bounded = TrackEnd {
                events: events.min(MAX_COUNT),
                spans: spans.min(MAX_COUNT),
                steps: steps.min(MAX_COUNT),
                ..*end
            };
            self.tracks.get_mut(index).resume(&bounded);
            self.losses.dropped_events = self.losses.dropped_events.saturating_add(end.dropped);
        }
    }

    fn resume_tiling(&mut self, unfinished: &Unfinished) {
        let Some(index) = self.tracks.index(unfinished.track) else { return };
        self.tracks.prepare_tiling(index);
        if !self.tracks.claim_steps(index, 0, 0) {
            return;
        }
        let slot = |store: &mut Self, name| store.past_slot(name).map(|slot| slot.0);
        let phases = unfinished.phases.iter();
        let phases =
            phases.filter_map(|(name, start_ns, end_ns)| Some((slot(self, *name)?, *start_ns, *end_ns))).collect();
        let Unfinished { last_end_ns, last_step, .. } = *unfinished;
        self.attempts.note_steps_until(last_end_ns);
        if let Some(tiling) = &mut self.tracks.get_mut(index).tiling {
            tiling.resume(&WaitingPhases { last_end_ns, last_step, phases });
        }
    }

    /// The slot of a phase; `None` beyond the limit on names.
    fn past_slot(&mut self, name: NameId) -> Option<super::PhaseSlot> {
        let route = *self.names.route_mut(name)?;
        route.slot.or_else(|| Some(assign_slot(&mut self.names, &mut self.phases, name)))
    }

    fn add_past_durations(&mut self, of: DurationSeries, durations: &Durations) {
        match of {
            DurationSeries::Span { name, ahead_ns } => {
                if let Some(route) = self.assign_statistics(name) {
                    self.spans.add_past(route.statistics, durations, ahead_ns);
                }
            }
            DurationSeries::Phase(name) => {
                let slot = self.past_slot(name);
                slot.and_then(|slot| self.statistics.durations_mut(of, Some(slot)))
                    .into_iter()
                    .for_each(|d| d.add_past(durations));
            }
            _ => self.statistics.durations_mut(of, None).into_iter().for_each(|d| d.add_past(durations)),
        }
    }

    fn push_slice(&mut self, slice: &Slice) {
        let ordinals = slice.first_ordinal..slice.first_ordinal.saturating_add(slice.period.count).min(MAX_COUNT);
        let known = slice.worst.as_ref().zip(slice.median.as_ref());
        let are_of_it = |figures: &[&StepFigures]| figures.iter().all(|figures| ordinals.contains(&figures.ordinal));
        if let Some((worst, median)) = known.filter(|(worst, median)| are_of_it(&[worst, median])) {
            let ends_ns = worst.step.end_ns.max(median.step.end_ns);
            self.attempts.note_step(worst.period_start_ns.min(median.period_start_ns), ends_ns);
            let (worst, median) = (self.past_row(worst), self.past_row(median));
            let group = StepGroup::from_past(ordinals.clone(), worst, median);
            self.steps.push_past(group);
            let stretch = self.stretch(ordinals, slice);
            self.steps.push_stretch(stretch);
        }
        let time = slice.from_ns..slice.to_ns;
        for (signal, readings) in &slice.signals {
            self.signals.push_past(*signal, time.clone(), readings);
        }
        for (name, readings) in &slice.counters {
            self.counters.push_past(*name, time.clone(), readings);
        }
        self.push_energy(slice);
        self.marks.leave_out(slice.marks_left_out);
        for (track, mark) in &slice.marks {
            let Mark { name, t_ns, value, took_ns } = *mark;
            self.marks.push(StoredMark { track: *track, name, t_ns, value, took_ns });
        }
        slice.rivals.iter().for_each(|rival| self.rivals.push(*rival));
    }

    fn stretch(&mut self, ordinals: Range<u64>, slice: &Slice) -> Stretch {
        let mut phases = Vec::new();
        for (name, durations) in &slice.phases {
            let Some(slot) = self.past_slot(*name) else { continue };
            if phases.len() <= slot.index() {
                phases.resize_with(slot.index() + 1, Durations::default);
            }
            phases[slot.index()].merge(durations);
        }
        let Slice { step, period, gap, .. } = slice;
        Stretch { ordinals, step: step.clone(), period: period.clone(), gap: gap.clone(), phases }
    }

    /// Energy uses the last readings of counters and the means of gauges.
    fn push_energy(&mut self, slice: &Slice) {
        for (id, readings) in slice.signals.iter().filter(|(_, readings)| readings.is_sane()) {
            let Some(signal) = self.signals.get(*id) else { continue };
            if signal.kind() == SignalKind::Counter {
                self.meters.sample(signal, readings.last_ns, readings.last as i64);
                continue;
            }
            let Some(mean) = readings.mean() else { continue };
            let times = ((slice.to_ns - slice.from_ns) / POWER_EVERY_NS + 1).min(MAX_POWERS);
            for at in 0..times {
                self.meters.sample(signal, slice.from_ns.saturating_add(at * POWER_EVERY_NS), mean as i64);
            }
        }
    }

    fn push_slow(&mut self, slow: &SlowStep) {
        let step = self.past_row(&slow.figures);
        self.steps.push_slow(PastSlowStep::new(step, &slow.spans));
    }

    /// Makes the phases and the gap of a row add up to its period, whatever the stream says.
    fn past_row(&mut self, figures: &StepFigures) -> StoredStep {
        let (mut phase_ns, mut left_ns) = ([0u64; MAX_PHASES], figures.period_ns());
        for (name, ns) in &figures.phases {
            if let Some(slot) = self.past_slot(*name) {
                let ns = (*ns).min(left_ns);
                phase_ns[slot.index()] += ns;
                left_ns -= ns;
            }
        }
        StoredStep::from_past(figures, left_ns, &phase_ns[..self.phases.slots()])
    }
}
