//! Why no graph can be generated.

use std::path::PathBuf;

use thiserror::Error;

/// Why no graph can be generated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// More nodes or edges than 32-bit numbers count.
    #[error("cannot generate {nodes} nodes and {edges} directed edges; at most {} of each are supported", u32::MAX)]
    TooLarge {
        /// Nodes asked for.
        nodes: usize,
        /// Directed edges asked for.
        edges: usize,
    },
    /// The pairs of nodes with an edge cannot be found by drawing.
    #[error("{edges} directed edges are too many for {nodes} nodes; use fewer edges or more nodes")]
    TooDense {
        /// Nodes asked for.
        nodes: usize,
        /// Directed edges asked for.
        edges: usize,
    },
    /// The features cannot be written.
    #[error("cannot write the features of the graph to {}: {problem}", folder.display())]
    Write {
        /// Where to.
        folder: PathBuf,
        /// What the system says.
        problem: String,
    },
}
