//! GraphSAGE with mean aggregation: study 2's first model, exactly.
//!
//! Layer l computes `W_l mean_j x_j + b + W_r x_i` over the in-neighbours j, then ReLU and dropout except after the last
//! layer. Parameters have PyTorch Geometric's names and shapes, so its checkpoints load. It runs on a whole graph, on a
//! sample as one subgraph (every layer computes all nodes) and on blocks (a layer computes only its targets).
//!
//! Three things make the fused form fast without changing what it computes. Each layer aggregates first or projects
//! first, whichever is less work. After ReLU and dropout about three quarters of a gradient are zeros, and the products
//! that make the weights' gradients skip them. And activations stay in buffers that live from step to step. The first
//! layer's features get no gradient.

mod config;
mod conv;
mod fused;
mod model;
mod on_device;
mod order;

pub use config::SageConfig;
pub use conv::SageConv;
pub use model::Sage;
