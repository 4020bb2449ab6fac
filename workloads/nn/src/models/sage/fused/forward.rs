//! Forward pass of a layer.

use candle_core::Result;

use super::layer::Layer;
use super::products::{Epilogue, Projection};
use crate::kernels::{Buffer, Lanes, Selected, mean_of_sources};
use crate::models::sage::order::Order;

impl<T: Lanes> Layer<T> {
    /// `x`, `[sources, input]`, to `[targets, output]`.
    pub(super) fn computed(&self, x: Selected<'_, T>, bias: &[T]) -> Result<Buffer<T>> {
        self.with_weights(|weights| {
            let mut out = self.take(self.adjacency.nodes() * self.output);
            let own = Projection { rows: x, weight: weights.right };
            match self.order {
                Order::AggregateFirst => {
                    let mut mean = self.take(self.adjacency.nodes() * self.input);
                    mean_of_sources(&self.adjacency, x, &mut mean);
                    let left = Projection { rows: Selected::all(&mean, self.input), weight: weights.left };
                    self.project(&mut out, &[left, own], false, self.epilogue(bias));
                    *self.mean() = Some(mean);
                }
                Order::ProjectFirst => {
                    let mut projected = self.take(self.adjacency.source_nodes() * self.output);
                    let left = Projection { rows: x, weight: weights.left };
                    self.project(&mut projected, &[left], false, Epilogue::default());
                    mean_of_sources(&self.adjacency, Selected::all(&projected, self.output), &mut out);
                    self.project(&mut out, &[own], true, self.epilogue(bias));
                }
            }
            Ok(out)
        })
    }
}
