//! What follows the sum over neighbours: bias, ReLU and the next layer's dropout, in one pass and with one gradient
//! instead of three.

use std::sync::{Mutex, PoisonError};

use candle_core::{CpuStorage, CustomOp2, DType, Layout, Result, Shape, Tensor, bail};

use super::conv::Dropout;
use crate::kernels::{DropMask, Element, cpu_slice, dropout, host_slice};

/// What to do with a layer's sums.
#[derive(Debug, Clone, Copy, Default)]
pub struct Finish {
    /// Set what is negative to 0.
    pub relu: bool,
    /// Drop some of what is left.
    pub dropout: Option<Dropout>,
}

/// `x`, `[rows, width]`, plus `bias`, `[width]`, finished.
///
/// # Errors
/// Shapes or number types do not fit, or the dropout is no probability.
pub(super) fn finish(x: &Tensor, bias: &Tensor, how: Finish) -> Result<Tensor> {
    match x.dtype() {
        DType::F32 | DType::F64 => {
            let mask = how.dropout.map(|drop| DropMask::new(drop.p, drop.seed)).transpose()?;
            x.contiguous()?.apply_op2(&bias.contiguous()?, Fused { relu: how.relu, mask, kept: Mutex::default() })
        }
        _ => one_by_one(x, bias, how),
    }
}

/// The same in three operations.
fn one_by_one(x: &Tensor, bias: &Tensor, how: Finish) -> Result<Tensor> {
    let sum = x.broadcast_add(bias)?;
    let active = if how.relu { sum.relu()? } else { sum };
    match how.dropout {
        Some(drop) => dropout(&active, drop.p, drop.seed),
        None => Ok(active),
    }
}

struct Fused {
    relu: bool,
    mask: Option<DropMask>,
    /// Which values lived, where not all did; written by the forward pass.
    kept: Mutex<Vec<bool>>,
}

impl Fused {
    fn forward<T: Element>(&self, x: &[T], bias: &[T]) -> Vec<T> {
        let mut out = vec![T::zero(); x.len()];
        let width = bias.len().max(1);
        for (out, x) in out.chunks_exact_mut(width).zip(x.chunks_exact(width)) {
            for ((out, &x), &bias) in out.iter_mut().zip(x).zip(bias) {
                *out = x + bias;
            }
        }
        if self.relu || self.mask.is_some() {
            *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = self.cut(&mut out);
        }
        out
    }

    /// Sets to 0 what ReLU and dropout take away, scales the rest, and says which values were left. The same values as
    /// [`dropout`] drops. What is no number stays none.
    fn cut<T: Element>(&self, values: &mut [T]) -> Vec<bool> {
        let factor = T::from_f64(self.mask.map_or(1.0, |mask| mask.factor()));
        let stream = self.mask.map(|mask| mask.stream(0));
        let mut kept = vec![false; values.len()];
        for (position, (value, kept)) in values.iter_mut().zip(&mut kept).enumerate() {
            let is_cut = self.relu && *value <= T::zero();
            *kept = !is_cut && stream.is_none_or(|stream| stream.stays(position as u32));
            *value = if *kept { *value * factor } else { T::zero() };
        }
        kept
    }

    /// Gradients of `x` and of `bias`.
    fn backward<T: Element>(&self, upstream: &[T], width: usize) -> (Vec<T>, Vec<T>) {
        let factor = T::from_f64(self.mask.map_or(1.0, |mask| mask.factor()));
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut of_x = upstream.to_vec();
        if !kept.is_empty() {
            for (value, &kept) in of_x.iter_mut().zip(kept.iter()) {
                *value = if kept { *value * factor } else { T::zero() };
            }
        }
        let mut of_bias = vec![T::zero(); width];
        for row in of_x.chunks_exact(width.max(1)) {
            for (sum, &value) in of_bias.iter_mut().zip(row) {
                *sum += value;
            }
        }
        (of_x, of_bias)
    }

    fn forward_typed<T: Element>(
        &self,
        (x, x_layout): (&CpuStorage, &Layout),
        (bias, bias_layout): (&CpuStorage, &Layout),
    ) -> Result<(CpuStorage, Shape)> {
        let (rows, width) = x_layout.shape().dims2()?;
        if bias_layout.dims() != [width] {
            bail!("gcn: a bias of {:?} for rows of {width}", bias_layout.dims());
        }
        let out = self.forward::<T>(cpu_slice(x, x_layout)?, cpu_slice(bias, bias_layout)?);
        Ok((T::to_cpu_storage_owned(out), Shape::from((rows, width))))
    }

    fn backward_typed<T: Element>(&self, upstream: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (rows, width) = upstream.dims2()?;
        let upstream = upstream.contiguous()?;
        let (storage, layout) = upstream.storage_and_layout();
        let (of_x, of_bias) = self.backward::<T>(host_slice(&storage, layout)?, width);
        let device = upstream.device();
        Ok((Some(Tensor::from_vec(of_x, (rows, width), device)?), Some(Tensor::from_vec(of_bias, width, device)?)))
    }
}

impl CustomOp2 for Fused {
    fn name(&self) -> &'static str {
        "gcn-finish"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        match x {
            CpuStorage::F64(_) => self.forward_typed::<f64>((x, x_layout), (bias, bias_layout)),
            _ => self.forward_typed::<f32>((x, x_layout), (bias, bias_layout)),
        }
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, _: &Tensor, upstream: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        match x.dtype() {
            DType::F64 => self.backward_typed::<f64>(upstream),
            _ => self.backward_typed::<f32>(upstream),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::{Device, Var};

    #[test]
    fn fused_is_the_same_as_one_by_one() {
        let values: Vec<f64> = (0..60).map(|index| f64::from((index * 37) % 23) - 11.5).collect();
        let x = Var::from_tensor(&Tensor::from_vec(values, (12, 5), &Device::Cpu).unwrap()).unwrap();
        let bias = Var::new(&[0.25f64, -1.0, 2.0, 0.0, 5.0], &Device::Cpu).unwrap();
        let dropout = Some(Dropout { p: 0.4, seed: 9 });
        for how in [
            Finish::default(),
            Finish { relu: true, dropout: None },
            Finish { relu: true, dropout },
            Finish { relu: false, dropout },
        ] {
            let (fused, plain) = (finish(&x, &bias, how).unwrap(), one_by_one(&x, &bias, how).unwrap());
            let rows = |tensor: &Tensor| tensor.to_vec2::<f64>().unwrap();
            assert_eq!(rows(&fused), rows(&plain));
            let gradients = |out: &Tensor| out.sqr().unwrap().sum_all().unwrap().backward().unwrap();
            let (fused, plain) = (gradients(&fused), gradients(&plain));
            assert_eq!(rows(fused.get(&x).unwrap()), rows(plain.get(&x).unwrap()));
            let sums = |gradients: &candle_core::backprop::GradStore| {
                gradients.get(&bias).unwrap().flatten_all().unwrap().to_vec1::<f64>().unwrap()
            };
            assert!(sums(&fused).iter().zip(sums(&plain)).all(|(a, b)| (a - b).abs() < 1e-9));
        }
        assert!(finish(&x, &Tensor::zeros(4, DType::F64, &Device::Cpu).unwrap(), Finish::default()).is_err());
    }
}
