//! What several recordings say about scaling, and what they cannot say: a speed-up that is more than its stages or ranks
//! can give, one that falls short because a stage is slow, and factors that were changed together.

use std::collections::BTreeMap;

use gnntop_wire::TrackRole;

use super::finding::{Confidence, Finding, Kind, Severity};
use super::robust::median;
use crate::figures::{duration, joined};
use crate::ranks::{Rank, Run, facts, schedule};
use crate::store::{StepRow, Store};

/// What counts as more than the ideal, and as less by a good part of it.
const ABOVE: f64 = 1.03;
const BELOW: f64 = 0.8;
/// Newest steps that are looked at.
const NEWEST: usize = 4096;
/// Batches that differ by less than this are of the same size.
const SAME_BATCH: f64 = 0.05;

/// How a run was done, and how fast it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// What the recording is called.
    pub name: String,
    /// Stages of the pipeline, 1 without one.
    pub stages: usize,
    /// Copies of the model.
    pub copies: usize,
    /// Micro-batches of a step, where that is told.
    pub micro_batches: Option<usize>,
    /// The median step in nanoseconds.
    pub step_ns: f64,
    /// Seeds or graphs of a step over all copies, where they are told.
    pub work: Option<f64>,
    /// What else could be set, as far as it is known, in words.
    factors: BTreeMap<&'static str, String>,
}

impl Configuration {
    /// Of a run; `None` without steps.
    pub fn of(name: &str, run: &Run) -> Option<Self> {
        let store = run.store();
        let rows: Vec<StepRow<'_>> = store.steps().all().rev().take(NEWEST).collect();
        let step_ns = median(&mut rows.iter().map(|row| row.period_ns() as f64).collect::<Vec<f64>>())?;
        let place = run.member().place();
        let (stages, copies) =
            place.map_or((1, 1), |place| (place.stages.max(1) as usize, place.copies.max(1) as usize));
        let ranks = run.ranks();
        let micro_batches = ranks.all().iter().find_map(|rank| facts::count(rank, facts::MICRO_BATCHES));
        let batch = |row: &StepRow<'_>| row.batch().seeds.or(row.batch().graphs).map(|work| work as f64);
        let batch = median(&mut rows.iter().filter_map(batch).collect::<Vec<f64>>());
        let mut found = Self {
            name: name.to_owned(),
            stages,
            copies,
            micro_batches,
            step_ns,
            work: batch.map(|batch| batch * copies as f64),
            factors: BTreeMap::new(),
        };
        found.tell(store, ranks.all().first(), batch);
        Some(found)
    }

    /// Notes what else could be set.
    fn tell(&mut self, store: &Store, first: Option<&Rank<'_>>, batch: Option<f64>) {
        let shape = match (self.stages, self.copies) {
            (1, 1) => "1 rank".to_owned(),
            (1, copies) => format!("{copies} ranks"),
            (stages, 1) => format!("{stages} stages"),
            (stages, copies) => format!("{copies} copies of {stages} stages"),
        };
        let workers = store.tracks().iter().filter(|track| track.role == TrackRole::Loader).count();
        self.factors.insert("ranks", shape);
        self.factors.insert("loader threads", workers.to_string());
        if let Some(count) = self.micro_batches {
            self.factors.insert("micro-batches", count.to_string());
        }
        if let Some(batch) = batch.filter(|batch| *batch > 0.0) {
            // Sizes that differ a little, as those of sampled batches do, are the same setting.
            let rounded = (batch.ln() / (1.0 + SAME_BATCH).ln()).round();
            let batch = if batch.fract() == 0.0 { batch } else { (1.0 + SAME_BATCH).powf(rounded).round() };
            self.factors.insert("batch", batch.to_string());
        }
        if let Some(place) = first.map(|rank| rank.place) {
            if place.threads > 0 {
                self.factors.insert("threads a rank", place.threads.to_string());
            }
            if !place.device.is_empty() {
                let kind = place.device.split_whitespace().next().unwrap_or_default();
                self.factors.insert("device", kind.to_owned());
            }
        }
        if let Some(schedule) = first.and_then(facts::schedule) {
            self.factors.insert("schedule", schedule.title().to_owned());
        }
    }

