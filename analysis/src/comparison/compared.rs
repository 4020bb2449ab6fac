//! One number on both sides, and the conclusion from it.

use serde::Serialize;

use super::chance::{over_runs, over_steps};
use crate::catalogue::Statistic;

/// Fewest steps for a verdict.
const ENOUGH: usize = 20;
/// Steps that must be beyond a percentile: p99 needs 500 steps.
const BEYOND: f64 = 5.0;
/// Smaller differences do not matter, as a share of the number itself or of the whole step.
const MATTERS: f64 = 0.005;

/// The conclusion of a comparison of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The second is faster.
    Faster,
    /// The second is slower.
    Slower,
    /// The difference is too small to matter: below 0.5 % of the number itself or of the whole step.
    Negligible,
    /// The interval includes no difference.
    NoEvidence,
    /// There are too few steps for a verdict.
    TooFew,
}

impl Change {
    /// Text for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Negligible => "too small to matter",
            Self::NoEvidence => "no evidence",
            Self::TooFew => "too few steps",
        }
    }
}

/// One number on both sides; with several runs a side, their geometric mean.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The phase, `gap`, `step` (from its own start) or `period` (with the gap before it).
    pub name: String,
    /// Which number: `mean`, or a percentile such as `p50`.
    pub statistic: String,
    /// The number on the first side.
    pub first_ns: f64,
    /// The number on the second side.
    pub second_ns: f64,
    /// How much longer the second takes, as a share of the first; negative if it is shorter.
    pub change: f64,
    /// 95 % interval of the change; absent with too few steps.
    pub interval: Option<(f64, f64)>,
    /// The conclusion.
    pub verdict: Change,
}

/// The step or a phase in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RunTimes {
    /// How long it took in each step that has it.
    pub times_ns: Vec<f64>,
    /// Its figures, one for each statistic; 0 where it is in no step.
    pub figures_ns: Vec<f64>,
}

/// Compares times, of each run of both sides. `whole_ns` is the first side's time for each of them, all else included.
pub(super) fn compare_times(
    name: &str,
    first: &[RunTimes],
    second: &[RunTimes],
    statistics: &[Statistic],
    whole_ns: f64,
) -> Vec<Compared> {
    let drawn = match (first, second) {
        ([RunTimes { times_ns: a, .. }], [RunTimes { times_ns: b, .. }]) if !a.is_empty() && !b.is_empty() => {
            Some(over_steps(a, b, statistics))
        }
        _ => None,
    };
    let number = |(at, statistic): (usize, &Statistic)| {
        let values = [first, second].map(|runs| runs.iter().map(|run| run.figures_ns[at]).collect::<Vec<f64>>());
        let [first_ns, second_ns] = [0, 1].map(|side| geometric_mean(&values[side]));
        let mut all = first.iter().chain(second);
        let has_enough = first_ns > 0.0 && all.all(|run| is_enough(run.times_ns.len(), *statistic));
        // A gap that most steps do not have takes no time at the median.
        let has_any = first.iter().any(|run| !run.times_ns.is_empty());
        let same = has_any && (first == second || first_ns == 0.0 && second_ns == 0.0);
        let interval = match &drawn {
            _ if same => Some((0.0, 0.0)),
            Some(drawn) => Some(drawn[at]),
            None => over_runs(&values[0], &values[1]),
        };
        let interval = interval.filter(|_| has_enough || same);
        let change = if first_ns > 0.0 { second_ns / first_ns - 1.0 } else { 0.0 };
        let verdict = verdict(change, interval, (second_ns - first_ns).abs() >= MATTERS * whole_ns);
        let (name, statistic) = (name.to_owned(), statistic.to_string());
        Compared { name, statistic, first_ns, second_ns, change, interval, verdict }
    };
    statistics.iter().enumerate().map(number).collect()
}

/// The conclusion from the change, and from whether it matters for the whole step.
pub(super) fn verdict(change: f64, interval: Option<(f64, f64)>, matters: bool) -> Change {
    let Some((low, high)) = interval else { return Change::TooFew };
    match () {
        () if low <= 0.0 && high >= 0.0 => Change::NoEvidence,
        () if !matters || change.abs() < MATTERS => Change::Negligible,
        () if change > 0.0 => Change::Slower,
        () => Change::Faster,
    }
}

/// Whether this many steps are enough for this statistic.
pub(super) fn is_enough(steps: usize, statistic: Statistic) -> bool {
    let beyond = statistic.quantile().map_or(0.5, |quantile| (1.0 - quantile).min(quantile.max(0.5)));
    steps >= ENOUGH && steps as f64 * beyond >= BEYOND
}

