//! Batch normalisation as a candle operation: each feature's moments over all rows, and the rows normalised with them.
//!
//! Sums are taken in double precision over runs of rows of a fixed length, in order, so that results do not depend on
//! the number of threads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::{CpuStorage, CustomOp2, DType, Layout, Result, Shape, Tensor, bail};

use super::lanes::Vectorised;
use crate::kernels::{cpu_slice, host_slice};
use gnntop_data::tasks::run_tasks;

/// Added to the variance.
pub(super) const EPSILON: f64 = 1e-5;

/// Numbers that one task takes, about.
const CHUNK: usize = 1 << 14;

/// Mean and variance of each feature, `[features]`; in training the variance has the rows in the denominator.
#[derive(Debug, Clone, Default)]
pub(super) struct Moments {
    pub(super) mean: Vec<f64>,
    pub(super) variance: Vec<f64>,
}

/// `(x - mean) / sqrt(variance + EPSILON) * affine_0 + affine_1` of `x` `[rows, features]`, with `affine`
/// `[2, features]`. The moments are `fixed` ones, or those of `x`, through which gradients flow then. Returns the
/// moments as well.
///
/// # Errors
/// The shapes do not fit, or the number type is neither f32 nor f64.
pub(super) fn normalise(x: &Tensor, affine: &Tensor, fixed: Option<Moments>) -> Result<(Tensor, Moments)> {
    let (rows, features) = x.dims2()?;
    if rows == 0 || features == 0 || affine.dims() != [2, features] {
        bail!("batch norm: rows {:?} do not fit {} features", x.dims(), affine.elem_count() / 2);
    }
    let of_batch = fixed.is_none();
    let moments = Arc::new(Mutex::new(fixed.unwrap_or_default()));
    let operation = Normalise { of_batch, moments: Arc::clone(&moments) };
    let out = x.contiguous()?.apply_op2(&affine.contiguous()?, operation)?;
    let moments = lock(&moments).clone();
    Ok((out, moments))
}

/// Locks even after a panic: the moments are set at once.
fn lock(moments: &Mutex<Moments>) -> MutexGuard<'_, Moments> {
    moments.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Normalise {
    of_batch: bool,
    /// Written by the forward pass where they are those of the batch.
    moments: Arc<Mutex<Moments>>,
}

impl Moments {
    fn new<T: Vectorised>(x: &[T], features: usize) -> Self {
        let rows = (x.len() / features) as f64;
        let mean = divided(
            column_sums(x, x, features, |sums, x, _| {
                sums.iter_mut().zip(x).for_each(|(sum, x)| *sum += x.to_f64());
            }),
            rows,
        );
        let variance = divided(
            column_sums(x, x, features, |sums, x, _| {
                for ((sum, x), mean) in sums.iter_mut().zip(x).zip(&mean) {
                    let distance = x.to_f64() - mean;
                    *sum += distance * distance;
                }
            }),
            rows,
        );
        Self { mean, variance }
    }

    fn inverse_deviation(&self) -> Vec<f64> {
        self.variance.iter().map(|variance| 1.0 / (variance + EPSILON).sqrt()).collect()
    }
}

fn divided(sums: Vec<f64>, count: f64) -> Vec<f64> {
    sums.into_iter().map(|sum| sum / count).collect()
}

/// Rows of this many features that one task takes.
fn rows_of_task(features: usize) -> usize {
    (CHUNK / features).max(1)
}

/// One sum for each column over the rows of `a` and `b`, which `add` adds.
fn column_sums<T: Vectorised>(
    a: &[T],
    b: &[T],
    features: usize,
    add: impl Fn(&mut [f64], &[T], &[T]) + Sync,
) -> Vec<f64> {
    let chunk = rows_of_task(features) * features;
    let mut partial = vec![0.0; a.len().div_ceil(chunk) * features];
    run_tasks(partial.chunks_exact_mut(features).zip(a.chunks(chunk).zip(b.chunks(chunk))), |(sums, (a, b))| {
        a.chunks_exact(features).zip(b.chunks_exact(features)).for_each(|(a, b)| add(sums, a, b));
    });
    let mut total = vec![0.0; features];
    for part in partial.chunks_exact(features) {
        total.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
    }
    total
}

