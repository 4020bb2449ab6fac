//! GELU, exact (with erf, not tanh), as a candle operation on tensors of any shape.
//!
//! candle's own `gelu_erf` differentiates with a constant of six digits and computes one number at a time.

use candle_core::{CpuStorage, CudaStorage, CustomOp1, DType, Layout, Result, Shape, Tensor, bail};

use super::lanes::{GROUP, Kernel, Lanes, Vectorised};
use crate::cuda::{self, View, device_of};
use crate::kernels::{cpu_slice, host_slice};
use gnntop_data::tasks::run_tasks;

/// Numbers that one task takes.
const CHUNK: usize = 1 << 14;

/// `x Phi(x)` of every element, f32 or f64, with the exact derivative.
///
/// # Errors
/// `x` is neither f32 nor f64, or not in host memory.
pub fn gelu(x: &Tensor) -> Result<Tensor> {
    x.contiguous()?.apply_op1(Gelu)
}

struct Gelu;

/// `out = gelu(x)`, or `out = gradient gelu'(x)` where there is a gradient.
struct Apply<'a, T> {
    x: &'a [T],
    gradient: Option<&'a [T]>,
    out: &'a mut [T],
}

impl<T: Vectorised> Kernel<T> for Apply<'_, T> {
    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self, lanes: L) {
        let out = L::vectors_mut(self.out).iter_mut().zip(L::vectors(self.x));
        match self.gradient {
            None => out.for_each(|(out, &x)| *out = lanes.gelu(x)),
            Some(gradient) => out.zip(L::vectors(gradient)).for_each(|((out, &x), &gradient)| {
                *out = lanes.multiply(gradient, lanes.gelu_and_slope(x).1);
            }),
        }
    }
}

/// The last numbers of a tensor, fewer than [`GROUP`], are computed in a padded copy.
fn apply<T: Vectorised>(x: &[T], gradient: Option<&[T]>, out: &mut [T]) {
    let whole = x.len() - x.len() % GROUP;
    let (head, rest) = out.split_at_mut(whole);
    T::run(Apply { x: &x[..whole], gradient: gradient.map(|gradient| &gradient[..whole]), out: head });
    if rest.is_empty() {
        return;
    }
    let padded = |from: &[T]| {
        let mut copy = [T::zero(); GROUP];
        copy[..rest.len()].copy_from_slice(&from[whole..]);
        copy
    };
    let (last, last_gradient, mut result) = (padded(x), gradient.map(padded), [T::zero(); GROUP]);
    T::run(Apply { x: &last, gradient: last_gradient.as_ref().map(|copy| &copy[..]), out: &mut result });
    rest.copy_from_slice(&result[..rest.len()]);
}

fn apply_all<T: Vectorised>(x: &[T], gradient: Option<&[T]>) -> Vec<T> {
    let mut out = vec![T::zero(); x.len()];
    let tasks = out.chunks_mut(CHUNK).zip(x.chunks(CHUNK)).enumerate();
    run_tasks(tasks, |(index, (out, x))| {
        let span = index * CHUNK..index * CHUNK + x.len();
        apply(x, gradient.map(|gradient| &gradient[span]), out);
    });
    out
}

fn forward<T: Vectorised>(storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
    let out = apply_all::<T>(cpu_slice(storage, layout)?, None);
    Ok((T::to_cpu_storage_owned(out), layout.shape().clone()))
}

fn backward<T: Vectorised>(x: &Tensor, gradient: &Tensor) -> Result<Tensor> {
    let gradient = gradient.contiguous()?;
    let (x_storage, x_layout) = x.storage_and_layout();
    let (gradient_storage, gradient_layout) = gradient.storage_and_layout();
    let gradient = host_slice::<T>(&gradient_storage, gradient_layout)?;
    let out = apply_all(host_slice(&x_storage, x_layout)?, Some(gradient));
    Tensor::from_vec(out, x.shape(), x.device())
}

