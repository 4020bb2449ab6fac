//! The training itself: a step on a sampled batch, on one rank or with others, and judging after each epoch.

use candle_core::Device;
use gnntop_probe::device::Holdings;
use gnntop_probe::{BatchShape, Name, NameKind, NameRef, Reported, counter, intern, phase, span};

use super::SampledRun;
use super::features::FeaturePath;
use crate::inject::ALONE;
use crate::launch::{Facts, Launch, Rank};
use crate::parallel::GradientSync;
use crate::train::wait_for_batch;
use crate::train::{Observer, Position, StepOutcome, Summary, TrainError, Training, holdings};
use gnntop_data::loading::{LoadedBatch, Loader, LoaderShard};
use gnntop_data::sampling::{NodeBatch, NodeBatches};
use gnntop_nn::cuda::copy_edges;
use gnntop_nn::learn::{Accuracy, LabelledRows, Learner, NodeInput};
use gnntop_nn::models::{FeatureRows, NodeModel, Pass};

static BARRIER: Name = Name::reported(Reported::Barrier);
static TRAINING_F1: Name = Name::counter("F1 train");
static VALIDATION_F1: Name = Name::counter("F1 valid");

impl SampledRun<'_> {
    /// Publishes and trains to the end on the ranks that the options ask for, each with a model from `make`.
    pub(crate) fn train<M, F>(&self, make: F, observer: &mut dyn Observer) -> Result<Summary, TrainError>
    where
        M: NodeModel,
        F: Fn(&Device) -> candle_core::Result<Learner<M>> + Sync,
    {
        let (options, ranks) = (self.options, self.ranks);
        if ranks.is_alone() {
            let device = options.open_device()?;
            // Before the loaders start: their tracks are opened on it.
            return options.published(self.name, &device.clone(), observer, |observer| {
                SampledTraining::new(self, make(&device)?, device, None)?.run(self, observer)
            });
        }
        let launch = Launch { name: self.name, ranks, run: options, stages: 1, settings: &self.alike() };
        launch.run(observer, |rank, observer| {
            observer.report_line(&self.describe_shards(rank.collective().ranks()));
            let device = rank.open_device()?;
            rank.observe(&device)?;
            SampledTraining::new(self, make(&device)?, device, Some(rank))?.run(self, observer)
        })
    }
}

/// A model, its training batches and those that judge it.
struct SampledTraining<'a, M> {
    trainer: Learner<M>,
    device: Device,
    features: FeaturePath,
    training: Loader<NodeBatches>,
    /// The next batch, whose features are already sent.
    ahead: Option<LoadedBatch<NodeBatch>>,
    validation: Option<Loader<NodeBatches>>,
    test: Option<Loader<NodeBatches>>,
    layers: Vec<NameRef>,
    facts: Facts,
    learning_rate: f64,
    epochs: u64,
    steps: u64,
    seed: u64,
    peers: Option<Peers<'a>>,
}

/// The other ranks that train with this one.
struct Peers<'a> {
    rank: &'a Rank,
    gradients: GradientSync,
    /// All have agreed to stop.
    is_over: bool,
    /// The next step's gradients are not exchanged: a fault on purpose.
    skips: bool,
}

impl<'a, M: NodeModel> SampledTraining<'a, M> {
    fn new(
        run: &SampledRun<'_>,
        trainer: Learner<M>,
        device: Device,
        rank: Option<&'a Rank>,
    ) -> Result<Self, TrainError> {
        let split = &run.dataset.split;
        let (number, of) = rank.map_or((0, 1), |rank| (rank.collective().rank(), rank.collective().ranks()));
        let whose = LoaderShard { number, of };
        let layers = 0..trainer.model().layers();
        let gradients = || GradientSync::new(trainer.parameters().list());
        let features = FeaturePath::new(run.dataset, trainer.model(), &device, run.features_on_device)?;
        let judging = |nodes| run.judging_loader(nodes, whose, |batches| features.adapted_for_judging(batches));
        Ok(Self {
            training: run.training_loader(whose, |batches| features.adapted(batches, &device))?,
            validation: judging(&split.validation)?,
            test: judging(&split.test)?,
            features,
            ahead: None,
            layers: layers.map(|i| intern(NameKind::Span, &format!("layer {i}"))).collect(),
            peers: rank.map(|rank| Peers { rank, gradients: gradients(), is_over: false, skips: false }),
            trainer,
            device,
            // Seeds in an epoch, over all ranks.
            facts: Facts::default().with(Reported::TrainingSet, split.train.len() as f64),
            learning_rate: run.learning_rate,
            epochs: run.epochs,
            steps: 0,
            // Ranks drop different values.
            seed: run.options.seed.wrapping_add((number as u64) << 32),
        })
    }

    /// Trains to the end, on a thread that has its track.
    fn run(mut self, run: &SampledRun<'_>, observer: &mut dyn Observer) -> Result<Summary, TrainError> {
        if let Some(peers) = &self.peers {
            peers.gradients.share_parameters(peers.rank.collective())?;
        }
        let place = self.peers.as_ref().map(|peers| peers.rank.place());
        let rank = place.map_or(ALONE, |place| (place.rank, place.ranks));
        let epochs = 0..self.epochs;
        run.options.train(&mut self, epochs, rank, observer)
    }

