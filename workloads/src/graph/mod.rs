//! The structure of graphs and the words for what goes along their edges. Everything that computes stands on it: the
//! kernels of a GPU, those of the processor, the models.
//!
//! A [`Graph`] is one sample and a [`Batch`] the disjoint union of several: plain data, as it is read or made. An
//! [`Adjacency`] is what kernels walk along. A kernel's messages are said in [`EdgeOp`], [`Endpoint`], [`Columns`] and
//! [`Reduce`], a dropout in `DropMask`. What a device keeps of a structure lies in a slot that knows neither what it is
//! nor whose.

mod adjacency;
mod batch;
mod device_slot;
mod drop_mask;
mod message;
mod ranges;

pub use adjacency::{Adjacency, DegreeRun};
pub use batch::{Batch, Graph, GraphError, in_degree_histogram};
pub(crate) use device_slot::DeviceSlot;
pub(crate) use drop_mask::DropMask;
pub use message::{AGGREGATORS, Columns, Direction, EdgeOp, Endpoint, Extreme, Reduce};
pub(crate) use ranges::balanced_ranges;
