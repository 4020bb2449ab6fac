//! Batches for node classification: seeds, their sampled neighbourhood, features and labels.

use std::sync::Arc;

use candle_core::{CpuStorage, Device, InplaceOp1, Layout, Tensor};
use thiserror::Error;

use super::{
    FeatureError, NeighbourSampler, Sample, SampleError, SamplerSettings, check_features, gather_features,
    gather_without_zeros,
};
use crate::graph::{Adjacency, SparseMatrix};
use crate::loading::{Assemble, BatchId, Loader, LoaderObserver, Stage};
use crate::nodes::{Features, NodeDataset};

/// A loader of nodes with their sampled neighbourhood.
pub type NodeLoader = Loader<NodeBatches>;

/// Why there is no batch of nodes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NodeBatchError {
    /// The neighbourhood cannot be sampled.
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// The features cannot be gathered.
    #[error(transparent)]
    Features(#[from] FeatureError),
    /// Not one label for each node.
    #[error("the graph has {nodes} nodes, but {labels} labels")]
    Labels {
        /// Number of labels.
        labels: usize,
        /// Nodes of the graph.
        nodes: usize,
    },
    /// A training node has a class that does not exist.
    #[error("node {node} has class {class}, but there are only {classes} classes (numbered from 0)")]
    Class {
        /// The node.
        node: u32,
        /// Its class.
        class: u32,
        /// Number of classes.
        classes: usize,
    },
    /// The sampled features were refused.
    #[error("the sampled features do not form a matrix: {0}")]
    Entries(candle_core::Error),
    /// The sampled edges were refused.
    #[error("the sampled edges do not form an adjacency: {0}")]
    Adjacency(candle_core::Error),
}

/// Seeds with everything a model needs to classify them.
#[derive(Debug, Default)]
pub struct NodeBatch {
    /// The nodes, as numbered in the graph, the seeds first.
    pub nodes: Vec<u32>,
    /// Number of seeds: the first rows of the last layer's result are theirs.
    pub seeds: usize,
    /// The sampled edges, the outermost hop first; see [`Sample::layers`]. A model takes them by
    /// [`adjacency`](Self::adjacency).
    pub layers: Vec<Arc<Adjacency>>,
    /// Node features, `[nodes, width]`, row-major.
    pub features: Vec<f32>,
    /// The features instead of [`features`](Self::features), see [`NodeBatches::without_zeros`].
    pub sparse_features: Option<SparseMatrix>,
    /// Features per node.
    pub width: usize,
    /// Class of each seed, `[seeds]`.
    pub labels: Vec<u32>,
}

impl NodeBatch {
    /// The edges that layer `layer` runs on, 0 being the one that reads the features, whatever the form of the sample.
    ///
    /// # Panics
    /// If this is the empty batch.
    #[must_use]
    pub fn adjacency(&self, layer: usize) -> &Arc<Adjacency> {
        &self.layers[layer.min(self.layers.len() - 1)]
    }

    /// Number of sampled edges, in all layers together.
    #[must_use]
    pub fn edges(&self) -> usize {
        self.layers.iter().map(|layer| layer.edges()).sum()
    }

    /// The features as a tensor on the CPU, `[nodes, width]`, without a copy; the batch then has none.
    ///
    /// # Errors
    /// They were already taken.
    pub fn take_features(&mut self) -> candle_core::Result<Tensor> {
        Tensor::from_vec(std::mem::take(&mut self.features), (self.nodes.len(), self.width), &Device::Cpu)
    }

    /// Returns the memory of [`take_features`](Self::take_features) for a later batch, once the step is done. If it is
    /// not returned, later batches take fresh memory, which is slow.
    ///
    /// # Errors
    /// The tensor is not one of f32 on the CPU. Clones of it are empty afterwards and must not be used.
    pub fn return_features(&mut self, tensor: Tensor) -> candle_core::Result<()> {
        let memory = std::sync::Mutex::new(Vec::new());
        tensor.inplace_op1(&TakeMemory(&memory))?;
        self.features = memory.into_inner().unwrap_or_default();
        Ok(())
    }
}

/// Takes a tensor's memory away.
struct TakeMemory<'a>(&'a std::sync::Mutex<Vec<f32>>);

impl InplaceOp1 for TakeMemory<'_> {
    fn name(&self) -> &'static str {
        "take-memory"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, _: &Layout) -> candle_core::Result<()> {
        let CpuStorage::F32(values) = storage else {
            candle_core::bail!("the features of a batch are f32; this tensor has another type");
        };
        if let Ok(mut memory) = self.0.lock() {
            *memory = std::mem::take(values);
        }
        Ok(())
    }
}

/// Makes batches of training or test nodes. Clones share the data.
#[derive(Debug, Clone)]
pub struct NodeBatches {
    targets: Arc<[u32]>,
    features: Arc<Features>,
    labels: Arc<Vec<u32>>,
    sampler: NeighbourSampler,
    without_zeros: bool,
    without_features: bool,
    prepare_edges: Option<fn(&Adjacency)>,
    use_all_threads: bool,
    seeds: Vec<u32>,
    sample: Sample,
}

