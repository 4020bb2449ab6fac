//! Backward pass of a layer.

use candle_core::Result;

use super::layer::{Layer, Weights};
use super::products::ROWS;
use crate::kernels::{
    Buffer, CompressedRows, Lanes, Matrix, MatrixMut, Right, Selected, gradient_of_mean, gradient_of_weight,
    multiply_by,
};
use crate::models::chain::{LayerGradients, left};
use crate::models::sage::order::Order;
use gnntop_data::tasks::run_tasks;

impl<T: Lanes> Layer<T> {
    /// From the gradient of the result, those of the parameters and, where asked, that of `x`.
    pub(super) fn gradients(
        &self,
        x: Selected<'_, T>,
        result: Option<&[T]>,
        mut gradient: Buffer<T>,
        with_input: bool,
    ) -> Result<LayerGradients<T>> {
        let factor = || T::from_f64(self.mask.map_or(1.0, |mask| mask.factor()));
        let relu = result.filter(|_| self.inner).map(|result| (result, factor()));
        let rows = CompressedRows::behind(&mut gradient, self.output, relu, &self.workspaces);
        let of_right = gradient_of_weight(&rows, x, None, &self.workspaces);
        let (of_left, input) = match self.order {
            Order::AggregateFirst => {
                let mean = self.mean();
                let mean = Selected::all(left(mean.as_deref())?, self.input);
                let of_left = gradient_of_weight(&rows, mean, None, &self.workspaces);
                let of_x = |weights: Weights<'_, T>| Ok(self.input_behind_mean(weights, &gradient));
                (of_left, with_input.then(|| self.with_weights(of_x)).transpose()?)
            }
            Order::ProjectFirst => {
                let mut projected = self.take(self.adjacency.source_nodes() * self.output);
                gradient_of_mean(&self.adjacency, self.output, &gradient, &mut projected);
                let of_projected = CompressedRows::behind(&mut projected, self.output, None, &self.workspaces);
                let of_left = gradient_of_weight(&of_projected, x, None, &self.workspaces);
                let of_x = |weights: Weights<'_, T>| Ok(self.input_behind_projection(weights, &gradient, &projected));
                (of_left, with_input.then(|| self.with_weights(of_x)).transpose()?)
            }
        };
        Ok(LayerGradients { input, weights: vec![of_left, of_right], bias: rows.into_column_sums() })
    }

    /// Gradient of `x`, `[sources, input]`, through the mean and the projection after it, and through the node itself.
    fn input_behind_mean(&self, weights: Weights<'_, T>, gradient: &[T]) -> Buffer<T> {
        let mut of_mean = self.take(self.adjacency.nodes() * self.input);
        self.times_weight(&mut of_mean, gradient, weights.left, false);
        let mut of_x = self.take(self.adjacency.source_nodes() * self.input);
        gradient_of_mean(&self.adjacency, self.input, &of_mean, &mut of_x);
        self.times_weight(&mut of_x[..of_mean.len()], gradient, weights.right, true);
        of_x
    }

    /// The same where the projection comes first; `projected` is the gradient of its result, `[sources, output]`.
    fn input_behind_projection(&self, weights: Weights<'_, T>, gradient: &[T], projected: &[T]) -> Buffer<T> {
        let mut of_x = self.take(self.adjacency.source_nodes() * self.input);
        self.times_weight(&mut of_x, projected, weights.left, false);
        let own = self.adjacency.nodes() * self.input;
        self.times_weight(&mut of_x[..own], gradient, weights.right, true);
        of_x
    }

    /// `out`, `[rows, input]`, becomes `gradient`, `[rows, output]`, times `weight`, or has it added.
    fn times_weight(&self, out: &mut [T], gradient: &[T], weight: &[T], accumulate: bool) {
        let (input, output) = (self.input, self.output);
        let weight = Right::new(Matrix::new(weight, output, input, input), self.precision);
        run_tasks(out.chunks_mut(ROWS * input).zip(gradient.chunks(ROWS * output)), |(out, gradient)| {
            let rows = gradient.len() / output;
            let gradient = Matrix::new(gradient, rows, output, output);
            multiply_by(MatrixMut::new(out, rows, input, input), accumulate, gradient, &weight);
        });
    }
}