    /// How much faster than one rank this can be; one stage with micro-batches is no slower than one without.
    fn ideal(&self) -> f64 {
        let of_stages = match self.micro_batches {
            Some(count) => schedule::ideal_speed_up(self.stages, count),
            None => self.stages as f64,
        };
        self.copies as f64 * of_stages
    }

    fn shape(&self) -> String {
        let stages = if self.stages > 1 { format!("{} stages", self.stages) } else { String::new() };
        let copies = if self.copies > 1 { format!("{} copies", self.copies) } else { String::new() };
        let with = |count: usize| if self.stages > 1 { format!(" with {count} micro-batches") } else { String::new() };
        let both = [copies, stages].into_iter().filter(|part| !part.is_empty()).collect::<Vec<String>>().join(" of ");
        let both = if both.is_empty() { "one rank".to_owned() } else { both };
        format!("{both}{}", self.micro_batches.map(with).unwrap_or_default())
    }
}

/// What two runs say together: the second's speed-up over the first, and what it is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    /// How many times as much work the second does in the same time.
    pub speed_up: f64,
    /// How many times it could at most, by its stages, micro-batches and copies.
    pub ideal: f64,
    /// What is to be said about it.
    pub findings: Vec<Finding>,
}

/// The second run's scaling over the first; `None` where neither has several ranks, or it cannot be told which work
/// they did.
pub fn scaling(first: &Configuration, second: &Configuration) -> Option<Scaling> {
    if first.stages * first.copies == 1 && second.stages * second.copies == 1 {
        return None;
    }
    let times = first.step_ns / second.step_ns.max(1.0);
    let speed_up = match (first.work, second.work) {
        (Some(before), Some(now)) if before > 0.0 => times * now / before,
        _ if first.copies == second.copies => times,
        _ => return None,
    };
    let ideal = second.ideal() / first.ideal().max(f64::MIN_POSITIVE);
    let mut findings: Vec<Finding> = above(second, first, speed_up, ideal).into_iter().collect();
    findings.extend(slow_stage(second, first, speed_up, ideal));
    findings.extend(confounded(&[first.clone(), second.clone()]));
    Some(Scaling { speed_up, ideal, findings })
}

fn above(now: &Configuration, before: &Configuration, speed_up: f64, ideal: f64) -> Option<Finding> {
    if ideal <= 1.0 || speed_up <= ABOVE * ideal {
        return None;
    }
    let summary = format!(
        "a speed-up of {speed_up:.2} is more than the {ideal:.2} that {} can give: something else changed as well",
        now.shape()
    );
    let finding = Finding::of_run(Kind::AboveIdeal, Confidence::High, None, summary).because(format!(
        "a step takes {} in {} and {} in {}",
        duration(before.step_ns as u64),
        before.name,
        duration(now.step_ns as u64),
        now.name
    ));
    let has_control = before.micro_batches.is_some() && before.micro_batches == now.micro_batches;
    Some(if now.stages > 1 && !has_control {
        finding
            .because("smaller batches may run faster each, whatever the number of stages")
            .advise("the control is missing: measure one rank with the same micro-batches, and compare with that")
    } else {
        finding.advise("look for what else differs: batch size, threads, caches that now hold the data")
    })
}

