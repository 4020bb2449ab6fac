//! The loop that every training runs: epochs of steps, published and reported, until the epochs or steps are done or
//! the observer says stop.

use std::ops::Range;
use std::time::{Duration, Instant};

use candle_core::Device;
use gnntop_nn::learn::Adam;
use gnntop_probe::device::{Holdings, report_holdings};
use gnntop_probe::{BatchShape, Name, mark, step};

use super::explain::explain;
use super::{Observer, StepReport, Summary, TrainError};

static EPOCH: Name = Name::mark("epoch");

/// A step's position in the training run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// Epoch, from 0.
    pub(crate) epoch: u64,
    /// Epochs in all.
    pub(crate) epochs: u64,
    /// Step in the epoch, from 0.
    pub(crate) index: u64,
    /// Steps in an epoch.
    pub(crate) batches: u64,
}

/// The result of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepOutcome {
    /// Loss of the batch.
    pub(crate) loss: f64,
    /// The contents of the batch.
    pub(crate) shape: BatchShape,
}

/// A training run, one step at a time.
pub(crate) trait Training {
    /// Steps in an epoch.
    fn batches_per_epoch(&self) -> u64;

    /// One turn of the loop, data wait included: the caller has opened the step.
    fn step(&mut self, position: Position) -> Result<StepOutcome, TrainError>;

    /// Work between this step and the next.
    fn after_step(&mut self) {}

    /// Skips the exchange of gradients with other ranks in the next step: a fault on purpose. Does nothing without
    /// other ranks.
    fn skip_all_reduce(&mut self) {}

    /// The device it computes on.
    fn device(&self) -> &Device;

    /// What it holds there permanently, if known.
    fn holdings(&self) -> Option<Holdings> {
        None
    }

    /// Whether the ranks that train together have agreed to stop.
    fn is_over(&self) -> bool {
        false
    }

    /// Work between this epoch and the next, outside any step.
    fn end_epoch(&mut self, _epoch: u64, _observer: &mut dyn Observer) -> Result<(), TrainError> {
        Ok(())
    }
}

/// What a training holds on its device, as [`Training::holdings`] says: parameters, gradients and the moments of Adam.
pub(crate) fn holdings(adam: &Adam) -> Holdings {
    let bytes = adam.parameter_bytes();
    Holdings { parameters: bytes, gradients: bytes, optimizer: 2 * bytes }
}

/// What happens around the steps of a training run, whatever it trains.
pub(crate) trait AroundSteps {
    /// At the beginning of each step, inside it.
    fn before(&mut self, _training: &mut dyn Training) -> Result<(), TrainError> {
        Ok(())
    }

    /// How long the training's own part of a step took.
    fn measured(&mut self, _step: Duration) {}

    /// Between this step and the next.
    fn after(&mut self) {}
}

/// Nothing happens around them.
impl AroundSteps for () {}

/// Trains through these epochs, but no more than `max_steps` steps and no longer than the observer wants.
pub(crate) fn train(
    training: &mut dyn Training,
    around: &mut dyn AroundSteps,
    epochs: Range<u64>,
    max_steps: u64,
    observer: &mut dyn Observer,
) -> Result<Summary, TrainError> {
    let mut summary = Summary::default();
    if let Some(holdings) = training.holdings() {
        report_holdings(holdings);
    }
    let batches = training.batches_per_epoch();
    let end = epochs.end;
    for epoch in epochs {
        mark(&EPOCH, Some(epoch as f64));
        for index in 0..batches {
            if summary.steps >= max_steps || observer.should_stop() || training.is_over() {
                return Ok(summary);
            }
            let report = one_step(training, around, Position { epoch, epochs: end, index, batches })?;
            summary.steps += 1;
            summary.loss = Some(report.loss);
            observer.step(&report);
        }
        training.end_epoch(epoch, observer)?;
    }
    Ok(summary)
}

fn one_step(
    training: &mut dyn Training,
    around: &mut dyn AroundSteps,
    position: Position,
) -> Result<StepReport, TrainError> {
    let begin = Instant::now();
    let mut step = step(position.epoch);
    let done = around.before(training).and_then(|()| {
        let begin = Instant::now();
        let done = training.step(position);
        around.measured(begin.elapsed());
        done
    });
    let StepOutcome { loss, shape } = done.map_err(|error| explain(error, training.device()))?;
    step.batch(shape);
    step.loss(loss);
    drop(step);
    let time = begin.elapsed();
    training.after_step();
    around.after();
    let Position { epoch, epochs, index, batches } = position;
    Ok(StepReport { epoch, epochs, index, batches, loss, shape, time })
}

