//! Programs that only run a model, and trainings that begin so.

use proptest::prelude::*;

use super::*;
use Name::*;

/// Runs batches through a model: with a loader or without, with gradients or without, some of them through two models.
fn infer(program: &mut Program, has_loader: bool, call: Work, calls: usize) {
    if has_loader {
        program.fetch(Some([-1, -1, -1, -1, 8, -1]));
        program.plainly(Work::Transfer);
    }
    (0..calls).for_each(|_| program.plainly(call));
}

#[test]
fn batches_of_a_model_that_is_only_run_are_steps() {
    let mut program = Program::new();
    (0..6).for_each(|_| infer(&mut program, true, Work::Evaluation, 1));
    program.exhaust();
    assert_eq!(program.to.phases(), [[DataWait, Transfer, Forward]; 6]);
    assert_eq!(program.to.inference, [true]);
    assert_eq!(program.to.batches, [Some([-1, -1, -1, -1, 8, -1])]);
    assert_eq!(program.to.marks, []);
}

#[test]
fn evaluation_before_a_training_is_no_inference() {
    for has_optimizer in [true, false] {
        let mut program = Program::new();
        if has_optimizer {
            program.training.expect(&[1]);
        }
        let batches = if has_optimizer { 9 } else { 2 };
        (0..batches).for_each(|_| infer(&mut program, true, Work::Evaluation, 1));
        program.exhaust();
        program.step();
        program.step();
        let expected = [DataWait, Forward, Loss, Backward, Optimizer];
        assert_eq!((program.to.inference.len(), program.to.steps.len()), (0, 2), "{has_optimizer}");
        assert_eq!(program.to.phases()[1], expected);
        assert_eq!(
            program.to.spans.iter().filter(|(name, ..)| *name == Validation).count(),
            1 + 9 * usize::from(has_optimizer)
        );
        assert!(program.to.spans.is_sorted_by_key(|(.., end)| *end), "{:?}", program.to.spans);
    }
}

#[test]
fn calls_are_steps_where_the_batches_were_fetched_before() {
    for (fetches, hidden) in [(8, 0), (1, 16)] {
        let mut program = Program::new();
        (0..fetches).for_each(|_| program.fetch(None));
        (0..60).for_each(|_| infer(&mut program, false, Work::Evaluation, 1));
        program.training.finish(&mut program.to);
        assert_eq!((program.to.steps.len() + hidden, &program.to.inference[..]), (60, &[true][..]), "{fetches}");
    }
}

#[test]
fn training_after_inference_says_so() {
    let mut program = Program::new();
    (0..5).for_each(|_| infer(&mut program, false, Work::Evaluation, 1));
    assert_eq!((program.to.steps.len(), &program.to.inference[..]), (5, &[true][..]));
    program.training.expect(&[1]);
    program.step();
    assert_eq!((program.to.steps.len(), &program.to.inference[..]), (6, &[true, false][..]));
}

proptest! {
    #[test]
    fn steps_are_the_batches_or_the_calls(has_loader: bool, mode in 0..3_usize, calls in 1..4_usize, batches in 4..40_usize) {
        let call = [Work::Evaluation, Work::ForwardWithoutGradients, Work::Forward][mode];
        prop_assume!(has_loader || call != Work::Forward); // a backward pass may follow
        let mut program = Program::new();
        (0..batches).for_each(|_| infer(&mut program, has_loader, call, calls));
        if has_loader {
            program.exhaust();
        }
        program.training.finish(&mut program.to);
        prop_assert_eq!(program.to.steps.len(), if has_loader { batches } else { batches * calls });
        prop_assert_eq!(&program.to.inference, &[true]);
        prop_assert!(program.to.spans.is_sorted_by_key(|(.., end)| *end));
    }
}
