//! Batches of graphs for a [`crate::loading::Loader`]: each is the disjoint union of its graphs.

use std::sync::Arc;

use crate::graph::{Batch, Graph, GraphError};
use crate::loading::{self, Assemble, BatchId, LoaderObserver, Stage};

/// A loader of graphs.
pub type Loader = loading::Loader<GraphBatches>;

/// Joins graphs. Cheap to clone: the graphs are shared.
#[derive(Debug, Clone)]
pub struct GraphBatches {
    graphs: Arc<[Graph]>,
}

impl GraphBatches {
    /// Batches of these graphs.
    #[must_use]
    pub fn new(graphs: impl Into<Arc<[Graph]>>) -> Self {
        Self { graphs: graphs.into() }
    }
}

impl Assemble for GraphBatches {
    const ITEMS: &'static str = "graphs";
    type Batch = Batch;
    type Error = GraphError;

    fn items(&self) -> usize {
        self.graphs.len()
    }

    fn assemble(
        &mut self,
        members: &[u32],
        _: BatchId,
        out: &mut Batch,
        observer: &dyn LoaderObserver,
    ) -> Result<(), GraphError> {
        let graphs: Vec<&Graph> = members.iter().map(|&graph| &self.graphs[graph as usize]).collect();
        let mut done = Ok(());
        observer.stage(Stage::Assemble, &mut || done = out.assemble(&graphs));
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loading::LoaderSettings;

    /// Graphs that differ in target and size.
    fn graphs(count: usize) -> Vec<Graph> {
        let graph = |index: usize| {
            let nodes = 1 + index % 5;
            let edges = (1..nodes as u32).flat_map(|node| [(node - 1, node), (node, node - 1)]).collect();
            Graph { nodes, features: vec![index as f32; nodes * 2], edges, y: index as f32 }
        };
        (0..count).map(graph).collect()
    }

    fn loader(graphs: Vec<Graph>, workers: usize, shuffle: bool) -> Loader {
        let settings = LoaderSettings { batch_size: 8, workers, seed: 7, shuffle, ..LoaderSettings::default() };
        Loader::new(GraphBatches::new(graphs), settings).unwrap()
    }

    fn batches(workers: usize, count: usize) -> Vec<(BatchId, Batch)> {
        let mut loader = loader(graphs(43), workers, true);
        (0..count)
            .map(|_| {
                let batch = loader.next_batch().unwrap();
                (batch.id, batch.clone())
            })
            .collect()
    }

    #[test]
    fn batches_do_not_depend_on_the_number_of_workers() {
        let expected = batches(0, 40);
        for workers in [1, 2, 3, 4] {
            assert!(batches(workers, 40) == expected, "{workers} workers");
        }
    }

    #[test]
    fn an_epoch_holds_every_graph_once_and_ends_with_a_partial_batch() {
        let loaded = batches(2, 6);
        let sizes: Vec<_> = loaded.iter().map(|(_, batch)| batch.graphs).collect();
        assert_eq!(sizes, [8, 8, 8, 8, 8, 3]);
        let mut targets: Vec<i32> = loaded.iter().flat_map(|(_, batch)| &batch.y).map(|&y| y as i32).collect();
        targets.sort_unstable();
        assert_eq!(targets, (0..43).collect::<Vec<_>>());
    }

    #[test]
    fn buffers_come_back() {
        let mut loader = loader(graphs(8), 0, false);
        let first = loader.next_batch().unwrap().features.as_ptr();
        assert_eq!(loader.next_batch().unwrap().features.as_ptr(), first);
    }

    #[test]
    fn a_bad_graph_spoils_only_its_batch() {
        for workers in [0, 2] {
            let mut list = graphs(43);
            list[9].features.pop();
            let mut loader = loader(list, workers, false);
            loader.next_batch().unwrap();
            let error = loader.next_batch().unwrap_err();
            assert_eq!(error.to_string(), "batch 1 of epoch 0 cannot be assembled");
            let cause = std::error::Error::source(&error).unwrap().to_string();
            assert!(cause.starts_with("graph 1 has"), "{cause}");
            assert_eq!(loader.next_batch().unwrap().y[0], 16.0);
        }
    }

    #[test]
    fn no_graphs_are_refused() {
        let error = Loader::new(GraphBatches::new([]), LoaderSettings::default()).unwrap_err();
        assert_eq!(error.to_string(), "there are no graphs to load");
    }
}
