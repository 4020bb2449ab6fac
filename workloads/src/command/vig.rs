//! `gnntop train vig`: the options.

use std::path::PathBuf;
use std::sync::Arc;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};

use super::pipeline::PipelineOptions;
use super::training_command::TrainingCommand;
use crate::launch::{RankOptions, RunOptions, at_least_one};
use crate::train::{Observer, Summary, TrainError};
use crate::trainers::vig::{NetworkConfig, StagedRun, Stages, VigRun, VigTraining};
use gnntop_data::images::{self, ImageData};
use gnntop_nn::models::vig::patches::PatchVigConfig;
use gnntop_nn::models::vig::{Form, VigConfig};

/// Trains ViG (vision graph network) to classify images: the study's model with pixels as nodes, or the paper's.
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
pub(super) struct VigCommand {
    /// Model and sizes: `default` is the study's model with a batch for a two-core CPU, `study` its published setting,
    /// `patches` the paper's model, which joins similar patches and learns far more.
    #[arg(long, value_enum, default_value_t)]
    preset: Preset,
    /// CIFAR-10 in its binary form, a directory or one file [default: generated images]
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// Images to generate.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    images: Option<usize>,
    /// Images per batch; the last batch of an epoch has the rest.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    batch_size: Option<usize>,
    /// Blocks of the model.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    blocks: Option<usize>,
    /// Loader threads; 0 assembles each batch in the training loop.
    #[arg(long, value_name = "N", default_value_t = 1)]
    workers: usize,
    /// Compute layer by layer with every hidden value in memory, as a control; results are the same.
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
    /// How the study's model is cut into stages and batches.
    fn stages<'a>(
        &self,
        model: &'a NetworkConfig,
        training: &VigTraining,
    ) -> Result<(Stages, &'a VigConfig, Form), TrainError> {
        let impossible = |message: String| Self::command().error(ErrorKind::ArgumentConflict, message);
        let NetworkConfig::Pixels(config, form) = model else {
            let message = "--preset patches trains on one rank without stages; remove --ranks and the pipeline options";
            return Err(impossible(message.to_owned()).into());
        };
        let stages = self
            .pipeline
            .stages(&self.ranks, config.blocks, training.batch_images)
            .map_err(|error| impossible(error.to_string()))?;
        Ok((stages, config, *form))
    }

    /// The preset's sizes with the command line's changes.
    fn sizes(&self) -> Result<(NetworkConfig, VigTraining), TrainError> {
        let form = if self.plain || self.options.device.is_cuda() { Form::Plain } else { Form::Fused };
        let (mut model, mut training) = match self.preset {
            Preset::Default => (NetworkConfig::Pixels(VigConfig::default(), form), VigTraining::default()),
            Preset::Study => (NetworkConfig::Pixels(VigConfig::study(), form), VigTraining::study()),
            Preset::Patches if self.plain => {
                let message = "--plain is a control for the study's model; --preset patches has only one form";
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

impl TrainingCommand for VigCommand {
    fn run_options(&mut self) -> &mut RunOptions {
        &mut self.options
    }

    fn processes_to_launch(&self) -> Result<Option<usize>, TrainError> {
        if !self.pipeline.is_asked(&self.ranks) {
            return Ok(None);
        }
        let (model, training) = self.sizes()?;
        let (stages, ..) = self.stages(&model, &training)?;
        Ok(stages.ranks(&self.ranks).processes_to_launch()?)
    }

    fn run(&self, observer: &mut dyn Observer) -> Result<Summary, TrainError> {
        let (model, training) = self.sizes()?;
        let (workers, options) = (self.workers, &self.options);
        if !self.pipeline.is_asked(&self.ranks) {
            let device = options.open_device()?;
            let images = self.images()?;
            observer.report_line(&self.describe(&model, &training, &images));
            return VigRun { model, training, images, workers, options }.train(device, observer);
        }
        let (stages, config, form) = self.stages(&model, &training)?;
        options.open_device()?;
        let images = self.images()?;
        observer.report_line(&self.describe(&model, &training, &images));
        let (train, test, ranks) = (Arc::new(images.train), images.test, &self.ranks);
        StagedRun { config, form, training: &training, stages, train, test, workers, ranks, options }.train(observer)
    }
}
