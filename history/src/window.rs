//! Cuts a part out of the past, for a recording that begins or ends within it.
//!
//! Whole slices of the part are unchanged, numbered from its first step. Figures over the whole time are computed from
//! these slices, so durations are as coarse as theirs. What slices do not have, single spans and page faults, is left out.

use std::ops::RangeInclusive;

use gnntop_wire::past::{Past, Series, Slice, SlowStep, StepFigures, TrackEnd, Whole, put_past};

use crate::merge;

/// Slices written at a time.
const AT_A_TIME: usize = 64;
/// Most bytes of slices held back: more than any publisher keeps.
const MOST_BYTES: usize = 256 << 20;
/// Most slow steps held back: 100 an hour for two weeks.
const MOST_SLOW: usize = 1 << 15;
/// Most spans of each.
const MOST_SPANS: usize = 64;
/// Most signals, counters and phases that are added up.
const MOST_SERIES: usize = 4096;

/// The part of the past within a window of time.
#[derive(Debug)]
pub struct PastWindow {
    window_ns: RangeInclusive<u64>,
    share: Share,
}

/// How much of the past is in the window.
#[derive(Debug)]
enum Share {
    /// Not known yet.
    Untold,
    All,
    Part(Box<Part>),
    /// The part was written.
    Given,
}

impl PastWindow {
    /// A window of this time, on the publisher's clock.
    pub fn new(window_ns: RangeInclusive<u64>) -> Self {
        Self { window_ns, share: Share::Untold }
    }

    /// Takes entries. If all of them are in the window, they are written at once, unchanged.
    pub fn take(&mut self, entries: Vec<Past>, out: &mut Vec<u8>) {
        let told = entries.iter().find_map(|past| if let Past::Whole(whole) = past { Some(whole) } else { None });
        if let (Share::Untold, Some(whole)) = (&self.share, told) {
            let is_all = *self.window_ns.start() <= whole.first_ns && whole.last_ns <= *self.window_ns.end();
            let part = || Share::Part(Box::new(Part::new(self.window_ns.clone(), whole)));
            self.share = if is_all { Share::All } else { part() };
        }
        match &mut self.share {
            Share::All => put_past(out, &entries),
            Share::Part(part) => entries.into_iter().for_each(|past| part.take(past)),
            Share::Untold | Share::Given => (),
        }
    }

    /// Whether a part is held back until [`PastWindow::finish`].
    pub fn is_waiting(&self) -> bool {
        matches!(&self.share, Share::Part(part) if part.sum.is_some())
    }

    /// Writes the part, once all entries were taken.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if matches!(self.share, Share::Part(_))
            && let Share::Part(part) = std::mem::replace(&mut self.share, Share::Given)
        {
            part.put(out);
        }
    }
}

/// The slices and slow steps in the window, and their sums.
#[derive(Debug)]
struct Part {
    window_ns: RangeInclusive<u64>,
    /// Figures over the whole past.
    whole: Whole,
    /// All slices merged.
    sum: Option<Slice>,
    epochs: (u64, u64, u64),
    losses: Option<(f64, f64)>,
    moved: Vec<Moved>,
    pending: Vec<Past>,
    frames: Vec<u8>,
    slow: Vec<SlowStep>,
}

/// Consecutive steps, and their new number.
#[derive(Debug)]
struct Moved {
    from: u64,
    steps: u64,
    to: u64,
}

impl Part {
    fn new(window_ns: RangeInclusive<u64>, whole: &Whole) -> Self {
        Self {
            window_ns,
            whole: whole.clone(),
            sum: None,
            epochs: (0, 0, 0),
            losses: None,
            moved: Vec::new(),
            pending: Vec::new(),
            frames: Vec::new(),
            slow: Vec::new(),
        }
    }

    fn take(&mut self, past: Past) {
        match past {
            Past::Slice(slice) => {
                let is_within = slice.from_ns >= *self.window_ns.start()
                    && slice.to_ns.saturating_sub(1) <= *self.window_ns.end()
                    && self.frames.len() < MOST_BYTES;
                if is_within {
                    self.add(*slice);
                }
            }
            Past::Slow(slow) if self.slow.len() < MOST_SLOW => self.add_slow(*slow),
            _ => (),
        }
    }

    fn add_slow(&mut self, mut slow: SlowStep) {
        if self.window_ns.contains(&slow.figures.step.end_ns) {
            slow.spans.truncate(MOST_SPANS);
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
            match self.moved.last_mut().filter(|last| last.from.saturating_add(last.steps) == from) {
                Some(last) => last.steps = last.steps.saturating_add(steps),
                None => self.moved.push(Moved { from, steps, to }),
            }
        }
        let sum = self.sum.get_or_insert_with(|| Slice { from_ns: slice.from_ns, ..Slice::default() });
        merge::add(sum, &slice);
        sum.signals.truncate(MOST_SERIES);
        sum.counters.truncate(MOST_SERIES);
        sum.phases.truncate(MOST_SERIES);
        self.pending.push(Past::Slice(Box::new(slice)));
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

    fn put(mut self, out: &mut Vec<u8>) {
        let Some(sum) = self.sum.take() else { return };
        self.put_pending();
        put_past(out, &self.figures(sum));
        out.append(&mut self.frames);
        let slow = std::mem::take(&mut self.slow).into_iter().filter_map(|slow| self.renumbered(slow));
        put_past(out, &slow.collect::<Vec<Past>>());
    }

    /// Figures over all slices of the part.
    fn figures(&self, sum: Slice) -> Vec<Past> {
        let whole = self.whole_of(&sum);
        let steps = [(Series::Step, sum.step), (Series::Period, sum.period), (Series::Gap, sum.gap)];
        let phases = sum.phases.into_iter().map(|(name, durations)| (Series::Phase(name), durations));
        let durations = steps.into_iter().chain(phases).filter(|(_, durations)| !durations.is_empty());
        let durations = durations.map(|(of, durations)| Past::Durations(of, durations));
        std::iter::once(Past::Whole(Box::new(whole))).chain(durations).collect()
    }

    fn whole_of(&self, sum: &Slice) -> Whole {
        let whole = &self.whole;
        let first_ns = sum.from_ns.max(whole.first_ns);
        // The state at the end of the past only belongs to a window that extends beyond it.
        let goes_on = *self.window_ns.end() >= whole.last_ns;
        let after = if goes_on { whole.clone() } else { Whole::default() };
        let training = after.unfinished.as_ref().map(|unfinished| unfinished.track);
        let end = |end: &TrackEnd| {
            let steps = if training == Some(end.track) { sum.period.count } else { 0 };
            TrackEnd { events: 0, spans: 0, steps, ..*end }
        };
        Whole {
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
            ..Whole::default()
        }
    }

    /// A slow step with its number in the part; `None` if its slice is not in it.
    fn renumbered(&self, mut slow: SlowStep) -> Option<Past> {
        let of = |moved: &&Moved| slow.figures.ordinal.checked_sub(moved.from).is_some_and(|at| at < moved.steps);
        let moved = self.moved.iter().find(of)?;
        slow.figures.ordinal = (slow.figures.ordinal - moved.from).saturating_add(moved.to);
        Some(Past::Slow(Box::new(slow)))
    }
}
