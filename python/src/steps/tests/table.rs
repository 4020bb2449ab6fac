//! Each row of the table of states, and each rule about what is known only later.

use super::*;
use Name::*;

const PLAIN: [Name; 5] = [DataWait, Forward, Loss, Backward, Optimizer];

#[test]
fn each_state_accepts_its_work() {
    use Work::*;
    let pauses = [Work::Checkpoint, Work::Compile];
    let models = [Work::Forward, ForwardWithoutGradients, Evaluation, Work::Backward, Gradients]; // the rest was left behind
    for (state, around, inside) in [
        (State::Fetch, Fetch, &[Work::Sample, Work::Gather][..]),
        (State::Transfer, Work::Transfer, &models),
        (State::Forward, Work::Forward, &[]),
        (State::Inference, Evaluation, &[]),
        (State::Environment, Work::Environment, &[]),
        (State::Backward, Work::Backward, &[]),
        (State::Optimizer, Work::Optimizer, &[Fetch, Work::Unscale, Work::Clip]),
        (State::Pause, ZeroGrad, &models),
        (State::Pause, Work::Collective, &models),
        (State::Pause, Work::Compile, &[]),
    ] {
        for work in Work::ALL.into_iter().filter(|work| *work != Work::Frozen) {
            let mut program = Program::new();
            assert!(program.training.accepts(work), "nothing accepts {work:?}");
            program.training.begin(around, &mut program.to);
            assert_eq!(program.training.state, state);
            let is_accepted = inside.contains(&work) || pauses.contains(&work);
            assert_eq!(program.training.accepts(work), is_accepted, "{state:?}: {work:?}");
            assert_eq!(program.training.begin(work, &mut program.to).is_some(), is_accepted, "{state:?}: {work:?}");
        }
    }
}

#[test]
fn numbers_of_work_are_those_of_the_header() {
    for (number, work) in (0..).zip(Work::ALL) {
        assert_eq!((work as i32, Work::from_number(number)), (number, Some(work)));
    }
    assert_eq!((Work::from_number(-1), Work::from_number(Work::ALL.len() as i32)), (None, None));
}

#[test]
fn plain_step_has_its_phases() {
    let mut program = Program::new();
    program.step();
    program.step();
    assert_eq!(program.to.phases(), [PLAIN, PLAIN]);
    assert_eq!(program.to.inferred, []);
}

#[test]
fn module_that_nothing_trains_is_forward_before_the_one_that_is_trained() {
    let mut program = Program::new();
    assert!(!program.does(Work::Frozen, |_| ()), "nothing trains yet");
    program.step();
    program.fetch(None);
    program.plainly(Work::Frozen);
    program.plainly(Work::Forward);
    assert!(!program.does(Work::Frozen, |_| ()), "part of the loss");
    program.plainly(Work::Backward);
    program.optimizer();
    assert_eq!(program.to.phases()[1], [DataWait, Forward, Forward, Loss, Backward, Optimizer]);
    program.plainly(Work::Evaluation);
    assert!(!program.does(Work::Frozen, |_| ()), "part of the validation");
}

#[test]
fn what_follows_gradients_until_backward_is_loss() {
    let mut program = Program::new();
    program.training.expect(&[1]);
    for _ in 0..2 {
        program.plainly(Work::Forward);
        program.plainly(Work::Gradients);
        program.plainly(Work::ZeroGrad);
        program.plainly(Work::Backward);
        program.optimizer();
    }
    assert_eq!(program.to.phases()[1], [Forward, Loss, Backward, Loss, Optimizer, Loss, Backward, Optimizer]);
}

#[test]
fn scaler_whose_optimizer_raises_makes_no_step() {
    let mut program = Program::new();
    for raises in [false, true, false] {
        program.fetch(None);
        program.plainly(Work::Forward);
        program.plainly(Work::Backward);
        program.does(Work::Optimizer, |program| program.steps(1, None, raises));
    }
    assert_eq!(program.to.steps.len(), 2);
}

#[test]
fn gradients_set_to_zero_are_the_optimizers() {
    let mut program = Program::new();
    program.does(Work::Fetch, |program| assert!(!program.does(Work::ZeroGrad, |_| ()), "inside of a fetch"));
    program.training.fetched(None, &mut program.to);
    program.plainly(Work::ZeroGrad);
    program.plainly(Work::Forward);
    program.plainly(Work::Backward);
    program.optimizer();
    program.plainly(Work::ZeroGrad);
    program.step();
    let [first, second] = &program.to.phases()[..] else { panic!("{:?}", program.to.phases()) };
    // The first forward is inferred until it is reported, so the time before gradients were set to zero may be one.
    assert_eq!(first[..], [DataWait, Optimizer, Forward, Loss, Backward, Optimizer]);
    assert_eq!(second[..], [Optimizer, DataWait, Forward, Loss, Backward, Optimizer]);
}

