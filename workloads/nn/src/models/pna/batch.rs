//! A batch of graphs, ready for the model: tensors on a device, and the edges as the kernels want them.

use std::sync::Arc;

use candle_core::{DType, Device, Result, Tensor, bail};

use crate::cuda::{copy_edges, stage_edges};
use crate::kernels::Segments;
use gnntop_data::graph::{Adjacency, Batch};

/// A [`Batch`] with its nodes renumbered by ascending in-degree, which is what lets the layers treat nodes of one
/// degree together. Cheap to clone: everything is shared.
#[derive(Debug, Clone)]
pub struct DeviceBatch {
    features: Tensor,
    targets: Tensor,
    adjacency: Arc<Adjacency>,
    segments: Arc<Segments>,
}

impl DeviceBatch {
    /// Copies `batch` to `device`, floating-point values as `dtype` (f32 to train, f64 to check).
    ///
    /// # Errors
    /// The batch has no graphs, its layouts are inconsistent, or the device refuses.
    pub fn new(batch: &Batch, dtype: DType, device: &Device) -> Result<Self> {
        let numbered = Numbered::new(batch)?;
        let mut values = vec![0.0; numbered.values(batch)];
        numbered.write(batch, &mut values);
        let length = values.len();
        numbered.arrive(batch, &Tensor::from_vec(values, length, device)?.to_dtype(dtype)?)
    }

    /// Node features, `[nodes, features]`, in the order of this batch's own numbering.
    #[must_use]
    pub fn features(&self) -> &Tensor {
        &self.features
    }

    /// Target of each graph, `[graphs]`, in the order of the batch.
    #[must_use]
    pub fn targets(&self) -> &Tensor {
        &self.targets
    }

    /// The edges, in this batch's own numbering.
    #[must_use]
    pub fn adjacency(&self) -> &Arc<Adjacency> {
        &self.adjacency
    }

    /// Which nodes belong to which graph.
    #[must_use]
    pub fn segments(&self) -> &Arc<Segments> {
        &self.segments
    }
}

/// A batch with its own numbering, still in host memory. Its floating-point values go to the device as one list, features
/// first, then targets.
#[derive(Debug)]
pub struct Numbered {
    old_of_new: Vec<u32>,
    adjacency: Arc<Adjacency>,
    segments: Arc<Segments>,
}

impl Numbered {
    /// Numbers the nodes of `batch`.
    ///
    /// # Errors
    /// The batch has no graphs, or its layouts are inconsistent.
    pub fn new(batch: &Batch) -> Result<Self> {
        if batch.graphs == 0 || batch.nodes == 0 {
            bail!("the batch has no graphs; there is nothing to train on");
        }
        if batch.features.len() != batch.nodes * batch.feature_width || batch.y.len() != batch.graphs {
            let (values, width, targets) = (batch.features.len(), batch.feature_width, batch.y.len());
            bail!(
                "{values} feature values do not make {} rows of {width}, or {targets} targets are not one a graph",
                batch.nodes
            );
        }
        let numbering = Numbering::by_degree(&batch.row_start, batch.nodes)?;
        let (row_start, source) = numbering.edges(&batch.row_start, &batch.source)?;
        let adjacency = Arc::new(Adjacency::new(row_start, source)?);
        let segments = Arc::new(Segments::new(batch.graph_start.clone(), numbering.new_of_old)?);
        Ok(Self { old_of_new: numbering.old_of_new, adjacency, segments })
    }

    /// Puts the edges together as a GPU takes them, which `arrive` does otherwise.
    pub fn stage(&self) {
        stage_edges(&self.adjacency);
    }

    /// How many values go to the device.
    pub fn values(&self, batch: &Batch) -> usize {
        batch.features.len() + batch.y.len()
    }

    /// Writes them, for the batch that was numbered.
    pub fn write(&self, batch: &Batch, out: &mut [f32]) {
        let (width, (features, targets)) = (batch.feature_width, out.split_at_mut(batch.features.len()));
        for (row, &old) in features.chunks_exact_mut(width.max(1)).zip(&self.old_of_new) {
            row.copy_from_slice(&batch.features[old as usize * width..][..width]);
        }
        targets.copy_from_slice(&batch.y);
    }

