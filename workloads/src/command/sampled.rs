//! The command line of GraphSAGE, GAT and GIN, which are trained on sampled neighbourhoods: the options that they share, and
//! the training of any of them.

use std::path::PathBuf;

use candle_core::Device;
use clap::{Args, Parser, ValueEnum};

use super::choices::{FORMS, KERNELS, one_of};
use super::training_command::TrainingCommand;
use crate::launch::{RankOptions, RunOptions, at_least_one};
use crate::train::{Observer, Summary, TrainError};
use crate::trainers::sampled::SampledRun;
use gnntop_data::nodes::{self, NodeDataset};
use gnntop_data::sampling::{SampleForm, SamplerSettings};
use gnntop_nn::kernels::KernelFamily;
use gnntop_nn::learn::{AdamSettings, Learner};
use gnntop_nn::models::NodeModel;

/// A model that is trained on sampled neighbourhoods: its own options, and how it is made of them.
pub(super) trait SampledModel: Args + std::fmt::Debug {
    /// The model.
    type Model: NodeModel<Config: Sync>;

    /// The training's name, what it does in a line, and examples of it.
    const NAME: &'static str;
    const ABOUT: &'static str;
    const EXAMPLES: &'static str;

    /// The model's settings for a data set.
    fn config(&self, options: &SampledOptions, dataset: &NodeDataset) -> <Self::Model as NodeModel>::Config;

    /// Them in words.
    fn describe(config: &<Self::Model as NodeModel>::Config) -> String;

    /// Whether self-loops are added to the graph before it is sampled.
    fn samples_loops(_: &<Self::Model as NodeModel>::Config) -> bool {
        false
    }
}

/// The command line of such a model.
#[derive(Debug, Parser)]
#[command(name = M::NAME, about = M::ABOUT, long_about = None, after_help = M::EXAMPLES)]
pub(super) struct SampledCommand<M: SampledModel> {
    #[command(flatten)]
    model: M,
    #[command(flatten)]
    options: SampledOptions,
}

impl<M: SampledModel> TrainingCommand for SampledCommand<M> {
    fn run_options(&mut self) -> &mut RunOptions {
        &mut self.options.run
    }

    fn processes_to_launch(&self) -> Result<Option<usize>, TrainError> {
        Ok(self.options.ranks.processes_to_launch()?)
    }

    fn run(&self, observer: &mut dyn Observer) -> Result<Summary, TrainError> {
        let (options, dataset) = (&self.options, self.options.dataset(observer)?);
        let config = self.model.config(options, &dataset);
        observer.report_line(&format!("{}; {}", M::describe(&config), options.describe(&dataset)));
        let adam = AdamSettings { weight_decay: WEIGHT_DECAY, ..AdamSettings::default() };
        let make = |device: &Device| Learner::<M::Model>::new(device, &config, adam, options.run.seed);
        options.sampled_run(M::NAME, &dataset, M::samples_loops(&config)).train(make, observer)
    }
}