#[test]
fn gradients_set_to_zero_after_the_loss_interrupt_it() {
    let mut program = Program::new();
    for _ in 0..2 {
        program.fetch(None);
        program.plainly(Work::Forward);
        program.plainly(Work::ZeroGrad);
        program.plainly(Work::Backward);
        program.optimizer();
    }
    let expected = [DataWait, Forward, Loss, Optimizer, Loss, Backward, Optimizer];
    assert_eq!(program.to.phases(), [expected, expected]);
}

#[test]
fn forward_that_no_root_reports_is_inferred_and_says_so() {
    let mut program = Program::new();
    for _ in 0..3 {
        program.fetch(None);
        program.plainly(Work::Backward);
        program.optimizer();
    }
    assert_eq!(program.to.phases(), [[DataWait, Forward, Backward, Optimizer]; 3]);
    assert_eq!(program.to.inferred, [Forward]);
}

#[test]
fn inferred_forward_is_around_what_set_gradients_to_zero() {
    let mut program = Program::new();
    for _ in 0..2 {
        program.fetch(None);
        program.plainly(Work::ZeroGrad);
        program.plainly(Work::Backward);
        program.optimizer();
    }
    assert_eq!(program.to.phases(), [[DataWait, Forward, Optimizer, Forward, Backward, Optimizer]; 2]);
}

#[test]
fn roots_that_are_no_longer_called_give_way_to_inference() {
    let mut program = Program::new();
    program.step();
    for _ in 0..3 {
        program.fetch(None);
        program.plainly(Work::Backward);
        program.optimizer();
    }
    assert_eq!(program.to.phases()[2..], [[DataWait, Forward, Backward, Optimizer]; 2]);
}

#[test]
fn micro_batches_are_spans_and_their_sizes_add_up() {
    let mut program = Program::new();
    for _ in 0..2 {
        for _ in 0..3 {
            program.fetch(Some([-1, -1, -1, -1, 16, -1]));
            program.plainly(Work::Forward);
            program.plainly(Work::Backward);
        }
        program.optimizer();
    }
    assert_eq!(program.to.batches.last(), Some(&Some([-1, -1, -1, -1, 48, -1])));
    let [begin, end] = program.to.steps[..] else { panic!("{:?}", program.to.steps) };
    let is_micro_batch = |(name, b, e): &&(Name, Ticks, Ticks)| *name == MicroBatch && begin <= *b && *e <= end;
    assert_eq!(program.to.spans.iter().filter(is_micro_batch).count(), 3);
}

#[test]
fn gradients_of_a_penalty_are_no_micro_batch() {
    let mut program = Program::new();
    for _ in 0..3 {
        program.fetch(None);
        program.plainly(Work::Forward);
        program.plainly(Work::Gradients);
        program.plainly(Work::Backward);
        program.optimizer();
    }
    assert_eq!(program.to.steps.len(), 3);
    assert!(!program.to.spans.iter().any(|(name, ..)| *name == MicroBatch));
}

#[test]
fn evaluation_between_steps_is_one_phase_with_its_fetches_inside() {
    let mut program = Program::new();
    program.step();
    for _ in 0..3 {
        program.fetch(None);
        program.plainly(Work::Evaluation);
    }
    program.exhaust();
    program.step();
    assert_eq!(program.to.phases()[1], [Validation, DataWait, Forward, Loss, Backward, Optimizer]);
    let [mark] = program.to.marks[..] else { panic!("{:?}", program.to.marks) };
    assert_eq!(mark.0, Validated);
    assert!(program.to.spans.contains(&(Validation, mark.1, mark.2)));
    let ends: Vec<Ticks> = program.to.spans.iter().map(|(_, _, end)| *end).collect();
    assert!(ends.is_sorted(), "recorded in the order of their ends: {:?}", program.to.spans);
}

#[test]
fn evaluation_in_the_middle_of_a_step_is_forward() {
    let mut program = Program::new();
    program.fetch(None);
    program.plainly(Work::Forward);
    program.plainly(Work::Evaluation);
    program.plainly(Work::Backward);
    program.optimizer();
    assert_eq!(program.to.phases(), [[DataWait, Forward, Loss, Forward, Loss, Backward, Optimizer]]);
}

