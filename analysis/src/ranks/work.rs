//! Which ranks wait for which: what each rank did itself in the common steps, and how much work the run does.

use std::collections::BTreeMap;
use std::ops::Range;

use gnntop_wire::{NameId, Reported, StepId, phase};

use super::rank::{CommonStep, Presence, Rank, Ranks};
use crate::store::{StepRow, Throughput};

/// Steps that skew and waits are over, at most the newest of those that all ranks have.
pub const MAX_COMMON_STEPS: usize = 100_000;

/// One rank's share of one step, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankStep {
    /// The step's period.
    pub period_ns: u64,
    /// Waiting for other ranks in the all-reduce, reported by the program or inferred from the other ranks; `None` if
    /// neither is possible or it is no longer kept.
    pub wait_ns: Option<u64>,
    /// The all-reduce without the wait; `None` as above.
    pub reduce_ns: Option<u64>,
    /// Waiting for data from other stages of a pipeline.
    pub receive_ns: u64,
}

impl RankStep {
    /// The step without waiting for others: what makes a rank slow or fast.
    pub fn own_ns(&self) -> u64 {
        self.period_ns.saturating_sub(self.wait_ns.unwrap_or(0)).saturating_sub(self.receive_ns)
    }
}

impl RankStep {
    /// Adds a span in which the rank is with other ranks: a part of an all-reduce, or receiving. An all-reduce that has one
    /// part has both.
    fn add(&mut self, part: Option<Reported>, ns: u64) {
        let (wait_ns, reduce_ns) = match part {
            Some(Reported::Wait) => (ns, 0),
            Some(Reported::Reduce) => (0, ns),
            _ => return self.receive_ns = self.receive_ns.saturating_add(ns),
        };
        self.wait_ns = Some(self.wait_ns.unwrap_or(0).saturating_add(wait_ns));
        self.reduce_ns = Some(self.reduce_ns.unwrap_or(0).saturating_add(reduce_ns));
    }
}

/// One step on all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepWork {
    /// The step, as the program counts.
    pub step: StepId,
    /// Each rank's share, in the order of [`Ranks::all`]; `None` for a rank without steps.
    pub ranks: Vec<Option<RankStep>>,
}

impl StepWork {
    /// The rank that the others waited for, by its index in [`Ranks::all`]; `None` with fewer than two.
    pub fn slowest(&self) -> Option<usize> {
        let known = || self.ranks.iter().enumerate().filter_map(|(at, part)| Some((at, part.as_ref()?)));
        known().nth(1)?;
        // On a tie, the lowest.
        known().max_by_key(|(at, part)| (part.own_ns(), std::cmp::Reverse(*at))).map(|(at, _)| at)
    }

    /// How much longer the slowest rank worked than the fastest, in nanoseconds.
    pub fn skew_ns(&self) -> u64 {
        let own = || self.ranks.iter().flatten().map(RankStep::own_ns);
        own().max().unwrap_or(0) - own().min().unwrap_or(0)
    }

    /// The skew as a share (0 to 1) of the longest period; `None` if nothing took any time.
    pub fn skew_share(&self) -> Option<f64> {
        let longest_ns = self.ranks.iter().flatten().map(|part| part.period_ns).max().filter(|ns| *ns > 0)?;
        Some(self.skew_ns() as f64 / longest_ns as f64)
    }
}

/// One rank's share of all these steps.
#[derive(Clone, Debug, Default)]
pub struct RankWork {
    /// Its own time in each of the steps in nanoseconds, in ascending order.
    pub own_ns: Vec<u64>,
    /// All periods together, in nanoseconds.
    pub period_ns: u64,
    /// Total waits in all-reduces; `None` if waits are not separate.
    pub wait_ns: Option<u64>,
    /// Total all-reduces without the waits; `None` if waits are not separate.
    pub reduce_ns: Option<u64>,
    /// Steps in which it was the slowest.
    pub slowest_in: u64,
}

/// The newest steps that all ranks have in common.
#[derive(Clone, Debug, Default)]
pub struct RunWork {
    /// The steps, newest first.
    pub steps: Vec<StepWork>,
    /// Each rank's share of them, in the order of [`Ranks::all`].
    pub ranks: Vec<RankWork>,
    /// The skew of each step in nanoseconds, in ascending order.
    pub skew_ns: Vec<u64>,
}

