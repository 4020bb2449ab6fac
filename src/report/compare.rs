//! Two recordings compared, phase by phase: which is faster, and whether that can be said at all.
//!
//! Full batches after the warm-up are compared. The difference of a percentile has a 95 % interval from a moving-block
//! bootstrap: blocks of neighbouring steps are drawn, not single ones, since a step tells something about the next
//! (Künsch, *Annals of Statistics* 17, 1989; blocks of the cube root of the number of steps).

use serde::Serialize;

use gnntop_analysis::findings::{self, Class};
use gnntop_analysis::store::{PhaseSlot, StepRow, Store};

/// Resamples.
const RESAMPLES: usize = 1000;
/// Steps that are compared, the newest ones: more make the interval narrower than it matters.
const STEPS: usize = 4096;
/// Steps below which nothing is said.
const ENOUGH: usize = 20;
/// Steps beyond a percentile that must be there: p99 needs 500.
const BEYOND: f64 = 5.0;
/// Differences smaller than this share are not called any.
const MATTERS: f64 = 0.005;

/// What the comparison came to for one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The second takes less time.
    Faster,
    /// The second takes more time.
    Slower,
    /// The interval holds no difference, or one too small to matter.
    NoEvidence,
    /// There are too few steps to say anything.
    TooFew,
}

impl Change {
    /// As words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoEvidence => "no evidence",
            Self::TooFew => "too few steps",
        }
    }
}

/// One number of both recordings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The phase, `gap` or `step`.
    pub name: String,
    /// Which percentile, from 0 to 100.
    pub percentile: f64,
    /// It in the first recording.
    pub first_ns: f64,
    /// It in the second.
    pub second_ns: f64,
    /// How much longer the second takes, as a share of the first; negative where it is shorter.
    pub change: f64,
    /// 95 % interval of that; absent for too few steps.
    pub interval: Option<(f64, f64)>,
    /// What follows.
    pub verdict: Change,
}

/// Compares the percentiles (from 0 to 100) of all phases that both recordings have, of the gap and of whole steps.
pub fn compare(first: &Store, second: &Store, percentiles: &[f64]) -> Vec<Compared> {
    let rows = [full_rows(first), full_rows(second)];
    let mut names: Vec<&str> = first.phases().iter().map(|phase| phase.text.as_str()).collect();
    names.retain(|name| second.phase(name).is_some());
    let mut all = Vec::new();
    for name in names.into_iter().map(Some).chain([None]) {
        let times = [(first, &rows[0]), (second, &rows[1])].map(|(store, rows)| times_ns(store, rows, name));
        for percentile in percentiles {
            all.push(of_times(name.unwrap_or("step"), &times[0], &times[1], *percentile));
        }
    }
    all
}

/// The newest full batches after the warm-up.
fn full_rows(store: &Store) -> Vec<StepRow<'_>> {
    let classes = findings::classes(store, 0..u64::MAX);
    let mut rows: Vec<StepRow<'_>> =
        classes.into_iter().filter(|(_, class)| *class == Class::Full).map(|(row, _)| row).collect();
    rows.drain(..rows.len().saturating_sub(STEPS));
    rows
}