#[test]
fn forward_without_gradients_in_a_training_step_is_forward() {
    let mut program = Program::new();
    program.fetch(None);
    program.plainly(Work::ForwardWithoutGradients);
    program.plainly(Work::Forward);
    program.plainly(Work::Backward);
    program.optimizer();
    assert_eq!(program.to.phases(), [[DataWait, Forward, Forward, Loss, Backward, Optimizer]]);
}

#[test]
fn epoch_begins_with_the_first_batch_after_the_end_of_the_data() {
    let mut program = Program::new();
    program.step();
    program.exhaust();
    assert_eq!(program.to.epochs, []);
    program.step();
    program.exhaust(); // a loader that looks ahead: the last batch is still to come
    program.step();
    assert_eq!(program.to.epochs, [1, 2]);
}

#[test]
fn sampling_takes_the_place_of_the_wait_that_contains_it() {
    let mut program = Program::new();
    program.does(Work::Fetch, |program| {
        program.does(Work::Sample, |program| program.plainly(Work::Gather));
    });
    program.training.fetched(None, &mut program.to);
    program.plainly(Work::Forward);
    program.plainly(Work::Backward);
    program.optimizer();
    assert_eq!(program.to.phases()[0][..5], [DataWait, Sample, Gather, Sample, DataWait]);
    assert!(program.to.open.is_empty());
}

#[test]
fn sampling_inside_a_span_of_the_fetch_takes_the_place_of_both() {
    let mut program = Program::new();
    program.does(Work::Fetch, |program| {
        let depth = program.to.begin(MicroBatch); // stands for the hooks' span of the collate function
        program.plainly(Work::Sample);
        program.plainly(Work::Gather);
        program.to.end_to(depth);
    });
    program.training.fetched(None, &mut program.to);
    program.plainly(Work::Forward);
    program.plainly(Work::Backward);
    program.optimizer();
    assert_eq!(program.to.phases()[0][..5], [DataWait, Sample, DataWait, Gather, DataWait]);
    assert!(program.to.open.is_empty());
}

#[test]
fn compilation_takes_the_place_of_the_phase_that_contains_it() {
    let mut program = Program::new();
    program.fetch(None);
    program.does(Work::Forward, |program| program.plainly(Work::Compile));
    program.does(Work::Backward, |program| program.plainly(Work::Compile));
    program.optimizer();
    let expected = [DataWait, Forward, Compile, Forward, Loss, Backward, Compile, Backward, Optimizer];
    assert_eq!(program.to.phases(), [expected]);
}

#[test]
fn gradients_that_a_compilation_computes_are_part_of_it() {
    let mut program = Program::new();
    program.fetch(None);
    program.does(Work::Compile, |program| assert!(!program.does(Work::Gradients, |_| ())));
    program.plainly(Work::Backward);
    program.optimizer();
    assert_eq!(program.to.phases(), [[DataWait, Forward, Compile, Forward, Backward, Optimizer]]);
}

#[test]
fn compilation_in_an_inferred_forward_is_not_hidden_by_it() {
    let mut program = Program::new();
    program.fetch(None);
    program.plainly(Work::Compile);
    program.plainly(Work::Backward);
    program.optimizer();
    assert_eq!(program.to.phases(), [[DataWait, Forward, Compile, Forward, Backward, Optimizer]]);
}

#[test]
fn clipping_is_part_of_the_optimizer_in_its_step_and_outside() {
    let mut program = Program::new();
    program.fetch(None);
    program.plainly(Work::Forward);
    program.plainly(Work::Backward);
    program.plainly(Work::Clip);
    program.does(Work::Optimizer, |program| program.plainly(Work::Unscale));
    assert_eq!(program.to.phases(), [[DataWait, Forward, Loss, Backward, Optimizer, Optimizer]]);
    assert_eq!(program.to.spans.iter().filter(|(name, ..)| *name == Optimizer).count(), 2);
}

#[test]
fn backward_of_ranks_ends_where_the_last_gradients_are_sent() {
    let mut program = Program::new();
    program.training.has_peers = true;
    program.fetch(None);
    program.plainly(Work::Forward);
    program.does(Work::Backward, |program| {
        program.training.reducing(&mut program.to);
        program.to.now();
        program.training.reducing(&mut program.to);
    });
    program.optimizer();
    let last: Vec<Name> = program.to.spans.iter().rev().take(4).map(|(name, ..)| *name).collect();
    assert_eq!(last, [Optimizer, BackwardOfRanks, AllReduce, Backward]);
    let ends: Vec<Ticks> = program.to.spans.iter().map(|(_, _, end)| *end).collect();
    assert!(ends.is_sorted());
}

