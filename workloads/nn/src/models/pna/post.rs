//! Second operation of a layer: the post layer on `[x | a | a amp | a att]`, never made.
//!
//! The scalers depend on the in-degree d alone, so for nodes of one degree `W_post [x | a | a amp | a att]` is
//! `W_d [x | a]` with `W_d = [W_x | W_id + amp_d W_amp + att_d W_att]`, `[output, 5 input]`. One product for each
//! run of equal degrees replaces one of 13 input columns.

use std::ops::Range;
use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor};

use super::call::{Call, held, parameter_gradients, sum_parts, token};
use crate::kernels::{Element, Matrix, MatrixMut, add_column_sums, cpu_slice, host_slice, multiply};
use gnntop_data::graph::Adjacency;
use gnntop_data::tasks::{even_ranges, run_tasks, split_rows};

pub(super) struct Post<T>(pub(super) Arc<Call<T>>);

/// The part of each degree run that is in `range`: its degree, and its rows counted from `range.start`.
fn runs_within(adjacency: &Adjacency, range: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
    let runs = adjacency.degree_runs();
    let first = runs.partition_point(|run| run.rows.end <= range.start);
    runs[first..].iter().take_while(move |run| run.rows.start < range.end).map(move |run| {
        let rows = run.rows.start.max(range.start)..run.rows.end.min(range.end);
        (run.degree, rows.start - range.start..rows.end - range.start)
    })
}

/// The widths of the weight: of `x`, of the aggregates, and of `[x | aggregates]`.
#[derive(Clone, Copy)]
struct Widths {
    x: usize,
    aggregates: usize,
    rows: usize,
}

impl Widths {
    /// Columns of `W_post`: `x`, and the aggregates once for each scaler.
    fn weight(self) -> usize {
        self.x + 3 * self.aggregates
    }
}

/// `W_d` of one degree, from `W_post`.
fn combine<T: Element>(weight: &[T], widths: Widths, amplification: T, attenuation: T, out: &mut [T]) {
    for (row, out) in weight.chunks_exact(widths.weight()).zip(out.chunks_exact_mut(widths.rows)) {
        let (plain, scaled) = row.split_at(widths.rows);
        let (amplified, attenuated) = scaled.split_at(widths.aggregates);
        out.copy_from_slice(plain);
        for ((out, &amplified), &attenuated) in out[widths.x..].iter_mut().zip(amplified).zip(attenuated) {
            *out += amplification * amplified + attenuation * attenuated;
        }
    }
}

/// Adds the gradient of `W_d` to that of `W_post`: the transpose of [`combine`].
fn distribute<T: Element>(gradient: &[T], widths: Widths, amplification: T, attenuation: T, out: &mut [T]) {
    for (row, out) in gradient.chunks_exact(widths.rows).zip(out.chunks_exact_mut(widths.weight())) {
        let (plain, scaled) = out.split_at_mut(widths.rows);
        let (amplified, attenuated) = scaled.split_at_mut(widths.aggregates);
        for (out, &value) in plain.iter_mut().zip(row) {
            *out += value;
        }
        for ((amplified, attenuated), &value) in amplified.iter_mut().zip(attenuated).zip(&row[widths.x..]) {
            *amplified += amplification * value;
            *attenuated += attenuation * value;
        }
    }
}

impl<T: Element> Post<T> {
    fn widths(&self) -> Widths {
        let (x, rows) = (self.0.input, self.0.row_width());
        Widths { x, aggregates: rows - x, rows }
    }

    fn scalers(&self, degree: usize) -> (T, T) {
        let scalers = self.0.scalers;
        (T::from_f64(scalers.amplification(degree)), T::from_f64(scalers.attenuation(degree)))
    }

