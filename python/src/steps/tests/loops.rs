//! Loops of every kind, made up at random: their phases never overlap, their steps are those of the program.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Where something raises, and the program continues with the next batch.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Raises {
    Never,
    InFetch,
    InForward,
    InBackward,
    InOptimizer,
}

/// One iteration of a loop.
#[derive(Clone, Debug)]
struct Iteration {
    raises: Raises,
    /// Batches of an evaluation before it, with a loader or without.
    evaluates: usize,
    by_loader: bool,
    compiles: bool,
    saves: bool,
}

/// How a loop trains.
#[derive(Clone, Debug)]
struct Kind {
    has_loader: bool,
    is_nested: bool,
    has_roots: bool,
    micro_batches: usize,
    closure_calls: usize,
    optimizers: u64,
    zeroes: usize,
    clips: bool,
    transfers: bool,
    has_peers: bool,
}

fn iterations() -> impl Strategy<Value = Vec<Iteration>> {
    use Raises::*;
    let raises = prop_oneof![20 => Just(Never), 1 => Just(InFetch), 1 => Just(InForward), 1 => Just(InBackward), 1 => Just(InOptimizer)];
    let rare = || prop_oneof![5 => Just(false), 1 => Just(true)];
    let evaluates = prop_oneof![4 => Just(0_usize), 1 => 1..4_usize];
    let iteration = (raises, evaluates, any::<bool>(), rare(), rare());
    vec(
        iteration.prop_map(|(raises, evaluates, by_loader, compiles, saves)| Iteration {
            raises,
            evaluates,
            by_loader,
            compiles,
            saves,
        }),
        1..40,
    )
}

fn kinds() -> impl Strategy<Value = Kind> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (flags, 1..4_usize, 0..4_usize, 1..3_u64, 0..4_usize).prop_map(
        |(
            (has_loader, is_nested, has_roots, clips, transfers, has_peers),
            micro_batches,
            closure_calls,
            optimizers,
            zeroes,
        )| Kind {
            has_loader,
            is_nested,
            has_roots,
            micro_batches: if closure_calls == 0 && optimizers == 1 { micro_batches } else { 1 },
            closure_calls: if optimizers == 1 { closure_calls } else { 0 },
            optimizers,
            zeroes,
            clips,
            transfers,
            has_peers,
        },
    )
}

impl Program {
    /// Does work that raises or not.
    fn tries(&mut self, work: Work, raises: bool) -> Result<(), ()> {
        self.does(work, |_| ());
        if raises { Err(()) } else { Ok(()) }
    }

    fn batch(&mut self, kind: &Kind, raises: Raises) -> Result<(), ()> {
        if !kind.has_loader {
            return Ok(());
        }
        self.does(Work::Fetch, |program| {
            if kind.is_nested {
                assert!(!program.does(Work::Fetch, |_| ()), "a loader in a loader");
                program.does(Work::Sample, |_| ());
            }
        });
        if raises == Raises::InFetch {
            self.training.exhausted();
            return Err(());
        }
        self.training.fetched(None, &mut self.to);
        if kind.transfers {
            self.plainly(Work::Transfer);
        }
        Ok(())
    }

    /// Forward and backward.
    fn differentiates(&mut self, kind: &Kind, iteration: &Iteration, zeroes: bool) -> Result<(), ()> {
        if zeroes && kind.zeroes == 1 {
            self.does(Work::ZeroGrad, |_| ());
        }
        if kind.has_roots {
            self.does(Work::Forward, |program| {
                if iteration.compiles {
                    program.does(Work::Compile, |_| ());
                }
            });
        }
        if iteration.raises == Raises::InForward {
            return Err(());
        }
        if zeroes && kind.zeroes == 2 {
            self.does(Work::ZeroGrad, |_| ());
        }
        self.tries(Work::Backward, iteration.raises == Raises::InBackward)
    }

