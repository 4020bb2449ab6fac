//! When each stage of a pipeline works on which micro-batch: the two schedules, the recurrence for a step's duration with
//! given stage times, and the split of blocks that makes stages even. Only arithmetic, no measurements.
//!
//! GPipe (Huang et al., 2019) does all forward passes, then all backward ones. 1F1B (Narayanan et al., 2019, without stale
//! weights) lets stage s begin S - s forward passes, then alternates, so that it holds at most S - s micro-batches.

/// The order in which stages take micro-batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// All forward passes, then all backward ones.
    GPipe,
    /// One forward, one backward.
    OneForwardOneBackward,
}

/// The direction of a micro-batch through a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the first stage to the last.
    Forward,
    /// From the last stage to the first.
    Backward,
}

/// A stage's unit of work: one micro-batch in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pass {
    /// The direction.
    pub direction: Direction,
    /// The micro-batch, from 0.
    pub micro_batch: u32,
}

/// The cost of one micro-batch to a stage, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StageCost {
    /// Forward.
    pub forward_ns: f64,
    /// Backward, including recomputation.
    pub backward_ns: f64,
}

impl StageCost {
    /// Both directions.
    pub fn both_ns(self) -> f64 {
        self.forward_ns + self.backward_ns
    }

    fn in_direction(self, direction: Direction) -> f64 {
        match direction {
            Direction::Forward => self.forward_ns,
            Direction::Backward => self.backward_ns,
        }
    }

    fn scaled(self, by: f64) -> Self {
        Self { forward_ns: self.forward_ns * by, backward_ns: self.backward_ns * by }
    }

    fn plus(self, other: Self) -> Self {
        Self { forward_ns: self.forward_ns + other.forward_ns, backward_ns: self.backward_ns + other.backward_ns }
    }
}

impl Schedule {
    /// The schedule that a program names in a mark, such as `1f1b`; `None` for an unknown name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "gpipe" => Some(Self::GPipe),
            "1f1b" => Some(Self::OneForwardOneBackward),
            _ => None,
        }
    }

    /// Its name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::GPipe => "GPipe",
            Self::OneForwardOneBackward => "1F1B",
        }
    }

    /// Most micro-batches that a stage (from 0) of `stages` holds: between the start of their forward and the end of their
    /// backward pass.
    pub fn live_most(self, stages: usize, stage: usize, micro_batches: usize) -> usize {
        match self {
            Self::GPipe => micro_batches,
            Self::OneForwardOneBackward => micro_batches.min(stages.saturating_sub(stage).max(1)),
        }
    }

    /// What a stage (from 0) of `stages` does, in order.
    pub fn order(self, stages: usize, stage: usize, micro_batches: usize) -> Vec<Pass> {
        let ahead = self.live_most(stages, stage, micro_batches);
        let work = |direction| move |at: usize| Pass { direction, micro_batch: at as u32 };
        let mut order: Vec<Pass> = (0..ahead).map(work(Direction::Forward)).collect();
        for at in 0..micro_batches {
            order.push(work(Direction::Backward)(at));
            order.extend((ahead + at < micro_batches).then(|| work(Direction::Forward)(ahead + at)));
        }
        order
    }
}

/// One piece of work with its times, from the start of the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planned {
    /// The stage, from 0.
    pub stage: usize,
    /// The pass.
    pub work: Pass,
    /// When it begins.
    pub start_ns: f64,
    /// When it ends.
    pub end_ns: f64,
}

/// A step according to the recurrence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// All work, stage by stage in its order.
    pub work: Vec<Planned>,
    /// From the first start to the last end.
    pub makespan_ns: f64,
    stages: usize,
}

impl Timeline {
    /// A step of stages with these costs. Each piece of work begins when its stage is free and its micro-batch has arrived:
    /// `end[s][m] = max(end[s][m-1], end[s-1][m]) + c_s`, and backward from the last stage to the first. Sending takes no time.
    pub fn new(schedule: Schedule, costs: &[StageCost], micro_batches: usize) -> Self {
        let stages = costs.len();
        let orders: Vec<Vec<Pass>> = (0..stages).map(|stage| schedule.order(stages, stage, micro_batches)).collect();
        let mut ends = Ends::new(stages, micro_batches);
        let mut done: Vec<Vec<Planned>> = vec![Vec::new(); stages];
        let mut free_ns = vec![0.0f64; stages];
        let mut advances = true;
        while advances {
            advances = false;
            for stage in 0..stages {
                while let Some(work) = orders[stage].get(done[stage].len())
                    && let Some(ready_ns) = ends.ready_ns(stage, *work)
                {
                    let start_ns = free_ns[stage].max(ready_ns);
                    let end_ns = start_ns + costs[stage].in_direction(work.direction);
                    free_ns[stage] = end_ns;
                    ends.set(stage, *work, end_ns);
                    done[stage].push(Planned { stage, work: *work, start_ns, end_ns });
                    advances = true;
                }
            }
        }
        let makespan_ns = free_ns.into_iter().fold(0.0, f64::max);
        Self { work: done.into_iter().flatten().collect(), makespan_ns, stages }
    }

