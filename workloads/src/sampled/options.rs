//! The options of sampled training, and what they choose: data, sampler, loaders.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::command::{Observer, RunOptions, TrainError, at_least_one};
use crate::kernels::KernelFamily;
use crate::loading::{Loader, LoaderSettings, Part};
use crate::nodes::{self, NodeDataset};
use crate::parallel::{RankOptions, Settings, Shard};
use crate::sampling::{NodeBatches, SampleForm, SamplerSettings};

/// What GraphSAGE and GAT share on the command line.
#[derive(Clone, Debug, Args)]
pub struct SampledOptions {
    /// Size of the generated graph and of the batches: `default` suits a two-core CPU, `study` is Reddit's size.
    #[arg(long, value_enum, default_value_t)]
    preset: Preset,
    /// A graph with features, classes and a split (see the README for the formats); a generated one like Reddit without.
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// Nodes of the generated graph.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    nodes: Option<usize>,
    /// Directed edges of the generated graph.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    edges: Option<usize>,
    /// Seed nodes in a batch; the last batch of an epoch has what is left.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = at_least_one)]
    batch_size: usize,
    /// Neighbours to sample at each hop, first hop first: one hop a layer.
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', default_value = "10,10,10")]
    pub(crate) fanouts: Vec<usize>,
    /// One subgraph of all hops on which every layer runs (`subgraph`, as PyTorch Geometric), or one block a layer with
    /// only what it needs (`blocks`, as DGL).
    #[arg(long, value_enum, default_value_t = SampleForm::Blocks)]
    form: SampleForm,
    /// How to sum over neighbours: with a message for every edge in memory, or without.
    #[arg(long, value_enum, default_value_t = KernelFamily::Spmm)]
    pub(crate) kernels: KernelFamily,
    /// Compute operation by operation instead of fused, as a control; the results are the same.
    #[arg(long)]
    pub(crate) plain: bool,
    /// Loader threads; 0 samples in the training loop.
    #[arg(long, value_name = "N", default_value_t = 1)]
    workers: usize,
    /// Keep the features of all nodes on the device and gather them there: for a GPU whose memory holds them.
    #[arg(long)]
    pub(crate) features_on_device: bool,
    #[command(flatten)]
    pub(crate) ranks: RankOptions,
    #[command(flatten)]
    pub(crate) run: RunOptions,
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
pub(crate) const WEIGHT_DECAY: f64 = 5e-4;

impl SampledOptions {
    pub(crate) fn epochs(&self) -> u64 {
        let published = if self.preset == Preset::Study { STUDY_EPOCHS } else { DEFAULT_EPOCHS };
        self.run.epochs.unwrap_or(published) as u64
    }

    pub(crate) fn learning_rate(&self) -> f64 {
        self.run.learning_rate.unwrap_or(LEARNING_RATE)
    }

    /// The graph at `--data`, or a generated one.
    pub(crate) fn dataset(&self, observer: &mut dyn Observer) -> Result<NodeDataset, TrainError> {
        if let Some(path) = &self.data {
            return Ok(nodes::read(path)?);
        }
        let size = if self.preset == Preset::Study { STUDY_SIZE } else { DEFAULT_SIZE };
        let (nodes, edges) = (self.nodes.unwrap_or(size.0), self.edges.unwrap_or(size.1));
        Ok(nodes::generate::reddit_like(nodes, edges, self.run.seed, &mut |share| {
            observer.loading(format_args!("{:.0} % of the graph", share * 100.0));
        })?)
    }

    fn sampler(&self, self_loops: bool) -> SamplerSettings {
        SamplerSettings { fanouts: self.fanouts.clone(), form: self.form, self_loops, seed: self.run.seed }
    }

    /// What ranks that train together must find alike in their data.
    pub(crate) fn alike(dataset: &NodeDataset) -> Settings {
        let NodeDataset { graph, split, classes, features, .. } = dataset;
        let counts = [
            ("nodes", graph.nodes()),
            ("edges", graph.edges()),
            ("features", features.width()),
            ("classes", *classes),
            ("training nodes", split.train.len()),
        ];
        counts.map(|(name, count)| (name.to_owned(), count.to_string())).into()
    }

    /// Batches of the training nodes for the rank whose part is `whose`, shuffled anew each epoch; `adapted` as they are
    /// to come.
    pub(crate) fn training_loader(
        &self,
        dataset: &NodeDataset,
        self_loops: bool,
        whose: Part,
        adapted: impl FnOnce(NodeBatches) -> NodeBatches,
    ) -> Result<Loader<NodeBatches>, TrainError> {
        // Ranks that share nothing go through everything in orders of their own.
        let (part, own_order) = match self.ranks.shard {
            Shard::Split => (whose, 0),
            Shard::None => (Part::WHOLE, whose.number as u64),
        };
        let settings = LoaderSettings {
            batch_size: self.batch_size,
            workers: self.workers,
            seed: self.run.seed.wrapping_add(own_order),
            part,
            delay: self.run.loader_delay(whose.number as u32),
            ..LoaderSettings::default()
        };
        let batches = NodeBatches::new(dataset, &dataset.split.train, self.sampler(self_loops))?;
        Ok(Loader::published(adapted(batches), settings)?)
    }

    /// Batches of this rank's part of other nodes, in their order, loaded by the caller.
    pub(crate) fn judging_loader(
        &self,
        dataset: &NodeDataset,
        nodes: &[u32],
        self_loops: bool,
        whose: Part,
    ) -> Result<Option<Loader<NodeBatches>>, TrainError> {
        let at = |part: usize| nodes.len() * part / whose.of;
        let nodes = &nodes[at(whose.number)..at(whose.number + 1)];
        if nodes.is_empty() {
            return Ok(None);
        }
        let settings = LoaderSettings {
            batch_size: self.batch_size,
            workers: 0,
            seed: self.run.seed,
            shuffle: false,
            ..LoaderSettings::default()
        };
        let batches = NodeBatches::new(dataset, nodes, self.sampler(self_loops))?;
        let batches = if self.features_on_device { batches.without_features() } else { batches };
        Ok(Some(Loader::new(batches, settings)?))
    }

    /// The words on how the training nodes are shared out among several ranks.
    pub(crate) fn describe_shards(&self, dataset: &NodeDataset, ranks: usize) -> String {
        let nodes = dataset.split.train.len();
        match self.ranks.shard {
            Shard::Split => {
                let again = match (Part { number: 0, of: ranks }).padding(nodes) {
                    0 => String::new(),
                    padding => format!(", {padding} of them twice so that the parts are equal"),
                };
                format!("an epoch is {nodes} seeds shared out among {ranks} ranks{again}")
            }
            Shard::None => format!("every rank trains on all {nodes} seeds: an epoch is {ranks} times the work"),
        }
    }

    /// The header's words on data, batches and loading.
    pub(crate) fn describe(&self, dataset: &NodeDataset) -> String {
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
