//! `gnntop train gcn`: the options, and the trainings in the study's ways.

use std::path::PathBuf;
use std::time::Instant;

use candle_core::{DType, Device, Tensor};
use clap::{Parser, ValueEnum};
use gnntop_probe::{Name, TrackRole, mark};

use super::judge::{Judge, mean_and_deviation};
use super::learning::{Batches, Learning, Schedule};
use super::{GcnConfig, LoopedGraph, Mode, NodeFeatures, Recipe};
use crate::command::{Observer, RunOptions, Summary, TrainError, at_least_one, train};
use crate::inject::ALONE;
use crate::kernels::{Adjacency, KernelFamily, SparseMatrix};
use crate::loading::{Loader, LoaderSettings};
use crate::nodes::{self, Features, NodeDataset};
use crate::sampling::{NodeBatches, SampleForm, SamplerSettings};

static MODE: Name = Name::mark("mode");

/// Trains a GCN (graph convolutional network) to tell the topics of papers from their words and citations.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "gcn",
    after_help = "Examples:\n  gnntop run gcn\n  gnntop run gcn --mode sampled --workers 2\n  \
                  gnntop train gcn --mode all --runs 10 --data cora/\n  \
                  gnntop train gcn --recipe study --plain"
)]
pub struct GcnCommand {
    /// How to train: a row of the study's table, or all of them one after the other.
    #[arg(long, value_enum, default_value_t)]
    mode: ModeChoice,
    /// `reference` is the published recipe with dropout, chosen by validation; `study` is the study's, without.
    #[arg(long, value_enum, default_value_t)]
    recipe: RecipeChoice,
    /// A graph with features, classes and a split (see the README for the formats); a generated one like Cora without.
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// Trainings of each mode, each from other initial parameters.
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
    /// How to sum over neighbours: with a message for every edge in memory, or without.
    #[arg(long, value_enum, default_value_t = KernelFamily::Spmm)]
    kernels: KernelFamily,
    /// Multiply the features with all their zeros, as a control; the results are the same.
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
    /// The options that every training has.
    pub(crate) fn run_options(&mut self) -> &mut RunOptions {
        &mut self.options
    }

    /// Trains until the epochs or steps are done or the observer says stop.
    ///
    /// # Errors
    /// The data cannot be read, or the model cannot be computed.
    pub fn run(&self, observer: &mut dyn Observer) -> Result<Summary, TrainError> {
        let dataset = self.dataset()?;
        let recipe = self.recipe(&dataset);
        let device = self.options.open_device()?;
        observer.tell(&self.describe(&dataset, &recipe));
        let session = self.options.start("gcn", observer);
        let track = session.track("train", TrackRole::Training);
        self.options.observe(&device)?;
        let done = self.modes(&dataset, &recipe, &device, observer);
        drop((track, session));
        done
    }

    fn modes(
        &self,
        dataset: &NodeDataset,
        recipe: &Recipe,
        device: &Device,
        observer: &mut dyn Observer,
    ) -> Result<Summary, TrainError> {
        let mut summary = Summary::default();
        let mut injector = self.options.injector(ALONE, observer)?;
        let epochs = (self.runs * self.epochs()) as u64;
        for (number, &mode) in self.mode.modes().iter().enumerate() {
            mark(&MODE, Some(number as f64));
            let mut learning = self.learning(dataset, recipe, mode, device)?;
            let first = number as u64 * epochs;
            let left = self.options.max_steps() - summary.steps;
            let begin = Instant::now();
            let done = train(&mut injector.around(&mut learning), first..first + epochs, left, observer)?;
            summary = Summary { steps: summary.steps + done.steps, loss: done.loss.or(summary.loss) };
            observer.tell(&outcome(mode, &learning, begin));
        }
        Ok(summary)
    }

    fn epochs(&self) -> usize {
        let published = match self.recipe {
            RecipeChoice::Reference => 200,
            RecipeChoice::Study => 50,
        };
        self.options.epochs.unwrap_or(published)
    }

    /// Cora or what stands in for it; the published recipe scales every node's features to a sum of 1.
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

    fn learning(
        &self,
        dataset: &NodeDataset,
        recipe: &Recipe,
        mode: Mode,
        device: &Device,
    ) -> Result<Learning, TrainError> {
        let graph = &dataset.graph;
        let adjacency = Adjacency::new(graph.row_start().to_vec(), graph.sources().to_vec())?;
        let normalised = LoopedGraph::new(&adjacency)?.normalised(None, DType::F32, device)?;
        let x = self.input(&dataset.features, graph.nodes(), device)?;
        let judge = Judge::new(dataset, x.clone(), &normalised, self.kernels)?;
        let batches = match mode {
            Mode::Full => Batches::whole(dataset, x, adjacency, None)?,
            Mode::Compiled => Batches::whole(dataset, x, adjacency, Some(normalised))?,
            _ => Batches::Sampled(self.loader(dataset)?.into()),
        };
        let schedule =
            Schedule { epochs_per_run: self.epochs() as u64, chooses_by_validation: recipe.decays_first_layer_only };
        Ok(Learning::new(recipe.clone(), mode, self.kernels, (self.options.seed, device), schedule, batches, judge)?)
    }

    fn input(&self, features: &Features, nodes: usize, device: &Device) -> Result<NodeFeatures, TrainError> {
        let width = features.width();
        Ok(match features {
            Features::Sparse { row_start, column, value, .. } if !self.plain => {
                NodeFeatures::Sparse(SparseMatrix::new(row_start.clone(), column.clone(), value.clone(), width)?.into())
            }
            other => NodeFeatures::Dense(Tensor::from_vec(other.to_dense(), (nodes, width), device)?),
        })
    }

    fn loader(&self, dataset: &NodeDataset) -> Result<Loader<NodeBatches>, TrainError> {
        let seed = self.options.seed;
        let sampler =
            SamplerSettings { fanouts: self.fanouts.clone(), form: SampleForm::Subgraph, self_loops: false, seed };
        let batches = NodeBatches::new(dataset, &dataset.split.train, sampler)?;
        let batches = if self.plain { batches } else { batches.without_zeros() };
        let settings = LoaderSettings {
            batch_size: self.batch_size,
            workers: self.workers,
            seed,
            delay: self.options.loader_delay(ALONE.0),
            ..LoaderSettings::default()
        };
        Ok(Loader::published(batches, settings)?)
    }
}

/// A line of the study's table.
fn outcome(mode: Mode, learning: &Learning, begin: Instant) -> String {
    let accuracy = mean_and_deviation(learning.test_accuracies());
    let accuracy = accuracy.map_or_else(|| "no run finished".to_owned(), |shares| format!("test accuracy {shares}"));
    let times = learning.epoch_times();
    let skipped = match learning.skipped_steps() {
        0 => String::new(),
        steps => format!("; {steps} steps left out for overflow"),
    };
    let handed_over = learning.handed_over().map_or_else(String::new, |how| format!("; {how}"));
    format!(
        "{}: {times}, {:.1} s in all, {accuracy}{skipped}; {}{handed_over}",
        mode.name(),
        begin.elapsed().as_secs_f64(),
        mode.trade()
    )
}
