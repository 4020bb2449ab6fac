//! Injections around the steps of a training run.

use std::time::Duration;

use gnntop_probe::{Name, NameKind, NameRef, Reported, counter, intern, phase, span};

use super::causes::{Spinners, fault, multiply_subnormals, occupied, pause, wait_for_ever};
use super::injection::is_in_steps;
use super::{Cause, ChargedTo, Injection, When};
use crate::train::{AroundSteps, Observer, TrainError, Training};
use gnntop_data::loading::{Pause, UsualStep};

static DENORMALS: Name = Name::reported(Reported::Denormals);
/// Steps whose median is the usual step.
const MEASURED_STEPS: usize = 10;

/// Everything injected into a run, kept from step to step. Dropping it ends the threads and frees the memory.
#[derive(Debug, Default)]
pub(crate) struct Injector {
    acts: Vec<(When, Act)>,
    /// Steps begun so far, through all trainings of the run.
    step: u64,
    leaked: Vec<Vec<u8>>,
    /// Held for their threads.
    spinners: Vec<Spinners>,
    /// How long the first steps took, until the usual step is known; `None` if nothing depends on it.
    measured: Option<Vec<Duration>>,
    usual_step: UsualStep,
}

/// What to do around a step that is due.
#[derive(Clone, Copy, Debug)]
enum Act {
    Stall { pause: Pause, charged_to: ChargedTo, mark: Option<NameRef> },
    Faults { bytes: usize },
    Leak { bytes: usize },
    Denormals { count: u32 },
    Hang { charged_to: ChargedTo },
    SkipAllReduce,
}

impl Injector {
    /// Prepares and reports all injections for one rank (its number and the number of ranks), and starts those that
    /// last for the whole run.
    ///
    /// # Errors
    /// An injection names a rank that does not exist.
    pub(crate) fn start(
        injections: &[Injection],
        (rank, ranks): (u32, u32),
        usual_step: &UsualStep,
        observer: &mut dyn Observer,
    ) -> Result<Self, TrainError> {
        let measured = injections.iter().any(is_in_steps).then(Vec::new);
        let mut injector = Self { measured, usual_step: usual_step.clone(), ..Self::default() };
        for injection in injections {
            let Injection { words, cause, when, rank: meant } = injection;
            if meant.is_some_and(|meant| meant >= ranks) {
                return Err(TrainError::InjectRank { words: words.clone(), ranks });
            }
            observer.report_line(&format!("injected: {words}"));
            if !injection.is_for(rank) {
                continue;
            }
            let act = match cause {
                Cause::Stall { pause, charged_to, mark } => {
                    let mark = mark.as_ref().map(|mark| intern(NameKind::Text, mark));
                    Act::Stall { pause: *pause, charged_to: *charged_to, mark }
                }
                Cause::Faults { bytes } => Act::Faults { bytes: *bytes },
                Cause::Leak { bytes } => Act::Leak { bytes: *bytes },
                Cause::Denormals { count } => Act::Denormals { count: *count },
                Cause::Hang { charged_to } => Act::Hang { charged_to: *charged_to },
                Cause::SkipAllReduce => Act::SkipAllReduce,
                Cause::Contention { threads } => {
                    let spinners = Spinners::start(*threads);
                    observer.report_line(&format!(
                        "{} threads compete with the training run for the CPU",
                        spinners.count()
                    ));
                    injector.spinners.push(spinners);
                    continue;
                }
                // The loader does this one: see `loader_delay`.
                Cause::SlowLoader { .. } => continue,
            };
            injector.acts.push((*when, act));
        }
        Ok(injector)
    }