fn times_ns(store: &Store, rows: &[StepRow<'_>], name: Option<&str>) -> Vec<f64> {
    let slot: Option<PhaseSlot> = name.and_then(|name| store.phase(name)).map(|phase| phase.slot);
    rows.iter().map(|row| slot.map_or(row.period_ns(), |slot| row.phase_ns(slot)) as f64).collect()
}

fn of_times(name: &str, first: &[f64], second: &[f64], percentile: f64) -> Compared {
    let q = percentile / 100.0;
    let at = |times: &[f64]| quantile(&mut times.to_vec(), q);
    let (first_ns, second_ns) = (at(first), at(second));
    let change = if first_ns > 0.0 { second_ns / first_ns - 1.0 } else { 0.0 };
    let least = first.len().min(second.len()) as f64;
    let has_enough = least >= ENOUGH as f64 && least * (1.0 - q).min(q.max(0.5)) >= BEYOND && first_ns > 0.0;
    let interval = has_enough.then(|| bootstrap(first, second, q));
    let verdict = match interval {
        None => Change::TooFew,
        Some((low, _)) if low > 0.0 && change > MATTERS => Change::Slower,
        Some((_, high)) if high < 0.0 && change < -MATTERS => Change::Faster,
        Some(_) => Change::NoEvidence,
    };
    Compared { name: name.to_owned(), percentile, first_ns, second_ns, change, interval, verdict }
}

/// 95 % interval of the second's percentile over the first's, less one.
fn bootstrap(first: &[f64], second: &[f64], q: f64) -> (f64, f64) {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut sample = Vec::new();
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let from = resampled(first, q, &mut random, &mut sample);
            resampled(second, q, &mut random, &mut sample) / from.max(1.0) - 1.0
        })
        .collect();
    (quantile(&mut ratios, 0.025), quantile(&mut ratios, 0.975))
}

fn resampled(times: &[f64], q: f64, random: &mut Random, sample: &mut Vec<f64>) -> f64 {
    let block = (times.len() as f64).cbrt().ceil() as usize;
    sample.clear();
    while sample.len() < times.len() {
        let start = random.below(times.len() - block + 1);
        sample.extend_from_slice(&times[start..start + block.min(times.len() - sample.len())]);
    }
    quantile(sample, q)
}

/// Nearest rank; 0 for none.
fn quantile(values: &mut [f64], q: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else { return 0.0 };
    let rank = ((q * values.len() as f64).ceil() as usize).saturating_sub(1).min(last);
    *values.select_nth_unstable_by(rank, f64::total_cmp).1
}

/// xorshift64* (Vigna, 2016): the same numbers every time, so that a comparison can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D);
        ((u128::from(bits) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of 10 ms with this much uniform noise, from a seed.
    fn times(n: usize, scale: f64, noise: f64, seed: u64) -> Vec<f64> {
        let mut random = Random(seed);
        (0..n).map(|_| 1e7 * scale * (1.0 + noise * (random.below(1 << 20) as f64 / (1 << 20) as f64 - 0.5))).collect()
    }

    #[test]
    fn a_difference_is_seen_through_the_noise_in_both_directions() {
        let (slow, fast) = (times(500, 1.05, 0.2, 3), times(500, 1.0, 0.2, 4));
        assert_eq!(of_times("a", &fast, &slow, 50.0).verdict, Change::Slower);
        assert_eq!(of_times("a", &slow, &fast, 50.0).verdict, Change::Faster);
        let compared = of_times("a", &fast, &slow, 50.0);
        let (low, high) = compared.interval.unwrap();
        assert!(low < 0.05 && high > 0.05 && low > 0.0, "{compared:?}");
    }

    #[test]
    fn equal_runs_give_evidence_of_a_difference_in_about_one_of_twenty_times() {
        let claims = |n: &u64| {
            let (a, b) = (times(200, 1.0, 0.2, 2 * n + 1), times(200, 1.0, 0.2, 2 * n + 1001));
            of_times("a", &a, &b, 50.0).verdict != Change::NoEvidence
        };
        let wrong = (0..100).filter(claims).count();
        assert!(wrong <= 12, "{wrong} of 100");
    }

    #[test]
    fn too_few_steps_say_nothing() {
        let (a, b) = (times(15, 1.0, 0.1, 1), times(15, 2.0, 0.1, 2));
        assert_eq!(of_times("a", &a, &b, 50.0).verdict, Change::TooFew);
        let (a, b) = (times(300, 1.0, 0.1, 1), times(300, 2.0, 0.1, 2));
        assert_eq!(of_times("a", &a, &b, 99.0).verdict, Change::TooFew);
        assert_eq!(of_times("a", &a, &b, 50.0).verdict, Change::Slower);
        assert_eq!(of_times("a", &[], &[], 50.0).verdict, Change::TooFew);
        assert_eq!(of_times("a", &vec![0.0; 100], &vec![0.0; 100], 50.0).verdict, Change::TooFew);
    }
}
