//! How a batch's features reach the device: with the batch, from ordinary memory; ahead of their use, through
//! page-locked memory and on their own stream, while the device computes with the previous batch; or not at all, if the
//! device holds those of all nodes, or if it is the CPU and the model reads them where they are.

use std::sync::Arc;

use candle_core::{Device, Result, Tensor};

use gnntop_data::nodes::{Features, NodeDataset};
use gnntop_data::sampling::{NodeBatch, NodeBatches, gather_into};
use gnntop_nn::cuda::{CopiesAhead, gather_rows, stage_edges};
use gnntop_nn::models::{FeatureRows, FeatureTable, NodeModel};
use gnntop_probe::{phase, span};

/// How features reach the device.
pub(super) enum FeaturePath {
    /// Loaders gather them.
    WithBatch,
    /// The model reads them where they are, among those of all nodes.
    InPlace(FeatureTable),
    /// They are gathered into page-locked memory.
    Ahead(CopiesAhead, Arc<Features>),
    /// All of them, `[nodes, width]`, on the device.
    Held(Tensor),
}

/// The features of a batch on the device.
pub(super) enum Arrived {
    /// Together, and as loaded if their memory goes back to the batch.
    Gathered { features: Tensor, host: Option<Tensor> },
    /// Among those of all nodes.
    InPlace(FeatureTable),
}

impl FeaturePath {
    /// The way for training `model` on `device`, which may hold them all.
    ///
    /// # Errors
    /// The device has too little memory.
    pub(super) fn new(dataset: &NodeDataset, model: &impl NodeModel, device: &Device, on_device: bool) -> Result<Self> {
        // A loader that gathers waits for a disk while the model computes; in place the model would wait.
        let precision = model.reads_in_place().filter(|_| device.is_cpu() && !dataset.features.are_mapped());
        if let Some(table) = precision.and_then(|precision| FeatureTable::new(&dataset.features, precision)) {
            return Ok(Self::InPlace(table));
        }
        if on_device {
            let width = dataset.features.width();
            let table = Tensor::from_vec(dataset.features.to_dense(), (dataset.graph.nodes(), width), device)?;
            return Ok(Self::Held(table));
        }
        Ok(match CopiesAhead::to(device)? {
            Some(copies) => Self::Ahead(copies, Arc::clone(&dataset.features)),
            None => Self::WithBatch,
        })
    }

    /// Batches for training on `device`, prepared for this way.
    pub(super) fn adapted(&self, batches: NodeBatches, device: &Device) -> NodeBatches {
        let batches = if matches!(self, Self::WithBatch) { batches } else { batches.without_features() };
        if device.is_cuda() { batches.with_edges_prepared_by(stage_edges) } else { batches }
    }

    /// Whether to send the next batch while the device computes.
    pub(super) fn is_ahead(&self) -> bool {
        matches!(self, Self::Ahead(..))
    }

    /// Sends the features of a batch, if they go ahead.
    ///
    /// # Errors
    /// The device has too little memory, or refuses.
    pub(super) fn send(&mut self, batch: &NodeBatch) -> Result<()> {
        let Self::Ahead(copies, features) = self else { return Ok(()) };
        let _gather = span(&phase::GATHER);
        copies.send(batch.nodes.len() * features.width(), |out| gather_into(features, &batch.nodes, out))
    }

    /// The features of the oldest batch not yet received, which is this one.
    ///
    /// # Errors
    /// The device has too little memory, or refuses.
    pub(super) fn receive(&mut self, batch: &mut NodeBatch, device: &Device) -> Result<Arrived> {
        match self {
            Self::Ahead(copies, features) => {
                let features = copies.receive()?.reshape((batch.nodes.len(), features.width()))?;
                Ok(Arrived::Gathered { features, host: None })
            }
            _ => self.for_judging(batch, device),
        }
    }

    /// The batches of a loader whose features are not sent ahead.
    pub(super) fn adapted_for_judging(&self, batches: NodeBatches) -> NodeBatches {
        if matches!(self, Self::Held(_) | Self::InPlace(_)) { batches.without_features() } else { batches }
    }

    /// The features of a batch of such a loader.
    ///
    /// # Errors
    /// The device has too little memory, or refuses.
    pub(super) fn for_judging(&self, batch: &mut NodeBatch, device: &Device) -> Result<Arrived> {
        match self {
            Self::Held(table) => Ok(Arrived::Gathered { features: held_rows(table, &batch.nodes)?, host: None }),
            Self::InPlace(table) => Ok(Arrived::InPlace(table.clone())),
            _ => Arrived::with_batch(batch, device),
        }
    }
}

impl Arrived {
    fn with_batch(batch: &mut NodeBatch, device: &Device) -> Result<Self> {
        let host = batch.take_features()?;
        Ok(Self::Gathered { features: host.to_device(device)?, host: Some(host) })
    }

    /// As the model takes them.
    pub(super) fn rows<'a>(&'a self, batch: &'a NodeBatch) -> FeatureRows<'a> {
        match self {
            Self::Gathered { features, .. } => features.into(),
            Self::InPlace(table) => FeatureRows::InPlace { table, nodes: &batch.nodes },
        }
    }

    /// Returns the loaded memory to the batch, once the step is done.
    pub(super) fn give_back(self, batch: &mut NodeBatch) -> Result<()> {
        let Self::Gathered { features, host } = self else { return Ok(()) };
        drop(features);
        host.map_or(Ok(()), |host| batch.return_features(host))
    }
}

fn held_rows(table: &Tensor, nodes: &[u32]) -> Result<Tensor> {
    let rows = Tensor::from_slice(nodes, nodes.len(), table.device())?;
    if table.device().is_cuda() {
        return gather_rows(table, &rows);
    }
    table.index_select(&rows, 0)
}
