//! What follows the sum over neighbours: bias, ReLU and the next layer's dropout, in one pass and with one gradient
//! instead of three.

use candle_core::{CpuStorage, CustomOp2, DType, Layout, Result, Shape, Tensor, bail};

use crate::kernels::{Element, Wide, cpu_slice, dropout, host_slice};
use gnntop_data::graph::DropMask;

/// Which values to drop.
#[derive(Debug, Clone, Copy)]
pub struct Dropout {
    /// Probability of a value to be dropped.
    pub p: f64,
    /// Decides which ones.
    pub seed: u64,
}

/// What to do with a layer's sums.
#[derive(Debug, Clone, Copy, Default)]
pub struct Finish {
    /// Set negative values to 0.
    pub relu: bool,
    /// Drop some of the rest.
    pub dropout: Option<Dropout>,
}

/// `x`, `[rows, width]`, plus `bias`, `[width]`, finished.
///
/// # Errors
/// Shapes or number types do not fit, or the dropout is not a probability.
pub(super) fn finish(x: &Tensor, bias: &Tensor, how: Finish) -> Result<Tensor> {
    match x.dtype() {
        _ if x.device().is_cuda() => {
            let mask = how.dropout.map(|drop| DropMask::new(drop.p, drop.seed)).transpose()?;
            x.contiguous()?.apply_op2(&bias.contiguous()?, crate::cuda::Finished { relu: how.relu, mask })
        }
        DType::F32 | DType::F64 => x.contiguous()?.apply_op2(&bias.contiguous()?, Fused::new(how)?),
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

/// The same with its mask, in one pass over the values and with one gradient.
pub(super) struct Fused {
    relu: bool,
    mask: Option<DropMask>,
}

impl Fused {
    pub(super) fn new(how: Finish) -> Result<Self> {
        let mask = how.dropout.map(|drop| DropMask::new(drop.p, drop.seed)).transpose()?;
        Ok(Self { relu: how.relu, mask })
    }

    /// Finishes a layer's sums, `[rows, bias.len()]`, in place.
    pub(super) fn finish<T: Element>(&self, values: &mut [T], bias: &[T]) {
        pulp::Arch::new().dispatch(Rows { how: self, bias, values });
    }

    /// Turns the gradient of the finished values into that of the sums, in place, and gives the bias's. Without ReLU
    /// `finished` is not read.
    pub(super) fn gradient<T: Wide>(&self, finished: &[T], gradient: &mut [T], width: usize) -> Vec<T> {
        let mut of_bias = vec![T::zero(); width];
        pulp::Arch::new().dispatch(Gradients { how: self, finished, gradient, of_bias: &mut of_bias });
        of_bias
    }
}

/// A layer's sums, which are finished.
struct Rows<'a, T> {
    how: &'a Fused,
    bias: &'a [T],
    values: &'a mut [T],
}

impl<T: Element> pulp::NullaryFnOnce for Rows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for row in self.values.chunks_exact_mut(self.bias.len().max(1)) {
            for (value, &bias) in row.iter_mut().zip(self.bias) {
                *value += bias;
            }
        }
        // NaN stays NaN.
        let cut = |value: T| self.how.relu & (value <= T::zero());
        if let Some(mask) = self.how.mask {
            let (stream, factor) = (mask.stream(0), T::from_f64(mask.factor()));
            for (position, value) in self.values.iter_mut().enumerate() {
                let stays = stream.stays(position as u32) & !cut(*value);
                *value = if stays { *value * factor } else { T::zero() };
            }
        } else if self.how.relu {
            self.values.iter_mut().for_each(|value| *value = if cut(*value) { T::zero() } else { *value });
        }
    }
}

/// The gradient of the finished values, which becomes that of the sums.
struct Gradients<'a, T> {
    how: &'a Fused,
    finished: &'a [T],
    gradient: &'a mut [T],
    of_bias: &'a mut [T],
}

impl<T: Wide> pulp::NullaryFnOnce for Gradients<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let factor = T::from_f64(self.how.mask.map_or(1.0, |mask| mask.factor()));
        if self.how.relu {
            // ReLU leaves no 0 but where it, or the dropout after it, has cut.
            for (gradient, &finished) in self.gradient.iter_mut().zip(self.finished) {
                *gradient = if finished == T::zero() { T::zero() } else { *gradient * factor };
            }
        } else if let Some(mask) = self.how.mask {
            mask.apply(0, self.gradient);
        }
        for row in self.gradient.chunks_exact(self.of_bias.len().max(1)) {
            for (sum, &value) in self.of_bias.iter_mut().zip(row) {
                *sum += value;
            }
        }
    }
}

impl Fused {
    fn forward_typed<T: Element>(
        &self,
        (x, x_layout): (&CpuStorage, &Layout),
        (bias, bias_layout): (&CpuStorage, &Layout),
    ) -> Result<(CpuStorage, Shape)> {
        let (rows, width) = x_layout.shape().dims2()?;
        if bias_layout.dims() != [width] {
            bail!("gcn: a bias of {:?} for rows of {width}", bias_layout.dims());
        }
        let mut out: Vec<T> = cpu_slice(x, x_layout)?.to_vec();
        self.finish(&mut out, cpu_slice(bias, bias_layout)?);
        Ok((T::to_cpu_storage_owned(out), Shape::from((rows, width))))
    }

    fn backward_typed<T: Wide>(
        &self,
        finished: &Tensor,
        upstream: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (rows, width) = upstream.dims2()?;
        let upstream = upstream.contiguous()?;
        let (storage, layout) = upstream.storage_and_layout();
        let mut gradient = host_slice::<T>(&storage, layout)?.to_vec();
        let (storage, layout) = finished.storage_and_layout();
        let of_bias = self.gradient(host_slice::<T>(&storage, layout)?, &mut gradient, width);
        let device = upstream.device();
        Ok((Some(Tensor::from_vec(gradient, (rows, width), device)?), Some(Tensor::from_vec(of_bias, width, device)?)))
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

    fn bwd(
        &self,
        x: &Tensor,
        _: &Tensor,
        finished: &Tensor,
        upstream: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        match x.dtype() {
            DType::F64 => self.backward_typed::<f64>(finished, upstream),
            _ => self.backward_typed::<f32>(finished, upstream),
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