    fn inside_step(&mut self) -> Result<(), TrainError> {
        for (when, act) in &self.acts {
            let is_due = when.is_due(self.step);
            match *act {
                // Counted in every step, so that those without can be compared.
                Act::Denormals { count } => {
                    counter(&DENORMALS, if is_due { multiply_subnormals(count) } else { 0 } as f64)
                }
                _ if !is_due => (),
                Act::Stall { charged_to: ChargedTo::Between, .. } | Act::Hang { charged_to: ChargedTo::Between } => (),
                Act::SkipAllReduce => (),
                Act::Hang { charged_to } => {
                    let _charged = phase_of(charged_to).map(span);
                    wait_for_ever();
                }
                Act::Stall { pause: how_long, charged_to, mark } => {
                    let Some(time) = how_long.time(&self.usual_step) else { continue };
                    let _charged = phase_of(charged_to).map(span);
                    pause(time, mark);
                }
                Act::Faults { bytes } => fault(bytes).map_err(|source| TrainError::Inject { bytes, source })?,
                Act::Leak { bytes } => self.leaked.push(occupied(bytes)),
            }
        }
        Ok(())
    }

    fn skips_all_reduce(&self) -> bool {
        self.acts.iter().any(|(when, act)| matches!(act, Act::SkipAllReduce) && when.is_due(self.step))
    }
}

fn phase_of(charged_to: ChargedTo) -> Option<&'static Name> {
    match charged_to {
        ChargedTo::Forward => Some(&phase::FORWARD),
        ChargedTo::Backward => Some(&phase::BACKWARD),
        ChargedTo::Optimizer => Some(&phase::OPTIMIZER),
        ChargedTo::DataWait => Some(&phase::DATA_WAIT),
        ChargedTo::Step | ChargedTo::Between => None,
    }
}

impl AroundSteps for Injector {
    fn before(&mut self, training: &mut dyn Training) -> Result<(), TrainError> {
        self.step += 1;
        self.inside_step()?;
        if self.skips_all_reduce() {
            training.skip_all_reduce();
        }
        Ok(())
    }

    /// Records how long one of the first steps took.
    fn measured(&mut self, step: Duration) {
        let Some(measured) = &mut self.measured else { return };
        measured.push(step);
        if measured.len() == MEASURED_STEPS {
            measured.sort_unstable();
            self.usual_step.set(measured[MEASURED_STEPS / 2]);
            self.measured = None;
        }
    }