/// The options that all of them have.
#[derive(Clone, Debug, Args)]
pub struct SampledOptions {
    /// Size of the generated graph and of the batches: `default` suits a two-core CPU, `study` is Reddit's size.
    #[arg(long, value_enum, default_value_t)]
    preset: Preset,
    /// A graph with features, classes and a split in a layout that docs/workloads.md lists [default: a generated one like Reddit]
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// Nodes of the generated graph.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    nodes: Option<usize>,
    /// Directed edges of the generated graph.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    edges: Option<usize>,
    /// Keep the features of the generated graph in a file in this folder instead of memory, which they may exceed: 2.4 KB a node.
    /// The file is gone at the end.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["data", "features_on_device"])]
    features_on_disk: Option<PathBuf>,
    /// Seed nodes per batch; the last batch of an epoch has the rest.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = at_least_one)]
    batch_size: usize,
    /// Neighbours to sample at each hop, first hop first: one hop per layer.
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', default_value = "10,10,10")]
    pub(super) fanouts: Vec<usize>,
    /// One subgraph of all hops on which every layer runs (`subgraph`, as PyTorch Geometric), or one block per layer
    /// with only what it needs (`blocks`, as DGL).
    #[arg(long, default_value = "blocks", value_parser = one_of(&FORMS))]
    form: SampleForm,
    /// How to sum over neighbours: with or without a message per edge in memory.
    #[arg(long, default_value = "spmm", value_parser = one_of(&KERNELS))]
    pub(super) kernels: KernelFamily,
    /// Compute operation by operation instead of fused, as a control; results are the same.
    #[arg(long)]
    pub(super) plain: bool,
    /// Loader threads; 0 samples in the training loop.
    #[arg(long, value_name = "N", default_value_t = 1)]
    workers: usize,
    /// Keep the features of all nodes on the device and gather them there, if the GPU's memory is large enough.
    #[arg(long)]
    features_on_device: bool,
    #[command(flatten)]
    pub(super) ranks: RankOptions,
    #[command(flatten)]
    pub(super) run: RunOptions,
}

/// A size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Preset {
    #[default]
    Default,
    Study,
}

/// Nodes and directed edges that a preset generates.
const DEFAULT_SIZE: (usize, usize) = (20_000, 1_000_000);
const STUDY_SIZE: (usize, usize) = (232_965, 114_615_892);
/// Epochs of a preset.
const DEFAULT_EPOCHS: usize = 10;
const STUDY_EPOCHS: usize = 50;
/// The study's learning rate and L2 penalty.
const LEARNING_RATE: f64 = 5e-3;
const WEIGHT_DECAY: f64 = 5e-4;

impl SampledOptions {
    fn epochs(&self) -> u64 {
        let published = if self.preset == Preset::Study { STUDY_EPOCHS } else { DEFAULT_EPOCHS };
        self.run.epochs.unwrap_or(published) as u64
    }

    fn learning_rate(&self) -> f64 {
        self.run.learning_rate.unwrap_or(LEARNING_RATE)
    }

    /// The graph at `--data`, or a generated one.
    pub(super) fn dataset(&self, observer: &mut dyn Observer) -> Result<NodeDataset, TrainError> {
        if let Some(path) = &self.data {
            return Ok(nodes::read(path)?);
        }
        let size = if self.preset == Preset::Study { STUDY_SIZE } else { DEFAULT_SIZE };
        let (nodes, edges) = (self.nodes.unwrap_or(size.0), self.edges.unwrap_or(size.1));
        let progress = &mut |share: f64| observer.loading(format_args!("{:.0} % of the graph", share * 100.0));
        Ok(match &self.features_on_disk {
            Some(folder) => nodes::generate::reddit_like_on_disk(nodes, edges, self.run.seed, folder, progress)?,
            None => nodes::generate::reddit_like(nodes, edges, self.run.seed, progress)?,
        })
    }

    fn sampled_run<'a>(&'a self, name: &'a str, dataset: &'a NodeDataset, self_loops: bool) -> SampledRun<'a> {
        SampledRun {
            name,
            dataset,
            sampler: SamplerSettings {
                fanouts: self.fanouts.clone(),
                form: self.form,
                self_loops,
                seed: self.run.seed,
            },
            batch_size: self.batch_size,
            workers: self.workers,
            features_on_device: self.features_on_device,
            epochs: self.epochs(),
            learning_rate: self.learning_rate(),
            ranks: &self.ranks,
            options: &self.run,
        }
    }

    /// The header's part about data, batches and loading.
    fn describe(&self, dataset: &NodeDataset) -> String {
        format!(
            "{} nodes, {} edges, {}; batches of {}, fan-out {:?}, {} loader threads",
            dataset.graph.nodes(),
            dataset.graph.edges(),
            dataset.origin,
            self.batch_size,
            self.fanouts,
            self.workers,
        )
    }
}

#[cfg(test)]
mod tests;
