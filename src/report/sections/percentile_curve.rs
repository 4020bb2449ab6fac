//! How long steps take by percentile, for a figure.

use gnntop_analysis::store::Distribution;

/// Points of the curve.
const POINTS: usize = 150;
/// Fewest durations for a curve.
const FEWEST: u64 = 10;

/// Durations by percentile, from the shortest towards the longest. The quantile of a point is `1 - 10^-(decades * x)`, x
/// running from 0 to 1: each decade leaves out nine tenths of the steps that the one before leaves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PercentileCurve {
    /// Durations at equal distances along the curve; none for fewer than ten, or where percentiles are not kept.
    pub ns: Vec<u64>,
    /// How far the curve reaches.
    pub decades: f64,
}

impl PercentileCurve {
    /// Of these durations, up to the longest.
    pub(in crate::report) fn of(durations: &Distribution) -> Self {
        Self::over(durations, (durations.count().max(FEWEST) as f64).log10())
    }

    /// Of two runs, as far as the shorter one reaches.
    pub(in crate::report) fn of_two(both: [&Distribution; 2]) -> [Self; 2] {
        let least = both[0].count().min(both[1].count()).max(FEWEST);
        both.map(|durations| Self::over(durations, (least as f64).log10()))
    }

    fn over(durations: &Distribution, decades: f64) -> Self {
        if durations.count() < FEWEST {
            return Self::default();
        }
        let quantile = |at: usize| quantile(decades, at as f64 / (POINTS - 1) as f64);
        let ns = (0..POINTS).map_while(|at| durations.percentile(quantile(at))).collect();
        Self { ns, decades }
    }

    /// The quantile (0 to 1) of a point.
    pub(in crate::report) fn quantile(&self, at: usize) -> f64 {
        quantile(self.decades, at as f64 / (self.ns.len().max(2) - 1) as f64)
    }

    /// How far along the curve (0 to 1) a quantile is; more than 1 where it is beyond.
    pub(in crate::report) fn place(&self, quantile: f64) -> f64 {
        -(1.0 - quantile).log10() / self.decades
    }
}

fn quantile(decades: f64, x: f64) -> f64 {
    1.0 - 10_f64.powf(-decades * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(count: u64) -> Distribution {
        let mut all = Distribution::new();
        (1..=count).for_each(|at| all.record(at * 1_000_000));
        all
    }

    #[test]
    fn the_curve_rises_from_the_shortest_to_the_longest() {
        let curve = PercentileCurve::of(&times(1000));
        let about = |ns: u64, ms: f64| (ns as f64 / 1e6 - ms).abs() <= ms * 0.01;
        assert!(curve.ns.is_sorted() && curve.ns.len() == POINTS, "{curve:?}");
        assert!(about(curve.ns[0], 1.0) && about(curve.ns[POINTS - 1], 999.0), "{curve:?}");
        assert!((curve.quantile(POINTS - 1) - 0.999).abs() < 1e-9 && (curve.place(0.9) - 1.0 / 3.0).abs() < 1e-9);
        assert!(PercentileCurve::of(&times(9)).ns.is_empty(), "too few");
    }

    #[test]
    fn two_curves_reach_as_far_as_the_shorter_run() {
        let [first, second] = PercentileCurve::of_two([&times(1000), &times(100)]);
        assert_eq!((first.decades, second.decades), (2.0, 2.0));
    }
}
