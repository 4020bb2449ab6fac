//! The vision graph network of the paper (Han et al., 2022); study 3 took pixels and a fixed grid instead. Patches of
//! an image are nodes, and each block joins a node to those most like it, separately for every image.
//!
//! A Grapher maps the nodes, looks for the nearest neighbours among the mapped ones, takes the largest difference to
//! them in each channel, and maps again; a feed-forward part follows. Both are skipped by a residual connection.
//! Smaller than the paper's presets, to fit images of 32 x 32 pixels; its head has no normalisation, so that a batch
//! of one image can be trained on.

mod grapher;
mod max_relative;
mod model;
mod nearest;

pub use max_relative::max_relative;
pub use model::{PatchVig, PatchVigConfig};
pub use nearest::{Neighbours, nearest};
