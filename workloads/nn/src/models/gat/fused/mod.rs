//! A layer of the fused form, see [`chain`](crate::models::chain). Of every edge and head two numbers are kept, the weight
//! before and after dropout; nothing as wide as a feature is stored per edge. Self-loops that the layer adds or leaves out
//! need no other adjacency: the loops over the edges know of them.

mod backward;
mod forward;
mod layer;
mod products;

pub(crate) use layer::Layer;
