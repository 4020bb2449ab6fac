//! Data and settings of sampled training: the loaders of its batches, and what its ranks have in common.

use crate::launch::{RankOptions, RunOptions, Settings, Shard};
use crate::train::TrainError;
use crate::train::published_loader;
use gnntop_data::loading::{Loader, LoaderSettings, LoaderShard};
use gnntop_data::nodes::NodeDataset;
use gnntop_data::sampling::{NodeBatches, SamplerSettings};

/// The data and the settings.
pub(crate) struct SampledRun<'a> {
    /// The sessions' name.
    pub(crate) name: &'a str,
    pub(crate) dataset: &'a NodeDataset,
    pub(crate) sampler: SamplerSettings,
    /// Seed nodes in a batch.
    pub(crate) batch_size: usize,
    /// Loader threads.
    pub(crate) workers: usize,
    /// Whether the device holds the features of all nodes.
    pub(crate) features_on_device: bool,
    pub(crate) epochs: u64,
    pub(crate) learning_rate: f64,
    pub(crate) ranks: &'a RankOptions,
    pub(crate) options: &'a RunOptions,
}

impl SampledRun<'_> {
    /// What must be the same in the data of all ranks.
    pub(super) fn alike(&self) -> Settings {
        let NodeDataset { graph, split, classes, features, .. } = self.dataset;
        let counts = [
            ("nodes", graph.nodes()),
            ("edges", graph.edges()),
            ("features", features.width()),
            ("classes", *classes),
            ("training nodes", split.train.len()),
        ];
        counts.map(|(name, count)| (name.to_owned(), count.to_string())).into()
    }

    /// Batches of the training nodes for the rank whose part is `whose`, shuffled again each epoch; `adapted` prepares
    /// them.
    pub(crate) fn training_loader(
        &self,
        whose: LoaderShard,
        adapted: impl FnOnce(NodeBatches) -> NodeBatches,
    ) -> Result<Loader<NodeBatches>, TrainError> {
        // Ranks that share nothing go through everything in their own orders.
        let (part, own_order) = match self.ranks.shard {
            Shard::Split => (whose, 0),
            Shard::None => (LoaderShard::WHOLE, whose.number as u64),
        };
        let settings = LoaderSettings {
            batch_size: self.batch_size,
            workers: self.workers,
            seed: self.options.seed.wrapping_add(own_order),
            part,
            delay: self.options.loader_delay(whose.number as u32),
            ..LoaderSettings::default()
        };
        let batches = NodeBatches::new(self.dataset, &self.dataset.split.train, self.sampler.clone())?;
        Ok(published_loader(adapted(batches), settings)?)
    }

    /// Batches of this rank's part of other nodes, in their order, loaded by the caller; `adapted` prepares them.
    pub(super) fn judging_loader(
        &self,
        nodes: &[u32],
        whose: LoaderShard,
        adapted: impl FnOnce(NodeBatches) -> NodeBatches,
    ) -> Result<Option<Loader<NodeBatches>>, TrainError> {
        let at = |part: usize| nodes.len() * part / whose.of;
        let nodes = &nodes[at(whose.number)..at(whose.number + 1)];
        if nodes.is_empty() {
            return Ok(None);
        }
        let settings = LoaderSettings {
            batch_size: self.batch_size,
            workers: 0,
            seed: self.options.seed,
            shuffle: false,
            ..LoaderSettings::default()
        };
        let batches = NodeBatches::new(self.dataset, nodes, self.sampler.clone())?;
        Ok(Some(Loader::new(adapted(batches), settings)?))
    }

    /// Describes how the training nodes are split between ranks.
    pub(crate) fn describe_shards(&self, ranks: usize) -> String {
        let nodes = self.dataset.split.train.len();
        match self.ranks.shard {
            Shard::Split => {
                let again = match (LoaderShard { number: 0, of: ranks }).padding(nodes) {
                    0 => String::new(),
                    padding => format!(", {padding} of them twice so that the parts are equal"),
                };
                format!("an epoch is {nodes} seeds, split between {ranks} ranks{again}")
            }
            Shard::None => format!("every rank trains on all {nodes} seeds: an epoch is {ranks} times the work"),
        }
    }
}
