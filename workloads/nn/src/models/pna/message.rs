//! First operation of a layer: messages and their aggregation, `x` to `[x | mean | min | max | std]`.
//!
//! With `W_pre = [P | Q]`, the message is `P x_i + b + Q x_j`: two node-wise products and one gather.

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor, bail};

use super::call::{Call, held, parameter_gradients, sum_parts, token};
use crate::kernels::{
    Aggregates, Element, Matrix, MatrixMut, Saved, add_column_sums, aggregate, cpu_slice, gradient_of_messages,
    gradient_of_targets, host_slice, multiply,
};
use gnntop_data::tasks::{even_ranges, run_tasks, split_rows};

pub(super) struct Message<T>(pub(super) Arc<Call<T>>);

/// `W_pre`, `[input, 2 input]`, as its two halves `P` and `Q`, each `[input, input]`.
fn halves<T: Copy>(weight: &[T], input: usize) -> (Matrix<'_, T>, Matrix<'_, T>) {
    let weight = Matrix::new(weight, input, 2 * input, 2 * input);
    (weight.columns(0..input), weight.columns(input..2 * input))
}

impl<T: Element> Message<T> {
    fn forward(&self, x: &[T], weight: &[T], bias: &[T]) {
        let call = &*self.0;
        let (nodes, input, width) = (call.adjacency.nodes(), call.input, call.row_width());
        let (own, other) = halves(weight, input);
        let mut rows = call.take(nodes * width);
        let mut messages = call.take(nodes * input);
        let ranges = even_ranges(nodes);
        let tasks = ranges.iter().zip(split_rows(&mut rows, &ranges, width));
        run_tasks(tasks.zip(split_rows(&mut messages, &ranges, input)), |((range, rows), messages)| {
            let (x, count) = (&x[range.start * input..range.end * input], range.len());
            for (row, x) in rows.chunks_exact_mut(width).zip(x.chunks_exact(input)) {
                row[..input].copy_from_slice(x);
                row[input..2 * input].copy_from_slice(bias);
            }
            let x = Matrix::new(x, count, input, input);
            multiply(MatrixMut::new(&mut rows[input..], count, input, width), true, x, own.transposed());
            multiply(MatrixMut::new(messages, count, input, input), false, x, other.transposed());
        });
        let mut centre = call.take(nodes * input);
        let mut holders = call.workspaces.indices.take(nodes * 2 * input);
        let out = Aggregates { values: &mut rows, centre: &mut centre, holders: &mut holders };
        aggregate(&call.adjacency, call.sections(), &messages, out);
        let mut activations = call.activations();
        activations.rows = Some(rows);
        activations.messages = Some(messages);
        activations.centre = Some(centre);
        activations.holders = Some(holders);
    }

    /// Gradients of `x` (empty unless asked for), of the weight and of the bias.
    fn backward(&self, x: &[T], weight: &[T], with_input: bool) -> Result<(Vec<T>, Vec<T>, Vec<T>)> {
        let call = &*self.0;
        let (nodes, input) = (call.adjacency.nodes(), call.input);
        let mut activations = call.activations();
        let Some(mut gradient) = activations.rows_gradient.take() else {
            bail!("pna: the layer's operations ran out of order");
        };
        let mut node_gradient = call.take(nodes * input);
        let parts = even_ranges(nodes).len();
        let mut weights = vec![T::zero(); parts * 2 * input * input];
        let mut biases = vec![T::zero(); parts * input];
        let rows = held(activations.rows.as_ref())?;
        self.own_part(x, weight, with_input, rows, &mut gradient, &mut node_gradient, (&mut weights, &mut biases));
        let saved = Saved {
            messages: held(activations.messages.as_ref())?,
            centre: held(activations.centre.as_ref())?,
            holders: held(activations.holders.as_ref())?,
            gradient: &gradient,
        };
        gradient_of_messages(&call.adjacency, call.sections(), &saved, &mut node_gradient);
        let input_gradient = self.sources_part(x, weight, with_input, &gradient, &node_gradient, &mut weights);
        Ok((input_gradient, sum_parts(weights, 2 * input * input), sum_parts(biases, input)))
    }

