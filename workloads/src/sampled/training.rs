//! The loop's part: a step on a sampled batch, and judging after each epoch.

use candle_core::{Device, Tensor};
use gnntop_probe::{BatchShape, Name, NameKind, NameRef, TrackRole, counter, intern, phase, span};

use super::SampledOptions;
use crate::command::{Observer, Position, StepOutcome, Summary, TrainError, Training, train};
use crate::loading::{LoadedBatch, Loader, wait_for_batch};
use crate::nodes::NodeDataset;
use crate::sampling::{NodeBatch, NodeBatches};
use crate::train::{Accuracy, LabelledRows, NodeInput, NodeModel, NodeTrainer, Pass};

static EVALUATE: Name = Name::span("evaluate");
static TRAINING_F1: Name = Name::counter("F1 train");
static VALIDATION_F1: Name = Name::counter("F1 valid");

/// A model, the batches it learns from and those it is judged by.
pub(crate) struct SampledTraining<M> {
    trainer: NodeTrainer<M>,
    device: Device,
    training: Loader<NodeBatches>,
    validation: Option<Loader<NodeBatches>>,
    test: Option<Loader<NodeBatches>>,
    layers: Vec<NameRef>,
    learning_rate: f64,
    epochs: u64,
    steps: u64,
    seed: u64,
}

impl<M: NodeModel> SampledTraining<M> {
    /// With self-loops added to the graph before it is sampled, where `self_loops`.
    pub(crate) fn new(
        trainer: NodeTrainer<M>,
        device: Device,
        options: &SampledOptions,
        dataset: &NodeDataset,
        self_loops: bool,
    ) -> Result<Self, TrainError> {
        let split = &dataset.split;
        let layers = 0..trainer.model().layers();
        Ok(Self {
            training: options.training_loader(dataset, self_loops)?,
            validation: options.judging_loader(dataset, &split.validation, self_loops)?,
            test: options.judging_loader(dataset, &split.test, self_loops)?,
            layers: layers.map(|i| intern(NameKind::Span, &format!("layer {i}"))).collect(),
            trainer,
            device,
            learning_rate: options.learning_rate(),
            epochs: options.epochs(),
            steps: 0,
            seed: options.run.seed,
        })
    }

    /// Publishes as `name` and trains to the end.
    pub(crate) fn run(
        mut self,
        name: &str,
        options: &SampledOptions,
        observer: &mut dyn Observer,
    ) -> Result<Summary, TrainError> {
        let session = options.run.start(name, observer);
        let track = session.track("train", TrackRole::Training);
        let epochs = self.epochs;
        let done = train(&mut self, 0..epochs, options.run.max_steps(), observer);
        drop((track, session));
        done
    }

    /// Forward, backward, optimizer. Returns the loss and the right answers.
    fn learn(
        &mut self,
        batch: &NodeBatch,
        features: &Tensor,
        labelled: &LabelledRows,
    ) -> candle_core::Result<(f64, Accuracy)> {
        let outcome = {
            let _forward = span(&phase::FORWARD);
            let input = NodeInput { features, layers: &batch.layers, labelled };
            let pass = Pass::Train { seed: self.seed.wrapping_add(self.steps) };
            self.trainer.forward_with(&input, pass, |layer| span(self.layers[layer]))?
        };
        let gradients = {
            let _backward = span(&phase::BACKWARD);
            self.trainer.backward(&outcome)?
        };
        let _optimizer = span(&phase::OPTIMIZER);
        self.trainer.optimizer_step(&gradients, self.learning_rate)?;
        Ok((f64::from(outcome.loss.to_scalar::<f32>()?), outcome.accuracy(&batch.labels)?))
    }
}

impl<M: NodeModel> Training for SampledTraining<M> {
    fn device(&self) -> &Device {
        &self.device
    }

    fn batches_per_epoch(&self) -> u64 {
        self.training.batches_per_epoch()
    }

    fn step(&mut self, _position: Position) -> Result<StepOutcome, TrainError> {
        let mut batch = wait_for_batch(&mut self.training)?;
        let Input { host, features, labelled } = {
            let _transfer = span(&phase::TRANSFER);
            Input::of(&mut batch, &self.device)?
        };
        let (loss, accuracy) = self.learn(&batch, &features, &labelled)?;
        drop(features);
        self.steps += 1;
        counter(&TRAINING_F1, accuracy.share());
        let count = |count: usize| Some(count as u64);
        let (nodes, edges, seeds) = (count(batch.nodes.len()), count(batch.edges()), count(batch.seeds));
        batch.return_features(host)?;
        Ok(StepOutcome { loss, shape: BatchShape { graphs: None, nodes, edges, seeds } })
    }

    fn end_epoch(&mut self, epoch: u64, observer: &mut dyn Observer) -> Result<(), TrainError> {
        let validation = judge(&self.trainer, &self.device, self.validation.as_mut())?;
        counter(&VALIDATION_F1, validation.share());
        if epoch + 1 == self.epochs {
            let test = judge(&self.trainer, &self.device, self.test.as_mut())?;
            observer.tell(&format!("micro-F1: validation {:.4}, test {:.4}", validation.share(), test.share()));
        }
        Ok(())
    }
}

/// What a model is given of a batch.
struct Input {
    /// The features as they were loaded, whose memory goes back to the batch.
    host: Tensor,
    /// The same on the device.
    features: Tensor,
    labelled: LabelledRows,
}

impl Input {
    fn of(batch: &mut LoadedBatch<NodeBatch>, device: &Device) -> candle_core::Result<Self> {
        let labelled = LabelledRows::new(0..batch.seeds as u32, &batch.labels)?;
        batch.layers.iter().try_for_each(|edges| edges.prepare(device))?;
        let host = batch.take_features()?;
        Ok(Self { features: host.to_device(device)?, host, labelled })
    }
}

/// Right answers on all nodes of a loader; none where there is no loader.
fn judge<M: NodeModel>(
    trainer: &NodeTrainer<M>,
    device: &Device,
    loader: Option<&mut Loader<NodeBatches>>,
) -> Result<Accuracy, TrainError> {
    let _evaluate = span(&EVALUATE);
    let mut all = Accuracy::default();
    let Some(loader) = loader else { return Ok(all) };
    for _ in 0..loader.batches_per_epoch() {
        let mut batch = loader.next_batch()?;
        let Input { host, features, labelled } = Input::of(&mut batch, device)?;
        let input = NodeInput { features: &features, layers: &batch.layers, labelled: &labelled };
        let outcome = trainer.forward(&input, Pass::Evaluate)?;
        all = all.and(outcome.accuracy(&batch.labels)?);
        drop((outcome, features));
        batch.return_features(host)?;
    }
    Ok(all)
}