impl CustomOp1 for Gelu {
    fn name(&self) -> &'static str {
        "gelu"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        match storage {
            CpuStorage::F32(_) => forward::<f32>(storage, layout),
            CpuStorage::F64(_) => forward::<f64>(storage, layout),
            _ => bail!("gelu: only f32 and f64 are supported"),
        }
    }

    fn cuda_fwd(&self, storage: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        let device = device_of(storage);
        let out = cuda::gelu(&device, View::of_storage(storage, layout)?, None)?;
        out.into_storage(layout.shape().clone())
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        if x.device().is_cuda() {
            let gradient = gradient.contiguous()?;
            let views = (View::new(x)?, View::new(&gradient)?);
            return Ok(Some(cuda::gelu(x.device(), views.0, Some(views.1))?.into_tensor(x.shape())));
        }
        match x.dtype() {
            DType::F32 => backward::<f32>(x, gradient).map(Some),
            DType::F64 => backward::<f64>(x, gradient).map(Some),
            other => bail!("gelu: only f32 and f64 are supported, not {other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::cpu::erf::erfc_f64;
    use candle_core::{Device, Var};

    /// GELU and its derivative from erfc, in double precision.
    fn reference(x: f64) -> (f64, f64) {
        let below = 0.5 * erfc_f64(-x / 2f64.sqrt());
        (x * below, below + x * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt())
    }

    fn ours(x: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let x = Var::from_slice(x, x.len(), &Device::Cpu).unwrap();
        let out = gelu(&x).unwrap();
        let gradients = out.sum_all().unwrap().backward().unwrap();
        (out.to_vec1().unwrap(), gradients.get(&x).unwrap().to_vec1().unwrap())
    }

    #[test]
    fn single_precision_is_right_to_its_rounding() {
        let x: Vec<f32> = (-400_000..=400_000).map(|step| step as f32 * 2.5e-5).collect();
        let (out, slope) = ours(&x);
        for (index, &x) in x.iter().enumerate() {
            let (value, derivative) = reference(f64::from(x));
            // One rounding of a number near x is 6e-8 |x|.
            let (error, tolerance) = ((f64::from(out[index]) - value).abs(), 1.2e-7 * f64::from(x.abs()).max(0.6));
            assert!(error <= tolerance, "gelu({x}) = {} instead of {value}: off by {error:.1e}", out[index]);
            let error = (f64::from(slope[index]) - derivative).abs();
            assert!(error <= 1.5e-7, "slope at {x}: {} instead of {derivative}, off by {error:.1e}", slope[index]);
        }
    }

    #[test]
    fn extremes_stay_what_they_should() {
        let (out, slope) = ours(&[0.0, 1e-30, -1e-30, 1e30, -1e30, f32::INFINITY, f32::NAN]);
        assert_eq!(out[..2], [0.0, 5e-31]);
        assert_eq!((out[2], out[3], out[5]), (-5e-31, 1e30, f32::INFINITY));
        assert!(out[4].abs() < 4e-8 && slope[4].abs() < 1e-6, "{} {}", out[4], slope[4]);
        assert_eq!((slope[0], slope[5]), (0.5, 1.0));
        assert!(out[6].is_nan() && slope[6].is_nan());
    }

    #[test]
    fn double_precision_agrees_with_finite_differences() {
        let values: Vec<f64> = (-80..80).map(|step| f64::from(step) * 0.1 + 0.03).collect();
        let x = Var::from_slice(&values, values.len(), &Device::Cpu).unwrap();
        let gradients = gelu(&x).unwrap().sum_all().unwrap().backward().unwrap();
        let slopes = gradients.get(&x).unwrap().to_vec1::<f64>().unwrap();
        for (&x, slope) in values.iter().zip(slopes) {
            let difference = (reference(x + 1e-5).0 - reference(x - 1e-5).0) / 2e-5;
            assert!((difference - slope).abs() < 1e-9, "{x}: {difference} {slope}");
        }
    }
}