    /// Backward through the targets' part `P x_i + b`. `gradient` becomes what [`gradient_of_messages`] reads, its
    /// first `input` columns the gradient of `x` so far.
    #[expect(clippy::too_many_arguments, reason = "the buffers of one pass, each named at the only call")]
    fn own_part(
        &self,
        x: &[T],
        weight: &[T],
        with_input: bool,
        rows: &[T],
        gradient: &mut [T],
        own: &mut [T],
        (weights, biases): (&mut [T], &mut [T]),
    ) {
        let call = &*self.0;
        let (input, width) = (call.input, call.row_width());
        let ranges = even_ranges(call.adjacency.nodes());
        let tasks = ranges.iter().zip(split_rows(gradient, &ranges, width)).zip(split_rows(own, &ranges, input));
        let tasks = tasks.zip(weights.chunks_exact_mut(2 * input * input)).zip(biases.chunks_exact_mut(input));
        run_tasks(tasks, |((((range, gradient), own), weights), bias)| {
            let (count, values) = (range.len(), &rows[range.start * width..range.end * width]);
            gradient_of_targets(&call.adjacency, call.sections(), range.clone(), values, gradient, own);
            add_column_sums(bias, own);
            let own = Matrix::new(own, count, input, input);
            let x = Matrix::new(&x[range.start * input..], count, input, input);
            multiply(MatrixMut::new(weights, input, input, 2 * input), false, own.transposed(), x);
            if with_input {
                multiply(MatrixMut::new(gradient, count, input, width), true, own, halves(weight, input).0);
            }
        });
    }

    /// Backward through the sources' part `Q x_j`, and the gradient of `x` put together.
    fn sources_part(
        &self,
        x: &[T],
        weight: &[T],
        with_input: bool,
        gradient: &[T],
        messages: &[T],
        weights: &mut [T],
    ) -> Vec<T> {
        let (input, width) = (self.0.input, self.0.row_width());
        let ranges = even_ranges(self.0.adjacency.nodes());
        let mut out = vec![T::zero(); if with_input { x.len() } else { 0 }];
        let out_width = if with_input { input } else { 0 };
        let tasks = ranges.iter().zip(split_rows(&mut out, &ranges, out_width));
        run_tasks(tasks.zip(weights.chunks_exact_mut(2 * input * input)), |((range, out), weights)| {
            let count = range.len();
            let messages = Matrix::new(&messages[range.start * input..], count, input, input);
            let x = Matrix::new(&x[range.start * input..], count, input, input);
            multiply(MatrixMut::new(&mut weights[input..], input, input, 2 * input), false, messages.transposed(), x);
            if with_input {
                let rows = gradient[range.start * width..].chunks_exact(width);
                for (out, row) in out.chunks_exact_mut(input).zip(rows) {
                    out.copy_from_slice(&row[..input]);
                }
                multiply(MatrixMut::new(out, count, input, input), true, messages, halves(weight, input).1);
            }
        });
        out
    }
}

impl<T: Element> CustomOp3 for Message<T> {
    fn name(&self) -> &'static str {
        "pna-message"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let x = cpu_slice(x, x_layout)?;
        self.forward(x, cpu_slice(weight, weight_layout)?, cpu_slice(bias, bias_layout)?);
        Ok(token::<T>())
    }

    fn bwd(
        &self,
        x: &Tensor,
        weight: &Tensor,
        _: &Tensor,
        _: &Tensor,
        _: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (x_storage, x_layout) = x.storage_and_layout();
        let (weight_storage, weight_layout) = weight.storage_and_layout();
        let (values, weights) = (host_slice(&x_storage, x_layout)?, host_slice(&weight_storage, weight_layout)?);
        let tracked = x.track_op();
        let (input, weight, bias) = self.backward(values, weights, tracked)?;
        let input = if tracked { Some(Tensor::from_vec(input, x.shape(), x.device())?) } else { None };
        let (weight, bias) = parameter_gradients(weight, bias)?;
        Ok((input, Some(weight), Some(bias)))
    }
}
