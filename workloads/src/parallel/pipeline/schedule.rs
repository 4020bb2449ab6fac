//! In which order a stage computes the micro-batches of a batch, and how long a batch then takes.

/// An order of forward and backward passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// All forward passes, then all backward passes (GPipe): every stage keeps all micro-batches.
    #[default]
    Gpipe,
    /// Just enough forward passes ahead to keep the stages busy, then one forward pass per backward pass (PipeDream's
    /// 1F1B): stage `s` of `S` keeps at most `S - s` micro-batches. It takes as long as GPipe.
    OneForwardOneBackward,
}

/// One pass of a stage over a micro-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// The forward pass of this micro-batch, from 0.
    Forward(usize),
    /// Its backward pass.
    Backward(usize),
}

/// How long a stage computes one micro-batch, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PassTimes {
    /// The forward pass.
    pub forward_s: f64,
    /// The backward pass.
    pub backward_s: f64,
}

impl Schedule {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gpipe => "gpipe",
            Self::OneForwardOneBackward => "1f1b",
        }
    }

    /// What stage `stage` of `stages`, both from 0, computes for one batch of `micro_batches` micro-batches, in order.
    /// Micro-batches go forward and backward by their number, as in PyTorch.
    #[must_use]
    pub fn order(self, stage: usize, stages: usize, micro_batches: usize) -> Vec<Pass> {
        let ahead = self.most_live(stage, stages, micro_batches);
        let mut forward = 0..micro_batches;
        let mut order: Vec<Pass> = forward.by_ref().take(ahead).map(Pass::Forward).collect();
        for backward in 0..micro_batches {
            order.push(Pass::Backward(backward));
            order.extend(forward.next().map(Pass::Forward));
        }
        order
    }

    /// Most micro-batches that a stage keeps between their forward and backward pass.
    #[must_use]
    pub fn most_live(self, stage: usize, stages: usize, micro_batches: usize) -> usize {
        match self {
            Self::Gpipe => micro_batches,
            Self::OneForwardOneBackward => micro_batches.min(stages.saturating_sub(stage)),
        }
    }

    /// Seconds from the first pass to the last of one batch if stages take these `times` and transfers take none: a
    /// pass begins when the stage's previous pass has ended, and the neighbour's pass that it needs. For equal stages
    /// this is `(M + S - 1) (forward + backward)`, GPipe's formula.
    #[must_use]
    pub fn makespan_s(self, times: &[PassTimes], micro_batches: usize) -> f64 {
        let stages = times.len();
        let orders: Vec<Vec<Pass>> = (0..stages).map(|stage| self.order(stage, stages, micro_batches)).collect();
        let mut ends = Ends { forward: vec![vec![None; micro_batches]; stages], backward: Vec::new() };
        ends.backward.clone_from(&ends.forward);
        let mut next = vec![0; stages];
        let mut clock = vec![0.0_f64; stages];
        loop {
            let mut advanced = false;
            for stage in 0..stages {
                while let Some(&pass) = orders[stage].get(next[stage])
                    && let Some(ready_s) = ends.ready_s(pass, stage, stages)
                {
                    clock[stage] = ends.note(pass, stage, clock[stage].max(ready_s), times[stage]);
                    next[stage] += 1;
                    advanced = true;
                }
            }
            if !advanced {
                return clock.into_iter().fold(0.0, f64::max);
            }
        }
    }
}

/// When passes have ended, by stage and micro-batch.
struct Ends {
    forward: Vec<Vec<Option<f64>>>,
    backward: Vec<Vec<Option<f64>>>,
}

impl Ends {
    /// When a pass could begin for all that its stage's neighbours have done; nothing where that is not known yet.
    fn ready_s(&self, pass: Pass, stage: usize, stages: usize) -> Option<f64> {
        match pass {
            Pass::Forward(_) if stage == 0 => Some(0.0),
            Pass::Forward(micro) => self.forward[stage - 1][micro],
            Pass::Backward(micro) if stage + 1 == stages => self.forward[stage][micro],
            Pass::Backward(micro) => self.backward[stage + 1][micro],
        }
    }