impl Normalise {
    fn forward<T: Vectorised>(&self, x: &[T], affine: &[T]) -> Vec<T> {
        let features = affine.len() / 2;
        let mut moments = lock(&self.moments);
        if self.of_batch {
            *moments = Moments::new(x, features);
        }
        let scale = affine.iter().zip(moments.inverse_deviation()).map(|(weight, inverse)| weight.to_f64() * inverse);
        let scale: Vec<T> = scale.map(T::from_f64).collect();
        let mean: Vec<T> = moments.mean.iter().copied().map(T::from_f64).collect();
        let mut out = vec![T::zero(); x.len()];
        let chunk = rows_of_task(features) * features;
        run_tasks(out.chunks_mut(chunk).zip(x.chunks(chunk)), |(out, x)| {
            for (out, x) in out.chunks_exact_mut(features).zip(x.chunks_exact(features)) {
                let terms = mean.iter().zip(&scale).zip(&affine[features..]);
                for ((out, &x), ((&mean, &scale), &bias)) in out.iter_mut().zip(x).zip(terms) {
                    *out = (x - mean) * scale + bias;
                }
            }
        });
        out
    }

    /// Gradients of x and of the affine parameters. With `n = (x - mean) / deviation`, that of x is
    /// `weight / deviation (g - mean(g) - n mean(g n))`, without the two means where the moments are fixed.
    fn backward<T: Vectorised>(&self, x: &[T], affine: &[T], gradient: &[T]) -> (Vec<T>, Vec<T>) {
        let features = affine.len() / 2;
        let moments = lock(&self.moments).clone();
        let (mean, inverse) = (&moments.mean, moments.inverse_deviation());
        let of_bias = column_sums(x, gradient, features, |sums, _, gradient| {
            sums.iter_mut().zip(gradient).for_each(|(sum, gradient)| *sum += gradient.to_f64());
        });
        let of_weight = column_sums(x, gradient, features, |sums, x, gradient| {
            for ((sum, (x, gradient)), mean) in sums.iter_mut().zip(x.iter().zip(gradient)).zip(mean) {
                *sum += (x.to_f64() - mean) * gradient.to_f64();
            }
        });
        let of_weight: Vec<f64> = of_weight.iter().zip(&inverse).map(|(sum, inverse)| sum * inverse).collect();
        let rows = if self.of_batch { (x.len() / features) as f64 } else { f64::INFINITY };
        let terms: Vec<[T; 4]> = (0..features)
            .map(|feature| {
                let slope = -of_weight[feature] * inverse[feature] / rows;
                let scale = affine[feature].to_f64() * inverse[feature];
                [mean[feature], slope, -of_bias[feature] / rows, scale].map(T::from_f64)
            })
            .collect();
        let mut of_x = vec![T::zero(); x.len()];
        let chunk = rows_of_task(features) * features;
        run_tasks(of_x.chunks_mut(chunk).zip(x.chunks(chunk).zip(gradient.chunks(chunk))), |(out, (x, gradient))| {
            let rows = x.chunks_exact(features).zip(gradient.chunks_exact(features));
            for (out, (x, gradient)) in out.chunks_exact_mut(features).zip(rows) {
                for ((out, &[mean, slope, offset, scale]), (&x, &gradient)) in
                    out.iter_mut().zip(&terms).zip(x.iter().zip(gradient))
                {
                    *out = (gradient + (x - mean) * slope + offset) * scale;
                }
            }
        });
        (of_x, of_weight.into_iter().chain(of_bias).map(T::from_f64).collect())
    }

    fn backward_typed<T: Vectorised>(
        &self,
        x: &Tensor,
        affine: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        let gradient = gradient.contiguous()?;
        let (x_storage, x_layout) = x.storage_and_layout();
        let (affine_storage, affine_layout) = affine.storage_and_layout();
        let (gradient_storage, gradient_layout) = gradient.storage_and_layout();
        let (of_x, of_affine) = self.backward::<T>(
            host_slice(&x_storage, x_layout)?,
            host_slice(&affine_storage, affine_layout)?,
            host_slice(&gradient_storage, gradient_layout)?,
        );
        let of_x = Tensor::from_vec(of_x, x.shape(), x.device())?;
        Ok((of_x, Tensor::from_vec(of_affine, affine.shape(), affine.device())?))
    }
}

impl CustomOp2 for Normalise {
    fn name(&self) -> &'static str {
        "batch-norm"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        affine: &CpuStorage,
        affine_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let out = match x {
            CpuStorage::F32(_) => {
                CpuStorage::F32(self.forward(cpu_slice(x, x_layout)?, cpu_slice(affine, affine_layout)?))
            }
            CpuStorage::F64(_) => {
                CpuStorage::F64(self.forward(cpu_slice(x, x_layout)?, cpu_slice(affine, affine_layout)?))
            }
            _ => bail!("batch norm: only f32 and f64 are supported"),
        };
        Ok((out, x_layout.shape().clone()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        affine: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (of_x, of_affine) = match x.dtype() {
            DType::F32 => self.backward_typed::<f32>(x, affine, gradient)?,
            DType::F64 => self.backward_typed::<f64>(x, affine, gradient)?,
            other => bail!("batch norm: only f32 and f64 are supported, not {other:?}"),
        };
        Ok((Some(of_x), Some(of_affine)))
    }
}