    fn after(&mut self) {
        for (when, act) in &self.acts {
            match *act {
                _ if !when.is_due(self.step) => (),
                Act::Stall { pause: how_long, charged_to: ChargedTo::Between, mark } => {
                    how_long.time(&self.usual_step).into_iter().for_each(|time| pause(time, mark));
                }
                Act::Hang { charged_to: ChargedTo::Between } => wait_for_ever(),
                _ => (),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::{Position, Silent, StepOutcome, train};
    use candle_core::Device;
    use gnntop_probe::BatchShape;

    /// Notes how much has been leaked by each of its steps.
    struct WatchedTraining;

    impl Training for WatchedTraining {
        fn batches_per_epoch(&self) -> u64 {
            3
        }

        fn step(&mut self, _position: Position) -> Result<StepOutcome, TrainError> {
            Ok(StepOutcome { loss: 0.0, shape: BatchShape::default() })
        }

        fn device(&self) -> &Device {
            &Device::Cpu
        }
    }

    fn started(words: &[&str]) -> Injector {
        let injections: Vec<Injection> = words.iter().map(|words| words.parse().unwrap()).collect();
        Injector::start(&injections, (0, 2), &UsualStep::default(), &mut Silent).unwrap()
    }

    #[test]
    fn steps_are_counted_through_epochs_and_trainings() {
        let mut injector = started(&["leak:1KiB@every=4", "leak:2KiB@at=10"]);
        train(&mut WatchedTraining, &mut injector, 0..3, u64::MAX, &mut Silent).unwrap();
        assert_eq!(injector.leaked.iter().map(Vec::len).collect::<Vec<usize>>(), [1024, 1024]);
        train(&mut WatchedTraining, &mut injector, 3..4, u64::MAX, &mut Silent).unwrap();
        assert_eq!(injector.leaked.iter().map(Vec::len).collect::<Vec<usize>>(), [1024, 1024, 2048, 1024]);
    }

    #[test]
    fn what_lasts_is_started_at_once_and_what_is_the_loaders_is_left_to_it() {
        let injector = started(&["contention:2", "slow-loader:5ms", "slow-loader:2ms", "stall:1ms"]);
        assert_eq!(injector.spinners.iter().map(Spinners::count).sum::<usize>(), 2);
        assert_eq!(injector.acts.len(), 1);
        let injections: Vec<Injection> =
            ["slow-loader:5ms", "slow-loader:2ms@rank=1"].map(|w| w.parse().unwrap()).into();
        let usual_step = UsualStep::default();
        let delays = [0, 1].map(|rank| crate::inject::loader_delay(&injections, rank, &usual_step).time());
        assert_eq!(delays, [5, 7].map(Duration::from_millis));
    }

    #[test]
    fn a_rank_does_what_is_meant_for_it_and_a_rank_that_is_not_there_is_an_error() {
        let injections: Vec<Injection> = ["leak:1KiB@rank=1", "contention:3@rank=0", "skip-all-reduce@at=2,rank=1"]
            .map(|w| w.parse().unwrap())
            .into();
        let start = |rank, ranks| Injector::start(&injections, (rank, ranks), &UsualStep::default(), &mut Silent);
        let (zero, mut one) = (start(0, 2).unwrap(), start(1, 2).unwrap());
        assert_eq!((zero.acts.len(), zero.spinners.len(), one.acts.len(), one.spinners.len()), (0, 1, 2, 0));
        let mut skipped = Skipped::default();
        train(&mut skipped, &mut one, 0..1, u64::MAX, &mut Silent).unwrap();
        assert_eq!(skipped.0, [false, true, false]);
        let error = start(0, 1).unwrap_err().to_string();
        assert_eq!(error, "--inject leak:1KiB@rank=1 names a rank that does not exist: there is only rank 0");
    }

    /// Notes in which of its steps the exchange with other ranks is to be left out.
    #[derive(Default)]
    struct Skipped(Vec<bool>, bool);

    impl Training for Skipped {
        fn batches_per_epoch(&self) -> u64 {
            3
        }

        fn skip_all_reduce(&mut self) {
            self.1 = true;
        }

        fn step(&mut self, _position: Position) -> Result<StepOutcome, TrainError> {
            self.0.push(std::mem::take(&mut self.1));
            Ok(StepOutcome { loss: 0.0, shape: BatchShape::default() })
        }

        fn device(&self) -> &Device {
            &Device::Cpu
        }
    }

    #[test]
    fn what_is_given_in_steps_begins_when_the_first_ten_are_measured() {
        let usual_step = UsualStep::default();
        let injections: Vec<Injection> = ["stall:0.5x", "slow-loader:3x"].map(|words| words.parse().unwrap()).into();
        let delay = crate::inject::loader_delay(&injections, 0, &usual_step);
        let mut injector = Injector::start(&injections, (0, 1), &usual_step, &mut Silent).unwrap();
        let mut steps = |count: u64| train(&mut WatchedTraining, &mut injector, 0..count, u64::MAX, &mut Silent);
        steps(3).unwrap(); // three steps an epoch
        assert_eq!(delay.time(), Duration::ZERO);
        steps(1).unwrap();
        let usual = usual_step.get().expect("twelve steps are done");
        assert_eq!(delay.time(), usual * 3);
    }

    #[test]
    fn memory_that_the_system_refuses_is_an_error_in_words() {
        let mut injector =
            Injector { acts: vec![(When::default(), Act::Faults { bytes: usize::MAX / 2 })], ..Injector::default() };
        let error = train(&mut WatchedTraining, &mut injector, 0..1, u64::MAX, &mut Silent).unwrap_err().to_string();
        assert!(error.contains("use a smaller size"), "{error}");
    }

    #[test]
    fn every_injection_is_told() {
        struct Lines(Vec<String>);
        impl Observer for Lines {
            fn report_line(&mut self, line: &str) {
                self.0.push(line.to_owned());
            }
        }
        let mut told = Lines(Vec::new());
        let injections = ["stall:1ms@at=3", "stall:1ms@rank=1"].map(|words| words.parse().unwrap());
        Injector::start(&injections, (0, 2), &UsualStep::default(), &mut told).unwrap();
        assert_eq!(told.0, ["injected: stall:1ms@at=3", "injected: stall:1ms@rank=1"], "those of other ranks too");
    }
}
