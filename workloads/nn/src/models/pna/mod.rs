//! Principal neighbourhood aggregation (PNA) on molecules: the model of study 0, exactly.
//!
//! Layer l computes `m_ij = W_pre [x_i | x_j] + b`, the mean, minimum, maximum and standard deviation of `m_ij` over
//! the in-neighbours j, `W_post [x_i | a_i | a_i amp_i | a_i att_i] + b` with the two degree scalers, a last linear
//! map, and ReLU except after the last layer. Global max pooling over each molecule's atoms gives the prediction.
//! Parameters have PyTorch Geometric's names and shapes, so its checkpoints load.
//!
//! Three things make it fast without changing what it computes. The message is linear, so no edge-wise matrix
//! product is needed (see [`crate::kernels::aggregate`]). The scalers depend on the degree alone, so nodes of one
//! degree share a combined post weight, 5 instead of 13 times the width; [`DeviceBatch`] numbers nodes by degree to
//! that end. And activations stay in buffers that live from step to step. The plain form is kept as the control.

mod batch;
mod call;
mod config;
mod conv;
mod linear;
mod message;
mod model;
mod on_device;
mod plain;
mod post;

pub use batch::{DeviceBatch, Numbered};
pub use config::{DegreeScalers, PnaConfig};
pub use conv::PnaConv;
pub use model::Pna;
