//! The whole comparison: work first, then times.

use serde::Serialize;

use super::chance::{over_ratio, over_runs};
use super::compared::{Change, Compared, RunTimes, compare_times, geometric_mean, is_enough, verdict};
use super::sample::{RunSample, TimedPart, WorkUnit};
use super::setup_comparison::SetupComparison;
use crate::catalogue::Statistic;
use crate::figures::{count, counted, joined, quantity};
use crate::findings::{self, FindingKind, Severity};
use crate::ranks::Run;
use crate::store::{Distribution, GAP};

/// The names of the two sides.
const SIDES: [&str; 2] = ["A", "B"];

/// Two sides compared.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The steps compared on each side, A first.
    pub sides: [Side; 2],
    /// Disturbed runs; if there are any, there is a verdict only where the interval excludes 1.
    pub disturbed: Vec<Disturbed>,
    /// Whether both sides ran the same thing.
    pub sameness: SetupComparison,
    /// Throughput; `None` if a side has no steps to compare.
    pub work: Option<ComparedWork>,
    /// The period; the phases and the gap, whose shares add up to it; and the step from its own start.
    pub lines: Vec<Line>,
}

/// The steps of a side that were compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// Number of runs.
    pub runs: usize,
    /// Number of compared steps in all runs: the newest full batches after the warm-up.
    pub compared_steps: u64,
    /// Number of all steps.
    pub steps: u64,
    /// Whether the compared steps are the median ones of each second or minute, because those of a side are no longer kept
    /// individually.
    pub is_of_medians: bool,
}

/// Contention in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Disturbed {
    /// `A`, or `A 2` for the second of several runs.
    pub run: String,
    /// What was found.
    pub what: String,
}

/// Work per second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedWork {
    /// `graphs`, `seeds`, or `steps` if batch sizes are not reported.
    pub unit: &'static str,
    /// A's.
    pub first_per_s: f64,
    /// B's.
    pub second_per_s: f64,
    /// B's divided by A's.
    pub ratio: f64,
    /// 95 % interval of the ratio, over steps or, if each side has several runs, over runs.
    pub interval: Option<(f64, f64)>,
    /// The conclusion.
    pub verdict: Change,
}

/// The step, or a phase, on both sides.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// `step`, `period`, `gap`, or the phase.
    pub name: String,
    /// Times of all compared steps of a side; `None` if the phase never occurred.
    #[serde(skip)]
    pub durations: [Option<Distribution>; 2],
    /// Share (0 to 1) of the total period.
    pub shares: [Option<f64>; 2],
    /// One for each statistic; empty if a side lacks the phase.
    pub numbers: Vec<Compared>,
}

/// Compares the mean and percentiles (from 0 to 100) of steps, phases and the gap: a phase over the steps that have it.
/// Each side must have at least one run. If both have several, intervals are over runs, else over steps.
pub fn compare(first: &[&Run], second: &[&Run], percentiles: &[f64]) -> Comparison {
    let [first, second] = RunSample::from_runs([first, second]);
    let both = [first.as_slice(), second.as_slice()];
    let percentiles = percentiles.iter().map(|percentage| Statistic::percentile(*percentage));
    let statistics: Vec<Statistic> = [Statistic::Mean].into_iter().chain(percentiles).collect();
    Comparison {
        sides: both.map(Side::from_samples),
        disturbed: (0..2).flat_map(|side| disturbed(SIDES[side], both[side])).collect(),
        sameness: both[0].first().zip(both[1].first()).map(|(a, b)| SetupComparison::compare(a, b)).unwrap_or_default(),
        work: work(both),
        lines: lines(both, &statistics),
    }
}