    /// Notes when a pass ends that begins at `begin_s`.
    fn note(&mut self, pass: Pass, stage: usize, begin_s: f64, times: PassTimes) -> f64 {
        let (ends, micro_batch, time_s) = match pass {
            Pass::Forward(micro_batch) => (&mut self.forward, micro_batch, times.forward_s),
            Pass::Backward(micro_batch) => (&mut self.backward, micro_batch, times.backward_s),
        };
        ends[stage][micro_batch] = Some(begin_s + time_s);
        begin_s + time_s
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOTH: [Schedule; 2] = [Schedule::Gpipe, Schedule::OneForwardOneBackward];

    fn live_at_most(order: &[Pass]) -> usize {
        let mut live = 0_usize;
        order.iter().fold(0, |most, pass| {
            match pass {
                Pass::Forward(_) => live += 1,
                Pass::Backward(_) => live -= 1,
            }
            most.max(live)
        })
    }

    fn of_kind(order: &[Pass], is_forward: bool) -> Vec<usize> {
        let micro = |pass: &Pass| match *pass {
            Pass::Forward(micro) => is_forward.then_some(micro),
            Pass::Backward(micro) => (!is_forward).then_some(micro),
        };
        order.iter().filter_map(micro).collect()
    }

    proptest! {
        #[test]
        fn every_micro_batch_goes_forward_then_backward_once_and_in_the_order_of_the_neighbours(
            stages in 1_usize..7, micro_batches in 1_usize..12
        ) {
            for schedule in BOTH {
                for stage in 0..stages {
                    let order = schedule.order(stage, stages, micro_batches);
                    let all: Vec<usize> = (0..micro_batches).collect();
                    // A stage sends in the order in which its neighbour, with the same rule, receives.
                    prop_assert_eq!(&of_kind(&order, true), &all);
                    prop_assert_eq!(&of_kind(&order, false), &all);
                    for micro in 0..micro_batches {
                        let place = |pass| order.iter().position(|other| *other == pass);
                        prop_assert!(place(Pass::Forward(micro)) < place(Pass::Backward(micro)));
                    }
                    let live = live_at_most(&order);
                    prop_assert_eq!(live, schedule.most_live(stage, stages, micro_batches));
                    if schedule == Schedule::OneForwardOneBackward {
                        prop_assert!(live <= stages - stage);
                    }
                }
            }
        }

        #[test]
        fn no_stage_waits_for_ever_and_equal_stages_follow_gpipes_formula(
            stages in 1_usize..7, micro_batches in 1_usize..12, forward in 1_u32..9, backward in 1_u32..9
        ) {
            let times = PassTimes { forward_s: f64::from(forward), backward_s: f64::from(backward) };
            let slots = (micro_batches + stages - 1) as f64;
            for schedule in BOTH {
                let makespan = schedule.makespan_s(&vec![times; stages], micro_batches);
                prop_assert!((makespan - slots * f64::from(forward + backward)).abs() < 1e-9, "{makespan}");
            }
        }
    }

    /// `end[s][m] = max(end[s][m - 1], end[s - 1][m]) + c[s]`, forward and then backward from the last stage.
    fn recurrence(times: &[PassTimes], micro_batches: usize) -> f64 {
        let pass = |costs: &[f64], begin: f64| {
            let mut before = vec![begin; micro_batches];
            for cost in costs {
                let mut end = begin;
                for at in &mut before {
                    end = end.max(*at) + cost;
                    *at = end;
                }
            }
            before[micro_batches - 1]
        };
        let forward: Vec<f64> = times.iter().map(|times| times.forward_s).collect();
        let backward: Vec<f64> = times.iter().rev().map(|times| times.backward_s).collect();
        pass(&backward, pass(&forward, 0.0))
    }

    #[test]
    fn unequal_stages_follow_the_recurrence() {
        let times = |costs: &[f64]| -> Vec<PassTimes> {
            costs.iter().map(|&cost| PassTimes { forward_s: cost, backward_s: 2.0 * cost }).collect()
        };
        // Study 3's four stages as coded, 6/2/2/2, and as meant.
        let [published, balanced] = [[6.0, 2.0, 2.0, 2.0], [2.0; 4]].map(|costs| times(&costs));
        for schedule in BOTH {
            assert_eq!(schedule.makespan_s(&balanced, 5), 8.0 * 6.0);
            assert_eq!(schedule.makespan_s(&[], 5), 0.0);
        }
        assert_eq!(Schedule::Gpipe.makespan_s(&published, 5), recurrence(&published, 5));
        // One sequential batch is 5 x 8 x 3: the published speed-ups 1.11 and 2.5.
        assert_eq!((120.0 / recurrence(&published, 5) * 100.0).round(), 111.0);
        assert_eq!((120.0 / recurrence(&balanced, 5) * 10.0).round(), 25.0);
    }
}