#[cfg(test)]
mod tests {
    use gnntop_probe::device::Attach;
    use gnntop_probe::{Session, TrackRole, phase, span};
    use gnntop_wire::{Event, Item, StreamReader};

    use super::*;
    use crate::train::Silent;
    use gnntop_nn::device::asked_for;
    use gnntop_simulated::SimulatedPool;

    const MIB: u64 = 1 << 20;

    /// Needs more memory than there is in the backward phase of its third step.
    struct Hungry {
        pool: SimulatedPool,
        steps: u64,
    }

    impl Hungry {
        /// Takes memory until the end of a phase, as tensors do.
        fn phase(&self, name: &'static Name, mib: u64) -> Result<(), TrainError> {
            let _phase = span(name);
            let bytes = mib * MIB;
            let failed = |error| candle_core::Error::Msg(error).context(asked_for(bytes as usize));
            self.pool.allocate(bytes).map_err(failed)?;
            self.pool.free(bytes);
            Ok(())
        }
    }

    impl Training for Hungry {
        fn device(&self) -> &Device {
            &Device::Cpu
        }

        fn batches_per_epoch(&self) -> u64 {
            10
        }

        fn holdings(&self) -> Option<Holdings> {
            Some(Holdings { parameters: 16 * MIB, gradients: 16 * MIB, optimizer: 32 * MIB })
        }

        fn step(&mut self, _position: Position) -> Result<StepOutcome, TrainError> {
            self.steps += 1;
            self.phase(&phase::FORWARD, 100)?;
            self.phase(&phase::BACKWARD, if self.steps == 3 { 900 } else { 200 })?;
            Ok(StepOutcome { loss: 0.5, shape: BatchShape::default() })
        }
    }

    #[test]
    fn want_of_memory_ends_a_training_in_a_line_and_its_recording_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hungry.gnntop");
        let session = Session::builder("hungry").record_to(&file).sensors(None).start();
        let track = session.track("train", TrackRole::Training);
        let pool = SimulatedPool::new(512 * MIB);
        pool.allocate(48 * MIB).unwrap();
        assert!(Attach::new("simulated").pool(Box::new(pool.clone())).start());
        let error = train(&mut Hungry { pool, steps: 0 }, &mut (), 0..1, u64::MAX, &mut Silent).unwrap_err();
        drop((track, session));
        assert_eq!(
            error.to_string(),
            "the device ran out of memory in backward of step 3: 900 MiB asked for; tensors: peak 248 MiB, \
             now 48 MiB; 248 MiB reserved; 264 MiB of 512 MiB free; largest in the last measured step: workspace \
             184 MiB, optimizer state 32 MiB, parameters 16 MiB; take a smaller batch or model"
        );
        let mut reader = StreamReader::new();
        reader.fill(&std::fs::read(&file).unwrap());
        reader.finish();
        let (mut steps, mut ended) = (0, false);
        while let Some(item) = reader.next() {
            match item {
                Item::Block(_, events) => steps += events.filter(|event| matches!(event, Event::Step(_))).count(),
                Item::End(_) => ended = true,
                Item::Damage(damage) => panic!("{damage:?}"),
                _ => {}
            }
        }
        assert_eq!((steps, ended), (3, true), "the step that failed is there too");
    }

    /// Notes the positions of its steps.
    #[derive(Default)]
    struct Notes {
        steps: Vec<(u64, u64)>,
        ends: Vec<u64>,
    }

    impl Training for Notes {
        fn device(&self) -> &Device {
            &Device::Cpu
        }

        fn batches_per_epoch(&self) -> u64 {
            3
        }

        fn step(&mut self, position: Position) -> Result<StepOutcome, TrainError> {
            self.steps.push((position.epoch, position.index));
            Ok(StepOutcome { loss: 0.5, shape: BatchShape::default() })
        }

        fn end_epoch(&mut self, epoch: u64, _observer: &mut dyn Observer) -> Result<(), TrainError> {
            self.ends.push(epoch);
            Ok(())
        }
    }

    #[test]
    fn epochs_run_in_order_and_end() {
        let mut notes = Notes::default();
        let summary = train(&mut notes, &mut (), 0..2, u64::MAX, &mut Silent).unwrap();
        assert_eq!(notes.steps, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
        assert_eq!(notes.ends, [0, 1]);
        assert_eq!(summary, Summary { steps: 6, loss: Some(0.5) });
    }

    #[test]
    fn steps_are_limited() {
        let mut notes = Notes::default();
        assert_eq!(train(&mut notes, &mut (), 0..2, 4, &mut Silent).unwrap().steps, 4);
        assert_eq!(notes.ends, [0]);
        assert_eq!(train(&mut notes, &mut (), 0..2, 0, &mut Silent).unwrap().steps, 0);
    }
}
