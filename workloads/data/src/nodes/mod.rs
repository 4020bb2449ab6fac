//! Node classification on one large graph: its data, [`read`](read()) from files or [`generate`]d.

mod dataset;
pub mod generate;
mod read;
mod values;

pub use dataset::{Csr, CsrError, Features, NodeDataset, Split};
pub use read::{ReadError, read};
pub use values::Values;
