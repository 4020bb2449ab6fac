//! Batch normalisation over all nodes (PyTorch's `BatchNorm1d`): its parameters and its running statistics.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::{D, DType, Result, Tensor, bail};
use candle_nn::{Init, VarBuilder};

#[cfg(any(feature = "cuda", test))]
use super::normalise::EPSILON;
use super::normalise::{Moments, normalise};

/// Whether layers use the statistics of the batch, and move their running ones, or use the running ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Training.
    Train,
    /// Evaluation.
    Eval,
}

/// Mean and variance of each feature, as evaluation uses them.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningStatistics {
    /// Mean, `[features]`.
    pub mean: Vec<f64>,
    /// Unbiased variance, `[features]`.
    pub variance: Vec<f64>,
}

/// `(x - mean) / sqrt(variance + 1e-5) * weight + bias` for each feature. Clones share the running statistics.
#[derive(Debug, Clone)]
pub struct BatchNorm {
    pub(super) weight: Tensor,
    pub(super) bias: Tensor,
    running: Arc<Mutex<RunningStatistics>>,
}

/// How far one batch moves the running statistics.
const MOMENTUM: f64 = 0.1;

impl BatchNorm {
    /// Reads `weight` and `bias`, `[features]`. Running mean 0 and variance 1: they are no parameters, see
    /// [`set_running`](Self::set_running).
    ///
    /// # Errors
    /// A parameter is missing or has another shape.
    pub fn new(features: usize, vb: VarBuilder<'_>) -> Result<Self> {
        let running = RunningStatistics { mean: vec![0.0; features], variance: vec![1.0; features] };
        Ok(Self {
            weight: vb.get_with_hints(features, "weight", Init::Const(1.0))?,
            bias: vb.get_with_hints(features, "bias", Init::Const(0.0))?,
            running: Arc::new(Mutex::new(running)),
        })
    }

    /// A copy of the running statistics.
    #[must_use]
    pub fn running(&self) -> RunningStatistics {
        self.state().clone()
    }

    /// Replaces the running statistics.
    ///
    /// # Errors
    /// They are for another number of features.
    pub fn set_running(&self, statistics: RunningStatistics) -> Result<()> {
        let features = self.weight.elem_count();
        if statistics.mean.len() != features || statistics.variance.len() != features {
            bail!("batch norm: statistics of {} features for {features}", statistics.mean.len());
        }
        *self.state() = statistics;
        Ok(())
    }

