//! Node classification on one large graph: its data, read or generated.

mod dataset;

pub use dataset::{Csr, CsrError, Features, NodeDataset, Split};