    /// Forward, backward, optimizer. Returns the loss and the right answers.
    fn learn(
        &mut self,
        batch: &NodeBatch,
        features: FeatureRows<'_>,
        labelled: &LabelledRows,
    ) -> Result<(f64, Accuracy), TrainError> {
        let outcome = {
            let _forward = span(&phase::FORWARD);
            let input = NodeInput { features, layers: &batch.layers, labelled };
            let pass = Pass::Train { seed: self.seed.wrapping_add(self.steps) };
            self.trainer.forward_with(&input, pass, |layer| span(self.layers[layer]))?
        };
        let mut gradients = {
            let _backward = span(&phase::BACKWARD);
            outcome.loss.backward()?
        };
        if let Some(peers) = &mut self.peers {
            if !std::mem::take(&mut peers.skips) {
                peers.gradients.all_reduce(&mut gradients, peers.rank.collective())?;
            }
            let _agree = span(&phase::ALL_REDUCE);
            peers.is_over = peers.rank.agree_to_stop()?;
        }
        {
            let _optimizer = span(&phase::OPTIMIZER);
            self.trainer.optimizer_step(&gradients, self.learning_rate)?;
        }
        if self.features.is_ahead() {
            // All work is submitted; while the device does it, the next batch is sent.
            self.ahead = Some(self.fetch()?);
        }
        let _optimizer = span(&phase::OPTIMIZER);
        Ok((f64::from(outcome.loss.to_scalar::<f32>()?), outcome.accuracy(&batch.labels)?))
    }

    /// The loader's next batch, with its features sent.
    fn fetch(&mut self) -> Result<LoadedBatch<NodeBatch>, TrainError> {
        let batch = wait_for_batch(&mut self.training)?;
        self.features.send(&batch)?;
        Ok(batch)
    }

    /// Right answers of all ranks together.
    fn of_all_ranks(&self, own: Accuracy) -> Result<Accuracy, TrainError> {
        let Some(peers) = &self.peers else { return Ok(own) };
        // A viewer should see the wait here if a rank does not come.
        let _barrier = span(&BARRIER);
        let sum = |value: usize| Ok::<_, TrainError>(peers.rank.collective().gather(value as f64)?.iter().sum::<f64>());
        Ok(Accuracy { right: sum(own.right)? as usize, of: sum(own.of)? as usize })
    }
}

impl<M: NodeModel> Training for SampledTraining<'_, M> {
    fn device(&self) -> &Device {
        &self.device
    }

    fn holdings(&self) -> Option<Holdings> {
        Some(holdings(&self.trainer.adam))
    }

    fn batches_per_epoch(&self) -> u64 {
        self.training.batches_per_epoch()
    }

    fn step(&mut self, _position: Position) -> Result<StepOutcome, TrainError> {
        self.facts.publish();
        let mut batch = self.ahead.take().map_or_else(|| self.fetch(), Ok)?;
        let (arrived, labelled) = {
            let _transfer = span(&phase::TRANSFER);
            let labelled = prepare(&batch, &self.device)?;
            (self.features.receive(&mut batch, &self.device)?, labelled)
        };
        let (loss, accuracy) = self.learn(&batch, arrived.rows(&batch), &labelled)?;
        self.steps += 1;
        counter(&TRAINING_F1, accuracy.share());
        let count = |count: usize| Some(count as u64);
        let (nodes, edges, seeds) = (count(batch.nodes.len()), count(batch.edges()), count(batch.seeds));
        arrived.give_back(&mut batch)?;
        Ok(StepOutcome { loss, shape: BatchShape { graphs: None, nodes, edges, seeds } })
    }

    fn skip_all_reduce(&mut self) {
        if let Some(peers) = &mut self.peers {
            peers.skips = true;
        }
    }

    fn is_over(&self) -> bool {
        self.peers.as_ref().is_some_and(|peers| peers.is_over)
    }

    fn end_epoch(&mut self, epoch: u64, observer: &mut dyn Observer) -> Result<(), TrainError> {
        let validation = judge(&self.trainer, (&self.device, &self.features), self.validation.as_mut())?;
        let validation = self.of_all_ranks(validation)?;
        counter(&VALIDATION_F1, validation.share());
        if epoch + 1 == self.epochs {
            let test = judge(&self.trainer, (&self.device, &self.features), self.test.as_mut())?;
            let test = self.of_all_ranks(test)?;
            observer.report_line(&format!("micro-F1: validation {:.4}, test {:.4}", validation.share(), test.share()));
        }
        Ok(())
    }
}

/// Copies the edges of a batch to the device, and gives its labels.
fn prepare(batch: &NodeBatch, device: &Device) -> candle_core::Result<LabelledRows> {
    batch.layers.iter().try_for_each(|edges| copy_edges(edges, device))?;
    LabelledRows::new(0..batch.seeds as u32, &batch.labels)
}

/// Right answers on all nodes of a loader; none without a loader.
fn judge<M: NodeModel>(
    trainer: &Learner<M>,
    (device, features): (&Device, &FeaturePath),
    loader: Option<&mut Loader<NodeBatches>>,
) -> Result<Accuracy, TrainError> {
    let _validation = span(&phase::VALIDATION);
    let mut all = Accuracy::default();
    let Some(loader) = loader else { return Ok(all) };
    for _ in 0..loader.batches_per_epoch() {
        let mut batch = loader.next_batch()?;
        let labelled = prepare(&batch, device)?;
        let arrived = features.for_judging(&mut batch, device)?;
        let input = NodeInput { features: arrived.rows(&batch), layers: &batch.layers, labelled: &labelled };
        let outcome = trainer.forward(&input, Pass::Evaluate)?;
        all = all.and(outcome.accuracy(&batch.labels)?);
        drop(outcome);
        arrived.give_back(&mut batch)?;
    }
    Ok(all)
}
