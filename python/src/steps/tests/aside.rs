//! Rollouts: a policy and an environment take turns between training steps.

use proptest::prelude::*;

use super::*;
use Name::*;

/// How experience is collected.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Policy {
    /// In evaluation mode, as Stable-Baselines3 does.
    Evaluating,
    /// In training mode, without gradients, as CleanRL does.
    Training,
    /// At random, without a model.
    Random,
}

fn acts(program: &mut Program, policy: Policy, steps: usize) {
    for _ in 0..steps {
        match policy {
            Policy::Evaluating => program.plainly(Work::Evaluation),
            Policy::Training => program.plainly(Work::ForwardWithoutGradients),
            Policy::Random => {}
        }
        program.plainly(Work::Environment);
    }
}

fn learns(program: &mut Program, target: bool) {
    if target {
        program.plainly(Work::ForwardWithoutGradients);
    }
    program.plainly(Work::Forward);
    program.plainly(Work::Backward);
    program.optimizer();
}

fn new() -> Program {
    let mut program = Program::new();
    program.training.expect(&[1]);
    program.plainly(Work::Environment); // it is reset
    program
}

#[test]
fn rollout_is_one_phase_until_the_environments_last_step() {
    let mut program = new();
    for _ in 0..3 {
        acts(&mut program, Policy::Training, 5);
        program.plainly(Work::ForwardWithoutGradients); // the last value
        learns(&mut program, false);
        learns(&mut program, false);
    }
    let first = vec![Rollout, Forward, Forward, Loss, Backward, Optimizer];
    let second = vec![Forward, Loss, Backward, Optimizer];
    assert_eq!(program.to.phases(), [&first, &second, &first, &second, &first, &second].map(Clone::clone));
    assert_eq!(program.to.marks, [], "no validation");
}

#[test]
fn target_network_of_a_training_step_is_no_rollout() {
    let mut program = new();
    for _ in 0..3 {
        acts(&mut program, Policy::Training, 1);
        learns(&mut program, true);
        learns(&mut program, true);
    }
    let rollouts = program.to.spans.iter().filter(|(name, ..)| *name == Rollout).count();
    assert_eq!((rollouts, program.to.steps.len()), (3, 6));
    assert_eq!(program.to.phases()[3], [Forward, Forward, Loss, Backward, Optimizer]);
}

#[test]
fn environment_between_calls_with_gradients_is_its_own_phase() {
    let mut program = new();
    for _ in 0..2 {
        for _ in 0..2 {
            program.plainly(Work::Forward);
            program.plainly(Work::Environment);
        }
        program.plainly(Work::Backward);
        program.optimizer();
    }
    let expected = [Forward, Environment, Forward, Environment, Loss, Backward, Optimizer];
    assert_eq!(program.to.phases()[1], expected);
}

#[test]
fn evaluation_without_an_environments_step_is_still_a_validation() {
    let mut program = new();
    acts(&mut program, Policy::Evaluating, 2);
    learns(&mut program, false);
    program.fetch(None);
    program.plainly(Work::Evaluation);
    learns(&mut program, false);
    let outer: Vec<Name> = program.to.phases().into_iter().map(|phases| phases[0]).collect();
    assert_eq!(outer, [Rollout, Validation]);
}

proptest! {
    #[test]
    fn rollouts_are_in_order_and_never_in_two_steps(
        rounds in proptest::collection::vec((0..3_usize, 1..6_usize, 1..4_usize, any::<bool>()), 1..20),
    ) {
        let mut program = new();
        let mut updates = 0;
        for (policy, steps, learned, target) in rounds {
            acts(&mut program, [Policy::Evaluating, Policy::Training, Policy::Random][policy], steps);
            (0..learned).for_each(|_| learns(&mut program, target));
            updates += learned;
        }
        prop_assert_eq!(program.to.steps.len(), updates);
        let Recorder { spans, steps, .. } = program.to;
        prop_assert!(spans.is_sorted_by_key(|(.., end)| *end), "{:?}", spans);
        for end in &steps {
            prop_assert!(!spans.iter().any(|(_, begin, until)| begin < end && end < until));
        }
    }
}
