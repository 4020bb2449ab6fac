//! The normalised adjacency of a GCN: `D^-1/2 (A + I) D^-1/2` (Kipf and Welling, equation 2).

use std::sync::{Arc, OnceLock};

use candle_core::{DType, Device, Result, Tensor, bail};

use crate::kernels::{Operand, sddmm, spmm};
use gnntop_data::graph::{Adjacency, EdgeOp, Reduce, SparseMatrix};

/// A graph in which every node has exactly one self-loop: PyTorch Geometric's `add_remaining_self_loops`. The edges
/// are those of the original without its loops, each followed, row by row, by the loop of its destination.
#[derive(Debug, Clone)]
pub struct LoopedGraph {
    adjacency: Arc<Adjacency>,
    /// For each edge the number of the original edge that it was; [`NEW_LOOP`] for a loop that was not there.
    origin: Vec<u32>,
    original_edges: usize,
}

/// Marks a self-loop that the original graph does not have.
const NEW_LOOP: u32 = u32::MAX;

impl LoopedGraph {
    /// From a graph whose sources and destinations are the same nodes. Of several loops of a node the last counts.
    ///
    /// # Errors
    /// `adjacency` is a block with other sources than destinations.
    pub fn new(adjacency: &Adjacency) -> Result<Self> {
        let nodes = adjacency.nodes();
        if adjacency.source_nodes() != nodes {
            bail!("gcn: needs a whole graph or subgraph, not a block of a sampled layer");
        }
        let edges = adjacency.edges() + nodes;
        let (mut source, mut origin) = (Vec::with_capacity(edges), Vec::with_capacity(edges));
        let mut row_start = Vec::with_capacity(nodes + 1);
        row_start.push(0);
        for node in 0..nodes {
            let mut own_loop = NEW_LOOP;
            for edge in adjacency.incoming(node) {
                match adjacency.sources()[edge] {
                    from if from as usize == node => own_loop = edge as u32,
                    from => {
                        source.push(from);
                        origin.push(edge as u32);
                    }
                }
            }
            source.push(node as u32);
            origin.push(own_loop);
            row_start.push(source.len() as u32);
        }
        Ok(Self { adjacency: Arc::new(Adjacency::new(row_start, source)?), origin, original_edges: adjacency.edges() })
    }

    /// The edges, loops among them.
    #[must_use]
    pub fn adjacency(&self) -> &Arc<Adjacency> {
        &self.adjacency
    }

    /// Edges of the graph that this was made from, loops among them.
    #[must_use]
    pub fn original_edges(&self) -> usize {
        self.original_edges
    }

    /// The weights of these edges from those of the original ones, `[edges]`; a loop that was not there gets 1.
    fn carried(&self, weight: &Tensor) -> Result<Tensor> {
        if weight.elem_count() != self.original_edges {
            bail!("gcn: {} edge weights for {} edges", weight.elem_count(), self.original_edges);
        }
        let one = Tensor::ones(1, weight.dtype(), weight.device())?;
        let with_one = Tensor::cat(&[&weight.flatten_all()?, &one], 0)?;
        let last = with_one.elem_count() as u32 - 1;
        let index: Vec<u32> = self.origin.iter().map(|&edge| if edge == NEW_LOOP { last } else { edge }).collect();
        with_one.index_select(&Tensor::from_vec(index, self.origin.len(), weight.device())?, 0)
    }

    /// The coefficient of each edge, `w_ij / sqrt(d_i d_j)`, where `d` sums the weights of the edges into a node. With
    /// `edge_weight` given, `[original edges]`, the result carries its gradient; without, every weight is 1.
    ///
    /// # Errors
    /// `edge_weight` has another length than the original graph has edges, or the kernels fail.
    pub fn normalised(&self, edge_weight: Option<&Tensor>, dtype: DType, device: &Device) -> Result<Normalised> {
        let weight = match edge_weight {
            Some(weight) => self.weighted(&self.carried(weight)?)?,
            None => Tensor::from_vec(self.unweighted(), self.origin.len(), device)?.to_dtype(dtype)?,
        };
        Ok(Normalised { adjacency: Arc::clone(&self.adjacency), weight, matrix: Arc::default() })
    }

