//! Pairs of runs, one of each of two programs, taken in turn on one machine: whether the second does its work faster.
//!
//! The number of a pair is the ratio of its two rates of work, so that what disturbs both, such as a warm processor, cancels.
//! The interval is the one of the median ratio that order statistics give (Conover, *Practical Nonparametric Statistics*,
//! 3.2). It needs no model of the noise: a few pairs that a busy machine has spoilt move it little.
//!
//! The pairs are looked at only three times, because each look at a program and itself may find a difference by chance.
//! [`PLANNED_PAIRS`] are chosen so that all three together do so less often than once in twenty.

use serde::Serialize;
use thiserror::Error;

use super::compared::is_enough;
use super::sample::{RunSample, WorkUnit};
use crate::catalogue::Statistic;
use crate::ranks::Run;

/// Numbers of pairs at which they are looked at, with the rank of the ratios that bound the interval, from both ends. For a
/// program and itself, the interval excludes 1 in 3.1 % of the first looks, 0.6 % of the second and 0.7 % of the third.
pub const PLANNED_PAIRS: [(usize, usize); 3] = [(6, 1), (12, 2), (24, 6)];

/// Losses that differ by less than this share of the larger are close: the order of sums in floating point does as much.
const CLOSE: f64 = 1e-3;

/// Other programs disturb a run from this many cores on.
const DISTURBING_CORES: f64 = 0.5;

/// What the pairs show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// The second is faster.
    Faster,
    /// The second is slower.
    Slower,
    /// They differ by less than was asked for.
    NoDifference,
    /// The interval is too wide.
    NotEnough,
}

/// The pairs so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Proven {
    /// Number of pairs.
    pub pairs: usize,
    /// The median of the second's work per time divided by the first's.
    pub ratio: f64,
    /// The interval of the median.
    pub interval: (f64, f64),
    /// The conclusion.
    pub proof: Proof,
}

/// Concludes from the ratios of all pairs, in any order; `None` where it is not the time to look. A difference of less than
/// `within`, a share, is none.
pub fn prove(ratios: &[f64], within: f64) -> Option<Proven> {
    let (_, rank) = PLANNED_PAIRS.into_iter().find(|(pairs, _)| *pairs == ratios.len())?;
    let mut sorted = ratios.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let ratio = (sorted[middle - 1] * sorted[middle]).sqrt();
    let interval = (sorted[rank - 1], sorted[sorted.len() - rank]);
    let (low, high) = interval;
    let proof = match () {
        () if low > 1.0 / (1.0 + within) && high < 1.0 + within => Proof::NoDifference,
        () if low > 1.0 => Proof::Faster,
        () if high < 1.0 => Proof::Slower,
        () => Proof::NotEnough,
    };
    Some(Proven { pairs: ratios.len(), ratio, interval, proof })
}

/// Why a run proves nothing.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("it has {0} full batches after the warm-up, and at least 20 are needed")]
pub struct TooFewSteps(usize);

/// Two runs of a pair, measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredPair {
    /// `graphs`, `seeds` or `steps`.
    pub unit: &'static str,
    /// Work per second of both, without the warm-up.
    pub per_s: [f64; 2],
    /// The losses of both.
    pub losses: Losses,
    /// Other programs that used the CPU meanwhile, for people.
    pub rivals: Vec<String>,
}

impl MeasuredPair {
    /// Measures one run of each program.
    ///
    /// # Errors
    /// The number of the run, 0 or 1, that has too few steps.
    pub fn new(first: &Run, second: &Run) -> Result<Self, (usize, TooFewSteps)> {
        let samples = [first, second].map(RunSample::new);
        for (side, sample) in samples.iter().enumerate() {
            if !is_enough(sample.rows.len(), Statistic::Mean) {
                return Err((side, TooFewSteps(sample.rows.len())));
            }
        }
        let unit = WorkUnit::common(&samples);
        Ok(Self {
            unit: unit.as_str(),
            per_s: [0, 1].map(|side| samples[side].work_per_s(unit)),
            losses: Losses::compare(first, second),
            rivals: [first, second].into_iter().flat_map(rivals).collect(),
        })
    }