    /// The share (0 to 1) of all stages' time spent idle; 0 without stages.
    pub fn bubble(&self) -> f64 {
        let busy_ns: f64 = self.work.iter().map(|work| work.end_ns - work.start_ns).sum();
        let all_ns = self.makespan_ns * self.stages as f64;
        if all_ns > 0.0 { (1.0 - busy_ns / all_ns).max(0.0) } else { 0.0 }
    }
}

/// When each micro-batch left each stage, in each direction.
struct Ends {
    ends_ns: Vec<Option<f64>>,
    stages: usize,
    micro_batches: usize,
}

impl Ends {
    fn new(stages: usize, micro_batches: usize) -> Self {
        Self { ends_ns: vec![None; 2 * stages * micro_batches], stages, micro_batches }
    }

    fn index(&self, stage: usize, work: Pass) -> usize {
        let way = match work.direction {
            Direction::Forward => 0,
            Direction::Backward => self.stages,
        };
        (way + stage) * self.micro_batches + work.micro_batch as usize
    }

    fn set(&mut self, stage: usize, work: Pass, end_ns: f64) {
        let at = self.index(stage, work);
        self.ends_ns[at] = Some(end_ns);
    }

    /// When the input of this work is ready; `None` if not known yet.
    fn ready_ns(&self, stage: usize, work: Pass) -> Option<f64> {
        match needs(self.stages, stage, work) {
            Some((before, needed)) => self.ends_ns[self.index(before, needed)],
            None => Some(0.0),
        }
    }
}

/// The pass, and its stage, that must be done before this work can begin: the neighbour's, or at the last stage the forward
/// pass of the same micro-batch. `None` if only the batch is needed.
pub fn needs(stages: usize, stage: usize, work: Pass) -> Option<(usize, Pass)> {
    match work.direction {
        Direction::Forward => Some((stage.checked_sub(1)?, work)),
        Direction::Backward if stage + 1 < stages => Some((stage + 1, work)),
        Direction::Backward => Some((stage, Pass { direction: Direction::Forward, ..work })),
    }
}

/// The idle share of S even stages and M micro-batches, (S - 1) / (M + S - 1) in both schedules; 0 without any.
pub fn formula_bubble(stages: usize, micro_batches: usize) -> f64 {
    let slots = (micro_batches + stages).saturating_sub(1);
    if slots == 0 { 0.0 } else { stages.saturating_sub(1) as f64 / slots as f64 }
}

/// Largest speed-up of S even stages over one stage with the same M micro-batches, S M / (M + S - 1).
pub fn ideal_speed_up(stages: usize, micro_batches: usize) -> f64 {
    stages as f64 * (1.0 - formula_bubble(stages, micro_batches))
}

/// Another distribution of blocks over the same stages.
#[derive(Clone, Debug, PartialEq)]
pub struct Balanced {
    /// Blocks of each stage; `None` if their number is unknown and the work is divided evenly.
    pub blocks: Option<Vec<usize>>,
    /// The resulting cost of each stage.
    pub costs: Vec<StageCost>,
}

/// Most blocks that are distributed one by one; beyond this, work is divided evenly.
const MAX_BLOCKS: usize = 4096;

/// The split of the stages' blocks, in order, whose slowest stage is fastest. `blocks` has each stage's number of blocks,
/// if known: a block then costs its stage's time divided by that. Without it, the result of an exactly even split, which no
/// split of blocks beats.
pub fn balanced(costs: &[StageCost], blocks: Option<&[usize]>) -> Balanced {
    let known = blocks.filter(|counts| {
        let sum = counts.iter().try_fold(0usize, |sum, count| sum.checked_add(*count));
        counts.len() == costs.len() && !counts.contains(&0) && sum.is_some_and(|sum| sum <= MAX_BLOCKS)
    });
    let Some(counts) = known else {
        let sum = costs.iter().fold(StageCost::default(), |sum, cost| sum.plus(*cost));
        let even = sum.scaled(1.0 / costs.len().max(1) as f64);
        return Balanced { blocks: None, costs: vec![even; costs.len()] };
    };
    let each = |(cost, count): (&StageCost, &usize)| vec![cost.scaled(1.0 / *count as f64); *count];
    let single: Vec<StageCost> = costs.iter().zip(counts).flat_map(each).collect();
    let split = split(&single.iter().map(|cost| cost.both_ns()).collect::<Vec<f64>>(), costs.len());
    let mut rest = single.as_slice();
    let costs = split.iter().map(|count| {
        let (mine, others) = rest.split_at(*count);
        rest = others;
        mine.iter().fold(StageCost::default(), |sum, cost| sum.plus(*cost))
    });
    Balanced { costs: costs.collect(), blocks: Some(split) }
}