/// A quantile (0 to 1) of sorted numbers: the one that this share of them does not exceed. `None` without numbers.
pub fn quantile(sorted: &[u64], quantile: f64) -> Option<u64> {
    let at = (sorted.len() as f64 * quantile).ceil() as usize;
    sorted.get(at.saturating_sub(1).min(sorted.len().saturating_sub(1))).copied()
}

impl RunWork {
    /// The rank that was slowest most often, by its index in [`Ranks::all`], and in what share of the steps.
    pub fn usually_slowest(&self) -> Option<(usize, f64)> {
        let (at, most) =
            self.ranks.iter().enumerate().max_by_key(|(at, rank)| (rank.slowest_in, std::cmp::Reverse(*at)))?;
        (most.slowest_in > 0).then(|| (at, most.slowest_in as f64 / self.steps.len().max(1) as f64))
    }
}

impl<'a> Ranks<'a> {
    /// The ranks that are still running, by their latest data, or all ranks if none is. A rank that is gone has no newest
    /// step in common with the others.
    pub fn running(&self) -> Self {
        let goes = |rank: &&Rank<'_>| matches!(self.presence(rank), Presence::Here | Presence::Ended);
        let going: Vec<Rank<'a>> = self.all().iter().filter(goes).copied().collect();
        if going.is_empty() { self.clone() } else { Self::new(going) }
    }

    /// Each rank's share of the newest common steps whose spans are still kept, at most `most` of them, and none of the first
    /// `skip` of a rank.
    pub fn work(&self, skip: u64, most: usize) -> RunWork {
        let full_from_ns = |rank: &Rank<'_>| Some(rank.store.training_track()?.lane()?.full_from_ns());
        let full_from_ns: Vec<u64> = self.all().iter().map(|rank| full_from_ns(rank).unwrap_or(0)).collect();
        let is_kept = |common: &CommonStep<'_>| {
            let rows = common.rows.iter().zip(&full_from_ns);
            rows.into_iter()
                .all(|(row, from_ns)| row.is_none_or(|row| row.period_start_ns() >= *from_ns && row.ordinal() >= skip))
        };
        let common: Vec<_> = self.common_steps().take_while(is_kept).take(most).collect();
        let mut steps: Vec<StepWork> =
            common.iter().map(|common| StepWork { step: common.step, ranks: Vec::new() }).collect();
        for (at, rank) in self.all().iter().enumerate() {
            let rows: Vec<Option<StepRow<'_>>> = common.iter().map(|common| common.rows[at]).collect();
            for (step, part) in steps.iter_mut().zip(rank_steps(rank, &rows)) {
                step.ranks.push(part);
            }
        }
        infer_waits(self.all(), &common, &mut steps);
        total_work(steps, self.all().len())
    }

    /// Work per second of the whole run. Ranks that hold stages of one copy of the model process the same batches, so a
    /// copy counts once. Steps are those of the slowest rank.
    pub fn throughput(&self, of: impl Fn(&Rank<'a>) -> Throughput) -> Throughput {
        let mut copies: BTreeMap<u32, Throughput> = BTreeMap::new();
        let mut steps_per_s: Option<f64> = None;
        for rank in self.all() {
            let rate = of(rank);
            steps_per_s = [steps_per_s, rate.steps_per_s].into_iter().flatten().reduce(f64::min);
            let copy = if rank.place.stages > 1 { rank.place.copy } else { rank.place.rank };
            let known = copies.entry(copy).or_default();
            let larger = |a: Option<f64>, b: Option<f64>| [a, b].into_iter().flatten().reduce(f64::max);
            *known = combined(known, &rate, larger);
        }
        let sum = |a: Option<f64>, b: Option<f64>| [a, b].into_iter().flatten().reduce(|a, b| a + b);
        let all = copies.values().fold(Throughput::default(), |all, copy| combined(&all, copy, sum));
        Throughput { steps_per_s, ..all }
    }

    /// The run's throughput divided by that of the same number of ranks each running alone, from 0 to about 1.
    /// `alone_per_s` is the graphs or seeds that one rank alone processes in a second.
    pub fn efficiency(&self, whole: &Throughput, alone_per_s: f64) -> Option<f64> {
        let items = whole.graphs_per_s.or(whole.seeds_per_s)?;
        let ranks = self.all().len() as f64;
        (alone_per_s > 0.0 && ranks > 0.0).then(|| items / (ranks * alone_per_s))
    }

    /// What one rank alone processes in a second, if the program reports it ([`Reported::OneRank`]).
    pub fn alone_per_s(&self) -> Option<f64> {
        let told = |rank: &Rank<'_>| rank.store.counter_of(Reported::OneRank)?.series.last()?.value();
        self.all().iter().find_map(told)
    }

    /// Hosts whose ranks use more threads than they have cores, as text such as `4 ranks on 2 cores: oversubscribed`; each once.
    pub fn oversubscribed(&self) -> Vec<String> {
        let mut hosts: BTreeMap<&str, String> = BTreeMap::new();
        for rank in self.all() {
            let place = rank.place;
            let threads = u64::from(place.threads.max(1)) * u64::from(place.host_ranks);
            let Some(info) = rank.store.session().info() else { continue };
            if place.host_cores > 0 && threads > u64::from(place.host_cores) {
                let each = if place.threads > 1 { format!(" of {} threads", place.threads) } else { String::new() };
                let (ranks, cores) = (place.host_ranks, place.host_cores);
                let cores = if cores == 1 { "1 core".to_owned() } else { format!("{cores} cores") };
                hosts.entry(&info.host).or_insert_with(|| format!("{ranks} ranks{each} on {cores}: oversubscribed"));
            }
        }
        let several = hosts.len() > 1;
        let words = hosts.into_iter().map(|(host, words)| if several { format!("{host}: {words}") } else { words });
        words.collect()
    }
}

