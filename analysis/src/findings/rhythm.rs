//! Times at which steps are slow again and again, by the clock: over the whole run, including the time whose single
//! steps are no longer kept.
//!
//! ```text
//! level  ▂▂▂▂▇▇▂▂▂▂▂▂▂▂▂▂▇▇▂▂▂▂▂▂▂▂▂▂▇▇▂▂▂▂
//!            └── episode ──┘└── interval ──┘
//! ```

use std::ops::Range;

use super::robust::{median, sigma};
use super::run_stretches::RunStep;

/// Most pieces into which the run's time is divided.
const PIECES: u64 = 4096;
/// Shortest piece: what a session knows of its past is no finer.
const LEAST_PIECE_NS: u64 = 1_000_000_000;
/// A slow piece is above the usual one by at least this much...
const SLOWER: f64 = 0.15;
/// ...and by this many standard deviations.
const DEVIATIONS: f64 = 5.0;
/// Fewest steps in an episode; fewer are spikes.
const FEWEST_STEPS: u64 = 3;
/// Fewest episodes in a rhythm.
const FEWEST_EPISODES: usize = 4;
/// A shorter period is not a rhythm of the machine.
const LEAST_PERIOD_NS: f64 = 60e9;
/// Intervals may deviate from the period by this part of it, or by two pieces...
const TOLERANCE: f64 = 0.05;
/// ...or be at most this many times the period if episodes were missed.
const MAX_MISSED: f64 = 3.0;
/// Share of the intervals that must fit.
const REGULAR: f64 = 0.8;
/// Largest part of the period that an episode takes.
const LONGEST_EPISODE: f64 = 0.5;

/// Steps that are slow at regular times.
#[derive(Debug, PartialEq)]
pub(super) struct Rhythm {
    /// From the beginning of one episode to that of the next, in nanoseconds.
    pub period_ns: u64,
    /// Length of the median episode.
    pub lasting_ns: u64,
    /// How much longer steps take in one, as a share of what they take otherwise.
    pub slower: f64,
    /// When they were, oldest first.
    pub episodes: Vec<Episode>,
}

/// An episode in which steps are slow.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Episode {
    /// When it was.
    pub t_ns: Range<u64>,
    /// Its steps.
    pub ordinals: Range<u64>,
    level: f64,
}

/// The median level of the steps in a piece of the time.
struct Piece {
    t_ns: Range<u64>,
    ordinals: Range<u64>,
    level: f64,
}

impl Rhythm {
    /// For some steps, by time; `None` if they are not slow at regular times.
    pub(super) fn find(known: &[RunStep<'_>]) -> Option<Self> {
        let (pieces, piece_ns) = pieces(known)?;
        let usual = median(&mut pieces.iter().map(|piece| piece.level).collect::<Vec<f64>>())?;
        let noise = sigma(pieces.iter().map(|piece| piece.level), usual);
        let slow = usual * (1.0 + SLOWER) + (DEVIATIONS * noise - usual * SLOWER).max(0.0);
        let episodes = episodes(&pieces, slow);
        let starts: Vec<f64> = episodes.iter().map(|episode| episode.t_ns.start as f64).collect();
        let intervals: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let period_ns = median(&mut intervals.clone())?;
        let lasting_ns = median(&mut episodes.iter().map(Episode::ns).collect::<Vec<f64>>())?;
        let is_rhythm = episodes.len() >= FEWEST_EPISODES
            && period_ns >= LEAST_PERIOD_NS.max(4.0 * piece_ns)
            && lasting_ns <= LONGEST_EPISODE * period_ns
            && is_regular(&intervals, period_ns, piece_ns);
        let level = median(&mut episodes.iter().map(|episode| episode.level).collect::<Vec<f64>>())?;
        let (slower, period_ns, lasting_ns) =
            (level / usual - 1.0, mean_interval(&intervals, period_ns), lasting_ns as u64);
        is_rhythm.then_some(Self { period_ns, lasting_ns, slower, episodes })
    }
}

impl Episode {
    fn ns(&self) -> f64 {
        self.t_ns.end.saturating_sub(self.t_ns.start) as f64
    }
}

/// The run in pieces of equal time, without those about which nothing is known.
fn pieces(known: &[RunStep<'_>]) -> Option<(Vec<Piece>, f64)> {
    let (first_ns, last_ns) = (known.first()?.row.period_start_ns(), known.last()?.row.end_ns());
    let piece_ns = (last_ns.saturating_sub(first_ns) / PIECES).max(LEAST_PIECE_NS);
    let number = |known: &RunStep<'_>| known.row.end_ns().saturating_sub(first_ns) / piece_ns;
    let piece = |chunk: &[RunStep<'_>]| {
        let (first, last) = (chunk.first()?, chunk.last()?);
        Some(Piece {
            t_ns: first.row.period_start_ns()..last.row.end_ns(),
            ordinals: first.first..last.first.saturating_add(last.steps),
            level: median(&mut chunk.iter().map(|known| known.level).collect::<Vec<f64>>())?,
        })
    };
    let chunks = known.chunk_by(|a, b| number(a) == number(b));
    Some((chunks.filter_map(piece).collect(), piece_ns as f64))
}

/// Runs of pieces above a level. A single piece below it does not end one.
fn episodes(pieces: &[Piece], slow: f64) -> Vec<Episode> {
    let mut all: Vec<Episode> = Vec::new();
    let mut last = None;
    for (at, piece) in pieces.iter().enumerate().filter(|(_, piece)| piece.level > slow) {
        match all.last_mut().filter(|_| last.is_some_and(|last| at - last <= 2)) {
            Some(episode) => {
                episode.t_ns.end = piece.t_ns.end;
                episode.ordinals.end = piece.ordinals.end;
                episode.level = episode.level.max(piece.level);
            }
            None => {
                all.push(Episode { t_ns: piece.t_ns.clone(), ordinals: piece.ordinals.clone(), level: piece.level })
            }
        }
        last = Some(at);
    }
    all.retain(|episode| episode.ordinals.end.saturating_sub(episode.ordinals.start) >= FEWEST_STEPS);
    all
}

/// Number of periods in an interval, and whether that is close to a whole number.
fn periods(interval: f64, period_ns: f64, slack_ns: f64) -> (f64, bool) {
    let times = (interval / period_ns).round().clamp(1.0, MAX_MISSED);
    (times, (interval - times * period_ns).abs() <= slack_ns)
}

fn slack_ns(period_ns: f64, piece_ns: f64) -> f64 {
    (TOLERANCE * period_ns).max(2.0 * piece_ns)
}

fn is_regular(intervals: &[f64], period_ns: f64, piece_ns: f64) -> bool {
    let is = |interval: &&f64| periods(**interval, period_ns, slack_ns(period_ns, piece_ns)).1;
    intervals.iter().filter(is).count() as f64 >= REGULAR * intervals.len() as f64
}

/// The mean period, over intervals of one period or more.
fn mean_interval(intervals: &[f64], period_ns: f64) -> u64 {
    let times: f64 = intervals.iter().map(|interval| periods(*interval, period_ns, 0.0).0).sum();
    (intervals.iter().sum::<f64>() / times) as u64
}