    /// The batch on the device where its values are.
    ///
    /// # Errors
    /// There are others than were written, or the device refuses.
    pub fn arrive(self, batch: &Batch, values: &Tensor) -> Result<DeviceBatch> {
        let (graphs, features) = (batch.graphs, batch.features.len());
        copy_edges(&self.adjacency, values.device())?;
        Ok(DeviceBatch {
            features: values.narrow(0, 0, features)?.reshape((batch.nodes, batch.feature_width))?,
            targets: values.narrow(0, features, graphs)?,
            adjacency: self.adjacency,
            segments: self.segments,
        })
    }
}

/// A renumbering of nodes.
struct Numbering {
    new_of_old: Vec<u32>,
    old_of_new: Vec<u32>,
}

impl Numbering {
    /// By ascending in-degree, nodes of one degree in their old order.
    fn by_degree(row_start: &[u32], nodes: usize) -> Result<Self> {
        if row_start.len() != nodes + 1 || row_start.windows(2).any(|row| row[0] > row[1]) {
            bail!("row_start must ascend and have one entry more than the {nodes} nodes");
        }
        let degree = |&node: &u32| row_start[node as usize + 1] - row_start[node as usize];
        let mut old_of_new: Vec<u32> = (0..nodes as u32).collect();
        old_of_new.sort_by_key(degree);
        let mut new_of_old = vec![0; nodes];
        for (new, &old) in old_of_new.iter().enumerate() {
            new_of_old[old as usize] = new as u32;
        }
        Ok(Self { new_of_old, old_of_new })
    }

    /// The CSR by destination in the new numbering; each node keeps the order of its edges.
    fn edges(&self, row_start: &[u32], source: &[u32]) -> Result<(Vec<u32>, Vec<u32>)> {
        let mut starts = Vec::with_capacity(row_start.len());
        let mut sources = Vec::with_capacity(source.len());
        starts.push(0);
        for &old in &self.old_of_new {
            let row = row_start[old as usize] as usize..row_start[old as usize + 1] as usize;
            for &from in source.get(row).unwrap_or_default() {
                match self.new_of_old.get(from as usize) {
                    Some(&from) => sources.push(from),
                    None => bail!("an edge comes from node {from}, but there are only {} nodes", starts.capacity() - 1),
                }
            }
            starts.push(sources.len() as u32);
        }
        if sources.len() != source.len() {
            bail!("row_start ends at {}, but there are {} edges", sources.len(), source.len());
        }
        Ok((starts, sources))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_data::graph::Graph;

    fn path(y: f32) -> Graph {
        let edges = vec![(0, 1), (1, 0), (1, 2), (2, 1)];
        Graph { nodes: 3, features: vec![y, y + 1.0, y + 2.0], edges, y }
    }

    #[test]
    fn nodes_are_numbered_by_degree_and_keep_their_graph() {
        let mut batch = Batch::new();
        batch.assemble(&[&path(10.0), &path(20.0)]).unwrap();
        let device = DeviceBatch::new(&batch, DType::F32, &Device::Cpu).unwrap();
        let features = device.features().flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert_eq!(features, [10.0, 12.0, 20.0, 22.0, 11.0, 21.0]);
        let runs: Vec<_> = device.adjacency().degree_runs().iter().map(|run| (run.degree, run.rows.clone())).collect();
        assert_eq!(runs, [(1, 0..4), (2, 4..6)]);
        assert_eq!(device.adjacency().sources(), [4, 4, 5, 5, 0, 1, 2, 3]);
        assert_eq!(device.segments().count(), 2);
    }

    #[test]
    fn an_empty_or_broken_batch_is_refused() {
        assert!(DeviceBatch::new(&Batch::new(), DType::F32, &Device::Cpu).is_err());
        let mut good = Batch::new();
        good.assemble(&[&path(1.0)]).unwrap();
        let broken = [
            Batch { source: vec![0, 1], ..good.clone() },
            Batch { source: vec![0, 1, 2, 9], ..good.clone() },
            Batch { features: vec![0.0], ..good.clone() },
            Batch { row_start: vec![0, 4], ..good.clone() },
            Batch { graph_start: vec![0, 2], ..good.clone() },
        ];
        for batch in broken {
            assert!(DeviceBatch::new(&batch, DType::F32, &Device::Cpu).is_err());
        }
    }
}
