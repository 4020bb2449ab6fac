//! How much a number may vary by chance alone.
//!
//! With one run per side, over steps: a moving-block bootstrap. It draws blocks of neighbouring steps, since successive
//! steps are correlated (Künsch, *Annals of Statistics* 17, 1989; blocks of the cube root of the number of steps). With
//! several runs per side: Welch's interval for the difference of the mean logarithms (Welch, *Biometrika* 34, 1947), which
//! is an interval for the ratio of the geometric means.

use crate::catalogue::Statistic;

/// Number of resamples.
const RESAMPLES: usize = 500;
/// Seed of all random numbers, so that a comparison is reproducible.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

/// 95 % intervals of the ratio of each statistic of `second` to that of `first`, minus one, over the values of one run each.
/// The statistics are percentiles and the mean.
pub(super) fn over_steps(first: &[f64], second: &[f64], statistics: &[Statistic]) -> Vec<(f64, f64)> {
    if first == second {
        return vec![(0.0, 0.0); statistics.len()];
    }
    let mut random = Random(SEED);
    let drawn = [first, second].map(|values| replicas(values, statistics, &mut random));
    let interval = |at: usize| interval(&drawn[0][at], &drawn[1][at]);
    (0..statistics.len()).map(interval).collect()
}

/// The same for the ratio of two sums, such as work over time.
pub(super) fn over_ratio(first: &[(f64, f64)], second: &[(f64, f64)]) -> (f64, f64) {
    if first == second {
        return (0.0, 0.0);
    }
    let mut random = Random(SEED);
    let drawn = [first, second].map(|pairs| {
        let draw = |_| {
            let (mut above, mut below) = (0.0, 0.0);
            resample(pairs.len(), &mut random, |at| {
                above += pairs[at].0;
                below += pairs[at].1;
            });
            above / below.max(1.0)
        };
        (0..RESAMPLES).map(draw).collect::<Vec<f64>>()
    });
    interval(&drawn[0], &drawn[1])
}

/// 95 % interval of the ratio of `second` to `first`, minus one, given a value for each run. `None` if a side has only one
/// run, or a value is 0.
pub(super) fn over_runs(first: &[f64], second: &[f64]) -> Option<(f64, f64)> {
    let sides = [spread(first)?, spread(second)?];
    let [a, b] = sides.map(|(_, variance, n)| variance / n);
    let difference = sides[1].0 - sides[0].0;
    let squares = a * a / (sides[0].2 - 1.0) + b * b / (sides[1].2 - 1.0);
    let freedom = if squares > 0.0 { (a + b) * (a + b) / squares } else { f64::INFINITY };
    let half = student(freedom) * (a + b).sqrt();
    Some(((difference - half).exp_m1(), (difference + half).exp_m1()))
}

