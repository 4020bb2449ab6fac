//! The training: its batches, its steps in phases, and its report after each epoch.

use candle_core::{DType, Device};
use gnntop_probe::device::Holdings;
use gnntop_probe::{BatchShape, Name, NameKind, NameRef, counter, intern, phase, span};

use super::validation::Validation;
use crate::inject::ALONE;
use crate::launch::RunOptions;
use crate::train::{Observer, Position, StepOutcome, Summary, TrainError, Training, holdings};
use crate::train::{published_loader, wait_for_batch};
use gnntop_data::graph::{Batch, Graph, in_degree_histogram};
use gnntop_data::loading::{LoadedBatch, LoaderSettings};
use gnntop_data::molecule::{GraphBatches, Loader};
use gnntop_nn::cuda::CopiesAhead;
use gnntop_nn::learn::{AdamSettings, Learner, TargetScale, cosine_learning_rate};
use gnntop_nn::models::pna::{DeviceBatch, Numbered, Pna, PnaConfig};

static VALIDATION_ERROR: Name = Name::counter("MAE eV");

/// How a [`Pna`](gnntop_nn::models::pna::Pna) is trained.
#[derive(Debug, Clone, PartialEq)]
pub struct PnaTraining {
    /// Graphs in a full batch.
    pub batch_graphs: usize,
    /// Epochs, also the period of the cosine schedule.
    pub epochs: usize,
    /// Learning rate at the start.
    pub learning_rate: f64,
    /// L2 penalty, added to the gradient.
    pub weight_decay: f64,
}

impl Default for PnaTraining {
    /// A batch for steps of about 50 ms with the default [`PnaConfig`](gnntop_nn::models::pna::PnaConfig).
    fn default() -> Self {
        Self { batch_graphs: 256, epochs: 100, learning_rate: 3e-4, weight_decay: 0.0 }
    }
}

impl PnaTraining {
    /// The study's settings at batch 512: 15 epochs, Adam with a rate of 1e-6.
    #[must_use]
    pub fn study() -> Self {
        Self { batch_graphs: 512, epochs: 15, learning_rate: 1e-6, weight_decay: 0.0 }
    }
}

/// The model, its data and settings.
pub(crate) struct PnaRun<'a> {
    /// Its degree scalers are set from the graphs.
    pub(crate) model: PnaConfig,
    pub(crate) training: PnaTraining,
    /// The training set.
    pub(crate) graphs: Vec<Graph>,
    /// The validation set, used after each epoch; may be empty.
    pub(crate) validation: Vec<Graph>,
    /// Loader threads.
    pub(crate) workers: usize,
    pub(crate) options: &'a RunOptions,
}

impl PnaRun<'_> {
    /// Publishes and trains to the end on this device.
    ///
    /// # Errors
    /// The graphs do not make batches, or the model cannot be computed.
    pub(crate) fn train(self, device: Device, observer: &mut dyn Observer) -> Result<Summary, TrainError> {
        let (options, epochs) = (self.options, self.training.epochs as u64);
        options.published("pna", &device.clone(), observer, |observer| {
            options.train(&mut Run::new(self, device)?, 0..epochs, ALONE, observer)
        })
    }

    fn loader(&self) -> LoaderSettings {
        LoaderSettings {
            batch_size: self.training.batch_graphs,
            workers: self.workers,
            seed: self.options.seed,
            delay: self.options.loader_delay(ALONE.0),
            ..LoaderSettings::default()
        }
    }
}

/// A run in progress.
struct Run {
    learner: Learner<Pna>,
    scale: TargetScale,
    loader: Loader,
    validation: Option<Validation>,
    layers: Vec<NameRef>,
    training: PnaTraining,
    device: Device,
    copies: Option<CopiesAhead>,
    /// The next batch, if it was sent while the device computed.
    ahead: Option<Fetched>,
}

/// A batch from the loader, and what goes to the device.
struct Fetched {
    batch: LoadedBatch<Batch>,
    /// With its values sent.
    sent: Option<Numbered>,
}

impl Training for Run {
    fn device(&self) -> &Device {
        &self.device
    }

    fn holdings(&self) -> Option<Holdings> {
        Some(holdings(&self.learner.adam))
    }

    fn batches_per_epoch(&self) -> u64 {
        self.loader.batches_per_epoch()
    }

