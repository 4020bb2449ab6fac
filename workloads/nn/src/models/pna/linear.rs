//! Third operation of a layer: the last linear map, with ReLU.

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor};

use super::call::{Call, held, parameter_gradients, sum_parts};
use crate::kernels::{Element, Matrix, MatrixMut, add_column_sums, cpu_slice, host_slice, multiply};
use gnntop_data::tasks::{even_ranges, run_tasks, split_rows};

pub(super) struct Linear<T>(pub(super) Arc<Call<T>>);

impl<T: Element> Linear<T> {
    fn forward(&self, weight: &[T], bias: &[T]) -> Result<Vec<T>> {
        let call = &*self.0;
        let (nodes, output) = (call.adjacency.nodes(), call.output);
        let activations = call.activations();
        let hidden = held(activations.hidden.as_ref())?;
        let weight = Matrix::new(weight, output, output, output).transposed();
        let mut out = vec![T::zero(); nodes * output];
        let ranges = even_ranges(nodes);
        run_tasks(ranges.iter().zip(split_rows(&mut out, &ranges, output)), |(range, out)| {
            out.chunks_exact_mut(output).for_each(|row| row.copy_from_slice(bias));
            let hidden = Matrix::new(&hidden[range.start * output..], range.len(), output, output);
            multiply(MatrixMut::new(out, range.len(), output, output), true, hidden, weight);
            if call.relu {
                out.iter_mut().for_each(|value| *value = if *value > T::zero() { *value } else { T::zero() });
            }
        });
        Ok(out)
    }

    /// Gradients of weight and bias from that of the result; leaves the gradient of the post layer's result.
    fn backward(&self, weight: &[T], result: &[T], gradient: &[T]) -> Result<(Vec<T>, Vec<T>)> {
        let call = &*self.0;
        let (nodes, output) = (call.adjacency.nodes(), call.output);
        let mut activations = call.activations();
        let hidden = held(activations.hidden.as_ref())?;
        let mut of_sum = call.take(nodes * output);
        let mut of_hidden = call.take(nodes * output);
        let ranges = even_ranges(nodes);
        let mut weights = vec![T::zero(); ranges.len() * weight.len()];
        let mut biases = vec![T::zero(); ranges.len() * output];
        let tasks = ranges.iter().zip(split_rows(&mut of_sum, &ranges, output));
        let tasks = tasks.zip(split_rows(&mut of_hidden, &ranges, output));
        let tasks = tasks.zip(weights.chunks_exact_mut(weight.len())).zip(biases.chunks_exact_mut(output));
        run_tasks(tasks, |((((range, of_sum), of_hidden), weights), bias)| {
            let span = range.start * output..range.end * output;
            let (result, gradient) = (&result[span.clone()], &gradient[span.clone()]);
            through_relu(call.relu, result, gradient, of_sum);
            add_column_sums(bias, of_sum);
            let of_sum = Matrix::new(of_sum, range.len(), output, output);
            let hidden = Matrix::new(&hidden[span], range.len(), output, output);
            multiply(MatrixMut::new(weights, output, output, output), false, of_sum.transposed(), hidden);
            let weight = Matrix::new(weight, output, output, output);
            multiply(MatrixMut::new(of_hidden, range.len(), output, output), false, of_sum, weight);
        });
        activations.hidden_gradient = Some(of_hidden);
        Ok((sum_parts(weights, weight.len()), sum_parts(biases, output)))
    }
}

/// Gradient before ReLU: 0 where the result is 0, as in PyTorch.
fn through_relu<T: Element>(relu: bool, result: &[T], gradient: &[T], out: &mut [T]) {
    if relu {
        for ((out, &result), &gradient) in out.iter_mut().zip(result).zip(gradient) {
            *out = if result > T::zero() { gradient } else { T::zero() };
        }
    } else {
        out.copy_from_slice(gradient);
    }
}

impl<T: Element> CustomOp3 for Linear<T> {
    fn name(&self) -> &'static str {
        "pna-linear"
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let out = self.forward(cpu_slice(weight, weight_layout)?, cpu_slice(bias, bias_layout)?)?;
        Ok((T::to_cpu_storage_owned(out), Shape::from((self.0.adjacency.nodes(), self.0.output))))
    }

    fn bwd(
        &self,
        before: &Tensor,
        weight: &Tensor,
        _: &Tensor,
        result: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let gradient = gradient.contiguous()?;
        let (weight_storage, weight_layout) = weight.storage_and_layout();
        let (result_storage, result_layout) = result.storage_and_layout();
        let (gradient_storage, gradient_layout) = gradient.storage_and_layout();
        let (weight, bias) = self.backward(
            host_slice(&weight_storage, weight_layout)?,
            host_slice(&result_storage, result_layout)?,
            host_slice(&gradient_storage, gradient_layout)?,
        )?;
        let (weight, bias) = parameter_gradients(weight, bias)?;
        Ok((Some(before.zeros_like()?), Some(weight), Some(bias)))
    }
}