/// Mean and variance of the logarithms, and their number, at least two.
fn spread(values: &[f64]) -> Option<(f64, f64, f64)> {
    if values.len() < 2 || values.iter().any(|value| *value <= 0.0) {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().map(|value| value.ln()).sum::<f64>() / n;
    let variance = values.iter().map(|value| (value.ln() - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some((mean, variance, n))
}

/// The 97.5th percentile of Student's distribution, for degrees of freedom rounded down; from 12 on by the first terms of
/// its expansion (Abramowitz and Stegun, 26.7.5), which is then accurate to 0.002.
fn student(freedom: f64) -> f64 {
    const TABLE: [f64; 11] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201];
    const NORMAL: f64 = 1.959_964;
    let whole = freedom.floor().max(1.0);
    if whole <= TABLE.len() as f64 {
        return TABLE[whole as usize - 1];
    }
    let (cube, fifth) = (NORMAL.powi(3), NORMAL.powi(5));
    let second = (5.0 * fifth + 16.0 * cube + 3.0 * NORMAL) / 96.0;
    NORMAL + (cube + NORMAL) / (4.0 * whole) + second / (whole * whole)
}

/// The middle 95 % of the ratios, minus one.
fn interval(first: &[f64], second: &[f64]) -> (f64, f64) {
    let ratio = |(from, to): (&f64, &f64)| to / from.max(f64::MIN_POSITIVE) - 1.0;
    let mut ratios: Vec<f64> = first.iter().zip(second).map(ratio).collect();
    (quantile(&mut ratios, 0.025), quantile(&mut ratios, 0.975))
}

/// Each statistic's values in the resamples. All share the same resamples: the values are ranked once, and a resample
/// counts how often each rank was drawn.
fn replicas(values: &[f64], statistics: &[Statistic], random: &mut Random) -> Vec<Vec<f64>> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut rank = vec![0; values.len()];
    order.iter().enumerate().for_each(|(at, index)| rank[*index] = at);
    let mut drawn = vec![0u32; values.len()];
    let mut all = vec![Vec::with_capacity(RESAMPLES); statistics.len()];
    for _ in 0..RESAMPLES {
        drawn.fill(0);
        let mut sum = 0.0;
        resample(values.len(), random, |at| {
            drawn[rank[at]] += 1;
            sum += values[at];
        });
        for (values_of, statistic) in all.iter_mut().zip(statistics) {
            values_of.push(match statistic.quantile() {
                None => sum / values.len() as f64,
                Some(quantile) => values[order[drawn_rank(&drawn, quantile)]],
            });
        }
    }
    all
}

/// The rank below which a share of the drawn values is.
fn drawn_rank(drawn: &[u32], q: f64) -> usize {
    let wanted = nearest_rank(drawn.len(), q) as u32;
    let mut seen = 0;
    let reaches = |times: &u32| {
        seen += times;
        seen > wanted
    };
    drawn.iter().position(reaches).unwrap_or(drawn.len() - 1)
}

/// Draws as many indices as there are values, in blocks.
fn resample(n: usize, random: &mut Random, mut take: impl FnMut(usize)) {
    let block = (n as f64).cbrt().ceil() as usize;
    let mut left = n;
    while left > 0 {
        let start = random.below(n - block + 1);
        let len = block.min(left);
        (start..start + len).for_each(&mut take);
        left -= len;
    }
}

/// The quantile by nearest rank; 0 for no values.
fn quantile(values: &mut [f64], q: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let rank = nearest_rank(values.len(), q);
    *values.select_nth_unstable_by(rank, f64::total_cmp).1
}

/// The rank from 0 among `n` values, at least one.
fn nearest_rank(n: usize, q: f64) -> usize {
    ((q * n as f64).ceil() as usize).saturating_sub(1).min(n - 1)
}

/// xorshift64* (Vigna, 2016).
#[derive(Debug)]
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

    /// Times around 10 ms with this much uniform noise, from a seed.
    fn times(n: usize, scale: f64, noise: f64, seed: u64) -> Vec<f64> {
        let mut random = Random(seed);
        (0..n).map(|_| 1e7 * scale * (1.0 + noise * (random.below(1 << 20) as f64 / (1 << 20) as f64 - 0.5))).collect()
    }

    #[test]
    fn step_interval_contains_true_difference() {
        let (fast, slow) = (times(500, 1.0, 0.2, 4), times(500, 1.05, 0.2, 3));
        let statistics = [Statistic::Mean, Statistic::percentile(50.0), Statistic::percentile(90.0)];
        for (low, high) in over_steps(&fast, &slow, &statistics) {
            assert!(0.0 < low && low < 0.05 && high > 0.05, "{low} to {high}");
        }
        for (low, high) in over_steps(&slow, &fast, &statistics) {
            assert!(low < -0.04 && high < 0.0, "{low} to {high}");
        }
        assert_eq!(over_steps(&fast, &fast, &statistics), [(0.0, 0.0); 3]);
    }

    #[test]
    fn equal_runs_differ_in_about_five_percent() {
        let claims = |n: &u64| {
            let (a, b) = (times(200, 1.0, 0.2, 2 * n + 1), times(200, 1.0, 0.2, 2 * n + 1001));
            let (low, high) = over_steps(&a, &b, &[Statistic::percentile(50.0)])[0];
            low > 0.0 || high < 0.0
        };
        let wrong = (0..100).filter(claims).count();
        assert!(wrong <= 12, "{wrong} of 100");
    }

    #[test]
    fn resample_percentiles_match_drawn_values() {
        assert_eq!([0.0, 0.25, 0.5, 0.75, 1.0].map(|q| drawn_rank(&[2, 0, 1, 1], q)), [0, 0, 0, 2, 3]);
        assert_eq!((quantile(&mut [3.0, 1.0, 2.0], 0.5), quantile(&mut [], 0.5)), (2.0, 0.0));
    }

    #[test]
    fn ratio_interval_contains_work_per_time() {
        let pairs =
            |scale: f64, seed| times(300, scale, 0.3, seed).into_iter().map(|ns| (64.0, ns)).collect::<Vec<_>>();
        let (low, high) = over_ratio(&pairs(1.0, 5), &pairs(0.5, 6));
        assert!(0.9 < low && low < 1.0 && (1.0..1.1).contains(&high), "{low} to {high}");
    }

    /// Welch's interval computed by hand: logarithms 0, 0.1, 0.2 and 1, 1.1, 1.2 have variances of 0.01 each, so se =
    /// sqrt(0.02 / 3) with four degrees of freedom.
    #[test]
    fn an_interval_over_runs_is_welchs() {
        let values = |from: f64| [0.0, 0.1, 0.2].map(|more: f64| (from + more).exp());
        let (low, high) = over_runs(&values(0.0), &values(1.0)).unwrap();
        let half = 2.776 * (0.02f64 / 3.0).sqrt();
        assert!((low - (1.0 - half).exp_m1()).abs() < 1e-3 && (high - (1.0 + half).exp_m1()).abs() < 1e-3);
        assert_eq!(over_runs(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(over_runs(&[1.0, 0.0], &[1.0, 2.0]), None);
        assert_eq!(over_runs(&[2.0, 2.0], &[2.0, 2.0]), Some((0.0, 0.0)));
    }

    #[test]
    fn student_matches_tables() {
        for (freedom, t) in [(1.9, 12.706), (4.0, 2.776), (12.0, 2.179), (30.0, 2.042), (1e9, 1.960)] {
            assert!((student(freedom) - t).abs() < 2e-3, "{freedom}: {}", student(freedom));
        }
    }
}
