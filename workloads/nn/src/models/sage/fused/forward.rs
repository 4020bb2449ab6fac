//! Forward pass of a layer.

use candle_core::Result;

use super::layer::Layer;
use super::products::{Epilogue, Projection, project};
use crate::kernels::{Buffer, Lanes, mean_of_sources};
use crate::models::sage::order::Order;

impl<T: Lanes> Layer<T> {
    /// `x`, `[sources, input]`, to `[targets, output]`.
    pub(super) fn computed(&self, x: &[T], bias: &[T]) -> Result<Buffer<T>> {
        self.with_weights(|weights| {
            let mut out = self.take(self.adjacency.nodes() * self.output);
            let own = Projection { rows: x, weight: weights.right, input: self.input };
            match self.order {
                Order::AggregateFirst => {
                    let mut mean = self.take(self.adjacency.nodes() * self.input);
                    mean_of_sources(&self.adjacency, self.input, x, &mut mean);
                    let left = Projection { rows: &mean, weight: weights.left, input: self.input };
                    project(&mut out, self.output, &[left, own], false, self.epilogue(bias));
                    *self.mean() = Some(mean);
                }
                Order::ProjectFirst => {
                    let mut projected = self.take(self.adjacency.source_nodes() * self.output);
                    let left = Projection { rows: x, weight: weights.left, input: self.input };
                    project(&mut projected, self.output, &[left], false, Epilogue::default());
                    mean_of_sources(&self.adjacency, self.output, &projected, &mut out);
                    project(&mut out, self.output, &[own], true, self.epilogue(bias));
                }
            }
            Ok(out)
        })
    }
}