fn combined(a: &Throughput, b: &Throughput, by: impl Fn(Option<f64>, Option<f64>) -> Option<f64>) -> Throughput {
    Throughput {
        steps_per_s: by(a.steps_per_s, b.steps_per_s),
        graphs_per_s: by(a.graphs_per_s, b.graphs_per_s),
        nodes_per_s: by(a.nodes_per_s, b.nodes_per_s),
        edges_per_s: by(a.edges_per_s, b.edges_per_s),
        seeds_per_s: by(a.seeds_per_s, b.seeds_per_s),
    }
}

/// One rank's share of these steps, newest first.
fn rank_steps(rank: &Rank<'_>, rows: &[Option<StepRow<'_>>]) -> Vec<Option<RankStep>> {
    let mut parts: Vec<Option<RankStep>> =
        rows.iter().map(|row| row.map(|row| RankStep { period_ns: row.period_ns(), ..RankStep::default() })).collect();
    let Some(lane) = rank.store.training_track().and_then(|track| track.lane()) else { return parts };
    let known = || rows.iter().flatten();
    let (Some(newest), Some(oldest)) = (known().next(), known().next_back()) else { return parts };
    let range: Range<u64> = oldest.period_start_ns()..newest.end_ns().saturating_add(1);
    let (mut at, mut around): (usize, Vec<NameId>) = (0, Vec::new());
    lane.each_box(range, |inner, depth| {
        around.truncate(depth);
        around.push(inner.name);
        let is_outer = depth == 1 && rank.store.phase_text(around[0]) == Some(phase::ALL_REDUCE);
        let ns = inner.end_ns - inner.start_ns;
        let what = rank.store.reported(inner.name);
        let is_receive = depth == 0 && rank.store.phase_text(inner.name) == Some(phase::RECEIVE);
        let is_of_all_reduce = is_outer && matches!(what, Some(Reported::Wait | Reported::Reduce));
        if !is_receive && !is_of_all_reduce {
            return;
        }
        // Both go backwards in time.
        while rows.get(at).is_some_and(|row| row.is_none_or(|row| row.period_start_ns() >= inner.end_ns)) {
            at += 1;
        }
        if let Some(Some(part)) = parts.get_mut(at) {
            part.add(what, ns);
        }
    });
    parts
}