    fn weighted(&self, weight: &Tensor) -> Result<Tensor> {
        let weight = weight.reshape(((), 1))?;
        let degree = spmm(&self.adjacency, EdgeOp::CopyRhs, Reduce::Sum, None, Some(&weight))?;
        let positive = degree.gt(0.0)?;
        let root = positive.where_cond(&degree.powf(-0.5)?, &degree.zeros_like()?)?;
        let left = sddmm(&self.adjacency, EdgeOp::Mul, Operand::source(&root), Some(Operand::edge(&weight)))?;
        let both = sddmm(&self.adjacency, EdgeOp::Mul, Operand::edge(&left), Some(Operand::destination(&root)))?;
        both.flatten_all()
    }

    /// The same for weights of 1, without tensors in between.
    fn unweighted(&self) -> Vec<f32> {
        let adjacency = &self.adjacency;
        let root = |node: usize| 1.0 / (adjacency.in_degree(node) as f32).sqrt();
        let roots: Vec<f32> = (0..adjacency.nodes()).map(root).collect();
        let row = |node: usize| adjacency.incoming(node).map(move |edge| (node, edge));
        let weight = |(node, edge): (usize, usize)| roots[node] * roots[adjacency.sources()[edge] as usize];
        (0..adjacency.nodes()).flat_map(row).map(weight).collect()
    }
}

/// A graph with loops and its coefficients, ready for the layers.
#[derive(Debug, Clone)]
pub struct Normalised {
    /// The edges, loops among them.
    pub adjacency: Arc<Adjacency>,
    /// Coefficient of each edge, `[edges]`.
    pub weight: Tensor,
    /// Both as a matrix, made when first asked for.
    matrix: Arc<OnceLock<Arc<SparseMatrix>>>,
}

impl Normalised {
    /// The coefficients as another number type.
    ///
    /// # Errors
    /// The device refuses.
    pub fn to_dtype(&self, dtype: DType) -> Result<Self> {
        let matrix = if self.weight.dtype() == dtype { Arc::clone(&self.matrix) } else { Arc::default() };
        Ok(Self { adjacency: Arc::clone(&self.adjacency), weight: self.weight.to_dtype(dtype)?, matrix })
    }

    /// The matrix of the coefficients, `[nodes, nodes]`, each row those of the edges into a node.
    ///
    /// # Errors
    /// The coefficients are not f32 in host memory.
    pub(super) fn matrix(&self) -> Result<Arc<SparseMatrix>> {
        if let Some(matrix) = self.matrix.get() {
            return Ok(Arc::clone(matrix));
        }
        let (start, sources) = (self.adjacency.target_starts().to_vec(), self.adjacency.sources().to_vec());
        let made = SparseMatrix::new(start, sources, self.weight.to_vec1()?, self.adjacency.source_nodes())?;
        Ok(Arc::clone(self.matrix.get_or_init(|| Arc::new(made))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_added_where_missing_and_several_count_as_one() {
        // 0 <- 1, 0 <- 0 twice; 1 has no edge; 2 <- 2 and 2 <- 0 twice.
        let adjacency = Adjacency::new(vec![0, 3, 3, 6], vec![0, 1, 0, 0, 0, 2]).unwrap();
        let looped = LoopedGraph::new(&adjacency).unwrap();
        assert_eq!(looped.adjacency().sources(), [1, 0, 1, 0, 0, 2]);
        assert_eq!(looped.origin, [1, 2, NEW_LOOP, 3, 4, 5]);
        let block = Adjacency::bipartite(vec![0, 1], vec![2], 3).unwrap();
        assert!(LoopedGraph::new(&block).is_err());
    }

    #[test]
    fn given_weights_of_one_equal_no_weights() {
        let adjacency = Adjacency::new(vec![0, 2, 3, 3], vec![1, 2, 1]).unwrap();
        let looped = LoopedGraph::new(&adjacency).unwrap();
        let ones = Tensor::ones(3, DType::F32, &Device::Cpu).unwrap();
        let of = |weight: Option<&Tensor>| {
            looped.normalised(weight, DType::F32, &Device::Cpu).unwrap().weight.to_vec1::<f32>().unwrap()
        };
        let (plain, weighted) = (of(None), of(Some(&ones)));
        assert_eq!(plain.len(), 5);
        assert!(plain.iter().zip(&weighted).all(|(a, b)| (a - b).abs() < 1e-6), "{plain:?} {weighted:?}");
    }
}