    fn step(&mut self, position: Position) -> Result<StepOutcome, TrainError> {
        let Fetched { batch, sent } = self.ahead.take().map_or_else(|| self.fetch(), Ok)?;
        let device_batch = {
            let _transfer = span(&phase::TRANSFER);
            self.arrived(&batch, sent)?
        };
        let loss = {
            let _forward = span(&phase::FORWARD);
            let predictions = self.learner.model().forward_with(&device_batch, |layer| span(self.layers[layer]))?;
            self.scale.loss(&predictions, device_batch.targets())?
        };
        let gradients = {
            let _backward = span(&phase::BACKWARD);
            loss.backward()?
        };
        {
            let _optimizer = span(&phase::OPTIMIZER);
            self.learner.optimizer_step(&gradients, self.learning_rate(position))?;
        }
        if self.copies.is_some() {
            // All work is submitted; while the device does it, the next batch is sent.
            self.ahead = Some(self.fetch()?);
        }
        let count = |count: usize| Some(count as u64);
        let (graphs, nodes, edges) = (count(batch.graphs), count(batch.nodes), count(batch.edges));
        let loss = f64::from(loss.to_scalar::<f32>()?);
        Ok(StepOutcome { loss, shape: BatchShape { graphs, nodes, edges, seeds: None } })
    }

    fn end_epoch(&mut self, epoch: u64, observer: &mut dyn Observer) -> Result<(), TrainError> {
        let Some(validation) = &self.validation else { return Ok(()) };
        let error = {
            let _validation = span(&phase::VALIDATION);
            validation.mean_absolute_error(self.learner.model(), self.scale)?
        };
        counter(&VALIDATION_ERROR, error);
        if epoch + 1 == self.training.epochs as u64 {
            let mean = validation.error_of_the_mean(self.scale);
            observer
                .report_line(&format!("validation MAE {error:.4} eV; always predicting the mean gives {mean:.4} eV"));
        }
        Ok(())
    }
}

impl Run {
    fn new(run: PnaRun<'_>, device: Device) -> Result<Self, TrainError> {
        let model = run.model.clone().with_degrees(&in_degree_histogram(&run.graphs));
        let scale = TargetScale::new(run.graphs.iter().map(|graph| graph.y));
        let adam = AdamSettings { weight_decay: run.training.weight_decay, ..AdamSettings::default() };
        let settings = run.loader();
        Ok(Self {
            learner: Learner::build(&device, adam, run.options.seed, |vb| Pna::new(&model, vb))?,
            scale,
            loader: published_loader(GraphBatches::new(run.graphs), settings)?,
            validation: Validation::new(&run.validation, run.training.batch_graphs, &device)?,
            layers: (0..model.layers).map(|i| intern(NameKind::Span, &format!("layer {i}"))).collect(),
            training: run.training,
            copies: CopiesAhead::to(&device)?,
            ahead: None,
            device,
        })
    }

    /// The loader's next batch, already sent if batches go ahead.
    fn fetch(&mut self) -> Result<Fetched, TrainError> {
        let batch = wait_for_batch(&mut self.loader)?;
        let Some(copies) = &mut self.copies else { return Ok(Fetched { batch, sent: None }) };
        let numbered = {
            let _gather = span(&phase::GATHER);
            let numbered = Numbered::new(&batch)?;
            numbered.stage();
            copies.send(numbered.values(&batch), |out| numbered.write(&batch, out))?;
            numbered
        };
        Ok(Fetched { batch, sent: Some(numbered) })
    }

    /// A batch on the device: waited for, or copied now.
    fn arrived(&mut self, batch: &Batch, sent: Option<Numbered>) -> candle_core::Result<DeviceBatch> {
        match (&mut self.copies, sent) {
            (Some(copies), Some(numbered)) => numbered.arrive(batch, &copies.receive()?),
            _ => DeviceBatch::new(batch, DType::F32, &self.device),
        }
    }

    fn learning_rate(&self, position: Position) -> f64 {
        let Position { epoch, index, batches, .. } = position;
        let (epoch, index, batches) = (epoch as usize + 1, index as usize, batches as usize);
        cosine_learning_rate(self.training.learning_rate, self.training.epochs, epoch, index, batches)
    }
}