/// If no rank reports waiting separately, as with gloo under PyTorch: the last rank to arrive waits for no one, so the
/// shortest time of any rank in the all-reduce is its real duration, and the rest is waiting.
fn infer_waits(ranks: &[Rank<'_>], common: &[CommonStep<'_>], steps: &mut [StepWork]) {
    let is_told = |step: &StepWork| step.ranks.iter().flatten().any(|part| part.wait_ns.is_some());
    if ranks.len() < 2 || ranks.iter().any(|rank| rank.place.stages > 1) || steps.iter().any(is_told) {
        return;
    }
    let slots: Option<Vec<_>> = ranks.iter().map(|rank| Some(rank.store.phase(phase::ALL_REDUCE)?.slot)).collect();
    let Some(slots) = slots else { return };
    for (step, common) in steps.iter_mut().zip(common) {
        let times = common.rows.iter().zip(&slots).map(|(row, slot)| Some(row.as_ref()?.phase_ns(*slot)));
        let Some(times) = times.collect::<Option<Vec<u64>>>() else { continue };
        let reduce_ns = times.iter().copied().min().unwrap_or(0);
        for (part, ns) in step.ranks.iter_mut().flatten().zip(times) {
            (part.wait_ns, part.reduce_ns) = (Some(ns - reduce_ns), Some(reduce_ns));
        }
    }
}

fn total_work(steps: Vec<StepWork>, ranks: usize) -> RunWork {
    let mut work = RunWork { steps: Vec::new(), ranks: vec![RankWork::default(); ranks], skew_ns: Vec::new() };
    for step in &steps {
        if let Some(slowest) = step.slowest() {
            work.ranks[slowest].slowest_in += 1;
            work.skew_ns.push(step.skew_ns());
        }
        for (rank, part) in work.ranks.iter_mut().zip(&step.ranks) {
            let Some(part) = part else { continue };
            let added = |sum: Option<u64>, ns: Option<u64>| ns.map(|ns| sum.unwrap_or(0).saturating_add(ns)).or(sum);
            rank.own_ns.push(part.own_ns());
            rank.period_ns = rank.period_ns.saturating_add(part.period_ns);
            (rank.wait_ns, rank.reduce_ns) = (added(rank.wait_ns, part.wait_ns), added(rank.reduce_ns, part.reduce_ns));
        }
    }
    work.ranks.iter_mut().for_each(|rank| rank.own_ns.sort_unstable());
    work.skew_ns.sort_unstable();
    work.steps = steps;
    work
}

#[cfg(test)]
mod tests {
    use super::super::Run;
    use super::*;
    use gnntop_fixtures::pipeline::PipelineRun;
    use gnntop_fixtures::{MS, ParallelRun, each_item};

    fn run_of(parallel: &ParallelRun) -> Run {
        let mut run = Run::default();
        parallel.sessions().iter().for_each(|stream| each_item(stream, |item| run.apply(item)));
        run
    }

    /// Three ranks; the last one's backward takes 10 ms longer in every second step.
    fn uneven() -> ParallelRun {
        let slow = (1..=60).filter(|step| step % 2 == 0).map(|step| (2, step..step + 1, "backward", 10 * MS));
        ParallelRun { ranks: 3, slow: slow.collect(), ..ParallelRun::default() }
    }

    #[test]
    fn the_slowest_rank_is_the_one_that_does_not_wait() {
        let run = run_of(&uneven());
        let work = run.ranks().work(0, 100);
        assert_eq!(work.steps.len(), 60);
        // The first step has no previous step, so no gap.
        let (even, odd) = (&work.steps[0], &work.steps[1]);
        assert_eq!((even.step.0, even.slowest(), even.skew_ns()), (60, Some(2), 10 * MS));
        assert_eq!(even.ranks[0].unwrap().period_ns, 50 * MS);
        assert_eq!(even.ranks[0].unwrap().wait_ns, Some(10 * MS));
        assert_eq!(even.ranks[2].unwrap().wait_ns, Some(0));
        assert!((even.skew_share().unwrap() - 0.2).abs() < 1e-9);
        assert_eq!((odd.step.0, odd.skew_ns(), odd.slowest()), (59, 0, Some(0)));
        assert_eq!(work.usually_slowest(), Some((0, 0.5)));
        assert_eq!((work.ranks[1].wait_ns, work.ranks[1].reduce_ns), (Some(300 * MS), Some(240 * MS)));
        assert_eq!((quantile(&work.skew_ns, 0.5), quantile(&work.skew_ns, 0.9)), (Some(0), Some(10 * MS)));
        assert_eq!((quantile(&work.ranks[2].own_ns, 1.0), quantile(&[], 0.5)), (Some(50 * MS), None));
        assert_eq!(run.ranks().work(0, 4).steps.len(), 4);
    }