    /// The second's work per time divided by the first's.
    pub fn ratio(&self) -> f64 {
        self.per_s[1] / self.per_s[0]
    }
}

/// Other programs that used much of the CPU during a run.
fn rivals(run: &Run) -> Vec<String> {
    let store = run.store();
    let mut named: Vec<String> = Vec::new();
    for rival in store.rivals().iter().filter(|rival| rival.cores >= DISTURBING_CORES) {
        let text = rival.describe(store.name(rival.name));
        if !named.contains(&text) {
            named.push(text);
        }
    }
    named
}

/// Whether both programs learn the same: the losses of the steps that both have.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Losses {
    /// One of them does not report any.
    Unknown,
    /// Equal to the last bit.
    Equal,
    /// Different by at most this share.
    Close(f64),
    /// Different from a step on.
    Different {
        /// The first step whose losses are not close.
        step: u64,
        /// The first program's.
        first: f64,
        /// The second's.
        second: f64,
    },
}

impl Losses {
    fn compare(first: &Run, second: &Run) -> Self {
        let (first, second) = (first.store().losses_by_step(), second.store().losses_by_step());
        let mut second = second.into_iter().peekable();
        let mut found = Self::Unknown;
        for (step, a) in first {
            while second.next_if(|(other, _)| *other < step).is_some() {}
            let Some((_, b)) = second.next_if(|(other, _)| *other == step) else { continue };
            found = match found.and(step, a, b) {
                different @ Self::Different { .. } => return different,
                so_far => so_far,
            };
        }
        found
    }

    /// With one more step.
    fn and(self, step: u64, first: f64, second: f64) -> Self {
        let is_equal = first.to_bits() == second.to_bits();
        let apart = (first - second).abs() / first.abs().max(second.abs());
        match self {
            Self::Unknown | Self::Equal if is_equal => Self::Equal,
            _ if is_equal => self,
            // Losses that are not numbers are not close.
            Self::Close(most) if apart <= CLOSE => Self::Close(most.max(apart)),
            Self::Unknown | Self::Equal if apart <= CLOSE => Self::Close(apart),
            _ => Self::Different { step, first, second },
        }
    }

    /// The worse of two pairs.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, known) | (known, Self::Unknown) => known,
            (different @ Self::Different { .. }, _) | (_, different @ Self::Different { .. }) => different,
            (Self::Close(a), Self::Close(b)) => Self::Close(a.max(b)),
            (close @ Self::Close(_), Self::Equal) | (Self::Equal, close @ Self::Close(_)) => close,
            (Self::Equal, Self::Equal) => Self::Equal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_fixtures::{MS, TrainingRun, each_item};

    /// A normally distributed number, by the sum of twelve.
    struct Noise(u64);

    impl Noise {
        fn next(&mut self) -> f64 {
            let uniform = |state: &mut u64| {
                *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (*state >> 11) as f64 / (1u64 << 53) as f64
            };
            (0..12).map(|_| uniform(&mut self.0)).sum::<f64>() - 6.0
        }
    }

    /// Runs pairs until there is a conclusion. Each run varies by `spread`, one in ten takes up to a third longer, and the
    /// machine becomes slower all the while.
    fn experiment(noise: &mut Noise, speed: f64, spread: f64) -> Proven {
        let mut ratios = Vec::new();
        loop {
            let mut rate = |true_rate: f64, at: usize| {
                let stall = if noise.next() > 1.28 { 1.0 + noise.next().abs() / 9.0 } else { 1.0 };
                true_rate * (1.0 + spread * noise.next()) / stall * (1.0 - 0.002 * at as f64)
            };
            let at = ratios.len() * 2;
            let (a, b) = if ratios.len() % 2 == 0 {
                let a = rate(1.0, at);
                (a, rate(speed, at + 1))
            } else {
                let b = rate(speed, at);
                (rate(1.0, at + 1), b)
            };
            ratios.push(b / a);
            match prove(&ratios, 0.005) {
                Some(proven) if proven.proof != Proof::NotEnough || ratios.len() == 24 => return proven,
                _ => {}
            }
        }
    }