impl NodeBatches {
    /// Batches of `targets`, nodes of `dataset` such as its training split.
    ///
    /// # Errors
    /// A fan-out of 0 or none, a target that is not a node, is listed twice or has no class, or features or labels that
    /// are not one per node.
    pub fn new(dataset: &NodeDataset, targets: &[u32], settings: SamplerSettings) -> Result<Self, NodeBatchError> {
        let nodes = dataset.graph.nodes();
        check_features(&dataset.features, nodes)?;
        if dataset.labels.len() != nodes {
            return Err(NodeBatchError::Labels { labels: dataset.labels.len(), nodes });
        }
        let mut sampler = NeighbourSampler::new(Arc::clone(&dataset.graph), settings)?;
        sampler.check_seeds(targets)?;
        let class = |&node: &u32| (node, dataset.labels[node as usize]);
        if let Some((node, class)) = targets.iter().map(class).find(|&(_, class)| class as usize >= dataset.classes) {
            return Err(NodeBatchError::Class { node, class, classes: dataset.classes });
        }
        Ok(Self {
            targets: targets.into(),
            features: Arc::clone(&dataset.features),
            labels: Arc::clone(&dataset.labels),
            sampler,
            without_zeros: false,
            without_features: false,
            prepare_edges: None,
            use_all_threads: false,
            seeds: Vec::new(),
            sample: Sample::default(),
        })
    }

    /// If the features are held without their zeros, the batches have them without, too.
    #[must_use]
    pub fn without_zeros(mut self) -> Self {
        self.without_zeros = matches!(*self.features, Features::Sparse { .. });
        self
    }

    /// The batches have no features: the consumer has those of all nodes.
    #[must_use]
    pub fn without_features(mut self) -> Self {
        self.without_features = true;
        self
    }

    /// The edges are prepared by this, on the thread that makes the batch: for a device, whose copy is prepared so.
    #[must_use]
    pub fn with_edges_prepared_by(mut self, prepare: fn(&Adjacency)) -> Self {
        self.prepare_edges = Some(prepare);
        self
    }

    fn gather(&self, out: &mut NodeBatch) -> Result<(), NodeBatchError> {
        out.width = self.features.width();
        if self.without_features {
            out.features.clear();
            return Ok(());
        }
        if self.without_zeros {
            let gathered = gather_without_zeros(&self.features, &self.sample.nodes);
            out.sparse_features = gathered.map_err(NodeBatchError::Entries)?;
        } else {
            gather_features(&self.features, &self.sample.nodes, &mut out.features, self.use_all_threads);
        }
        Ok(())
    }

    fn build(&mut self, out: &mut NodeBatch) -> Result<(), NodeBatchError> {
        out.seeds = self.sample.seeds;
        out.labels.clear();
        out.labels.extend(self.seeds.iter().map(|&node| self.labels[node as usize]));
        out.layers.resize_with(self.sample.layers.len(), Arc::default);
        for (layer, edges) in out.layers.iter_mut().zip(&mut self.sample.layers) {
            if Arc::get_mut(layer).is_none() {
                *layer = Arc::default(); // someone holds on to the old one
            }
            if let Some(adjacency) = Arc::get_mut(layer) {
                let rebuilt = adjacency.rebuild(&mut edges.row_start, &mut edges.source, edges.sources);
                rebuilt.map_err(NodeBatchError::Adjacency)?;
                if let Some(prepare) = self.prepare_edges {
                    prepare(adjacency);
                }
            }
        }
        std::mem::swap(&mut out.nodes, &mut self.sample.nodes);
        Ok(())
    }
}

impl Assemble for NodeBatches {
    const ITEMS: &'static str = "training nodes";
    type Batch = NodeBatch;
    type Error = NodeBatchError;

    fn items(&self) -> usize {
        self.targets.len()
    }

    fn work_alone(&mut self) {
        self.sampler.set_use_all_threads(true);
        self.use_all_threads = true;
    }

    fn assemble(
        &mut self,
        members: &[u32],
        batch: BatchId,
        out: &mut NodeBatch,
        observer: &dyn LoaderObserver,
    ) -> Result<(), NodeBatchError> {
        self.seeds.clear();
        self.seeds.extend(members.iter().map(|&member| self.targets[member as usize]));
        let mut sampled = Ok(());
        observer.stage(Stage::Sample, &mut || sampled = self.sampler.sample(&self.seeds, batch, &mut self.sample));
        sampled?;
        let mut gathered = Ok(());
        if self.without_features {
            gathered = self.gather(out);
        } else {
            observer.stage(Stage::Gather, &mut || gathered = self.gather(out));
        }
        gathered?;
        let mut built = Ok(());
        observer.stage(Stage::Assemble, &mut || built = self.build(out));
        built
    }
}
