//! Whether a figure grows, and with what certainty: the Theil-Sen slope with its confidence interval.
//!
//! The slope is the median of the slopes between all pairs of points, which a few outliers do not affect. The interval is
//! the distribution-free one of Sen (1968), "Estimates of the regression coefficient based on Kendall's tau", J. Am. Stat.
//! Assoc. 63, from the variance of Kendall's S, n (n - 1) (2n + 5) / 18. It assumes that the points are independent.

/// Fewest points for which a slope is computed.
pub const FEWEST_POINTS: usize = 30;
/// Two-sided 95 % quantile of the normal distribution.
const Z_95: f64 = 1.959_964;

/// A slope with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Increase of y for an increase of 1 in x: the median over all pairs of points.
    pub slope: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    /// Number of points.
    pub points: usize,
    /// Whether both halves of the points have a trend of the same sign: a single jump is not a trend.
    pub is_steady: bool,
}

impl Trend {
    /// The trend of points `(x, y)` in the order of x; `None` with fewer than [`FEWEST_POINTS`] different x. The time is
    /// quadratic in the number of points: 256 points are 32,640 pairs.
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
        if points.len() < FEWEST_POINTS {
            return None;
        }
        let all = Self::fit_any(points)?;
        let (early, late) = points.split_at(points.len() / 2);
        let same = |half: &[(f64, f64)]| {
            Self::fit_any(half).is_some_and(|half| (all.grows() && half.grows()) || (all.shrinks() && half.shrinks()))
        };
        Some(Self { is_steady: same(early) && same(late), ..all })
    }

    fn fit_any(points: &[(f64, f64)]) -> Option<Self> {
        let pairs = points.iter().enumerate().flat_map(|(at, a)| points[at + 1..].iter().map(move |b| (a, b)));
        let slope = |(a, b): (&(f64, f64), &(f64, f64))| (b.1 - a.1) / (b.0 - a.0);
        let mut slopes: Vec<f64> = pairs.map(slope).filter(|slope| slope.is_finite()).collect();
        let n = points.len() as f64;
        let spread = Z_95 * (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
        let count = slopes.len();
        if (count as f64) < spread {
            return None;
        }
        let mut at = |rank: f64| {
            let rank = (rank.max(0.0) as usize).min(count.checked_sub(1)?);
            Some(*slopes.select_nth_unstable_by(rank, f64::total_cmp).1)
        };
        let median = at((count as f64 - 1.0) / 2.0)?.midpoint(at((count as f64) / 2.0)?);
        let low = at(((count as f64 - spread) / 2.0).floor())?;
        let high = at(((count as f64 + spread) / 2.0).ceil())?;
        Some(Self { slope: median, low, high, points: points.len(), is_steady: false })
    }

    /// Whether the interval is above 0.
    pub fn grows(&self) -> bool {
        self.low > 0.0
    }

    /// Whether the interval is below 0.
    pub fn shrinks(&self) -> bool {
        self.high < 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random numbers from -0.5 to 0.5, the same every time.
    fn noise(n: u64) -> f64 {
        let mut z = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (z >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    }

    fn line(n: u64, seed: u64, slope: f64, noisy: f64) -> Vec<(f64, f64)> {
        (0..n).map(|x| (x as f64, 1000.0 + slope * x as f64 + noisy * noise(seed * 1000 + x))).collect()
    }

    #[test]
    fn trend_of_line_is_its_slope() {
        let points: Vec<(f64, f64)> = (0..30).map(|x| (f64::from(x), 2.0 * f64::from(x))).collect();
        assert_eq!(Trend::fit(&points), Some(Trend { slope: 2.0, low: 2.0, high: 2.0, points: 30, is_steady: true }));
    }

    #[test]
    fn trend_finds_leak_in_noise() {
        let mut points = line(200, 1, 3.0, 100.0);
        points[50].1 += 1e9;
        points[150].1 = 0.0;
        let trend = Trend::fit(&points).unwrap();
        assert!(trend.grows() && trend.is_steady && trend.low < 3.0 && trend.high > 3.0, "{trend:?}");
        assert!((trend.slope - 3.0).abs() < 0.2, "{trend:?}");
    }

    #[test]
    fn trend_interval_covers_truth() {
        let holds = |seed| Trend::fit(&line(60, seed, 0.0, 50.0)).is_some_and(|t| !t.grows() && !t.shrinks());
        let held = (0..200).filter(|seed| holds(*seed)).count();
        assert!((180..=198).contains(&held), "{held} of 200 at 95 %");
    }

    #[test]
    fn a_single_jump_is_no_steady_trend() {
        for at in [10, 30, 50] {
            let mut points = line(60, at, 0.0, 5.0);
            points[at as usize..].iter_mut().for_each(|point| point.1 += 1000.0);
            let trend = Trend::fit(&points).unwrap();
            assert!(!trend.is_steady, "{at}: {trend:?}");
        }
    }

    #[test]
    fn trend_of_few_or_odd_points_is_none() {
        assert_eq!(Trend::fit(&line(29, 0, 1.0, 0.0)), None);
        assert_eq!(Trend::fit(&[(5.0, 1.0); 100]), None, "all at one x");
        assert_eq!(Trend::fit(&[(0.0, f64::NAN); 100]), None);
        let flat = Trend::fit(&line(100, 0, 0.0, 0.0)).unwrap();
        assert!(!flat.grows() && !flat.shrinks());
    }
}