#[test]
fn closure_that_is_called_again_is_one_step() {
    let mut program = Program::new();
    for _ in 0..2 {
        program.fetch(None);
        program.steps(
            1,
            Some(&mut |program| {
                for _ in 0..2 {
                    program.plainly(Work::Forward);
                    program.plainly(Work::Backward);
                }
            }),
            false,
        );
    }
    let expected = [DataWait, Forward, Loss, Backward, Optimizer, Forward, Loss, Backward, Optimizer];
    assert_eq!(program.to.phases(), [expected, expected]);
    assert!(!program.to.spans.iter().any(|(name, ..)| *name == MicroBatch));
}

#[test]
fn optimizer_that_raises_leaves_nothing_open() {
    let mut program = Program::new();
    program.step();
    program.steps(1, None, true);
    program.step();
    assert!(program.to.open.is_empty());
    assert_eq!(program.to.steps.len(), 2);
}

#[test]
fn another_optimizer_steps_after_one_has_raised() {
    let mut program = Program::new();
    program.steps(1, None, true);
    for _ in 0..3 {
        program.does(Work::Forward, |_| ());
        program.does(Work::Backward, |_| ());
        program.steps(2, None, false);
    }
    assert!(program.to.open.is_empty());
    assert_eq!(program.to.steps.len(), 3);
}

#[test]
fn an_optimizer_inside_of_another_is_not_waited_for() {
    let mut program = Program::new();
    program.training.expect(&[1, 2]);
    for _ in 0..3 {
        program.plainly(Work::Forward);
        program.plainly(Work::Backward);
        program.training.optimizer_begin(1, false, &mut program.to);
        program.steps(2, None, false);
        let (work, token) = program.training.optimizer_end(1, &mut program.to).unwrap();
        program.training.end(work, token, &mut program.to);
        program.training.settle(work, 1, &mut program.to);
    }
    assert_eq!(program.to.steps.len(), 3);
}

#[test]
fn steps_beside_an_optimizer_that_never_steps_are_counted_once_that_is_known() {
    let turns = |program: &mut Program, optimizers: &[OptimizerId]| {
        for optimizer in optimizers {
            program.plainly(Work::Forward);
            program.plainly(Work::Backward);
            program.steps(*optimizer, None, false);
        }
    };
    let mut program = Program::new();
    program.training.expect(&[1, 2]);
    turns(&mut program, &[1; 20]);
    assert_eq!((program.to.steps.len(), program.to.deferred), (20, None));
    program.training.expect(&[1, 2, 3, 4]);
    turns(&mut program, &[3; 5]);
    program.training.expect(&[1, 2, 3, 4, 5, 6]);
    turns(&mut program, &[5; 4]);
    program.training.finish(&mut program.to);
    assert_eq!((program.to.steps.len(), program.to.deferred), (29, None), "short folds");
    let mut program = Program::new();
    program.training.expect(&[1, 2]);
    turns(&mut program, &[1, 1, 1, 2].repeat(4));
    assert_eq!((program.to.steps.len(), program.to.deferred), (4, None), "others that do step");
}

#[test]
fn closure_that_raises_is_forgotten_with_the_next_step() {
    let mut program = Program::new();
    for raises in [true, false] {
        program.steps(1, Some(&mut |program| program.plainly(Work::Backward)), raises);
    }
    assert_eq!((program.training.closures, program.to.steps.len()), (0, 1));
}

#[test]
fn steps_of_the_program_switch_the_rule_off() {
    let mut program = Program::new();
    program.step();
    program.training.is_automatic = false;
    program.step();
    assert_eq!(program.to.steps.len(), 1);
}

#[test]
fn checkpoint_outside_of_other_spans_is_a_mark_with_its_duration() {
    let mut program = Program::new();
    program.step();
    program.plainly(Work::Checkpoint);
    program.to.begin(Name::Clip); // any span of the program
    program.plainly(Work::Checkpoint);
    assert_eq!(program.to.marks.iter().map(|(name, ..)| *name).collect::<Vec<_>>(), [Saved]);
}

#[test]
fn closure_that_does_nothing_is_the_optimizers_step() {
    let mut program = Program::new();
    for _ in 0..2 {
        program.fetch(None);
        program.plainly(Work::Forward);
        program.plainly(Work::Backward);
        program.steps(1, Some(&mut |_| ()), false);
    }
    assert_eq!(program.to.phases(), [PLAIN, PLAIN]);
}