/// The geometric mean of positive values; 0 if one is not positive, or without values.
pub(super) fn geometric_mean(values: &[f64]) -> f64 {
    match values {
        [] => 0.0,
        [value] => *value,
        _ if values.iter().any(|value| *value <= 0.0) => 0.0,
        _ => (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Distribution;

    const P50: [Statistic; 1] = [Statistic::Percentile(50_000)];

    /// Times around this many nanoseconds, varying by a tenth.
    fn times(n: usize, ns: f64) -> Vec<f64> {
        (0..n).map(|at| ns * (0.9 + 0.2 * (at * 7919 % 101) as f64 / 100.0)).collect()
    }

    fn run(times_ns: &[f64], statistics: &[Statistic]) -> RunTimes {
        let mut all = Distribution::new();
        times_ns.iter().for_each(|ns| all.record(*ns as u64));
        let figure = |statistic: &Statistic| match statistic.quantile() {
            Some(quantile) => all.percentile(quantile).unwrap_or(0) as f64,
            None => all.mean_ns().unwrap_or(0.0),
        };
        RunTimes { times_ns: times_ns.to_vec(), figures_ns: statistics.iter().map(figure).collect() }
    }

    fn change(first: &[f64], second: &[f64], whole_ns: f64) -> Change {
        compare_times("a", &[run(first, &P50)], &[run(second, &P50)], &P50, whole_ns)[0].verdict
    }

    #[test]
    fn verdict_has_direction_and_minimum_size() {
        let (fast, slow) = (times(500, 1e7), times(500, 1.1e7));
        assert_eq!(change(&fast, &slow, 3e7), Change::Slower);
        assert_eq!(change(&slow, &fast, 3e7), Change::Faster);
        assert_eq!(change(&fast, &times(500, 1.002e7), 3e7), Change::NoEvidence);
        assert_eq!(change(&[1e7; 500], &[1.002e7; 500], 0.0), Change::Negligible, "a difference below 0.5 %");
    }

    #[test]
    fn tiny_phase_difference_does_not_matter() {
        assert_eq!(change(&times(500, 6e3), &times(500, 9e3), 3e7), Change::Negligible);
        assert_eq!(change(&times(500, 6e3), &times(500, 9e3), 3e4), Change::Slower, "in a step of 30 us it is");
    }

    #[test]
    fn few_steps_give_no_verdict_unless_equal() {
        let all = [Statistic::Mean, Statistic::percentile(50.0), Statistic::percentile(99.0)];
        let verdicts = |n: usize| {
            let sides = [1e7, 2e7].map(|ns| [run(&times(n, ns), &all)]);
            compare_times("a", &sides[0], &sides[1], &all, 0.0)
                .into_iter()
                .map(|of| of.verdict)
                .collect::<Vec<Change>>()
        };
        assert_eq!(verdicts(15), [Change::TooFew; 3]);
        assert_eq!(verdicts(300), [Change::Slower, Change::Slower, Change::TooFew]);
        assert_eq!(change(&[], &[], 0.0), Change::TooFew);
        assert_eq!(change(&[0.0; 100], &[0.0; 100], 0.0), Change::NoEvidence, "a phase that takes no time");
        assert_eq!(change(&[0.0; 100], &[1.0; 100], 0.0), Change::TooFew, "no share of nothing");
        assert_eq!(change(&times(6, 1e7), &times(6, 1e7), 0.0), Change::NoEvidence);
    }

    #[test]
    fn of_several_runs_the_interval_is_over_runs() {
        let runs = |scales: [f64; 3]| scales.map(|scale| run(&times(100, 1e7 * scale), &P50));
        let verdict = |a: [f64; 3], b: [f64; 3]| compare_times("a", &runs(a), &runs(b), &P50, 3e7)[0].clone();
        // Each pair of runs differs clearly over its steps, but the runs of a side differ as much.
        assert_eq!(verdict([1.0, 1.3, 0.8], [1.1, 1.2, 1.4]).verdict, Change::NoEvidence);
        let slower = verdict([1.0, 1.01, 0.99], [1.2, 1.21, 1.19]);
        assert!(slower.verdict == Change::Slower && (slower.change - 0.2).abs() < 0.01, "{slower:?}");
        let one = compare_times("a", &runs([1.0; 3])[..1], &runs([2.0; 3]), &P50, 3e7);
        assert_eq!(one[0].verdict, Change::TooFew, "one run does not show how runs differ");
    }
}