    /// `[rows, features]` to the same.
    ///
    /// # Errors
    /// The shape does not fit, or there is only one row to train on.
    pub fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        self.forward_after(x, None, mode)
    }

    /// [`forward`](Self::forward) of `x + bias`. In training the bias only moves the running mean, because the batch mean
    /// takes it away again; it gets no gradient then.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub(super) fn forward_after(&self, x: &Tensor, bias: Option<&Tensor>, mode: Mode) -> Result<Tensor> {
        #[cfg(feature = "cuda")]
        if x.device().is_cuda() {
            return self.forward_one_by_one(x, bias, mode);
        }
        let affine = Tensor::stack(&[&self.weight, &self.bias], 0)?;
        if mode == Mode::Eval {
            let RunningStatistics { mean, variance } = self.running();
            let shifted = bias.map(|bias| x.broadcast_add(bias)).transpose()?;
            return Ok(normalise(shifted.as_ref().unwrap_or(x), &affine, Some(Moments { mean, variance }))?.0);
        }
        let (out, Moments { mut mean, variance }) = normalise(x, &affine, None)?;
        if let Some(bias) = bias {
            mean.iter_mut().zip(numbers(bias)?).for_each(|(mean, bias)| *mean += bias);
        }
        self.update(&mean, &variance, x.dim(0)?)?;
        Ok(out)
    }

    /// The same in operations that candle has on every device. Reading the moments for the running statistics waits for
    /// the device.
    #[cfg(any(feature = "cuda", test))]
    fn forward_one_by_one(&self, x: &Tensor, bias: Option<&Tensor>, mode: Mode) -> Result<Tensor> {
        let (rows, _) = x.dims2()?;
        let (centred, variance) = match mode {
            Mode::Train => {
                let mean = x.mean_keepdim(0)?;
                let centred = x.broadcast_sub(&mean)?;
                let variance = centred.sqr()?.mean_keepdim(0)?;
                let shift = bias.map_or(Ok(vec![0.0; self.weight.elem_count()]), numbers)?;
                let mean: Vec<f64> = numbers(&mean)?.iter().zip(shift).map(|(mean, bias)| mean + bias).collect();
                self.update(&mean, &numbers(&variance)?, rows)?;
                (centred, variance)
            }
            Mode::Eval => {
                let (mean, variance) = self.running_tensors(x.dtype())?;
                let mean = bias.map_or(Ok(mean.clone()), |bias| mean - bias)?;
                (x.broadcast_sub(&mean)?, variance.unsqueeze(0)?)
            }
        };
        let scaled = centred.broadcast_div(&(variance + EPSILON)?.sqrt()?)?;
        scaled.broadcast_mul(&self.weight)?.broadcast_add(&self.bias)
    }

    /// Moves the running statistics towards those of a batch of `rows`, whose `variance` has `rows` in the
    /// denominator.
    ///
    /// # Errors
    /// There is only one row: its variance says nothing, and PyTorch refuses it too.
    pub(super) fn update(&self, mean: &[f64], variance: &[f64], rows: usize) -> Result<()> {
        if rows < 2 {
            bail!("batch norm: training needs more than one row, got {rows}");
        }
        let unbiased = rows as f64 / (rows - 1) as f64;
        let mut running = self.state();
        let running = &mut *running;
        for (running, &value) in running.mean.iter_mut().zip(mean) {
            *running += MOMENTUM * (value - *running);
        }
        for (running, &value) in running.variance.iter_mut().zip(variance) {
            *running += MOMENTUM * (value * unbiased - *running);
        }
        Ok(())
    }

    /// Running mean and variance, `[features]`.
    pub(super) fn running_tensors(&self, dtype: DType) -> Result<(Tensor, Tensor)> {
        let running = self.state();
        let tensor = |values: &[f64]| Tensor::from_slice(values, values.len(), self.weight.device())?.to_dtype(dtype);
        Ok((tensor(&running.mean)?, tensor(&running.variance)?))
    }

    /// Locks even after a panic: at worst one batch has moved the mean and not the variance.
    fn state(&self) -> MutexGuard<'_, RunningStatistics> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The values of a tensor in double precision.
pub(super) fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    tensor.detach().to_dtype(DType::F64)?.flatten(0, D::Minus1)?.to_vec1()
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;
    use crate::train::Parameters;

    #[test]
    fn one_by_one_is_the_same_as_fused() {
        let x: Vec<f64> = (0..60).map(|index| f64::from((index * 37) % 23) - 11.5).collect();
        let x = candle_core::Var::from_tensor(&Tensor::from_vec(x, (12, 5), &Device::Cpu).unwrap()).unwrap();
        let shift = Tensor::new(&[0.5f64, 1.0, -2.0, 0.0, 3.0], &Device::Cpu).unwrap();
        let norms = [0, 1].map(|_| {
            let parameters = Parameters::new(1);
            BatchNorm::new(5, parameters.var_builder(DType::F64, &Device::Cpu)).unwrap()
        });
        for (mode, bias) in [(Mode::Train, None), (Mode::Train, Some(&shift)), (Mode::Eval, Some(&shift))] {
            let fused = norms[0].forward_after(&x, bias, mode).unwrap();
            let plain = norms[1].forward_one_by_one(&x, bias, mode).unwrap();
            let near = |a: &Tensor, b: &Tensor| {
                numbers(a).unwrap().iter().zip(numbers(b).unwrap()).all(|(a, b)| (a - b).abs() < 1e-9)
            };
            assert!(near(&fused, &plain), "{mode:?}");
            let gradient =
                |out: &Tensor| out.powf(3.0).unwrap().sum_all().unwrap().backward().unwrap().get(&x).unwrap().clone();
            assert!(near(&gradient(&fused), &gradient(&plain)), "{mode:?}");
            let [a, b] = [norms[0].running(), norms[1].running()];
            assert!(
                a.mean
                    .iter()
                    .chain(&a.variance)
                    .zip(b.mean.iter().chain(&b.variance))
                    .all(|(a, b)| (a - b).abs() < 1e-9)
            );
        }
    }
}
