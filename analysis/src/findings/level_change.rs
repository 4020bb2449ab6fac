//! Since when steps have taken longer, to the end and over the whole run, including the time whose single steps are no
//! longer kept.
//!
//! ```text
//! stretches' medians ─▶ the split at which ranks differ most ─▶ does it last? ─▶ the step at which it begins
//!                         ▲                                       │ no
//!                         └──────── what comes after it ◀─────────┘
//! ```

use std::ops::Range;

use gnntop_wire::Quantity;

use super::hardware;
use super::robust::{LinearFit, median, sigma};
use super::run_stretches::{RunStep, RunStretches};
use crate::store::{PhaseSlot, StepRow, Store};

/// Stretches needed on each side.
const SIDE: usize = 8;
/// Time that each side must last: other programs come and go in less.
const LEAST_NS: u64 = 30_000_000_000;
/// The same where no other program uses this much of a core...
const LEAST_ALONE_NS: u64 = 4_000_000_000;
const OTHERS: f64 = 0.1;
/// ...and the least that the later side is then larger by: clocks change as well.
const SLOWER_SOON: f64 = 0.25;
/// Beside other programs it is twice as long, without the measured waits for a CPU: who shares a core's units and caches gets half of
/// them.
const SLOWER_BESIDE_OTHERS: f64 = 1.0;
/// The median of the later side must be larger by this much...
const SLOWER: f64 = 0.1;
/// ...and by this many standard errors.
const ERRORS: f64 = 6.0;
/// Share of each side's stretches that must be on their side of the middle.
const CONSISTENT: f64 = 0.9;
/// The last stretches, which show whether it is over.
const NEWEST: usize = 4;
/// The mean must grow by at least this part of what the median grows: with two kinds of steps, a few more of the longer
/// one make the median jump from one to the other.
const MEAN_SHARE: f64 = 0.5;
/// Steps among which the first slower one is looked for.
const MAX_STEPS_SEARCHED: usize = 512;
/// Steps on each side of it among which it is then looked for again.
const STEPS_AROUND: usize = 32;

/// A time since which steps take longer than before.
#[derive(Debug)]
pub(super) struct LevelChange<'a> {
    /// The first of these steps.
    pub begin: ChangeStart,
    /// Time of two stretches around it.
    pub near_ns: u64,
    /// How much longer steps take, as a share of the time before.
    pub slower: f64,
    /// Whether the work is the same.
    pub is_by_work: bool,
    /// Steps before it.
    pub before: Vec<RunStep<'a>>,
    /// Steps since.
    pub since: Vec<RunStep<'a>>,
}

impl<'a> LevelChange<'a> {
    /// For the steps with these ordinals; `None` if there is no lasting change.
    pub(super) fn find(store: &'a Store, ordinals: Range<u64>, validation: Option<PhaseSlot>) -> Option<Self> {
        let end_ns = |row: Option<StepRow<'_>>| row.map_or(0, |row| row.end_ns());
        let (first, last) = (store.steps().known_row(ordinals.start), store.steps().last());
        let span = end_ns(first)..end_ns(last);
        if span.end.saturating_sub(span.start) < 2 * LEAST_ALONE_NS {
            return None;
        }
        let stretches = RunStretches::new(store, ordinals, validation);
        let levels: Vec<f64> = stretches.all.iter().map(|known| level(known)).collect();
        lasting(&levels).and_then(|sides| Self::from_sides(store, &stretches, &sides, is_alone(store, &span)))
    }

    /// Where the second of two sides begins, if both last and their means differ, too.
    fn from_sides(store: &Store, stretches: &RunStretches<'a>, sides: &LevelSides, is_alone: bool) -> Option<Self> {
        let flat = |range: Range<usize>| stretches.all[range].iter().flatten().copied().collect::<Vec<RunStep<'a>>>();
        let (before, since) = (sides.from..sides.at, sides.at..stretches.all.len());
        let means = mean_ns(&stretches.all[before.clone()]).zip(mean_ns(&stretches.all[since.clone()]));
        let (before, since) = (flat(before), flat(since));
        let shorter_ns = span_ns(before.iter()).min(span_ns(since.iter()));
        let is_clear_soon = || match is_alone {
            true => sides.slower >= SLOWER_SOON,
            false => is_slower_beside_others(store, &before, &since, sides.slower),
        };
        if shorter_ns < LEAST_ALONE_NS || shorter_ns < LEAST_NS && !is_clear_soon() {
            return None;
        }
        let (usual_before, usual_since) = (period_ns(&before)?, period_ns(&since)?);
        let (mean_before, mean_since) = means?;
        let least_ratio = usual_since / usual_before * (1.0 - MEAN_SHARE * sides.slower / (1.0 + sides.slower));
        // Where a few steps take most of the time, all others may get slower and the mean hardly grow in proportion.
        let grows_as_much = mean_since - mean_before >= MEAN_SHARE * (usual_since - usual_before);
        if mean_since / mean_before < least_ratio && !grows_as_much {
            return None;
        }
        let around = flat(sides.at - 1..sides.at + 1);
        let within = around.first()?.first..around.last()?.first + 1;
        let begin = first_slower(stretches, within, sides.middle)?;
        let near_ns = span_ns(around.iter());
        let is_by_work = stretches.are_by_work();
        Some(Self { begin, near_ns, slower: sides.slower, is_by_work, before, since })
    }

