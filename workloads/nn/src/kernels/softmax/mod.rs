//! Softmax over the edges into each target, the attention weights of graph attention layers: of given logits, or of
//! scores at both ends of the edges, whose logits are then never stored.

mod backward;
mod forward;
mod logits;
mod operations;

pub(super) use operations::attention;
pub use operations::edge_softmax;
