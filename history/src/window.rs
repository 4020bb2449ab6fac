//! Cuts a part out of the past, for a recording that begins or ends within it.
//!
//! Whole slices of the part are unchanged, numbered from its first step. Figures over the whole time are computed from
//! these slices, so durations are as coarse as theirs. What slices do not have, single spans and page faults, is left out.

use std::ops::RangeInclusive;

use gnntop_wire::past::{DurationSeries, PastEntry, PastTotals, Slice, SlowStep, StepFigures, TrackEnd, put_past};

use crate::merge;

/// Slices written at a time.
const AT_A_TIME: usize = 64;
/// Most bytes of slices held back: more than any publisher keeps.
const MAX_BYTES: usize = 256 << 20;
/// Most slow steps held back: 100 an hour for two weeks.
const MAX_SLOW: usize = 1 << 15;
/// Most spans of each.
const MAX_SPANS: usize = 64;
/// Most signals, counters and phases that are added up.
const MAX_SERIES: usize = 4096;

/// The part of the past within a window of time.
#[derive(Debug)]
pub struct PastWindow {
    window_ns: RangeInclusive<u64>,
    state: WindowState,
}

/// How much of the past is in the window.
#[derive(Debug)]
enum WindowState {
    /// Not known yet.
    Unknown,
    All,
    Part(Box<WindowPart>),
    /// The part was written.
    Written,
}

impl PastWindow {
    /// A window of this time, on the publisher's clock.
    pub fn new(window_ns: RangeInclusive<u64>) -> Self {
        Self { window_ns, state: WindowState::Unknown }
    }

    /// Takes entries. If all of them are in the window, they are written at once, unchanged.
    pub fn push(&mut self, entries: Vec<PastEntry>, out: &mut Vec<u8>) {
        let told = entries.iter().find_map(|past| if let PastEntry::Totals(whole) = past { Some(whole) } else { None });
        if let (WindowState::Unknown, Some(whole)) = (&self.state, told) {
            let is_all = *self.window_ns.start() <= whole.first_ns && whole.last_ns <= *self.window_ns.end();
            let part = || WindowState::Part(Box::new(WindowPart::new(self.window_ns.clone(), whole)));
            self.state = if is_all { WindowState::All } else { part() };
        }
        match &mut self.state {
            WindowState::All => put_past(out, &entries),
            WindowState::Part(part) => entries.into_iter().for_each(|past| part.push(past)),
            WindowState::Unknown | WindowState::Written => (),
        }
    }

    /// Whether a part is held back until [`PastWindow::finish`].
    pub fn is_waiting(&self) -> bool {
        matches!(&self.state, WindowState::Part(part) if part.sum.is_some())
    }

    /// Writes the part, once all entries were taken.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if matches!(self.state, WindowState::Part(_))
            && let WindowState::Part(part) = std::mem::replace(&mut self.state, WindowState::Written)
        {
            part.write(out);
        }
    }
}

/// The slices and slow steps in the window, and their sums.
#[derive(Debug)]
struct WindowPart {
    window_ns: RangeInclusive<u64>,
    /// Figures over the whole past.
    past_totals: PastTotals,
    /// All slices merged.
    sum: Option<Slice>,
    epochs: (u64, u64, u64),
    losses: Option<(f64, f64)>,
    renumbered: Vec<RenumberedSteps>,
    pending: Vec<PastEntry>,
    frames: Vec<u8>,
    slow: Vec<SlowStep>,
}

/// Consecutive steps, and their new number.
#[derive(Debug)]
struct RenumberedSteps {
    from: u64,
    steps: u64,
    to: u64,
}

impl WindowPart {
    fn new(window_ns: RangeInclusive<u64>, whole: &PastTotals) -> Self {
        Self {
            window_ns,
            past_totals: whole.clone(),
            sum: None,
            epochs: (0, 0, 0),
            losses: None,
            renumbered: Vec::new(),
            pending: Vec::new(),
            frames: Vec::new(),
            slow: Vec::new(),
        }
    }

    fn push(&mut self, past: PastEntry) {
        match past {
            PastEntry::Slice(slice) => {
                let is_within = slice.from_ns >= *self.window_ns.start()
                    && slice.to_ns.saturating_sub(1) <= *self.window_ns.end()
                    && self.frames.len() < MAX_BYTES;
                if is_within {
                    self.add(*slice);
                }
            }
            PastEntry::Slow(slow) if self.slow.len() < MAX_SLOW => self.add_slow(*slow),
            _ => (),
        }
    }

    fn add_slow(&mut self, mut slow: SlowStep) {
        if self.window_ns.contains(&slow.figures.step.end_ns) {
            slow.spans.truncate(MAX_SPANS);
            self.slow.push(slow);
        }
    }