    /// The medians of a number, over the steps before and the steps since.
    pub(super) fn medians(&self, number: impl Fn(&RunStep<'a>) -> Option<f64>) -> Option<(f64, f64)> {
        let of = |side: &[RunStep<'a>]| median(&mut side.iter().filter_map(&number).collect::<Vec<f64>>());
        of(&self.before).zip(of(&self.since))
    }
}

/// The first of some steps, as precisely as it is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ChangeStart {
    /// Its ordinal.
    pub ordinal: u64,
    /// Its number, by the program's count.
    pub step: u64,
    /// When it began.
    pub t_ns: u64,
    /// When the newest known step before it ended, and when the oldest known step after it began.
    pub between_ns: Range<u64>,
}

impl ChangeStart {
    /// For steps that follow others.
    fn between(first: &RunStep<'_>, last: &RunStep<'_>) -> Self {
        let (row, ordinal) = (first.row, first.first);
        let ahead = row.ordinal().saturating_sub(ordinal);
        let between_ns = last.row.end_ns().min(row.period_start_ns())..row.period_start_ns();
        let ahead_ns = row.period_ns().saturating_mul(ahead);
        let t_ns = between_ns.end.saturating_sub(ahead_ns).max(between_ns.start);
        Self { ordinal, step: row.step().0.saturating_sub(ahead), t_ns, between_ns }
    }

    /// How much earlier or later it may have been.
    pub(super) fn unsure_ns(&self) -> u64 {
        self.between_ns.end - self.between_ns.start
    }
}

/// Two sides of some stretches.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LevelSides {
    /// Where the first one begins.
    from: usize,
    /// Where the second one begins, which lasts to the end.
    at: usize,
    slower: f64,
    /// The level between them.
    middle: f64,
}

/// Whether it is known that no other program uses the machine much.
fn is_alone(store: &Store, span: &Range<u64>) -> bool {
    let rate = |quantity: Quantity| hardware::rate_per_s(store, quantity, span);
    let others = rate(Quantity::MachineCpuBusy).zip(rate(Quantity::ProcessCpuTime)).map(|(all, own)| all - own);
    let stolen = rate(Quantity::MachineCpuSteal).unwrap_or(0.0);
    others.is_some_and(|others| others.max(0.0) + stolen < OTHERS * 1e9)
}

/// Whether other programs cannot be why steps take longer by this share, by how long the thread waited for a CPU before and since.
fn is_slower_beside_others(store: &Store, before: &[RunStep<'_>], since: &[RunStep<'_>], slower: f64) -> bool {
    let span = |side: &[RunStep<'_>]| Some(side.first()?.row.period_start_ns()..side.last()?.row.end_ns());
    let (Some(before), Some(since)) = (span(before), span(since)) else { return false };
    hardware::is_slower_without_waits(store, slower, SLOWER_BESIDE_OTHERS, [before, since])
}

/// From the first of some steps to the last.
fn span_ns<'k, 'a: 'k>(mut known: impl DoubleEndedIterator<Item = &'k RunStep<'a>>) -> u64 {
    let first = known.next();
    let last = known.next_back().or(first);
    first.zip(last).map_or(0, |(first, last)| last.row.end_ns().saturating_sub(first.row.period_start_ns()))
}

/// The median of steps, some of which represent several.
fn level(known: &[RunStep<'_>]) -> f64 {
    let mut sorted: Vec<(f64, u64)> = known.iter().map(|known| (known.level, known.steps)).collect();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let all: u64 = sorted.iter().map(|(_, steps)| steps).sum();
    let mut below = 0;
    let reaches_middle = |(_, steps): &&(f64, u64)| {
        below += steps;
        below * 2 >= all
    };
    sorted.iter().find(reaches_middle).map_or(0.0, |(level, _)| *level)
}

/// The rise that lasts to the end.
fn lasting(levels: &[f64]) -> Option<LevelSides> {
    let mut from = 0;
    while levels.len() - from >= 2 * SIDE {
        let at = from + split(&levels[from..])?;
        let rise = rise(&levels[from..at], &levels[at..]);
        if let Some((slower, middle)) = rise {
            return Some(LevelSides { from, at, slower, middle });
        }
        from = at;
    }
    None
}

/// Where the ranks of both sides differ most (Mann and Whitney 1947), each side being long enough. Outliers have ranks
/// like others.
fn split(levels: &[f64]) -> Option<usize> {
    let n = levels.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| levels[*a].total_cmp(&levels[*b]));
    let mut ranks = vec![0.0; n];
    order.iter().enumerate().for_each(|(rank, at)| ranks[*at] = rank as f64 + 1.0);
    let mut below = ranks[..SIDE.min(n)].iter().sum::<f64>();
    let mut best: Option<(f64, usize)> = None;
    for (at, rank) in ranks.iter().enumerate().take(n.saturating_sub(SIDE) + 1).skip(SIDE) {
        let (left, right) = (at as f64, (n - at) as f64);
        let differ = (below - left * (n as f64 + 1.0) / 2.0).abs() / (left * right).sqrt();
        if best.is_none_or(|(most, _)| differ > most) {
            best = Some((differ, at));
        }
        below += rank;
    }
    best.map(|(_, at)| at)
}

