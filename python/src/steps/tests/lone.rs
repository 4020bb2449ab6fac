//! Loops without an optimizer that is seen, made up at random: each iteration is a step.

use proptest::prelude::*;

use super::*;

/// How a loop updates its parameters by hand.
#[derive(Clone, Debug)]
struct ByHand {
    has_loader: bool,
    has_roots: bool,
    has_penalty: bool,
    transfers: bool,
    /// Whether gradients are set to zero by a call that is seen: never, before the batch, or after the update.
    zeroes: usize,
    micro_batches: usize,
    /// Whether an optimizer exists that never steps.
    has_other: bool,
}

fn kinds() -> impl Strategy<Value = ByHand> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (flags, 0..3_usize, 1..4_usize).prop_map(
        |((has_loader, has_roots, has_penalty, transfers, has_other), zeroes, micro_batches)| ByHand {
            has_loader,
            has_roots,
            has_penalty,
            transfers: has_loader && transfers,
            zeroes,
            // Without such a call nothing shows how many batches one update is for.
            micro_batches: if zeroes > 0 { micro_batches } else { 1 },
            has_other,
        },
    )
}

fn iterates(program: &mut Program, kind: &ByHand) {
    if kind.zeroes == 1 {
        program.plainly(Work::ZeroGrad);
    }
    for _ in 0..kind.micro_batches {
        if kind.has_loader {
            program.fetch(None);
        }
        if kind.transfers {
            program.plainly(Work::Transfer);
        }
        if kind.has_roots {
            program.plainly(Work::Forward);
        }
        if kind.has_penalty {
            program.plainly(Work::Gradients);
        }
        program.plainly(Work::Backward);
    }
    if kind.zeroes == 2 {
        program.plainly(Work::ZeroGrad);
    }
}

/// The loop, and an optimizer's step at the end of all if it is one of many micro-batches.
fn run(kind: &ByHand, iterations: usize, steps_after: bool) -> Recorder {
    let mut program = Program::new();
    program.training.expect(if kind.has_other || steps_after { &[1] } else { &[] });
    (0..iterations).for_each(|_| iterates(&mut program, kind));
    if steps_after {
        program.optimizer();
    }
    program.training.finish(&mut program.to);
    assert!(program.to.deferred.is_none());
    program.to
}

/// Backward passes with nothing else, a batch for each, or gradients that are set to zero after each of two.
#[test]
fn steps_without_an_optimizer_count_from_the_first() {
    for (name, step) in [
        ("backward", (|program| program.plainly(Work::Backward)) as fn(&mut Program)),
        ("gradients", |program| program.plainly(Work::Gradients)),
        ("fetch", |program| {
            program.fetch(None);
            program.plainly(Work::Forward);
            program.plainly(Work::Gradients); // of a penalty
            program.plainly(Work::Backward);
        }),
        ("zero", |program| {
            for _ in 0..2 {
                program.fetch(None);
                program.plainly(Work::Forward);
                program.plainly(Work::Backward);
            }
            program.plainly(Work::ZeroGrad);
        }),
    ] {
        let mut program = Program::new();
        step(&mut program);
        assert!(program.to.deferred.is_some(), "{name}: not sure yet");
        (1..10).for_each(|_| step(&mut program));
        assert!(program.to.deferred.is_none(), "{name}: sure");
        program.training.finish(&mut program.to);
        assert_eq!(program.to.steps.len(), 10, "{name}");
    }
}

#[test]
fn batches_that_were_fetched_before_end_no_step() {
    let by_hand = ByHand {
        has_loader: false,
        has_roots: true,
        has_penalty: false,
        transfers: false,
        zeroes: 0,
        micro_batches: 1,
        has_other: false,
    };
    // All of them, as by `list(loader)`, each epoch's again, and one that is used again and again.
    for (fetches, epochs, hidden) in [(8, 1, 0), (8, 3, 0), (1, 1, 16)] {
        let mut program = Program::new();
        for _ in 0..epochs {
            (0..fetches).for_each(|_| program.fetch(None));
            (0..60).for_each(|_| iterates(&mut program, &by_hand));
        }
        program.training.finish(&mut program.to);
        assert_eq!(program.to.steps.len() + hidden, 60 * epochs, "{fetches} batches, {epochs} epochs");
    }
}

#[test]
fn first_step_of_many_micro_batches_is_one() {
    for zeroes in [false, true] {
        let mut program = Program::new();
        program.training.expect(&[1]);
        for _ in 0..20 {
            program.fetch(Some([-1, -1, -1, -1, 2, -1]));
            program.plainly(Work::Forward);
            program.plainly(Work::Backward);
            if zeroes {
                program.plainly(Work::ZeroGrad); // another network's
            }
        }
        program.optimizer();
        assert_eq!(program.to.steps.len(), 1);
        assert_eq!(program.to.batches.last(), Some(&Some([-1, -1, -1, -1, 40, -1])));
    }
}

#[test]
fn update_without_an_optimizer_is_inferred_once_it_is_sure() {
    let mut program = Program::new();
    for _ in 0..6 {
        program.fetch(None);
        program.plainly(Work::Forward);
        program.plainly(Work::Backward);
    }
    program.exhaust();
    assert_eq!(program.to.phases()[5], [Name::DataWait, Name::Forward, Name::Loss, Name::Backward, Name::Optimizer]);
    assert_eq!(program.to.inferred, [Name::Optimizer]);
}

proptest! {
    #[test]
    fn each_iteration_is_a_step(kind in kinds(), iterations in 2..90_usize) {
        let recorded = run(&kind, iterations, false);
        prop_assert_eq!(recorded.steps.len(), iterations, "{:?}", kind);
    }

    #[test]
    fn phases_do_not_overlap_and_are_in_order(kind in kinds(), iterations in 2..90_usize) {
        let mut spans = run(&kind, iterations, false).spans;
        for pair in spans.windows(2) {
            prop_assert!(pair[0].2 <= pair[1].2, "{:?}\n{:?}", pair, kind);
        }
        spans.retain(|(name, ..)| *name != Name::MicroBatch);
        spans.sort_by_key(|(_, begin, _)| *begin);
        for pair in spans.windows(2) {
            prop_assert!(pair[0].2 <= pair[1].1, "{:?}\n{:?}", pair, kind);
        }
    }

    #[test]
    fn optimizer_in_the_end_makes_micro_batches_of_all(kind in kinds(), iterations in 1..8_usize) {
        prop_assert_eq!(run(&kind, iterations, true).steps.len(), 1, "{:?}", kind);
    }
}