    fn forward(&self, weight: &[T], bias: &[T]) -> Result<()> {
        let call = &*self.0;
        let (nodes, output, widths) = (call.adjacency.nodes(), call.output, self.widths());
        let mut activations = call.activations();
        let rows = held(activations.rows.as_ref())?;
        let mut hidden = call.take(nodes * output);
        let ranges = even_ranges(nodes);
        run_tasks(ranges.iter().zip(split_rows(&mut hidden, &ranges, output)), |(range, hidden)| {
            let rows = &rows[range.start * widths.rows..range.end * widths.rows];
            let mut combined = call.take(output * widths.rows);
            hidden.chunks_exact_mut(output).for_each(|row| row.copy_from_slice(bias));
            for (degree, part) in runs_within(&call.adjacency, range.clone()) {
                let (amplification, attenuation) = self.scalers(degree);
                combine(weight, widths, amplification, attenuation, &mut combined);
                let rows = Matrix::new(&rows[part.start * widths.rows..], part.len(), widths.rows, widths.rows);
                let combined = Matrix::new(&combined, output, widths.rows, widths.rows);
                let hidden = &mut hidden[part.start * output..];
                multiply(MatrixMut::new(hidden, part.len(), output, output), true, rows, combined.transposed());
            }
        });
        activations.hidden = Some(hidden);
        Ok(())
    }

    /// Gradients of weight and bias; leaves the gradient of the rows.
    fn backward(&self, weight: &[T]) -> Result<(Vec<T>, Vec<T>)> {
        let call = &*self.0;
        let (nodes, output, widths) = (call.adjacency.nodes(), call.output, self.widths());
        let mut activations = call.activations();
        let hidden = activations.hidden_gradient.take();
        let (rows, hidden) = (held(activations.rows.as_ref())?, held(hidden.as_ref())?);
        let mut gradient = call.take(nodes * widths.rows);
        let ranges = even_ranges(nodes);
        let mut weights = vec![T::zero(); ranges.len() * weight.len()];
        let mut biases = vec![T::zero(); ranges.len() * output];
        let tasks = ranges.iter().zip(split_rows(&mut gradient, &ranges, widths.rows));
        let tasks = tasks.zip(weights.chunks_exact_mut(weight.len())).zip(biases.chunks_exact_mut(output));
        run_tasks(tasks, |(((range, gradient), weights), bias)| {
            let rows = &rows[range.start * widths.rows..range.end * widths.rows];
            let hidden = &hidden[range.start * output..range.end * output];
            add_column_sums(bias, hidden);
            self.backward_range(weight, range.clone(), rows, hidden, gradient, weights);
        });
        activations.rows_gradient = Some(gradient);
        Ok((sum_parts(weights, weight.len()), sum_parts(biases, output)))
    }

    /// One range of nodes: `rows`, `hidden` (its gradient) and `gradient` are theirs alone; adds to `weights`.
    fn backward_range(
        &self,
        weight: &[T],
        range: Range<usize>,
        rows: &[T],
        hidden: &[T],
        gradient: &mut [T],
        weights: &mut [T],
    ) {
        let (output, widths) = (self.0.output, self.widths());
        let mut combined = self.0.take(output * widths.rows);
        let mut of_combined = self.0.take(output * widths.rows);
        for (degree, part) in runs_within(&self.0.adjacency, range) {
            let (amplification, attenuation) = self.scalers(degree);
            let hidden = Matrix::new(&hidden[part.start * output..], part.len(), output, output);
            let rows = Matrix::new(&rows[part.start * widths.rows..], part.len(), widths.rows, widths.rows);
            combine(weight, widths, amplification, attenuation, &mut combined);
            let gradient = &mut gradient[part.start * widths.rows..];
            let gradient = MatrixMut::new(gradient, part.len(), widths.rows, widths.rows);
            multiply(gradient, false, hidden, Matrix::new(&combined, output, widths.rows, widths.rows));
            let target = MatrixMut::new(&mut of_combined, output, widths.rows, widths.rows);
            multiply(target, false, hidden.transposed(), rows);
            distribute(&of_combined, widths, amplification, attenuation, weights);
        }
    }
}

impl<T: Element> CustomOp3 for Post<T> {
    fn name(&self) -> &'static str {
        "pna-post"
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
        self.forward(cpu_slice(weight, weight_layout)?, cpu_slice(bias, bias_layout)?)?;
        Ok(token::<T>())
    }

    fn bwd(
        &self,
        before: &Tensor,
        weight: &Tensor,
        _: &Tensor,
        _: &Tensor,
        _: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (storage, layout) = weight.storage_and_layout();
        let (weight, bias) = self.backward(host_slice(&storage, layout)?)?;
        let (weight, bias) = parameter_gradients(weight, bias)?;
        Ok((Some(before.zeros_like()?), Some(weight), Some(bias)))
    }
}
