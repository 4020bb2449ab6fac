//! The structure of graphs and the terms for messages along their edges. The kernels of a GPU, those of the processor
//! and the models build on it.
//!
//! A [`Graph`] is one sample and a [`Batch`] the disjoint union of several: plain data, as it is read or made. An
//! [`Adjacency`] is what kernels walk along. [`EdgeOp`], [`Endpoint`], [`Columns`] and [`Reduce`] describe a kernel's
//! messages, `DropMask` a dropout. A device's copy of a structure is in a slot that knows neither its content nor its
//! owner.

mod adjacency;
mod batch;
mod device_slot;
mod drop_mask;
mod message;
mod ranges;
mod sparse;

pub use adjacency::{Adjacency, DegreeRun};
pub use batch::{Batch, Graph, GraphError, in_degree_histogram};
pub use device_slot::DeviceSlot;
pub use drop_mask::DropMask;
pub use message::{AGGREGATORS, Columns, Direction, EdgeOp, Endpoint, Extreme, Reduce};
pub use ranges::balanced_ranges;
pub use sparse::{Compressed, SparseMatrix};