    fn shares(speed: f64, spread: f64) -> [f64; 4] {
        let mut noise = Noise(1);
        let all = [Proof::Faster, Proof::Slower, Proof::NoDifference, Proof::NotEnough];
        let found: Vec<Proof> = (0..2000).map(|_| experiment(&mut noise, speed, spread).proof).collect();
        all.map(|proof| found.iter().filter(|it| **it == proof).count() as f64 / 2000.0)
    }

    #[test]
    fn a_program_and_itself_differ_in_less_than_one_of_twenty_experiments() {
        for spread in [0.005, 0.02, 0.1] {
            let [faster, slower, ..] = shares(1.0, spread);
            assert!(faster + slower < 0.05, "{faster} {slower}");
        }
    }

    #[test]
    fn slower_programs_are_found() {
        for (speed, spread) in [(0.98, 0.01), (0.95, 0.02), (0.90, 0.04)] {
            let [faster, slower, ..] = shares(speed, spread);
            assert!(faster < 0.001 && slower > 0.85, "{speed}: {faster} {slower}");
        }
    }

    #[test]
    fn prove_looks_only_at_the_planned_numbers_of_pairs() {
        let looked: Vec<usize> = (0..40).filter(|n| prove(&vec![2.0; *n], 0.02).is_some()).collect();
        assert_eq!(looked, [6, 12, 24]);
    }

    #[test]
    fn prove_a_tie_is_no_win() {
        let proof = |ratios: [f64; 6]| prove(&ratios, 0.02).unwrap().proof;
        assert_eq!(proof([1.001, 1.002, 1.001, 1.003, 1.002, 1.001]), Proof::NoDifference, "all are above 1");
        assert_eq!(proof([1.03, 1.04, 1.03, 1.05, 1.03, 1.001]), Proof::Faster);
        assert_eq!(proof([1.03, 1.04, 1.03, 1.05, 1.03, 0.99]), Proof::NotEnough);
        assert_eq!(proof([0.9, 0.8, 0.97, 0.9, 0.9, 0.9]), Proof::Slower);
    }

    fn losses(all: &[(f64, f64)]) -> Losses {
        (1..).zip(all).fold(Losses::Unknown, |found, (step, (a, b))| found.and(step, *a, *b))
    }

    #[test]
    fn losses_are_equal_close_or_different() {
        assert_eq!(losses(&[]), Losses::Unknown);
        assert_eq!(losses(&[(1.0, 1.0), (0.5, 0.5)]), Losses::Equal);
        assert!(matches!(losses(&[(1.0, 1.0), (0.5, 0.500_01), (0.4, 0.4)]), Losses::Close(apart) if apart < 1e-4));
        assert!(matches!(losses(&[(1.0, 1.0), (0.5, 0.6)]), Losses::Different { step: 2, .. }));
        assert!(matches!(losses(&[(1.0, f64::NAN)]), Losses::Different { step: 1, .. }));
    }

    fn run(steps: u64, backward_ms: u64) -> Run {
        let phases = vec![("forward", 10 * MS), ("backward", backward_ms * MS)];
        let mut run = Run::default();
        each_item(&TrainingRun { steps, phases, ..TrainingRun::default() }.bytes(), |item| run.apply(item));
        run
    }

    #[test]
    fn measure_work_without_the_warm_up() {
        let pair = MeasuredPair::new(&run(100, 20), &run(100, 10)).unwrap();
        assert!((pair.ratio() - 1.5).abs() < 0.1, "{pair:?}");
        assert_eq!(MeasuredPair::new(&run(100, 20), &run(12, 10)).unwrap_err().0, 1);
    }
}