/// How many consecutive blocks each of `stages` stages gets, so that the largest sum is as small as possible and the sums
/// are close to each other.
fn split(costs: &[f64], stages: usize) -> Vec<usize> {
    let sum: f64 = costs.iter().sum();
    let largest = costs.iter().copied().fold(0.0, f64::max);
    let (mut low, mut high) = (largest.max(sum / stages.max(1) as f64), sum);
    // 60 halvings leave less than a nanosecond of a century; rounding must not make a split impossible.
    for _ in 0..60 {
        let cap = low + (high - low) / 2.0;
        if filled(costs, stages, cap, false).is_some() { high = cap } else { low = cap }
    }
    let cap = high * (1.0 + 1e-9);
    let even = filled(costs, stages, cap, true).or_else(|| filled(costs, stages, cap, false));
    even.unwrap_or_else(|| vec![0; stages])
}

/// Fills stage after stage up to `cap`, or with `evenly` up to about the mean of what is left; `None` if blocks remain.
fn filled(costs: &[f64], stages: usize, cap: f64, evenly: bool) -> Option<Vec<usize>> {
    let mut counts = vec![0; stages];
    let mut at = 0;
    let mut left_ns: f64 = costs.iter().sum();
    for (stage, count) in counts.iter_mut().enumerate() {
        let stages_left = stages - stage;
        let mean_ns = left_ns / stages_left as f64;
        let mut sum_ns = 0.0;
        while at < costs.len() && costs.len() - at > stages_left - 1 && sum_ns + costs[at] <= cap {
            if evenly && stages_left > 1 && *count > 0 && sum_ns + costs[at] / 2.0 > mean_ns {
                break;
            }
            sum_ns += costs[at];
            *count += 1;
            at += 1;
        }
        left_ns -= sum_ns;
    }
    (at == costs.len()).then_some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOTH: [Schedule; 2] = [Schedule::GPipe, Schedule::OneForwardOneBackward];

    fn cost(forward_ns: f64, backward_ns: f64) -> StageCost {
        StageCost { forward_ns, backward_ns }
    }

    fn is_near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
    }

    /// Most micro-batches that a stage holds at once in a plan.
    fn live(plan: &Timeline, stage: usize) -> usize {
        let (mut live, mut most) = (0usize, 0);
        for work in plan.work.iter().filter(|work| work.stage == stage) {
            match work.work.direction {
                Direction::Forward => live += 1,
                Direction::Backward => live -= 1,
            }
            most = most.max(live);
        }
        assert_eq!(live, 0);
        most
    }

    #[test]
    fn bubbles_and_ideals_match_published_values() {
        let rounded = |share: f64| (share * 1000.0).round() / 10.0;
        let found = [(2, 5), (2, 10), (4, 5), (4, 10)].map(|(s, m)| rounded(formula_bubble(s, m)));
        assert_eq!(found, [16.7, 9.1, 37.5, 23.1]);
        let ideal = [(2, 5), (2, 10), (4, 5), (4, 10)].map(|(s, m)| (ideal_speed_up(s, m) * 100.0).round() / 100.0);
        assert_eq!(ideal, [1.67, 1.82, 2.5, 3.08]);
        assert_eq!((formula_bubble(0, 0), ideal_speed_up(1, 7)), (0.0, 1.0));
    }

    #[test]
    fn stages_6222_are_bound_by_first_stage() {
        // Forward alone as published: a block takes 1.95 s of a batch, a fifth of that for each of five micro-batches.
        let block = 1.95 / 5.0;
        let costs = [6.0, 2.0, 2.0, 2.0].map(|blocks| cost(blocks * block, 2.0 * blocks * block));
        let plan = Timeline::new(Schedule::GPipe, &costs, 5);
        assert!(is_near(plan.makespan_ns, (5.0 * 6.0 + 3.0 * 2.0) * 3.0 * block), "{}", plan.makespan_ns);
        let balanced = balanced(&costs, Some(&[6, 2, 2, 2]));
        assert_eq!(balanced.blocks, Some(vec![3, 3, 3, 3]));
        let better = Timeline::new(Schedule::GPipe, &balanced.costs, 5);
        assert!(is_near(better.bubble(), formula_bubble(4, 5)), "{}", better.bubble());
    }

    #[test]
    fn balanced_without_block_counts_is_even() {
        let costs = [cost(30.0, 60.0), cost(10.0, 20.0)];
        for blocks in [None, Some([3, 0].as_slice()), Some(&[3]), Some(&[usize::MAX, 2])] {
            let found = balanced(&costs, blocks);
            assert_eq!((found.blocks, found.costs), (None, vec![cost(20.0, 40.0); 2]));
        }
    }

    #[test]
    fn unknown_schedule_name_is_none() {
        assert_eq!(["gpipe", "1f1b", "GPIPE"].map(Schedule::from_name).map(|s| s.is_some()), [true, true, false]);
    }

    fn costs() -> impl Strategy<Value = Vec<StageCost>> {
        proptest::collection::vec((1u32..1000, 1u32..2000).prop_map(|(f, b)| cost(f.into(), b.into())), 1..7)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn timeline_of_even_stages_matches_formula(
            forward in 1u32..1000, backward in 1u32..2000, stages in 1usize..9, micro_batches in 1usize..20,
        ) {
            for schedule in BOTH {
                let plan = Timeline::new(schedule, &vec![cost(forward.into(), backward.into()); stages], micro_batches);
                let slots = (micro_batches + stages - 1) as f64;
                prop_assert_eq!(plan.makespan_ns, slots * f64::from(forward + backward));
                prop_assert!((plan.bubble() - formula_bubble(stages, micro_batches)).abs() < 1e-12);
            }
        }

        #[test]
        fn timeline_respects_lower_bounds_and_runs_each_pass_once(costs in costs(), micro_batches in 1usize..12) {
            for schedule in BOTH {
                let plan = Timeline::new(schedule, &costs, micro_batches);
                prop_assert_eq!(plan.work.len(), 2 * costs.len() * micro_batches);
                let mut before_ns = 0.0;
                for cost in &costs {
                    // A stage waits for the first micro-batch, and the last one has to return all the way.
                    prop_assert!(plan.makespan_ns >= before_ns + micro_batches as f64 * cost.both_ns() - 1e-6);
                    before_ns += cost.both_ns();
                }
                prop_assert!(plan.makespan_ns >= before_ns - 1e-6);
                prop_assert!(plan.makespan_ns <= micro_batches as f64 * before_ns + 1e-6, "never worse than in turn");
                for work in &plan.work {
                    if let Some((stage, needed)) = needs(costs.len(), work.stage, work.work) {
                        let of = |w: &&Planned| w.stage == stage && w.work == needed;
                        prop_assert!(plan.work.iter().find(of).is_some_and(|w| w.end_ns <= work.start_ns));
                    }
                }
            }
        }

        #[test]
        fn live_micro_batches_stay_within_schedule(costs in costs(), micro_batches in 1usize..12) {
            for schedule in BOTH {
                let plan = Timeline::new(schedule, &costs, micro_batches);
                for stage in 0..costs.len() {
                    prop_assert_eq!(live(&plan, stage), schedule.live_most(costs.len(), stage, micro_batches));
                }
            }
            let one = Schedule::OneForwardOneBackward;
            prop_assert!((0..costs.len()).all(|s| one.live_most(costs.len(), s, micro_batches) <= costs.len() - s));
        }

        #[test]
        fn balanced_split_is_optimal(counts in proptest::collection::vec(1usize..5, 1..4), unit in costs()) {
            let stages = counts.len().min(unit.len());
            let (counts, unit) = (&counts[..stages], &unit[..stages]);
            let found = balanced(unit, Some(counts));
            let blocks = found.blocks.unwrap();
            prop_assert_eq!(blocks.iter().sum::<usize>(), counts.iter().sum::<usize>());
            prop_assert!(blocks.iter().all(|count| *count > 0));
            let slowest = |costs: &[StageCost]| costs.iter().map(|cost| cost.both_ns()).fold(0.0, f64::max);
            prop_assert!(slowest(&found.costs) <= slowest(unit) * (1.0 + 1e-9));
            let single: Vec<f64> =
                unit.iter().zip(counts).flat_map(|(c, n)| vec![c.both_ns() / *n as f64; *n]).collect();
            prop_assert!(slowest(&found.costs) <= best(&single, stages) * (1.0 + 1e-6));
        }
    }

    /// The smallest largest sum, over all splits.
    fn best(costs: &[f64], stages: usize) -> f64 {
        if stages <= 1 {
            return costs.iter().sum();
        }
        let split = |at: usize| costs[..at].iter().sum::<f64>().max(best(&costs[at..], stages - 1));
        (1..=costs.len() - (stages - 1)).map(split).fold(f64::INFINITY, f64::min)
    }
}