/// What timing alone says about the slowest stage: of a pipeline of one slow stage and even others,
/// `T = W / M + (M - 1) c` by the recurrence, where W is the time of all work in turn and c what the slowest stage takes
/// for a micro-batch.
fn slow_stage(now: &Configuration, before: &Configuration, speed_up: f64, ideal: f64) -> Option<Finding> {
    let micro_batches = now.micro_batches.filter(|count| *count > 1)? as f64;
    if now.stages < 2 || before.stages > 1 || speed_up >= BELOW * ideal {
        return None;
    }
    let work_ns = now.step_ns * speed_up / now.copies as f64;
    let slowest_ns = (now.step_ns - work_ns / micro_batches) / (micro_batches - 1.0);
    let times = slowest_ns * now.stages as f64 * micro_batches / work_ns.max(1.0);
    if times < 1.25 {
        return None;
    }
    let even_ns = work_ns * (micro_batches + now.stages as f64 - 1.0) / (micro_batches * now.stages as f64);
    let share = (1.0 - even_ns / now.step_ns.max(1.0)).clamp(0.0, 1.0);
    let summary = format!(
        "the slowest stage takes about {times:.1} x its even share: the speed-up is {speed_up:.2} where {} can give {ideal:.2}",
        now.shape()
    );
    Some(
        Finding::of_run(Kind::Imbalance, Confidence::Low, Some(share), summary)
            .because(format!(
                "by the recurrence: a step takes {}, even stages would take {}",
                duration(now.step_ns as u64),
                duration(even_ns as u64)
            ))
            .because("from the times of whole steps alone: a fixed cost of each micro-batch would look the same")
            .advise("see how many blocks each stage really has, and what each takes for a micro-batch"),
    )
}

