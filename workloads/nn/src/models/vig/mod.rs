//! ViG (vision graph network): study 3's model, exactly.
//!
//! Every pixel of an image is a node with its three colours, joined to its up to eight neighbours. Eight blocks widen
//! each node to 256 and 512 hidden values and narrow it to three again; the sum over an image's nodes is classified.
//! Parameters have the names and shapes of the PyTorch Geometric form, so its checkpoints load.
//!
//! What makes it fast without changing what it computes: between the narrow waists everything is linear but one GELU,
//! so a block needs nothing wider than seven numbers a node in memory (see [`Block`] and [`Form`]).
//!
//! That model cannot learn much. [`patches`] has the paper's network, which can.

mod block;
mod config;
mod fused;
mod gelu;
mod grid;
mod groups;
mod kernel;
mod lanes;
mod model;
mod moments;
mod norm;
mod normalise;
pub mod patches;

pub use block::{Block, Form};
pub use config::{CHANNELS, VigConfig};
pub use gelu::gelu;
pub use grid::{Grid, neighbour_sum};
pub use lanes::Vectorised;
pub use model::{Readout, Vig};
pub use norm::{BatchNorm, Mode, RunningStatistics};
