//! Node classification on one large graph: its data, read or generated.

mod dataset;
pub mod generate;

pub use dataset::{Csr, CsrError, Features, NodeDataset, Split};
