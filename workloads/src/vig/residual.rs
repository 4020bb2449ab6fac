//! `x + BatchNorm(z)` on three channels in one operation, the end of each half of a block.

use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{CpuStorage, CustomOp3, DType, Layout, Result, Shape, Tensor, bail};

use super::CHANNELS;
use super::lanes::Vectorised;
use super::moments::sums;
use super::norm::{BatchNorm, EPSILON, Mode};
use crate::kernels::{cpu_slice, host_slice, run_tasks};

/// Nodes that one task computes.
const CHUNK: usize = 4096;

/// `x + norm(z + bias)`, all `[nodes, 3]`. In training `bias` moves the running mean and nothing else, because the
/// batch mean takes it away again; it gets no gradient then.
///
/// # Errors
/// The shapes or number types do not fit, or there is only one node to train on.
pub(super) fn add_normalised(x: &Tensor, z: &Tensor, bias: &Tensor, norm: &BatchNorm, mode: Mode) -> Result<Tensor> {
    if mode == Mode::Eval {
        return x + norm.forward(&z.broadcast_add(bias)?, mode)?;
    }
    if x.dims() != z.dims() || x.dim(1)? != CHANNELS {
        bail!("vig: cannot add {:?} to {:?}; expected [nodes, {CHANNELS}] twice", z.dims(), x.dims());
    }
    let affine = Tensor::stack(&[&norm.weight, &norm.bias], 0)?;
    let moments = Arc::new(Mutex::new(Moments::default()));
    let operation = AddNormalised { moments: Arc::clone(&moments) };
    let out = x.contiguous()?.apply_op3(&z.contiguous()?, &affine, operation)?;
    let Moments { mut mean, variance } = *moments.lock().unwrap_or_else(PoisonError::into_inner);
    for (mean, bias) in mean.iter_mut().zip(super::norm::numbers(bias)?) {
        *mean += bias;
    }
    norm.update(&mean, &variance, x.dim(0)?)?;
    Ok(out)
}

/// Of z, over all nodes.
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    mean: [f64; CHANNELS],
    variance: [f64; CHANNELS],
}

impl Moments {
    fn of<T: Vectorised>(z: &[T]) -> Self {
        let nodes = (z.len() / CHANNELS) as f64;
        let mean = sums([z], |[z]| z).map(|sum| sum / nodes);
        let variance = sums([z], |[z]| std::array::from_fn(|channel| (z[channel] - mean[channel]).powi(2)));
        Self { mean, variance: variance.map(|sum| sum / nodes) }
    }

    fn inverse_deviation(&self) -> [f64; CHANNELS] {
        self.variance.map(|variance| 1.0 / (variance + EPSILON).sqrt())
    }
}

struct AddNormalised {
    /// Written by the forward pass.
    moments: Arc<Mutex<Moments>>,
}

impl AddNormalised {
    fn forward<T: Vectorised>(&self, x: &[T], z: &[T], affine: &[T]) -> Vec<T> {
        let moments = Moments::of(z);
        *self.moments.lock().unwrap_or_else(PoisonError::into_inner) = moments;
        let inverse = moments.inverse_deviation();
        let scale: [f64; CHANNELS] = std::array::from_fn(|channel| affine[channel].to_f64() * inverse[channel]);
        let shift: [f64; CHANNELS] =
            std::array::from_fn(|channel| affine[CHANNELS + channel].to_f64() - moments.mean[channel] * scale[channel]);
        each_node(x.len(), |node, channel| {
            let index = node * CHANNELS + channel;
            x[index].to_f64() + z[index].to_f64() * scale[channel] + shift[channel]
        })
    }

    /// Gradients of z and of the affine parameters, those of the weight first.
    fn backward<T: Vectorised>(&self, z: &[T], affine: &[T], gradient: &[T]) -> (Vec<T>, Vec<T>) {
        let moments = *self.moments.lock().unwrap_or_else(PoisonError::into_inner);
        let (mean, inverse) = (moments.mean, moments.inverse_deviation());
        let nodes = (z.len() / CHANNELS) as f64;
        let of_affine: [f64; 2 * CHANNELS] = sums([z, gradient], |[z, gradient]| {
            let weight = |channel: usize| gradient[channel] * (z[channel] - mean[channel]) * inverse[channel];
            [weight(0), weight(1), weight(2), gradient[0], gradient[1], gradient[2]]
        });
        let of_z = each_node(z.len(), |node, channel| {
            let index = node * CHANNELS + channel;
            let normal = (z[index].to_f64() - mean[channel]) * inverse[channel];
            let projected = of_affine[CHANNELS + channel] + normal * of_affine[channel];
            affine[channel].to_f64() * inverse[channel] * (gradient[index].to_f64() - projected / nodes)
        });
        (of_z, of_affine.map(T::from_f64).to_vec())
    }

    fn backward_typed<T: Vectorised>(&self, z: &Tensor, affine: &Tensor, gradient: &Tensor) -> Result<[Tensor; 2]> {
        let (z_storage, z_layout) = z.storage_and_layout();
        let (affine_storage, affine_layout) = affine.storage_and_layout();
        let (gradient_storage, gradient_layout) = gradient.storage_and_layout();
        let (of_z, of_affine) = self.backward::<T>(
            host_slice(&z_storage, z_layout)?,
            host_slice(&affine_storage, affine_layout)?,
            host_slice(&gradient_storage, gradient_layout)?,
        );
        let of_z = Tensor::from_vec(of_z, z.shape(), z.device())?;
        Ok([of_z, Tensor::from_vec(of_affine, affine.shape(), affine.device())?])
    }
}

/// One value for each node and channel, `[nodes, 3]`.
fn each_node<T: Vectorised>(length: usize, value: impl Fn(usize, usize) -> f64 + Sync) -> Vec<T> {
    let mut out = vec![T::zero(); length];
    run_tasks(out.chunks_mut(CHUNK * CHANNELS).enumerate(), |(task, out)| {
        for (node, out) in (task * CHUNK..).zip(out.chunks_exact_mut(CHANNELS)) {
            out.iter_mut().enumerate().for_each(|(channel, out)| *out = T::from_f64(value(node, channel)));
        }
    });
    out
}

impl CustomOp3 for AddNormalised {
    fn name(&self) -> &'static str {
        "add-normalised"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        z: &CpuStorage,
        z_layout: &Layout,
        affine: &CpuStorage,
        affine_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let out = match x {
            CpuStorage::F32(_) => CpuStorage::F32(self.forward(
                cpu_slice(x, x_layout)?,
                cpu_slice(z, z_layout)?,
                cpu_slice(affine, affine_layout)?,
            )),
            CpuStorage::F64(_) => CpuStorage::F64(self.forward(
                cpu_slice(x, x_layout)?,
                cpu_slice(z, z_layout)?,
                cpu_slice(affine, affine_layout)?,
            )),
            _ => bail!("vig: only f32 and f64 are supported"),
        };
        Ok((out, x_layout.shape().clone()))
    }

    fn bwd(
        &self,
        _: &Tensor,
        z: &Tensor,
        affine: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let gradient = gradient.contiguous()?;
        let [of_z, of_affine] = match z.dtype() {
            DType::F32 => self.backward_typed::<f32>(z, affine, &gradient)?,
            DType::F64 => self.backward_typed::<f64>(z, affine, &gradient)?,
            other => bail!("vig: only f32 and f64 are supported, not {other:?}"),
        };
        Ok((Some(gradient), Some(of_z), Some(of_affine)))
    }
}
