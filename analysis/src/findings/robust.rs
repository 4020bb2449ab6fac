//! Statistics that a few outliers do not bend: medians, spreads based on them, straight lines.

/// A standard deviation as a multiple of the median absolute deviation, for normally distributed values.
const SIGMA_PER_MAD: f64 = 1.4826;
/// Values further from a line than this many standard deviations are left out of the second fit.
const OUTLIER_SIGMAS: f64 = 3.5;

/// The median, the lower one of two; `None` for no values. Changes their order.
pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The value that a share `q` of the values does not exceed (nearest rank); `None` for no values. Changes their order.
pub(super) fn quantile(values: &mut [f64], q: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let rank = (q * values.len() as f64).ceil() as usize;
    Some(*values.select_nth_unstable_by(rank.saturating_sub(1).min(last), f64::total_cmp).1)
}

/// The standard deviation around `center`, from the median absolute deviation.
pub(super) fn sigma(values: impl Iterator<Item = f64>, center: f64) -> f64 {
    let mut deviations: Vec<f64> = values.map(|value| (value - center).abs()).collect();
    median(&mut deviations).unwrap_or(0.0) * SIGMA_PER_MAD
}

/// Pearson's correlation of pairs; `None` if one side does not vary.
pub(super) fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let sums = Moments::new(pairs);
    (sums.xx > 0.0 && sums.yy > 0.0).then(|| sums.xy / (sums.xx * sums.yy).sqrt())
}

/// A straight line through pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearFit {
    /// Value at 0.
    pub base: f64,
    /// Increase per unit.
    pub slope: f64,
    /// Pearson's correlation of the pairs that the line was fitted to.
    pub r: f64,
}

impl LinearFit {
    /// The least-squares line, fitted again without the pairs far from the first line. `None` if one side does not
    /// vary.
    pub(super) fn fit(pairs: &[(f64, f64)]) -> Option<Self> {
        let first = Self::least_squares(pairs)?;
        let spread = sigma(pairs.iter().map(|(x, y)| y - first.at(*x)), 0.0);
        let near = |(x, y): &&(f64, f64)| (y - first.at(*x)).abs() <= OUTLIER_SIGMAS * spread;
        let kept: Vec<(f64, f64)> = pairs.iter().filter(near).copied().collect();
        Self::least_squares(&kept).or(Some(first))
    }

    /// The value on the line.
    pub fn at(&self, x: f64) -> f64 {
        self.base + self.slope * x
    }

    fn least_squares(pairs: &[(f64, f64)]) -> Option<Self> {
        let sums = Moments::new(pairs);
        let r = correlation(pairs)?;
        let slope = sums.xy / sums.xx;
        Some(Self { base: sums.mean_y - slope * sums.mean_x, slope, r })
    }
}

/// Central second moments.
struct Moments {
    mean_x: f64,
    mean_y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

impl Moments {
    fn new(pairs: &[(f64, f64)]) -> Self {
        let n = pairs.len().max(1) as f64;
        let mean_x = pairs.iter().map(|(x, _)| x).sum::<f64>() / n;
        let mean_y = pairs.iter().map(|(_, y)| y).sum::<f64>() / n;
        let mut sums = Self { mean_x, mean_y, xx: 0.0, yy: 0.0, xy: 0.0 };
        for (x, y) in pairs {
            let (dx, dy) = (x - mean_x, y - mean_y);
            sums.xx += dx * dx;
            sums.yy += dy * dy;
            sums.xy += dx * dy;
        }
        sums
    }
}

/// At most `most` of the indices below `n`, evenly spread and jittered so that no period of the values is hit.
pub(super) fn spread_indices(n: usize, most: usize) -> Vec<usize> {
    if n <= most {
        return (0..n).collect();
    }
    let stride = n / most;
    // Knuth's multiplicative hash: the same indices every time.
    (0..most).map(|i| i * n / most + (i.wrapping_mul(2_654_435_761) >> 8) % stride).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_indices_cover_all() {
        for (n, most) in [(10, 20), (20, 20), (39, 20), (21_600, 16_384), (1_000_000, 4096)] {
            let indices = spread_indices(n, most);
            assert_eq!(indices.len(), n.min(most));
            assert!(indices.is_sorted() && indices.iter().all(|i| *i < n));
            let largest = indices.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
            assert!(indices[0] <= n / most && n - indices[indices.len() - 1] <= largest && largest <= 2 * n / most + 1);
        }
    }

    #[test]
    fn median_and_quantile_are_ranks() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), Some(2.0));
        assert_eq!(quantile(&mut [1.0, 2.0, 3.0, 4.0], 1.0), Some(4.0));
        assert_eq!(quantile(&mut [1.0, 2.0, 3.0, 4.0], 0.0), Some(1.0));
    }

    #[test]
    fn linear_fit_ignores_outlier() {
        let mut pairs: Vec<(f64, f64)> = (0..100).map(|x| (f64::from(x), 5.0 + 2.0 * f64::from(x))).collect();
        pairs.push((50.0, 1e5));
        let line = LinearFit::fit(&pairs).unwrap();
        assert!((line.slope - 2.0).abs() < 1e-9 && (line.base - 5.0).abs() < 1e-6 && line.r > 0.999, "{line:?}");
        assert_eq!(LinearFit::fit(&[(1.0, 2.0), (1.0, 3.0)]), None);
    }

    #[test]
    fn indices_are_spread_and_meet_no_period() {
        assert_eq!(spread_indices(3, 10), [0, 1, 2]);
        let indices = spread_indices(90_000, 3000);
        assert!(indices.windows(2).all(|pair| pair[0] < pair[1]) && *indices.last().unwrap() < 90_000);
        let of_three = indices.iter().filter(|i| **i % 3 == 0).count();
        assert!((800..1200).contains(&of_three), "{of_three}");
    }
}
