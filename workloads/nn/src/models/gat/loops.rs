//! Self-loops as PyTorch Geometric's layer sees them.

use std::sync::Arc;

use candle_core::Result;

use gnntop_data::graph::Adjacency;

/// The same edges without those from a node to itself, and with one such edge after the others of every target. The
/// targets are the first of the sources.
///
/// # Errors
/// There are more targets than sources.
pub fn with_self_loops(adjacency: &Adjacency) -> Result<Arc<Adjacency>> {
    let mut row_start = Vec::with_capacity(adjacency.nodes() + 1);
    let mut source = Vec::with_capacity(adjacency.edges() + adjacency.nodes());
    row_start.push(0);
    for target in 0..adjacency.nodes() {
        let edges = &adjacency.sources()[adjacency.incoming(target)];
        source.extend(edges.iter().filter(|&&source| source as usize != target));
        source.push(target as u32);
        row_start.push(source.len() as u32);
    }
    Adjacency::bipartite(row_start, source, adjacency.source_nodes()).map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_exactly_one() {
        // 0 <- 0, 0 (two loops), 3; 1 has no edge; 2 <- 3, 2.
        let block = Adjacency::bipartite(vec![0, 3, 3, 5], vec![0, 3, 0, 3, 2], 4).unwrap();
        let looped = with_self_loops(&block).unwrap();
        assert_eq!((looped.nodes(), looped.source_nodes()), (3, 4));
        assert_eq!(looped.sources(), [3, 0, 1, 3, 2]);
        assert_eq!((looped.in_degree(0), looped.in_degree(1), looped.in_degree(2)), (2, 1, 2));
        let impossible = Adjacency::bipartite(vec![0, 0, 0], vec![], 1).unwrap();
        assert!(with_self_loops(&impossible).is_err());
    }
}
