//! Mean and covariance of three channels over all nodes, as a candle operation with exact gradients.
//!
//! A linear map's batch statistics follow from these: the mean of `w x + b` is `w mean + b`, its variance
//! `w C w^T`. So normalising 256 or 512 hidden values needs nine sums over the nodes, not a pass over all of them.
//! Sums are taken in double precision, in a fixed order.

use candle_core::{CpuStorage, CustomOp1, DType, Layout, Result, Shape, Tensor, bail};

use super::CHANNELS;
use super::lanes::Vectorised;
use crate::kernels::{cpu_slice, host_slice};
use gnntop_data::tasks::run_tasks;

/// Nodes that one task sums.
const CHUNK: usize = 4096;

/// `[1 + 3, 3]` in f64 from `x`, `[nodes, 3]` in f32 or f64: the mean, then the covariance with `nodes` in the
/// denominator, as batch normalisation takes it.
///
/// # Errors
/// There are no nodes, or the shape or number type does not fit.
pub(super) fn mean_and_covariance(x: &Tensor) -> Result<Tensor> {
    if x.dim(1)? != CHANNELS || x.dim(0)? == 0 {
        bail!("vig: expected features [nodes, {CHANNELS}], got {:?}", x.dims());
    }
    x.contiguous()?.apply_op1(Moments)
}

/// Sums of `N` terms of every node, given all its rows in each of `inputs`, `[nodes, 3]`.
fn sums<T: Vectorised, const I: usize, const N: usize>(
    inputs: [&[T]; I],
    terms: impl Fn([[f64; CHANNELS]; I]) -> [f64; N] + Sync,
) -> [f64; N] {
    let length = inputs[0].len();
    let chunk = CHUNK * CHANNELS;
    let mut partial = vec![[0.0; N]; length.div_ceil(chunk)];
    run_tasks(partial.iter_mut().enumerate(), |(task, sums)| {
        for node in task * CHUNK..((task + 1) * CHUNK).min(length / CHANNELS) {
            let rows = inputs.map(|rows| row(rows, node));
            sums.iter_mut().zip(terms(rows)).for_each(|(sum, term)| *sum += term);
        }
    });
    let mut total = [0.0; N];
    partial.iter().for_each(|part| total.iter_mut().zip(part).for_each(|(sum, value)| *sum += value));
    total
}

/// Row `node` of `[nodes, 3]`.
#[inline(always)]
fn row<T: Vectorised>(rows: &[T], node: usize) -> [f64; CHANNELS] {
    let row = &rows[node * CHANNELS..(node + 1) * CHANNELS];
    [row[0].to_f64(), row[1].to_f64(), row[2].to_f64()]
}

struct Moments;

impl Moments {
    fn forward<T: Vectorised>(x: &[T]) -> Vec<f64> {
        let nodes = (x.len() / CHANNELS) as f64;
        let mean = sums([x], |[x]| x).map(|sum| sum / nodes);
        let upper = sums([x], |[x]| {
            let [a, b, c] = [x[0] - mean[0], x[1] - mean[1], x[2] - mean[2]];
            [a * a, a * b, a * c, b * b, b * c, c * c]
        });
        let [aa, ab, ac, bb, bc, cc] = upper.map(|sum| sum / nodes);
        [mean, [aa, ab, ac], [ab, bb, bc], [ac, bc, cc]].concat()
    }

    /// With `G` the gradient of the covariance and `m` that of the mean: `(m + (G + G^T) (x - mean)) / nodes`.
    fn backward<T: Vectorised>(x: &[T], moments: &[f64], gradient: &[f64]) -> Vec<T> {
        let scale = (x.len() / CHANNELS) as f64;
        let entry = |row: usize, column: usize| gradient[CHANNELS * (row + 1) + column];
        let mut matrix = [[0.0; CHANNELS]; CHANNELS];
        for (row, line) in matrix.iter_mut().enumerate() {
            for (column, value) in line.iter_mut().enumerate() {
                *value = (entry(row, column) + entry(column, row)) / scale;
            }
        }
        let mut out = vec![T::zero(); x.len()];
        run_tasks(out.chunks_mut(CHUNK * CHANNELS).enumerate(), |(task, out)| {
            for (node, out) in (task * CHUNK..).zip(out.chunks_exact_mut(CHANNELS)) {
                let x = row(x, node);
                for (channel, out) in out.iter_mut().enumerate() {
                    let mut sum = gradient[channel] / scale;
                    for (other, &weight) in matrix[channel].iter().enumerate() {
                        sum += weight * (x[other] - moments[other]);
                    }
                    *out = T::from_f64(sum);
                }
            }
        });
        out
    }

    fn backward_typed<T: Vectorised>(x: &Tensor, moments: &Tensor, gradient: &Tensor) -> Result<Tensor> {
        let (moments, gradient) = (moments.flatten_all()?.to_vec1()?, gradient.flatten_all()?.to_vec1()?);
        let (storage, layout) = x.storage_and_layout();
        let out = Self::backward::<T>(host_slice(&storage, layout)?, &moments, &gradient);
        Tensor::from_vec(out, x.shape(), x.device())
    }
}

impl CustomOp1 for Moments {
    fn name(&self) -> &'static str {
        "mean-and-covariance"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let moments = match storage {
            CpuStorage::F32(_) => Self::forward::<f32>(cpu_slice(storage, layout)?),
            CpuStorage::F64(_) => Self::forward::<f64>(cpu_slice(storage, layout)?),
            _ => bail!("vig: only f32 and f64 are supported"),
        };
        Ok((CpuStorage::F64(moments), Shape::from((1 + CHANNELS, CHANNELS))))
    }

    fn bwd(&self, x: &Tensor, moments: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        match x.dtype() {
            DType::F32 => Self::backward_typed::<f32>(x, moments, gradient).map(Some),
            DType::F64 => Self::backward_typed::<f64>(x, moments, gradient).map(Some),
            other => bail!("vig: only f32 and f64 are supported, not {other:?}"),
        }
    }
}
