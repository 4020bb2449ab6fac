//! Numeric kernels over graphs in CSR form, and the small dense pieces they need.
//!
//! The kernels work on plain slices and are generic over `f32` and `f64`, so that finite differences can check
//! them in double precision. The models wrap them in candle custom operations with exact gradients. Nothing here
//! makes an edge-wise temporary: a kernel reads one row per node and gathers along the edges.
//!
//! Ties: where several edges or nodes hold the same extremum, the first one, lowest edge or node position, gets
//! the whole gradient.

mod adjacency;
mod aggregate;
mod element;
mod matrix;
mod ranges;
mod segment_max;
mod workspace;

pub use adjacency::{Adjacency, DegreeRun};
pub use aggregate::{
    AGGREGATORS, Aggregates, Saved, SectionLayout, aggregate, gradient_of_messages, gradient_of_targets,
};
pub(crate) use element::cpu_slice;
pub use element::{Element, host_slice};
pub use matrix::{Matrix, MatrixMut, add_column_sums, multiply};
pub use ranges::{even_ranges, run_tasks, split_rows};
pub use segment_max::{Segments, segment_max};
pub use workspace::{Buffer, Workspace, Workspaces};
