//! Injections around the steps of a training.

use std::time::Duration;

use candle_core::Device;
use gnntop_probe::device::Holdings;
use gnntop_probe::{Name, NameKind, NameRef, counter, intern, phase, span};

use super::causes::{Spinners, fault, multiply_subnormals, occupied, pause};
use super::{Cause, Injection, Place, When};
use crate::command::{Observer, Position, StepOutcome, TrainError, Training};

static DENORMALS: Name = Name::counter("denormals");

/// All that is injected into a run: what is kept from step to step. Threads end and memory is given back with it.
#[derive(Debug, Default)]
pub(crate) struct Injector {
    acts: Vec<(When, Act)>,
    /// Steps begun so far, through all trainings of the run.
    step: u64,
    leaked: Vec<Vec<u8>>,
    /// Held for their threads.
    spinners: Vec<Spinners>,
}

/// What is done around a step that is due.
#[derive(Clone, Copy, Debug)]
enum Act {
    Stall { pause: Duration, place: Place, mark: Option<NameRef> },
    Faults { bytes: usize },
    Leak { bytes: usize },
    Denormals { count: u32 },
}

impl Injector {
    /// Prepares all that is asked for, says so, and starts what lasts the whole run.
    pub(crate) fn start(injections: &[Injection], observer: &mut dyn Observer) -> Self {
        let mut injector = Self::default();
        for Injection { words, cause, when } in injections {
            observer.tell(&format!("injected: {words}"));
            let act = match cause {
                Cause::Stall { pause, place, mark } => {
                    let mark = mark.as_ref().map(|mark| intern(NameKind::Text, mark));
                    Act::Stall { pause: *pause, place: *place, mark }
                }
                Cause::Faults { bytes } => Act::Faults { bytes: *bytes },
                Cause::Leak { bytes } => Act::Leak { bytes: *bytes },
                Cause::Denormals { count } => Act::Denormals { count: *count },
                Cause::Contention { threads } => {
                    let spinners = Spinners::start(*threads);
                    observer.tell(&format!("{} threads compute beside the training", spinners.count()));
                    injector.spinners.push(spinners);
                    continue;
                }
                // The loader does this one: see `loader_delay`.
                Cause::SlowLoader { .. } => continue,
            };
            injector.acts.push((*when, act));
        }
        injector
    }

    /// The training with the injections around its steps.
    pub(crate) fn around<'a>(&'a mut self, training: &'a mut dyn Training) -> Injected<'a> {
        Injected { training, injector: self }
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
                Act::Stall { place: Place::Between, .. } => (),
                Act::Stall { pause: time, place, mark } => {
                    let _charged = phase_of(place).map(span);
                    pause(time, mark);
                }
                Act::Faults { bytes } => fault(bytes).map_err(|source| TrainError::Inject { bytes, source })?,
                Act::Leak { bytes } => self.leaked.push(occupied(bytes)),
            }
        }
        Ok(())
    }

    fn after_step(&self) {
        for (when, act) in &self.acts {
            if let Act::Stall { pause: time, place: Place::Between, mark } = *act
                && when.is_due(self.step)
            {
                pause(time, mark);
            }
        }
    }
}

fn phase_of(place: Place) -> Option<&'static Name> {
    match place {
        Place::Forward => Some(&phase::FORWARD),
        Place::Backward => Some(&phase::BACKWARD),
        Place::Optimizer => Some(&phase::OPTIMIZER),
        Place::DataWait => Some(&phase::DATA_WAIT),
        Place::Step | Place::Between => None,
    }
}

/// A training around whose steps something is done.
pub(crate) struct Injected<'a> {
    training: &'a mut dyn Training,
    injector: &'a mut Injector,
}

impl Training for Injected<'_> {
    fn batches_per_epoch(&self) -> u64 {
        self.training.batches_per_epoch()
    }

    fn step(&mut self, position: Position) -> Result<StepOutcome, TrainError> {
        self.injector.step += 1;
        self.injector.inside_step()?;
        self.training.step(position)
    }

    fn after_step(&mut self) {
        self.training.after_step();
        self.injector.after_step();
    }

    fn device(&self) -> &Device {
        self.training.device()
    }

    fn holdings(&self) -> Option<Holdings> {
        self.training.holdings()
    }

    fn is_over(&self) -> bool {
        self.training.is_over()
    }

    fn end_epoch(&mut self, epoch: u64, observer: &mut dyn Observer) -> Result<(), TrainError> {
        self.training.end_epoch(epoch, observer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Silent, train};
    use gnntop_probe::BatchShape;

    /// Notes how much has been leaked by each of its steps.
    struct Watched;

    impl Training for Watched {
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
        Injector::start(&injections, &mut Silent)
    }

    #[test]
    fn steps_are_counted_through_epochs_and_trainings() {
        let mut injector = started(&["leak:1KiB@every=4", "leak:2KiB@at=10"]);
        train(&mut injector.around(&mut Watched), 0..3, u64::MAX, &mut Silent).unwrap();
        assert_eq!(injector.leaked.iter().map(Vec::len).collect::<Vec<usize>>(), [1024, 1024]);
        train(&mut injector.around(&mut Watched), 3..4, u64::MAX, &mut Silent).unwrap();
        assert_eq!(injector.leaked.iter().map(Vec::len).collect::<Vec<usize>>(), [1024, 1024, 2048, 1024]);
    }

    #[test]
    fn what_lasts_is_started_at_once_and_what_is_the_loaders_is_left_to_it() {
        let injector = started(&["contention:2", "slow-loader:5ms", "slow-loader:2ms", "stall:1ms"]);
        assert_eq!(injector.spinners.iter().map(Spinners::count).sum::<usize>(), 2);
        assert_eq!(injector.acts.len(), 1);
        let injections: Vec<Injection> = ["slow-loader:5ms", "slow-loader:2ms"].map(|w| w.parse().unwrap()).into();
        assert_eq!(super::super::loader_delay(&injections), Duration::from_millis(7));
    }

    #[test]
    fn memory_that_the_system_refuses_is_an_error_in_words() {
        let mut injector =
            Injector { acts: vec![(When::default(), Act::Faults { bytes: usize::MAX / 2 })], ..Injector::default() };
        let error = train(&mut injector.around(&mut Watched), 0..1, u64::MAX, &mut Silent).unwrap_err().to_string();
        assert!(error.contains("ask for less"), "{error}");
    }

    #[test]
    fn every_injection_is_told() {
        struct Told(Vec<String>);
        impl Observer for Told {
            fn tell(&mut self, line: &str) {
                self.0.push(line.to_owned());
            }
        }
        let mut told = Told(Vec::new());
        Injector::start(&["stall:1ms@at=3".parse().unwrap()], &mut told);
        assert_eq!(told.0, ["injected: stall:1ms@at=3"]);
    }
}
