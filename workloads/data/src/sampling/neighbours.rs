//! The neighbourhood of seed nodes, hop by hop.

use std::sync::Arc;

use thiserror::Error;

use super::choose::{Choice, Taken};
use super::local_ids::{BadSeed, LocalIds};
use super::random::Random;
use crate::loading::BatchId;
use crate::nodes::Csr;
use crate::tasks::{even_ranges, run_tasks, split_rows};

/// What a sample is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SampleForm {
    /// One graph of all nodes reached, on which every layer runs (PyG's `NeighborLoader`): a hop samples for the nodes
    /// that the previous hop reached first.
    Subgraph,
    /// One block per layer (DGL's `NeighborSampler`): a hop samples again for all nodes reached so far, and a layer
    /// computes only what the layer after it reads.
    #[default]
    Blocks,
}

/// How neighbours are sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplerSettings {
    /// Most in-neighbours a node keeps, hop 1 (into the seeds) first, each at least 1; `usize::MAX` keeps all. A node
    /// with fewer keeps all it has.
    pub fanouts: Vec<usize>,
    /// What a sample is made of.
    pub form: SampleForm,
    /// Whether every node gets an edge from itself, to be sampled like any other, besides those it has (DGL's
    /// `add_self_loop`).
    pub self_loops: bool,
    /// Seed of the choice, which depends on this and on the batch alone.
    pub seed: u64,
}

impl Default for SamplerSettings {
    /// Study 2: ten neighbours in each of three hops.
    fn default() -> Self {
        Self { fanouts: vec![10; 3], form: SampleForm::default(), self_loops: false, seed: 1234 }
    }
}

/// Why there is no sample.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SampleError {
    /// No hops at all.
    #[error("no fan-outs given; give one per layer, such as 10,10,10")]
    NoFanouts,
    /// A hop that keeps no neighbours.
    #[error("the fan-out of hop {hop} is 0, so no node would have neighbours; use at least 1, or fewer hops")]
    ZeroFanout {
        /// The hop, from 1.
        hop: usize,
    },
    /// A seed is not a node.
    #[error("node {node} is a seed, but there are only {nodes} nodes (numbered from 0)")]
    SeedOutOfRange {
        /// The seed.
        node: u32,
        /// Nodes of the graph.
        nodes: usize,
    },
    /// A seed is given twice.
    #[error("node {node} is listed twice as a seed; list each seed once")]
    DuplicateSeed {
        /// The seed.
        node: u32,
    },
    /// More edges than 32-bit numbers count.
    #[error("the sample has more than {} edges; use a smaller batch or fan-out", u32::MAX)]
    TooLarge,
}

/// Sampled edges in CSR form, from nodes to the first of the same nodes. All nodes are numbered as in
/// [`Sample::nodes`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampledEdges {
    /// Start of each target's edges in `source`, `[targets + 1]`.
    pub row_start: Vec<u32>,
    /// Source of every edge, grouped by target, `[edges]`.
    pub source: Vec<u32>,
    /// Number of source nodes; the targets are the first of them.
    pub sources: usize,
}

impl SampledEdges {
    fn clear(&mut self) {
        self.row_start.clear();
        self.row_start.push(0);
        self.source.clear();
        self.sources = 0;
    }

    /// Number of target nodes.
    #[must_use]
    pub fn targets(&self) -> usize {
        self.row_start.len().saturating_sub(1)
    }
}

/// The sampled neighbourhood of some seeds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// The nodes reached, as numbered in the graph: the seeds first, then in the order in which they were reached.
    pub nodes: Vec<u32>,
    /// Number of seeds.
    pub seeds: usize,
    /// The edges in the order in which a model applies them. As [`SampleForm::Subgraph`] one entry for all layers,
    /// whose targets and sources are all nodes; as [`SampleForm::Blocks`] one for each layer, the outermost hop first,
    /// each with as many targets as the next has sources.
    pub layers: Vec<SampledEdges>,
}

impl Sample {
    /// Number of sampled edges, in all layers together.
    #[must_use]
    pub fn edges(&self) -> usize {
        self.layers.iter().map(|layer| layer.source.len()).sum()
    }
}

/// Samples in-neighbours uniformly and without replacement. The sample depends only on the settings, the batch and its
/// seeds. A duplicate edge is two edges, each of which can be chosen.
///
/// Clones share the graph; each has its own 8 bytes per node to work in.
#[derive(Debug, Clone)]
pub struct NeighbourSampler {
    graph: Arc<Csr>,
    settings: SamplerSettings,
    ids: LocalIds,
    taken: Taken,
    use_all_threads: bool,
}

impl NeighbourSampler {
    /// A sampler on one thread.
    ///
    /// # Errors
    /// No fan-outs, or one of 0.
    pub fn new(graph: Arc<Csr>, settings: SamplerSettings) -> Result<Self, SampleError> {
        if settings.fanouts.is_empty() {
            return Err(SampleError::NoFanouts);
        }
        if let Some(hop) = settings.fanouts.iter().position(|&fanout| fanout == 0) {
            return Err(SampleError::ZeroFanout { hop: hop + 1 });
        }
        let ids = LocalIds::new(graph.nodes());
        Ok(Self { graph, settings, ids, taken: Taken::default(), use_all_threads: false })
    }