impl Side {
    fn from_samples(samples: &[RunSample<'_>]) -> Self {
        Self {
            runs: samples.len(),
            compared_steps: samples.iter().map(|sample| sample.rows.len() as u64).sum(),
            steps: samples.iter().map(|sample| sample.store().steps().total()).sum(),
            is_of_medians: samples.iter().any(|sample| sample.uses_medians),
        }
    }
}

fn disturbed(side: &str, samples: &[RunSample<'_>]) -> Vec<Disturbed> {
    let of = |(at, sample): (usize, &RunSample<'_>)| {
        let found = findings::judge_newest(sample.store()).findings.found.into_iter();
        let contention = found.filter(|it| it.kind == FindingKind::Contention && it.severity > Severity::Note);
        let run = if samples.len() > 1 { format!("{side} {}", at + 1) } else { side.to_owned() };
        contention.map(|it| Disturbed { run: run.clone(), what: it.summary }).collect::<Vec<_>>()
    };
    samples.iter().enumerate().flat_map(of).collect()
}

fn work([first, second]: [&[RunSample<'_>]; 2]) -> Option<ComparedWork> {
    let all = || first.iter().chain(second);
    if first.is_empty() || second.is_empty() || all().any(|sample| sample.rows.is_empty()) {
        return None;
    }
    let unit =
        if WorkUnit::common(first) == WorkUnit::common(second) { WorkUnit::common(first) } else { WorkUnit::Steps };
    let pairs = [first, second].map(|samples| samples.iter().map(|sample| sample.work(unit)).collect::<Vec<_>>());
    let rates = [first, second].map(|samples| samples.iter().map(|sample| sample.work_per_s(unit)).collect::<Vec<_>>());
    let [first_per_s, second_per_s] = [0, 1].map(|side| geometric_mean(&rates[side]));
    if first_per_s <= 0.0 {
        return None;
    }
    let same = pairs[0] == pairs[1];
    let has_enough = same || all().all(|sample| is_enough(sample.rows.len(), Statistic::Mean));
    let interval = match (pairs[0].as_slice(), pairs[1].as_slice()) {
        ([a], [b]) => Some(over_ratio(a, b)),
        _ => over_runs(&rates[0], &rates[1]),
    };
    let interval = interval.filter(|_| has_enough).map(|(low, high)| (1.0 + low, 1.0 + high));
    let ratio = second_per_s / first_per_s;
    // More work in the same time means less time for the same work.
    let times = interval.map(|(low, high)| (1.0 / high - 1.0, 1.0 / low - 1.0));
    let verdict = verdict(1.0 / ratio - 1.0, times, true);
    Some(ComparedWork { unit: unit.as_str(), first_per_s, second_per_s, ratio, interval, verdict })
}

fn lines(both: [&[RunSample<'_>]; 2], statistics: &[Statistic]) -> Vec<Line> {
    let phases = phases(both);
    let phases = phases.iter().map(|name| TimedPart::Phase(name));
    let parts = [TimedPart::Period].into_iter().chain(phases).chain([TimedPart::Step]);
    let lines = parts.map(|part| line(part, both, statistics));
    lines.filter(|line| line.durations.iter().any(Option::is_some)).collect()
}

fn line(part: TimedPart<'_>, both: [&[RunSample<'_>]; 2], statistics: &[Statistic]) -> Line {
    let times =
        both.map(|samples| samples.iter().map(|sample| run_times(sample, part, statistics)).collect::<Vec<_>>());
    let total_ns = |side: usize, part| {
        let with_part = both[side].iter().filter(|sample| !sample.times_ns(part).is_empty());
        with_part.filter_map(|sample| sample.part(part).value(Statistic::Total)).sum::<f64>()
    };
    let [own_ns, whole_ns] = [part, TimedPart::Period].map(|part| [0, 1].map(|side| total_ns(side, part)));
    let numbers = match own_ns {
        [a, b] if a > 0.0 && b > 0.0 => {
            let count = times[0].iter().map(|run| run.times_ns.len()).sum::<usize>() as f64;
            compare_times(part.name(), &times[0], &times[1], statistics, whole_ns[0] / count)
        }
        _ => Vec::new(),
    };
    let shares = [0, 1].map(|side| (own_ns[side] > 0.0).then(|| own_ns[side] / whole_ns[side].max(1.0)));
    let durations = [0, 1].map(|side| (own_ns[side] > 0.0).then(|| distribution(&times[side])));
    Line { name: part.name().to_owned(), durations, shares, numbers }
}

fn run_times(sample: &RunSample<'_>, part: TimedPart<'_>, statistics: &[Statistic]) -> RunTimes {
    let (times_ns, figures) = (sample.times_ns(part), sample.part(part));
    let figure = |statistic: &Statistic| figures.value(*statistic).filter(|_| !times_ns.is_empty()).unwrap_or(0.0);
    RunTimes { figures_ns: statistics.iter().map(figure).collect(), times_ns }
}

/// The names of the first side's phases, then of those that only the second has, then the gap.
fn phases(both: [&[RunSample<'_>]; 2]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let known = both.into_iter().flatten().flat_map(|sample| sample.store().phases());
    for phase in known.filter(|phase| !phase.is_gap()) {
        if !names.contains(&phase.text) {
            names.push(phase.text.clone());
        }
    }
    names.push(GAP.to_owned());
    names
}

fn distribution(runs: &[RunTimes]) -> Distribution {
    let mut all = Distribution::new();
    runs.iter().flat_map(|run| &run.times_ns).filter(|ns| **ns > 0.0).for_each(|ns| all.record(*ns as u64));
    all
}

impl Comparison {
    /// How much faster the second side does its work, or why there is no verdict.
    pub fn headline(&self) -> String {
        let Some(work) = &self.work else { return self.without_steps() };
        let [a, b] = [work.first_per_s, work.second_per_s].map(quantity);
        let interval = work.interval.map(|(low, high)| format!(" (95 %: {low:.2} to {high:.2} x)")).unwrap_or_default();
        let rates = format!("{a} and {b} {}/s{interval}", work.unit);
        let differs = work.interval.filter(|(low, high)| *low > 1.0 || *high < 1.0);
        match (self.disturbed.is_empty(), differs, work.verdict) {
            (false, Some((low, high)), Change::Faster | Change::Slower) => {
                let how = if work.ratio > 1.0 { "faster" } else { "slower" };
                let (a, b, runs) = (a, b, self.disturbance());
                return format!("B is {how}, {low:.2} to {high:.2} x: {a} and {b} {}/s; {runs}", work.unit);
            }
            (false, ..) => return format!("no verdict, because {}: {rates}", self.disturbance()),
            _ => (),
        }
        match work.verdict {
            Change::Faster | Change::Slower => format!("B does {:.2} x the work of A: {rates}", work.ratio),
            Change::Negligible => format!("A and B differ too little to matter: {rates}"),
            Change::NoEvidence => format!("no evidence that A or B is faster: {rates}"),
            Change::TooFew if self.sides.iter().any(|side| side.runs > 1) => {
                format!("no verdict, because one side has only one run: {rates}")
            }
            Change::TooFew => {
                let [a, b] = [0, 1].map(|side| self.sides[side].compared_steps);
                format!("too few steps to compare (A: {}, B: {}): {rates}", count(a), count(b))
            }
        }
    }

    fn without_steps(&self) -> String {
        let empty = [0, 1].map(|side| (self.sides[side].compared_steps == 0).then_some(SIDES[side]));
        let empty: Vec<&str> = empty.into_iter().flatten().collect();
        let verb = if empty.len() == 1 { "has" } else { "have" };
        format!("{} {verb} no steps to compare", joined(&empty))
    }

    /// Which runs were disturbed, and by what.
    fn disturbance(&self) -> String {
        let all: Vec<String> =
            self.disturbed.iter().map(|it| format!("{} was disturbed ({})", it.run, it.what)).collect();
        all.join(" and ")
    }

    /// The steps behind the numbers, and what the intervals are over.
    pub fn population(&self) -> String {
        let side = |at: usize| {
            let Side { compared_steps, steps, .. } = self.sides[at];
            format!("{} of {} in {}", count(compared_steps), counted(steps, "step", "steps"), SIDES[at])
        };
        let runs = self.sides.iter().any(|side| side.runs > 1);
        let over = if runs { "runs" } else { "the steps of one run, so they do not cover differences between runs" };
        let which = if self.sides.iter().any(|side| side.is_of_medians) {
            "the median step of each second or minute, as older steps are not kept individually"
        } else {
            "full batches after the warm-up"
        };
        format!("{which}: {}, {}; intervals are over {over}", side(0), side(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_fixtures::{MS, TrainingRun, each_item};

    /// A run of 400 steps of 64 graphs whose backward phase takes about `backward_ms`.
    fn run(backward_ms: u64, seed: u64) -> Run {
        let spikes = (1..=400).map(|step| (step, "backward", (step + seed) * 7919 % 2000 * 1000)).collect();
        let phases = vec![("data wait", 4 * MS), ("forward", 10 * MS), ("backward", backward_ms * MS), ("tiny", 6_000)];
        run_of(&TrainingRun { steps: 400, phases, spikes, has_hardware: false, ..TrainingRun::default() })
    }

    fn run_of(recorded: &TrainingRun) -> Run {
        let mut run = Run::default();
        each_item(&recorded.bytes(), |item| run.apply(item));
        run
    }

    fn number<'a>(comparison: &'a Comparison, name: &str, statistic: &str) -> &'a Compared {
        let line = comparison.lines.iter().find(|line| line.name == name).unwrap();
        line.numbers.iter().find(|number| number.statistic == statistic).unwrap()
    }

    #[test]
    fn compare_reports_work_first_with_direction_of_b() {
        let (fast, slow) = (run(20, 0), run(40, 7));
        let back = compare(&[&slow], &[&fast], &[50.0]);
        let work = back.work.as_ref().unwrap();
        assert_eq!((work.unit, work.verdict), ("graphs", Change::Faster));
        assert!(work.ratio > 1.5 && back.headline().starts_with("B does 1.5"), "{}", back.headline());
        let there = compare(&[&fast], &[&slow], &[50.0]);
        assert_eq!(there.work.as_ref().unwrap().verdict, Change::Slower);
        assert_eq!(number(&there, "backward", "p50").verdict, Change::Slower);
        assert_eq!(number(&there, "period", "mean").verdict, Change::Slower);
        assert_eq!(number(&there, "tiny", "p50").verdict, Change::NoEvidence);
        let ratios = [&there, &back].map(|comparison| comparison.work.as_ref().unwrap().ratio);
        assert!((ratios[0] * ratios[1] - 1.0).abs() < 1e-9, "{ratios:?}");
    }

    #[test]
    fn headline_of_disturbed_runs_decides_only_where_the_interval_does() {
        let disturbed = |first: &Run, second: &Run| {
            let run = Disturbed { run: "A".to_owned(), what: "steal".to_owned() };
            Comparison { disturbed: vec![run], ..compare(&[first], &[second], &[50.0]) }.headline()
        };
        let said = disturbed(&run(20, 0), &run(40, 7));
        assert!(said.starts_with("B is slower, 0.6") && said.ends_with("graphs/s; A was disturbed (steal)"), "{said}");
        let said = disturbed(&run(20, 0), &run(20, 7));
        assert!(said.starts_with("no verdict, because A was disturbed (steal): "), "{said}");
    }

    #[test]
    fn compare_different_batches_counts_work() {
        let sized = |graphs: u64, ms: u64| {
            let phases = vec![("forward", ms * MS)];
            run_of(&TrainingRun { steps: 100, graphs, phases, ..TrainingRun::default() })
        };
        let comparison = compare(&[&sized(1024, 10)], &[&sized(2048, 14)], &[50.0]);
        assert!(comparison.sameness.sentence().contains("batches of 1,024 and 2,048 graphs"), "{comparison:?}");
        assert_eq!(number(&comparison, "period", "p50").verdict, Change::Slower);
        assert_eq!(comparison.work.as_ref().unwrap().verdict, Change::Faster, "{}", comparison.headline());
    }

    #[test]
    fn a_run_is_the_same_as_itself() {
        let (one, short) = (run(20, 0), run_of(&TrainingRun { steps: 12, ..TrainingRun::default() }));
        for run in [&one, &short] {
            let comparison = compare(&[run], &[run], &[50.0, 90.0]);
            let verdicts = comparison.lines.iter().flat_map(|line| &line.numbers).map(|number| number.verdict);
            assert!(verdicts.clone().all(|verdict| verdict == Change::NoEvidence), "{comparison:?}");
            assert!(verdicts.count() > 5 && comparison.sameness.differences.is_empty(), "{comparison:?}");
        }
    }

    #[test]
    fn compare_commands_that_begin_like_an_import() {
        let named = |name| run_of(&TrainingRun { name, ..TrainingRun::default() });
        let comparison = compare(&[&named("imported from a")], &[&named("imported from b")], &[50.0]);
        let sentence = comparison.sameness.sentence();
        assert!(sentence.contains("only the command of A has a"), "{sentence}");
    }

    #[test]
    fn compare_phase_of_one_side_has_no_verdict() {
        let other = run_of(&TrainingRun { steps: 400, phases: vec![("forward", 10 * MS)], ..TrainingRun::default() });
        let comparison = compare(&[&run(20, 0)], &[&other], &[50.0]);
        let backward = comparison.lines.iter().find(|line| line.name == "backward").unwrap();
        assert!(backward.numbers.is_empty() && backward.durations[1].is_none() && backward.shares[0] > Some(0.4));
        let sentence = comparison.sameness.sentence();
        assert!(sentence.contains("only A has the phases data wait, backward and tiny"), "{sentence}");
    }

    #[test]
    fn compare_takes_a_phase_over_the_steps_that_have_it() {
        let run = |ms: u64| {
            let spikes = (1..=80).map(|at| (at * 5, "evaluate", ms * MS)).collect();
            let phases = vec![("forward", 10 * MS), ("evaluate", 0)];
            run_of(&TrainingRun { steps: 400, phases, spikes, has_hardware: false, ..TrainingRun::default() })
        };
        let comparison = compare(&[&run(10)], &[&run(15)], &[50.0]);
        let evaluate = number(&comparison, "evaluate", "p50");
        assert!((evaluate.first_ns - 10e6).abs() < 1e5 && evaluate.verdict == Change::Slower, "{evaluate:?}");
    }

    #[test]
    fn compare_without_steps_says_so() {
        let comparison = compare(&[&run(20, 0)], &[&Run::default()], &[50.0]);
        assert_eq!(comparison.headline(), "B has no steps to compare");
    }
}