    /// One iteration. An error is what the program catches.
    fn iterates(&mut self, kind: &Kind, iteration: &Iteration) -> Result<(), ()> {
        for _ in 0..iteration.evaluates {
            if iteration.by_loader {
                self.fetch(None);
            }
            self.does(Work::Evaluation, |_| ());
        }
        for micro_batch in 0..kind.micro_batches {
            self.batch(kind, iteration.raises)?;
            if kind.closure_calls == 0 && kind.optimizers == 1 {
                self.differentiates(kind, iteration, micro_batch == 0)?;
            }
        }
        if kind.clips {
            self.does(Work::Clip, |_| ());
        }
        let raises = iteration.raises == Raises::InOptimizer;
        for optimizer in 1..=kind.optimizers {
            if kind.optimizers > 1 {
                self.differentiates(kind, iteration, true)?;
            }
            let mut result = Ok(());
            let mut closure = |program: &mut Self| {
                for _ in 0..kind.closure_calls {
                    if result.is_ok() {
                        result = program.differentiates(kind, iteration, true);
                    }
                }
            };
            let raises_inside = matches!(iteration.raises, Raises::InForward | Raises::InBackward);
            let closure = (kind.closure_calls > 0).then_some(&mut closure as &mut dyn FnMut(&mut Self));
            let has_closure = closure.is_some();
            self.steps(optimizer, closure, raises || has_closure && raises_inside);
            if raises {
                return Err(());
            }
            result?;
        }
        if kind.zeroes == 3 {
            self.does(Work::ZeroGrad, |_| ());
        }
        if iteration.saves {
            self.does(Work::Checkpoint, |_| ());
        }
        Ok(())
    }
}

/// Runs a loop; returns what was recorded, and how many iterations came to their end.
fn run(kind: &Kind, iterations: &[Iteration]) -> (Recorder, usize) {
    let mut program = Program::new();
    program.training.has_peers = kind.has_peers;
    program.training.expect(&(1..=kind.optimizers).collect::<Vec<_>>());
    let completed = iterations.iter().filter(|iteration| program.iterates(kind, iteration).is_ok()).count();
    program.to.release(Ticks::MAX);
    program.to.publish(false); // no backward pass is a step where each optimizer's step raises
    (program.to, completed)
}

fn is_phase(name: Name) -> bool {
    !matches!(name, Name::BackwardOfRanks | Name::MicroBatch | Name::Unscale | Name::Clip)
}

proptest! {
    #[test]
    fn phases_never_overlap(kind in kinds(), iterations in iterations()) {
        let (recorded, _) = run(&kind, &iterations);
        let mut phases: Vec<_> =
            recorded.spans.iter().filter(|(name, ..)| is_phase(*name) && *name != Name::Validation).collect();
        phases.sort_by_key(|(_, begin, _)| *begin);
        for pair in phases.windows(2) {
            prop_assert!(pair[0].2 <= pair[1].1, "{:?}\n{:?}", pair, kind);
        }
    }

    #[test]
    fn everything_is_recorded_in_the_order_of_its_end(kind in kinds(), iterations in iterations()) {
        let (recorded, _) = run(&kind, &iterations);
        for pair in recorded.spans.windows(2) {
            prop_assert!(pair[0].2 <= pair[1].2, "{:?}\n{:?}", pair, kind);
        }
    }

    #[test]
    fn no_span_is_in_two_steps(kind in kinds(), iterations in iterations()) {
        let (recorded, _) = run(&kind, &iterations);
        for end in &recorded.steps {
            prop_assert!(!recorded.spans.iter().any(|(_, begin, until)| begin < end && end < until), "{kind:?}");
        }
    }

    #[test]
    fn steps_are_counted_as_the_program_counts(kind in kinds(), mut iterations in iterations()) {
        // A step of two optimizers that raises between them is half a step.
        if kind.optimizers > 1 {
            iterations.iter_mut().for_each(|iteration| iteration.raises = Raises::Never);
        }
        let (recorded, completed) = run(&kind, &iterations);
        prop_assert_eq!(recorded.steps.len(), completed, "{:?}", kind);
    }
}