    #[test]
    fn waits_without_nested_spans_are_unknown() {
        // A single rank has no all-reduce.
        let run = run_of(&ParallelRun { ranks: 1, ..ParallelRun::default() });
        let work = run.ranks().work(0, 10);
        let alone = RankStep { period_ns: 36 * MS, wait_ns: None, reduce_ns: None, receive_ns: 0 };
        assert_eq!(work.steps[0].ranks[0], Some(alone));
        assert_eq!((work.steps[0].slowest(), work.usually_slowest(), work.ranks[0].wait_ns), (None, None, None));
    }

    #[test]
    fn waits_are_inferred_from_last_rank() {
        use gnntop_fixtures::uneven::{RankStepPlan, UnevenRun};
        let slow: fn(u32, u64) -> RankStepPlan =
            |rank, _| if rank == 2 { RankStepPlan::with_phase("backward", 30 * MS) } else { RankStepPlan::usual() };
        let run = crate::ranks::fixture::run(
            &UnevenRun { work: slow, reports_waits: false, ..UnevenRun::default() }.sessions(),
        );
        let work = run.ranks().work(0, 50);
        assert_eq!(work.usually_slowest(), Some((2, 1.0)));
        assert_eq!(work.ranks[2].wait_ns, Some(0));
        assert!(work.ranks[0].wait_ns > work.ranks[2].reduce_ns, "{:?}", work.ranks[0]);
        assert_eq!(work.ranks[0].reduce_ns, work.ranks[2].reduce_ns);
    }

    #[test]
    fn stage_waits_are_not_own_time() {
        let unequal = PipelineRun { blocks: vec![6, 2, 2, 2], ..PipelineRun::default() };
        let run = crate::ranks::fixture::run(&unequal.sessions());
        let work = run.ranks().work(0, 10);
        let parts: Vec<RankStep> = work.steps[0].ranks.iter().map(|part| part.unwrap()).collect();
        // Five micro-batches of three milliseconds a block, and the time between the last of them and the end of the step.
        let period_ns = parts[0].period_ns;
        assert!(parts.iter().all(|part| part.period_ns == period_ns && part.receive_ns > 0), "{parts:?}");
        assert!(parts[0].own_ns() >= 6 * 15 * MS && parts[0].receive_ns < parts[1].receive_ns, "{parts:?}");
        assert_eq!(work.usually_slowest(), Some((0, 1.0)));
    }

    #[test]
    fn dead_rank_does_not_limit_common_steps() {
        let parallel = ParallelRun { ranks: 3, steps: 200, dies: Some((1, 20)), ..ParallelRun::default() };
        let run = run_of(&parallel);
        assert_eq!(run.ranks().work(0, 5).steps[0].step.0, 20);
        let going = run.ranks().running();
        assert_eq!(going.all().iter().map(|rank| rank.place.rank).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(going.work(0, 5).steps[0].step.0, 200);
    }

    #[test]
    fn throughput_is_sum_of_copies() {
        let run = run_of(&ParallelRun { ranks: 4, ..ParallelRun::default() });
        let ranks = run.ranks();
        let whole = ranks.throughput(|rank| rank.store.statistics().throughput());
        let one = ranks.all()[0].store.statistics().throughput();
        assert!((whole.seeds_per_s.unwrap() / one.seeds_per_s.unwrap() - 4.0).abs() < 1e-9);
        assert_eq!((whole.steps_per_s, whole.graphs_per_s), (one.steps_per_s, None));
        let efficiency = ranks.efficiency(&whole, one.seeds_per_s.unwrap() * 1.25).unwrap();
        assert!((efficiency - 0.8).abs() < 1e-9);
        assert_eq!((ranks.alone_per_s(), ranks.efficiency(&Throughput::default(), 1.0)), (None, None));
    }

    #[test]
    fn oversubscribed_names_machines() {
        let words = |ranks, host_cores| {
            run_of(&ParallelRun { ranks, host_cores, steps: 2, ..ParallelRun::default() }).ranks().oversubscribed()
        };
        assert_eq!(words(4, 2), ["4 ranks on 2 cores: oversubscribed"]);
        assert_eq!(words(2, 1), ["2 ranks on 1 core: oversubscribed"]);
        assert!(words(2, 2).is_empty() && words(2, 0).is_empty(), "enough, or not known");
    }
}