/// Factors that were changed together in a set of runs, so that nothing follows about either of them.
pub fn confounded(runs: &[Configuration]) -> Option<Finding> {
    let differing = |a: &Configuration, b: &Configuration| -> Vec<&'static str> {
        let known = a.factors.iter().filter_map(|(name, value)| Some((*name, value, b.factors.get(name)?)));
        known.filter(|(_, value, other)| value != other).map(|(name, ..)| name).collect()
    };
    // Of each run: what differs from the run that is most like it in everything but the ranks.
    let mut together: Vec<(String, Vec<&'static str>)> = Vec::new();
    for run in runs {
        let others = runs.iter().filter(|other| other.factors.get("ranks") != run.factors.get("ranks"));
        let nearest = others.map(|other| differing(run, other)).min_by_key(Vec::len);
        if let Some(factors) = nearest.filter(|factors| factors.len() > 1) {
            together.push((run.name.clone(), factors));
        }
    }
    let mut factors: Vec<&'static str> = together.iter().flat_map(|(_, factors)| factors.clone()).collect();
    factors.sort_unstable();
    factors.dedup();
    if factors.is_empty() {
        return None;
    }
    let summary = format!("{} were changed at once: nothing follows about any one of them", joined(&factors));
    let finding = Finding::of_run(Kind::Confounded, Confidence::High, None, summary);
    let mut finding = Finding { severity: Severity::Minor, count: together.len() as u64, ..finding };
    for run in runs.iter().take(8) {
        let values: Vec<String> =
            factors.iter().filter_map(|name| Some(format!("{name} {}", run.factors.get(name)?))).collect();
        finding = finding.because(format!("{}: {}", run.name, values.join(", ")));
    }
    Some(finding.advise("add a run in which only one of them differs"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::fixture::run;
    use gnntop_fixtures::pipeline::PipelineRun;
    use gnntop_fixtures::uneven::{OwnStep, UnevenRun};
    use gnntop_fixtures::{MS, TrainingRun};

    fn configuration(name: &str, stages: usize, micro_batches: Option<usize>, step_s: f64) -> Configuration {
        let run = run(&[TrainingRun::default().bytes()]);
        let mut found = Configuration::of(name, &run).unwrap();
        (found.stages, found.micro_batches, found.step_ns, found.work) = (stages, micro_batches, step_s * 1e9, None);
        found.factors.insert("ranks", stages.to_string());
        found
    }

    #[test]
    fn more_than_the_ideal_says_that_the_control_is_missing() {
        let found = scaling(&configuration("seq", 1, None, 37.44), &configuration("two", 2, Some(5), 19.02)).unwrap();
        assert!((found.speed_up - 1.968).abs() < 0.001 && (found.ideal - 5.0 / 3.0).abs() < 1e-9);
        let above = found.findings.iter().find(|finding| finding.kind == Kind::AboveIdeal).unwrap();
        let said = "a speed-up of 1.97 is more than the 1.67 that 2 stages with 5 micro-batches can give";
        assert!(above.summary.starts_with(said), "{}", above.summary);
        assert!(above.advice[0].starts_with("the control is missing"), "{above:#?}");
        let control =
            scaling(&configuration("seq", 1, Some(5), 31.0), &configuration("two", 2, Some(5), 19.02)).unwrap();
        assert!(control.findings.iter().all(|finding| finding.kind != Kind::AboveIdeal), "{control:#?}");
    }

    #[test]
    fn timing_alone_tells_a_slow_stage_where_the_work_is_conserved() {
        // 6/2/2/2 blocks of 1 s a batch: W = 12 s, a micro-batch of five takes stage 0 1.2 s and a step 7.2 s.
        let found = scaling(&configuration("seq", 1, None, 12.0), &configuration("four", 4, Some(5), 7.2)).unwrap();
        let slow = found.findings.iter().find(|finding| finding.kind == Kind::Imbalance).unwrap();
        assert!(slow.summary.starts_with("the slowest stage takes about 2.0 x its even share"), "{}", slow.summary);
        assert!((slow.share.unwrap() - (1.0 - 4.8 / 7.2)).abs() < 1e-9);
        let even = scaling(&configuration("seq", 1, None, 12.0), &configuration("four", 4, Some(5), 4.8)).unwrap();
        assert!(even.findings.is_empty(), "{even:#?}");
    }

    #[test]
    fn two_factors_changed_at_once_are_named_and_one_alone_is_not() {
        let workers = |n: usize, mut of: Configuration| {
            of.factors.insert("loader threads", n.to_string());
            of
        };
        let one = |n| workers(n, configuration("one", 1, None, 4.0));
        let two = |n| workers(n, configuration("two", 2, None, 2.0));
        let finding = confounded(&[one(8), two(1)]).unwrap();
        assert!(finding.summary.starts_with("loader threads and ranks were changed at once"), "{}", finding.summary);
        assert_eq!(finding.evidence[1], "two: loader threads 1, ranks 2");
        assert_eq!(confounded(&[one(8), two(8)]), None);
        assert_eq!(confounded(&[one(8), two(1), two(8), one(1)]), None, "the missing runs are there");
    }

    #[test]
    fn work_counts_over_all_copies_and_two_single_ranks_do_not_scale() {
        let of = |name, planned: &UnevenRun| Configuration::of(name, &run(&planned.sessions())).unwrap();
        let one = of("one", &UnevenRun { ranks: 1, ..UnevenRun::default() });
        let four = of("four", &UnevenRun::default());
        let found = scaling(&one, &four).unwrap();
        assert!((3.9..4.1).contains(&found.speed_up) && found.ideal == 4.0, "{found:#?}");
        assert_eq!(scaling(&one, &one), None);
        let slow: fn(u32, u64) -> OwnStep = |_, _| OwnStep::but("forward", 50 * MS);
        let slower = of("slower", &UnevenRun { own: slow, ..UnevenRun::default() });
        assert!(scaling(&one, &slower).unwrap().speed_up < 2.5);
    }

    #[test]
    fn a_pipeline_tells_its_stages_and_micro_batches() {
        let found = Configuration::of("pipe", &run(&PipelineRun::default().sessions())).unwrap();
        assert_eq!((found.stages, found.copies, found.micro_batches), (4, 1, Some(5)));
        assert_eq!(found.factors.get("schedule").map(String::as_str), Some("GPipe"));
    }
}