/// How far the second of two sides is above the first, and the middle between them, if the change is clear, abrupt and
/// lasting.
fn rise(before: &[f64], since: &[f64]) -> Option<(f64, f64)> {
    let center = |side: &[f64]| median(&mut side.to_vec());
    let (low, high) = (center(before)?, center(since)?);
    // The standard error of a median is 1.25 times that of a mean.
    let error = |side: &[f64], center: f64| 1.25 * sigma(side.iter().copied(), center) / (side.len() as f64).sqrt();
    if low <= 0.0 || high < low * (1.0 + SLOWER) || high - low < ERRORS * error(before, low).hypot(error(since, high)) {
        return None;
    }
    let middle = f64::midpoint(low, high);
    let share = |side: &[f64], is: &dyn Fn(&f64) -> bool| {
        side.iter().filter(|level| is(level)).count() as f64 / side.len() as f64
    };
    let newest = &since[since.len().saturating_sub(NEWEST)..];
    let is_consistent = share(before, &|level| *level < middle) >= CONSISTENT
        && share(since, &|level| *level > middle) >= CONSISTENT
        && center(newest)? > middle;
    (is_consistent && is_sudden(before, low, since, high)).then_some((high / low - 1.0, middle))
}

/// Whether two levels describe the stretches better than one straight line.
fn is_sudden(before: &[f64], low: f64, since: &[f64], high: f64) -> bool {
    let off = |levels: &[f64], center: f64| levels.iter().map(|level| (level - center).abs()).sum::<f64>();
    let pairs: Vec<(f64, f64)> = before.iter().chain(since).enumerate().map(|(x, y)| (x as f64, *y)).collect();
    let off_line = LinearFit::fit(&pairs).map(|line| pairs.iter().map(|(x, y)| (y - line.at(*x)).abs()).sum::<f64>());
    off_line.is_some_and(|off_line| off(before, low) + off(since, high) < off_line)
}

/// The usual mean time of a step in a stretch, from when its first step began and when the next stretch's did.
fn mean_ns(stretches: &[Vec<RunStep<'_>>]) -> Option<f64> {
    let firsts: Vec<StepRow<'_>> = stretches.iter().filter_map(|known| Some(known.first()?.row)).collect();
    let mean = |pair: &[StepRow<'_>]| {
        let steps = pair[1].ordinal().saturating_sub(pair[0].ordinal());
        let ns = pair[1].period_start_ns().saturating_sub(pair[0].period_start_ns());
        (steps > 0 && ns > 0).then(|| ns as f64 / steps as f64)
    };
    median(&mut firsts.windows(2).filter_map(mean).collect::<Vec<f64>>())
}

/// The median period of some steps.
fn period_ns(known: &[RunStep<'_>]) -> Option<f64> {
    median(&mut known.iter().map(|known| known.row.period_ns().max(1) as f64).collect::<Vec<f64>>())
}

/// The first of the steps that take longer.
fn first_slower(stretches: &RunStretches<'_>, mut within: Range<u64>, middle: f64) -> Option<ChangeStart> {
    let mut known = stretches.steps(within.clone(), MAX_STEPS_SEARCHED);
    loop {
        let at = border(&known, middle);
        let (last, first) = (known.get(at.checked_sub(1)?)?, known.get(at)?);
        let (from, to) = (at.saturating_sub(STEPS_AROUND), (at + STEPS_AROUND).min(known.len() - 1));
        within = known[from].first..known[to].first + 1;
        let closer = stretches.steps(within.clone(), MAX_STEPS_SEARCHED);
        if closer.len() <= to + 1 - from {
            return Some(ChangeStart::between(first, last));
        }
        known = closer;
    }
}

/// The place where most steps before are below a level, and most after it above.
fn border(known: &[RunStep<'_>], middle: f64) -> usize {
    let (mut score, mut best, mut border) = (0i64, i64::MIN, 0);
    for (at, step) in known.iter().enumerate() {
        if score > best && at > 0 {
            (best, border) = (score, at);
        }
        score += if step.level < middle { 1 } else { -1 };
    }
    border
}