    fn add(&mut self, mut slice: Slice) {
        let (from, steps, to) = (slice.first_ordinal, slice.period.count, self.steps());
        slice.first_ordinal = to;
        for figures in slice.worst.iter_mut().chain(&mut slice.median) {
            figures.ordinal = figures.ordinal.saturating_sub(from).min(steps.saturating_sub(1)).saturating_add(to);
        }
        if steps > 0 {
            self.count(&slice, to == 0);
            match self.renumbered.last_mut().filter(|last| last.from.saturating_add(last.steps) == from) {
                Some(last) => last.steps = last.steps.saturating_add(steps),
                None => self.renumbered.push(RenumberedSteps { from, steps, to }),
            }
        }
        let sum = self.sum.get_or_insert_with(|| Slice { from_ns: slice.from_ns, ..Slice::default() });
        merge::add(sum, &slice);
        sum.signals.truncate(MAX_SERIES);
        sum.counters.truncate(MAX_SERIES);
        sum.phases.truncate(MAX_SERIES);
        self.pending.push(PastEntry::Slice(Box::new(slice)));
        if self.pending.len() >= AT_A_TIME {
            self.put_pending();
        }
    }

    /// Counts epochs, and losses as far as single steps report them.
    fn count(&mut self, slice: &Slice, is_first: bool) {
        self.epochs = match self.epochs {
            _ if is_first => (slice.epoch, slice.epoch, 0),
            (first, last, changes) => {
                let more = slice.epoch.checked_sub(last).unwrap_or(1);
                (first, slice.epoch, changes.saturating_add(more))
            }
        };
        let mut known: Vec<&StepFigures> = slice.worst.iter().chain(&slice.median).map(|figures| &**figures).collect();
        known.sort_by_key(|figures| figures.ordinal);
        for loss in known.iter().filter_map(|figures| figures.step.loss) {
            self.losses = Some((self.losses.map_or(loss, |(first, _)| first), loss));
        }
    }

    fn steps(&self) -> u64 {
        self.sum.as_ref().map_or(0, |sum| sum.period.count)
    }

    fn put_pending(&mut self) {
        put_past(&mut self.frames, &self.pending);
        self.pending.clear();
    }

    fn write(mut self, out: &mut Vec<u8>) {
        let Some(sum) = self.sum.take() else { return };
        self.put_pending();
        put_past(out, &self.figures(sum));
        out.append(&mut self.frames);
        let slow = std::mem::take(&mut self.slow).into_iter().filter_map(|slow| self.renumbered(slow));
        put_past(out, &slow.collect::<Vec<PastEntry>>());
    }

    /// Figures over all slices of the part.
    fn figures(&self, sum: Slice) -> Vec<PastEntry> {
        let whole = self.totals_for(&sum);
        let steps =
            [(DurationSeries::Step, sum.step), (DurationSeries::Period, sum.period), (DurationSeries::Gap, sum.gap)];
        let phases = sum.phases.into_iter().map(|(name, durations)| (DurationSeries::Phase(name), durations));
        let durations = steps.into_iter().chain(phases).filter(|(_, durations)| !durations.is_empty());
        let durations = durations.map(|(of, durations)| PastEntry::Durations(of, durations));
        std::iter::once(PastEntry::Totals(Box::new(whole))).chain(durations).collect()
    }

    fn totals_for(&self, sum: &Slice) -> PastTotals {
        let whole = &self.past_totals;
        let first_ns = sum.from_ns.max(whole.first_ns);
        // The state at the end of the past only belongs to a window that extends beyond it.
        let goes_on = *self.window_ns.end() >= whole.last_ns;
        let after = if goes_on { whole.clone() } else { PastTotals::default() };
        let training = after.unfinished.as_ref().map(|unfinished| unfinished.track);
        let end = |end: &TrackEnd| {
            let steps = if training == Some(end.track) { sum.period.count } else { 0 };
            TrackEnd { events: 0, spans: 0, steps, ..*end }
        };
        PastTotals {
            next_segment: whole.next_segment,
            first_ns,
            last_ns: sum.to_ns.saturating_sub(1).min(whole.last_ns).max(first_ns),
            steps: sum.period.count,
            batch: sum.batch,
            epochs: self.epochs,
            losses: self.losses,
            tracks: after.tracks.iter().map(end).collect(),
            unfinished: after.unfinished,
            memory: after.memory,
            signals: sum.signals.clone(),
            counters: sum.counters.clone(),
            ..PastTotals::default()
        }
    }

    /// A slow step with its number in the part; `None` if its slice is not in it.
    fn renumbered(&self, mut slow: SlowStep) -> Option<PastEntry> {
        let of =
            |moved: &&RenumberedSteps| slow.figures.ordinal.checked_sub(moved.from).is_some_and(|at| at < moved.steps);
        let moved = self.renumbered.iter().find(of)?;
        slow.figures.ordinal = (slow.figures.ordinal - moved.from).saturating_add(moved.to);
        Some(PastEntry::Slow(Box::new(slow)))
    }
}
