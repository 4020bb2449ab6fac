//! `gnntop train vig`: the options, and the training.

use std::path::PathBuf;
use std::sync::Arc;

use candle_core::{DType, Device, Tensor};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};
use gnntop_probe::device::Holdings;
use gnntop_probe::{BatchShape, Name, NameKind, NameRef, TrackRole, counter, intern, phase, span};

use super::network::{Network, NetworkConfig};
use super::patches::PatchVigConfig;
use super::pipeline::{PipelineOptions, Plan, StagedTraining};
use super::{Form, Mode, VigConfig, VigTraining};
use crate::command::{Observer, Position, RunOptions, StepOutcome, Summary, TrainError, Training, at_least_one, train};
use crate::images::{self, ImageBatch, ImageBatches, ImageData, ImageSet};
use crate::inject::ALONE;
use crate::loading::{CopiesAhead, LoadedBatch, Loader, LoaderSettings, wait_for_batch};
use crate::parallel::RankOptions;
use crate::train::{Accuracy, Adam, AdamSettings, LabelledRows, Parameters, cross_entropy};

static EVALUATE: Name = Name::span("evaluate");
static TRAINING_ACCURACY: Name = Name::counter("acc train");
static TEST_ACCURACY: Name = Name::counter("acc test");

/// Trains ViG (vision graph network) to classify images: the study's model with pixels as nodes, or that of the paper.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "vig",
    after_help = "Examples:\n  gnntop run vig\n  gnntop run vig --plain --batch-size 4\n  gnntop run vig --preset patches\n  \
                  gnntop train vig --preset study --data cifar-10-batches-bin/\n\nOn several ranks:\n  \
                  gnntop run vig --ranks 2\n  gnntop run vig --stages 2 --micro-batches 8 --schedule 1f1b\n  \
                  gnntop run vig --stages 1 --micro-batches 8 --threads-per-rank 1\n  \
                  gnntop run vig --as-published --micro-batches 5\n  \
                  gnntop run vig --stages 2 --copies 2 --batch-size 10"
)]
pub struct VigCommand {
    /// Model and sizes: `default` is the study's model with a batch for a two-core CPU, `study` its published setting,
    /// `patches` the paper's model, which joins patches to those like them and learns far more.
    #[arg(long, value_enum, default_value_t)]
    preset: Preset,
    /// CIFAR-10 in its binary form, a directory or one file; generated images without.
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// Images to generate.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    images: Option<usize>,
    /// Images in a batch; the last batch of an epoch has what is left.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    batch_size: Option<usize>,
    /// Blocks of the model.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    blocks: Option<usize>,
    /// Loader threads; 0 assembles each batch in the training loop.
    #[arg(long, value_name = "N", default_value_t = 1)]
    workers: usize,
    /// Compute layer by layer, every hidden value in memory: the control; the results are the same.
    #[arg(long)]
    plain: bool,
    #[command(flatten)]
    pipeline: PipelineOptions,
    #[command(flatten)]
    ranks: RankOptions,
    #[command(flatten)]
    options: RunOptions,
}

/// A set of sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Preset {
    #[default]
    Default,
    Study,
    Patches,
}

impl VigCommand {
    /// The options that every training has.
    pub(crate) fn run_options(&mut self) -> &mut RunOptions {
        &mut self.options
    }

    /// Trains until the epochs or steps are done or the observer says stop.
    ///
    /// # Errors
    /// The data cannot be read, or the model cannot be computed.
    pub fn run(&self, observer: &mut dyn Observer) -> Result<Summary, TrainError> {
        let (model, training) = self.sizes()?;
        if self.pipeline.is_asked(&self.ranks) {
            return self.run_in_stages(&model, &training, observer);
        }
        let device = self.options.open_device()?;
        let data = self.images()?;
        observer.tell(&self.describe(&model, &training, &data));
        let session = self.options.start("vig", observer);
        let track = session.track("train", TrackRole::Training);
        self.options.observe(&device)?;
        let mut run = Run::new(self, &model, training, data, device)?;
        let epochs = run.training.epochs as u64;
        let mut injector = self.options.injector(ALONE, observer)?;
        let done = train(&mut injector.around(&mut run), 0..epochs, self.options.max_steps(), observer);
        drop((track, session));
        done
    }

    fn run_in_stages(
        &self,
        model: &NetworkConfig,
        training: &VigTraining,
        observer: &mut dyn Observer,
    ) -> Result<Summary, TrainError> {
        let (plan, config, form) = self.plan(model, training)?;
        self.options.open_device()?;
        let data = self.images()?;
        observer.tell(&self.describe(model, training, &data));
        let ImageData { train, test } = data;
        let (train, workers, ranks, options) = (Arc::new(train), self.workers, &self.ranks, &self.options);
        StagedTraining { config, form, training, plan, train, test, workers, ranks, options }.run(observer)
    }