    /// Whether to work on all threads of the current rayon pool. The samples are the same.
    pub fn set_use_all_threads(&mut self, all: bool) {
        self.use_all_threads = all;
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> &SamplerSettings {
        &self.settings
    }

    /// Samples for `seeds`, into `out`, whose memory is reused.
    ///
    /// # Errors
    /// A seed is not a node or given twice, or there are more than `u32::MAX` edges; `out` then holds anything.
    pub fn sample(&mut self, seeds: &[u32], batch: BatchId, out: &mut Sample) -> Result<(), SampleError> {
        self.check_seeds(seeds)?;
        match self.settings.form {
            SampleForm::Subgraph => self.sample_subgraph(batch, &mut out.layers)?,
            SampleForm::Blocks => self.sample_blocks(batch, &mut out.layers)?,
        }
        out.seeds = seeds.len();
        out.nodes.clear();
        out.nodes.extend_from_slice(self.ids.nodes());
        Ok(())
    }

    /// Numbers the seeds.
    pub(super) fn check_seeds(&mut self, seeds: &[u32]) -> Result<(), SampleError> {
        self.ids.begin(seeds).map_err(|bad| match bad {
            BadSeed::OutOfRange(node) => SampleError::SeedOutOfRange { node, nodes: self.graph.nodes() },
            BadSeed::Duplicate(node) => SampleError::DuplicateSeed { node },
        })
    }

    fn sample_subgraph(&mut self, batch: BatchId, layers: &mut Vec<SampledEdges>) -> Result<(), SampleError> {
        layers.resize_with(1, SampledEdges::default);
        let edges = &mut layers[0];
        edges.clear();
        let mut expanded = 0;
        for hop in 0..self.settings.fanouts.len() {
            let reached = self.ids.nodes().len();
            self.sample_hop(hop, batch, expanded, edges)?;
            expanded = reached;
        }
        // The nodes that the last hop reached have no edges into them.
        edges.sources = self.ids.nodes().len();
        edges.row_start.resize(edges.sources + 1, edges.source.len() as u32);
        Ok(())
    }

    fn sample_blocks(&mut self, batch: BatchId, layers: &mut Vec<SampledEdges>) -> Result<(), SampleError> {
        let hops = self.settings.fanouts.len();
        layers.resize_with(hops, SampledEdges::default);
        for hop in 0..hops {
            let edges = &mut layers[hops - 1 - hop];
            edges.clear();
            self.sample_hop(hop, batch, 0, edges)?;
            edges.sources = self.ids.nodes().len();
        }
        Ok(())
    }

    /// Appends the edges into all nodes reached so far but the first `expanded`, and numbers their sources.
    fn sample_hop(
        &mut self,
        hop: usize,
        batch: BatchId,
        expanded: usize,
        edges: &mut SampledEdges,
    ) -> Result<(), SampleError> {
        let choice = Choice {
            graph: &self.graph,
            self_loops: self.settings.self_loops,
            fanout: self.settings.fanouts[hop],
            random: Random::new(self.settings.seed, batch, hop),
        };
        let targets = &self.ids.nodes()[expanded..];
        let first = edges.source.len();
        let first_row = edges.row_start.len() - 1;
        append_rows(&choice, targets, edges)?;
        let (rows, chosen) = (&edges.row_start[first_row..], &mut edges.source[first..]);
        if self.use_all_threads {
            choose_on_all_threads(&choice, targets, rows, chosen);
        } else {
            choice.choose(targets, 0, chosen, &mut self.taken);
        }
        self.ids.number(chosen);
        Ok(())
    }
}

/// Makes room for the edges that `targets` choose.
fn append_rows(choice: &Choice<'_>, targets: &[u32], edges: &mut SampledEdges) -> Result<(), SampleError> {
    let mut end = edges.source.len();
    edges.row_start.reserve(targets.len());
    for &node in targets {
        end += choice.chosen(node);
        // Truncated starts are never seen: the sum is checked before they are read.
        edges.row_start.push(end as u32);
    }
    if end > u32::MAX as usize {
        return Err(SampleError::TooLarge);
    }
    edges.source.resize(end, 0);
    Ok(())
}

/// [`Choice::choose`], the targets divided among the threads of the current rayon pool. `rows` are the starts of their
/// edges, one more than there are targets.
fn choose_on_all_threads(choice: &Choice<'_>, targets: &[u32], rows: &[u32], out: &mut [u32]) {
    let ranges = even_ranges(targets.len());
    let first = rows[0] as usize;
    let slots: Vec<_> =
        ranges.iter().map(|range| rows[range.start] as usize - first..rows[range.end] as usize - first).collect();
    let parts = split_rows(out, &slots, 1);
    run_tasks(ranges.into_iter().zip(slots).zip(parts), |((range, slots), part)| {
        choice.choose(&targets[range], slots.start as u64, part, &mut Taken::default());
    });
}
