//! GAT, the graph attention network: study 2's second model in both of its variants, and the reference one for Cora.
//!
//! A layer projects, `h = W x`, and each target v averages `h_u` over its in-neighbours u with weights
//! `softmax_u(leaky_relu(a_src . h_u + a_dst . h_v))`, for every head apart; plus a bias; then ELU except after the last
//! layer. Parameters have PyTorch Geometric's names and shapes, so its checkpoints load.
//!
//! The study compared two libraries that do not compute the same network, see [`GatConfig::pyg`] and
//! [`GatConfig::dgl`]: they differ in what is dropped and in [`SelfLoops`].

mod config;
mod conv;
mod dropouts;
mod fused;
mod loops;
mod model;
mod on_device;

pub use config::{GatConfig, GatDropout, SelfLoops};
pub use conv::GatConv;
pub use loops::with_self_loops;
pub use model::Gat;
