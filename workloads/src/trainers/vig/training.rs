//! Training of the whole model: its batches, its steps in phases, and its report after each epoch.

use std::sync::Arc;

use candle_core::{Device, Tensor};
use gnntop_probe::device::Holdings;
use gnntop_probe::{BatchShape, Name, NameKind, NameRef, counter, intern, phase, span};

use super::VigTraining;
use super::network::{Network, NetworkConfig};
use crate::inject::ALONE;
use crate::launch::RunOptions;
use crate::train::{Observer, Position, StepOutcome, Summary, TrainError, Training, holdings};
use crate::train::{published_loader, wait_for_batch};
use gnntop_data::images::{self, ImageBatch, ImageBatches, ImageData, ImageSet};
use gnntop_data::loading::{LoadedBatch, Loader, LoaderSettings};
use gnntop_nn::cuda::CopiesAhead;
use gnntop_nn::learn::{Accuracy, AdamSettings, LabelledRows, Learner, cross_entropy};
use gnntop_nn::models::vig::Mode;

pub(super) static TRAINING_ACCURACY: Name = Name::counter("acc train");
static TEST_ACCURACY: Name = Name::counter("acc test");

/// The model, its data and settings.
pub(crate) struct VigRun<'a> {
    pub(crate) model: NetworkConfig,
    pub(crate) training: VigTraining,
    pub(crate) images: ImageData,
    /// Loader threads.
    pub(crate) workers: usize,
    pub(crate) options: &'a RunOptions,
}

impl VigRun<'_> {
    /// Publishes and trains to the end on this device.
    ///
    /// # Errors
    /// A batch cannot be made, or the model cannot be computed.
    pub(crate) fn train(self, device: Device, observer: &mut dyn Observer) -> Result<Summary, TrainError> {
        let (options, epochs) = (self.options, self.training.epochs as u64);
        options.published("vig", &device.clone(), observer, |observer| {
            options.train(&mut Run::new(self, device)?, 0..epochs, ALONE, observer)
        })
    }
}

/// A run in progress.
struct Run {
    config: NetworkConfig,
    device: Device,
    learner: Learner<Network>,
    training: VigTraining,
    loader: Loader<ImageBatches>,
    test: ImageSet,
    blocks: Vec<NameRef>,
    copies: Option<CopiesAhead>,
    /// The next batch, if it was sent while the device computed.
    ahead: Option<LoadedBatch<ImageBatch>>,
}

impl Run {
    fn new(run: VigRun<'_>, device: Device) -> Result<Self, TrainError> {
        let VigRun { model: config, training, images, workers, options } = run;
        let settings = LoaderSettings {
            batch_size: training.batch_images,
            workers,
            seed: options.seed,
            delay: options.loader_delay(ALONE.0),
            ..LoaderSettings::default()
        };
        Ok(Self {
            copies: CopiesAhead::to(&device)?,
            ahead: None,
            learner: Learner::build(&device, AdamSettings::default(), options.seed, |vb| Network::new(&config, vb))?,
            device,
            loader: published_loader(ImageBatches::new(Arc::new(images.train)), settings)?,
            training,
            test: images.test,
            blocks: (0..config.blocks()).map(|i| intern(NameKind::Span, &format!("block {i}"))).collect(),
            config,
        })
    }

    /// The loader's next batch, already sent if batches go ahead.
    fn fetch(&mut self) -> Result<LoadedBatch<ImageBatch>, TrainError> {
        let batch = wait_for_batch(&mut self.loader)?;
        if let Some(copies) = &mut self.copies {
            let _gather = span(&phase::GATHER);
            copies.send(batch.features.len(), |out| out.copy_from_slice(&batch.features))?;
        }
        Ok(batch)
    }

    /// The pixels of a batch on the device: waited for, or copied now.
    fn arrived(&mut self, batch: &ImageBatch) -> candle_core::Result<Tensor> {
        match &mut self.copies {
            Some(copies) => batch.as_pixels(&copies.receive()?),
            None => batch.pixels(&self.device),
        }
    }

    /// Share of right answers on the test images, some at a time.
    fn judge(&self) -> Result<Accuracy, TrainError> {
        let _validation = span(&phase::VALIDATION);
        let mut batch = ImageBatch::default();
        let mut all = Accuracy::default();
        let indices: Vec<u32> = (0..self.test.len() as u32).collect();
        for part in indices.chunks(self.training.batch_images) {
            batch.assemble(&self.test, part)?;
            let logits = self.learner.model().forward_with(&batch.pixels(&self.device)?, Mode::Eval, |_| ())?;
            all = all.and(Accuracy::new(&logits.detach(), &batch.labels)?);
        }
        Ok(all)
    }
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

    fn step(&mut self, _position: Position) -> Result<StepOutcome, TrainError> {
        let batch = self.ahead.take().map_or_else(|| self.fetch(), Ok)?;
        let (pixels, labelled) = {
            let _transfer = span(&phase::TRANSFER);
            (self.arrived(&batch)?, LabelledRows::new(0..batch.images() as u32, &batch.labels)?)
        };
        let (loss, logits) = {
            let _forward = span(&phase::FORWARD);
            let logits = self.learner.model().forward_with(&pixels, Mode::Train, |block| span(self.blocks[block]))?;
            (cross_entropy(&logits, &labelled)?, logits)
        };
        let gradients = {
            let _backward = span(&phase::BACKWARD);
            loss.backward()?
        };
        {
            let _optimizer = span(&phase::OPTIMIZER);
            self.learner.optimizer_step(&gradients, self.training.learning_rate)?;
        }
        if self.copies.is_some() {
            // All work is submitted; while the device does it, the next batch is sent.
            self.ahead = Some(self.fetch()?);
        }
        counter(&TRAINING_ACCURACY, Accuracy::new(&logits.detach(), &batch.labels)?.share());
        let count = |count: usize| Some(count as u64);
        let images = batch.images();
        let (nodes, edges) = (count(images * self.config.nodes()), count(images * self.config.edges()));
        let loss = f64::from(loss.to_scalar::<f32>()?);
        Ok(StepOutcome { loss, shape: BatchShape { graphs: count(images), nodes, edges, seeds: None } })
    }

    fn end_epoch(&mut self, epoch: u64, observer: &mut dyn Observer) -> Result<(), TrainError> {
        if self.test.is_empty() {
            return Ok(());
        }
        let accuracy = self.judge()?.share();
        report_test(accuracy, epoch + 1 == self.training.epochs as u64, observer);
        Ok(())
    }
}

/// Publishes the share of right answers on the test images, and reports that of the last epoch.
pub(super) fn report_test(accuracy: f64, is_last: bool, observer: &mut dyn Observer) {
    counter(&TEST_ACCURACY, accuracy);
    if is_last {
        let chance = 1.0 / images::CLASSES as f64;
        observer.report_line(&format!(
            "test accuracy {:.1} %; guessing gives {:.1} %",
            accuracy * 100.0,
            chance * 100.0
        ));
    }
}
