//! A layer of the fused form, see [`chain`](crate::models::chain).

mod backward;
mod forward;
mod layer;
mod products;

pub(crate) use layer::Layer;