    fn plan<'a>(
        &self,
        model: &'a NetworkConfig,
        training: &VigTraining,
    ) -> Result<(Plan, &'a VigConfig, Form), TrainError> {
        let impossible = |message: String| Self::command().error(ErrorKind::ArgumentConflict, message);
        let NetworkConfig::Pixels(config, form) = model else {
            let message =
                "--preset patches trains in one piece on one rank; leave --ranks and the pipeline's options out";
            return Err(impossible(message.to_owned()).into());
        };
        let plan = self.pipeline.plan(&self.ranks, config.blocks, training.batch_images).map_err(impossible)?;
        Ok((plan, config, *form))
    }

    /// How many processes a launcher of MPI has to start; `None` where none are needed.
    pub(crate) fn processes_to_launch(&self) -> Result<Option<usize>, TrainError> {
        if !self.pipeline.is_asked(&self.ranks) {
            return Ok(None);
        }
        let (model, training) = self.sizes()?;
        let (plan, ..) = self.plan(&model, &training)?;
        Ok(plan.ranks(&self.ranks).processes_to_launch()?)
    }

    /// The preset's sizes with what the command line changes.
    fn sizes(&self) -> Result<(NetworkConfig, VigTraining), TrainError> {
        let form = if self.plain || self.options.device.is_cuda() { Form::Plain } else { Form::Fused };
        let (mut model, mut training) = match self.preset {
            Preset::Default => (NetworkConfig::Pixels(VigConfig::default(), form), VigTraining::default()),
            Preset::Study => (NetworkConfig::Pixels(VigConfig::study(), form), VigTraining::study()),
            Preset::Patches if self.plain => {
                let message = "--plain is the control of the study's model; --preset patches has no second form";
                return Err(Self::command().error(ErrorKind::ArgumentConflict, message).into());
            }
            Preset::Patches => (NetworkConfig::Patches(PatchVigConfig::tiny()), VigTraining::patches()),
        };
        model.set_blocks(self.blocks.unwrap_or(model.blocks()));
        training.batch_images = self.batch_size.unwrap_or(training.batch_images);
        training.epochs = self.options.epochs.unwrap_or(training.epochs);
        training.learning_rate = self.options.learning_rate.unwrap_or(training.learning_rate);
        Ok((model, training))
    }

    fn images(&self) -> Result<ImageData, TrainError> {
        if let Some(path) = &self.data {
            return Ok(images::read(path)?);
        }
        let count = self.images.unwrap_or(if self.preset == Preset::Study { 50_000 } else { 1_000 });
        let test = images::generate(count.div_ceil(10), self.options.seed.wrapping_add(1));
        Ok(ImageData { train: images::generate(count, self.options.seed), test })
    }

    fn describe(&self, model: &NetworkConfig, training: &VigTraining, data: &ImageData) -> String {
        format!(
            "{}, {} blocks, {} parameters; {} images, {}; batches of {}, {} loader threads",
            model.name(),
            model.blocks(),
            model.parameters(),
            data.train.len(),
            data.train.origin,
            training.batch_images,
            self.workers,
        )
    }
}

/// A training under way.
struct Run {
    config: NetworkConfig,
    device: Device,
    model: Network,
    adam: Adam,
    training: VigTraining,
    loader: Loader<ImageBatches>,
    test: ImageSet,
    blocks: Vec<NameRef>,
    copies: Option<CopiesAhead>,
    /// The next batch, where it was sent while the device computed.
    ahead: Option<LoadedBatch<ImageBatch>>,
}

impl Run {
    fn new(
        command: &VigCommand,
        config: &NetworkConfig,
        training: VigTraining,
        data: ImageData,
        device: Device,
    ) -> Result<Self, TrainError> {
        let parameters = Parameters::new(command.options.seed);
        let model = Network::new(config, parameters.var_builder(DType::F32, &device))?;
        let settings = LoaderSettings {
            batch_size: training.batch_images,
            workers: command.workers,
            seed: command.options.seed,
            delay: command.options.loader_delay(ALONE.0),
            ..LoaderSettings::default()
        };
        Ok(Self {
            config: config.clone(),
            copies: CopiesAhead::to(&device)?,
            ahead: None,
            device,
            model,
            adam: Adam::new(parameters.list(), AdamSettings::default())?,
            loader: Loader::published(ImageBatches::new(Arc::new(data.train)), settings)?,
            training,
            test: data.test,
            blocks: (0..config.blocks()).map(|i| intern(NameKind::Span, &format!("block {i}"))).collect(),
        })
    }

    /// The next batch of the loader, on its way where batches go ahead.
    fn fetch(&mut self) -> Result<LoadedBatch<ImageBatch>, TrainError> {
        let batch = wait_for_batch(&mut self.loader)?;
        if let Some(copies) = &mut self.copies {
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
        let _evaluate = span(&EVALUATE);
        let mut batch = ImageBatch::default();
        let mut all = Accuracy::default();
        let indices: Vec<u32> = (0..self.test.len() as u32).collect();
        for part in indices.chunks(self.training.batch_images) {
            batch.assemble(&self.test, part)?;
            let logits = self.model.forward_with(&batch.pixels(&self.device)?, Mode::Eval, |_| ())?;
            all = all.and(Accuracy::of(&logits.detach(), &batch.labels)?);
        }
        Ok(all)
    }
}

impl Training for Run {
    fn device(&self) -> &Device {
        &self.device
    }

    fn holdings(&self) -> Option<Holdings> {
        Some(self.adam.holdings())
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
            let logits = self.model.forward_with(&pixels, Mode::Train, |block| span(self.blocks[block]))?;
            (cross_entropy(&logits, &labelled)?, logits)
        };
        let gradients = {
            let _backward = span(&phase::BACKWARD);
            loss.backward()?
        };
        {
            let _optimizer = span(&phase::OPTIMIZER);
            self.adam.step(&gradients, self.training.learning_rate)?;
        }
        if self.copies.is_some() {
            // Everything is asked for; while the device works on it, the next batch goes on its way.
            self.ahead = Some(self.fetch()?);
        }
        counter(&TRAINING_ACCURACY, Accuracy::of(&logits.detach(), &batch.labels)?.share());
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
        counter(&TEST_ACCURACY, accuracy);
        if epoch + 1 == self.training.epochs as u64 {
            let chance = 1.0 / images::CLASSES as f64;
            observer.tell(&format!("test accuracy {:.1} %; guessing gives {:.1} %", accuracy * 100.0, chance * 100.0));
        }
        Ok(())
    }
}
