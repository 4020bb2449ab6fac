//! `gnntop train gcn`: the options.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use super::choices::{KERNELS, one_of};
use super::training_command::TrainingCommand;
use crate::launch::{RunOptions, at_least_one};
use crate::train::{Observer, Summary, TrainError};
use crate::trainers::gcn::{GcnRun, Mode, Recipe};
use gnntop_data::nodes::{self, NodeDataset};
use gnntop_data::sampling::{SampleForm, SamplerSettings};
use gnntop_nn::kernels::KernelFamily;
use gnntop_nn::models::gcn::GcnConfig;

/// Trains a GCN (graph convolutional network) to predict the topics of papers from their words and citations.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "gcn",
    after_help = "Examples:\n  gnntop run gcn\n  gnntop run gcn --mode sampled --workers 2\n  \
                  gnntop train gcn --mode all --runs 10 --data cora/\n  \
                  gnntop train gcn --recipe study --plain"
)]
pub(super) struct GcnCommand {
    /// How to train: one row of the study's table, or all of them in turn.
    #[arg(long, value_enum, default_value_t)]
    mode: ModeChoice,
    /// `reference` is the published recipe with dropout and selection by validation; `study` is the study's, without
    /// them.
    #[arg(long, value_enum, default_value_t)]
    recipe: RecipeChoice,
    /// A graph with features, classes and a split in a layout that docs/workloads.md lists [default: a generated one like Cora]
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// Runs of each mode, each with different initial parameters.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = at_least_one)]
    runs: usize,
    /// Seed nodes in a sampled batch.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = at_least_one)]
    batch_size: usize,
    /// Neighbours to sample at each hop, first hop first.
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "10,5")]
    fanouts: Vec<usize>,
    /// Loader threads of the sampled modes; 0 samples in the training loop.
    #[arg(long, value_name = "N", default_value_t = 1)]
    workers: usize,
    /// How to sum over neighbours: with or without a message per edge in memory.
    #[arg(long, default_value = "spmm", value_parser = one_of(&KERNELS))]
    kernels: KernelFamily,
    /// Multiply the features with all their zeros, as a control; results are the same.
    #[arg(long)]
    plain: bool,
    #[command(flatten)]
    options: RunOptions,
}

/// One mode or all.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ModeChoice {
    Full,
    Sampled,
    SampledBf16,
    SampledFp16,
    #[default]
    Compiled,
    All,
}

impl ModeChoice {
    fn modes(self) -> &'static [Mode] {
        match self {
            Self::Full => &[Mode::Full],
            Self::Sampled => &[Mode::Sampled],
            Self::SampledBf16 => &[Mode::SampledBf16],
            Self::SampledFp16 => &[Mode::SampledFp16],
            Self::Compiled => &[Mode::Compiled],
            Self::All => &Mode::ALL,
        }
    }
}

/// A published set of hyperparameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum RecipeChoice {
    #[default]
    Reference,
    Study,
}

impl GcnCommand {
    fn epochs(&self) -> usize {
        let published = match self.recipe {
            RecipeChoice::Reference => 200,
            RecipeChoice::Study => 50,
        };
        self.options.epochs.unwrap_or(published)
    }

    /// Cora or its stand-in; the published recipe scales every node's features to a sum of 1.
    fn dataset(&self) -> Result<NodeDataset, TrainError> {
        let mut dataset = match &self.data {
            Some(path) => nodes::read(path)?,
            None => nodes::generate::cora_like(self.options.seed),
        };
        if self.recipe == RecipeChoice::Reference {
            dataset.features = dataset.features.row_normalised().into();
        }
        Ok(dataset)
    }

    fn recipe(&self, dataset: &NodeDataset) -> Recipe {
        let (width, classes) = (dataset.features.width(), dataset.classes);
        let reference = self.recipe == RecipeChoice::Reference;
        Recipe {
            model: if reference { GcnConfig::reference(width, classes) } else { GcnConfig::study(width, classes) },
            learning_rate: self.options.learning_rate.unwrap_or(0.01),
            weight_decay: 5e-4,
            decays_first_layer_only: reference,
        }
    }

    fn describe(&self, dataset: &NodeDataset, recipe: &Recipe) -> String {
        format!(
            "GCN, {} layers of {}, {} parameters; {} nodes, {} edges, {}; {} runs of {} epochs",
            recipe.model.layers,
            recipe.model.hidden,
            recipe.model.parameters(),
            dataset.graph.nodes(),
            dataset.graph.edges(),
            dataset.origin,
            self.runs,
            self.epochs(),
        )
    }
}

impl TrainingCommand for GcnCommand {
    fn run_options(&mut self) -> &mut RunOptions {
        &mut self.options
    }

    fn run(&self, observer: &mut dyn Observer) -> Result<Summary, TrainError> {
        let dataset = self.dataset()?;
        let recipe = self.recipe(&dataset);
        let device = self.options.open_device()?;
        observer.report_line(&self.describe(&dataset, &recipe));
        let run = GcnRun {
            dataset: &dataset,
            recipe,
            modes: self.mode.modes(),
            runs: self.runs,
            epochs: self.epochs(),
            sampler: SamplerSettings {
                fanouts: self.fanouts.clone(),
                form: SampleForm::Subgraph,
                self_loops: false,
                seed: self.options.seed,
            },
            batch_size: self.batch_size,
            workers: self.workers,
            kernels: self.kernels,
            plain: self.plain,
            options: &self.options,
        };
        run.train(&device, observer)
    }
}
