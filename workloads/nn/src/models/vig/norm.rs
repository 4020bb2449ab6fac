//! Batch normalisation over all nodes (PyTorch's `BatchNorm1d`): its parameters and its running statistics.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::{D, DType, Result, Tensor, bail};
use candle_nn::{Init, VarBuilder};

use super::gelu;
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
    /// The same on a GPU, `[2, features]` f64, from the first batch trained there; these then count.
    on_device: Arc<Mutex<Option<Tensor>>>,
}

/// What follows a normalisation: GELU, then the sum with a residual.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Behind<'a> {
    pub(super) gelu: bool,
    pub(super) residual: Option<&'a Tensor>,
}

impl<'a> Behind<'a> {
    pub(super) const GELU: Self = Self { gelu: true, residual: None };

    pub(super) fn onto(residual: &'a Tensor) -> Self {
        Self { gelu: false, residual: Some(residual) }
    }
}

/// How far one batch moves the running statistics.
const MOMENTUM: f64 = 0.1;

impl BatchNorm {
    /// Reads `weight` and `bias`, `[features]`. Running mean 0 and variance 1: they are not parameters, see
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
            on_device: Arc::default(),
        })
    }

    /// A copy of the running statistics. Waits for a GPU that has them; NaN if it fails.
    #[must_use]
    pub fn running(&self) -> RunningStatistics {
        if let Some(held) = &*self.held() {
            let rows = held.to_vec2::<f64>().unwrap_or_default();
            let row =
                |index: usize| rows.get(index).cloned().unwrap_or_else(|| vec![f64::NAN; self.weight.elem_count()]);
            return RunningStatistics { mean: row(0), variance: row(1) };
        }
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
        self.held().take();
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
        if x.device().is_cuda() {
            return self.forward_on_device(x, bias, Behind::default(), mode);
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

    /// [`forward`](Self::forward) with what follows it, which a GPU does in the same kernels.
    ///
    /// # Errors
    /// As [`forward`](Self::forward), or the residual has another shape.
    pub(super) fn forward_behind(&self, x: &Tensor, behind: Behind<'_>, mode: Mode) -> Result<Tensor> {
        if x.device().is_cuda() {
            return self.forward_on_device(x, None, behind, mode);
        }
        follow(self.forward_after(x, None, mode)?, behind)
    }

    /// The same with the kernels of a GPU. Training reads nothing back: the running statistics move where they are.
    fn forward_on_device(&self, x: &Tensor, bias: Option<&Tensor>, behind: Behind<'_>, mode: Mode) -> Result<Tensor> {
        let (rows, features) = x.dims2()?;
        if mode == Mode::Eval {
            let (mean, variance) = self.running_tensors(x.dtype())?;
            let mean = bias.map_or(Ok(mean.clone()), |bias| mean - bias)?;
            let scale = (&self.weight / (variance + EPSILON)?.sqrt()?)?;
            let normalised = x.broadcast_sub(&mean)?.broadcast_mul(&scale)?.broadcast_add(&self.bias)?;
            return follow(normalised, behind);
        }
        if rows < 2 {
            bail!("batch norm: training needs more than one row, got {rows}");
        }
        let affine = Tensor::stack(&[&self.weight, &self.bias], 0)?;
        let running = self.running_on(features)?;
        let shift = bias.map(|bias| bias.detach().contiguous()).transpose()?;
        let operation = crate::cuda::BatchMoments::new(running, EPSILON, MOMENTUM, shift, behind.gelu);
        match behind.residual {
            None => x.contiguous()?.apply_op2(&affine, operation),
            Some(residual) if residual.dims() == x.dims() => {
                x.contiguous()?.apply_op3(&affine, &residual.contiguous()?, operation)
            }
            Some(residual) => bail!("batch norm: a residual {:?} for {:?}", residual.dims(), x.dims()),
        }
    }

    /// The running statistics on the device of the parameters, moved there by the first call.
    fn running_on(&self, features: usize) -> Result<Tensor> {
        let mut held = self.held();
        if let Some(held) = &*held {
            return Ok(held.clone());
        }
        let RunningStatistics { mean, variance } = self.state().clone();
        let rows = [mean, variance].concat();
        let made = Tensor::from_vec(rows, (2, features), self.weight.device())?;
        *held = Some(made.clone());
        Ok(made)
    }

    /// Locks even after a panic: the tensor is set at once.
    fn held(&self) -> MutexGuard<'_, Option<Tensor>> {
        self.on_device.lock().unwrap_or_else(PoisonError::into_inner)
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
        let running = self.running();
        let tensor = |values: &[f64]| Tensor::from_slice(values, values.len(), self.weight.device())?.to_dtype(dtype);
        Ok((tensor(&running.mean)?, tensor(&running.variance)?))
    }

    /// Locks even after a panic: at worst one batch has moved the mean and not the variance.
    fn state(&self) -> MutexGuard<'_, RunningStatistics> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One after the other.
fn follow(normalised: Tensor, behind: Behind<'_>) -> Result<Tensor> {
    let active = if behind.gelu { gelu(&normalised)? } else { normalised };
    behind.residual.map_or(Ok(active.clone()), |residual| residual + active)
}

/// The values of a tensor in double precision.
pub(super) fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    tensor.detach().to_dtype(DType::F64)?.flatten(0, D::Minus1)?.to_vec1()
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;
    use crate::models::Parameters;

    fn near(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9 * (1.0 + b.abs()))
    }

    #[test]
    fn a_gpu_gives_the_same_and_keeps_the_running_statistics() {
        if !crate::cuda::emulation::is_possible() {
            return;
        }
        let shift = Tensor::new(&[0.5f64, 1.0, -2.0, 0.0, 3.0], &Device::Cpu).unwrap();
        for rows in [2usize, 12, 1000] {
            let values = |factor: usize| (0..rows * 5).map(move |index| ((index * factor) % 23) as f64 / 7.0 - 1.5);
            let tensor =
                |factor| Tensor::from_vec(values(factor).collect::<Vec<f64>>(), (rows, 5), &Device::Cpu).unwrap();
            let [x, residual] = [37, 11].map(|factor| candle_core::Var::from_tensor(&tensor(factor)).unwrap());
            let parameters = [0, 1].map(|_| Parameters::new(1));
            let norms = parameters
                .each_ref()
                .map(|parameters| BatchNorm::new(5, parameters.var_builder(DType::F64, &Device::Cpu)).unwrap());
            for behind in [
                Behind::default(),
                Behind::GELU,
                Behind::onto(&residual),
                Behind { gelu: true, residual: Some(&residual) },
            ] {
                for (mode, bias) in [(Mode::Train, None), (Mode::Train, Some(&shift)), (Mode::Eval, Some(&shift))] {
                    let expected = follow(norms[0].forward_after(&x, bias, mode).unwrap(), behind).unwrap();
                    let found = norms[1].forward_on_device(&x, bias, behind, mode).unwrap();
                    assert!(
                        near(&numbers(&found).unwrap(), &numbers(&expected).unwrap()),
                        "{rows} {mode:?} {behind:?}"
                    );
                    let back =
                        [&expected, &found].map(|out| out.powf(3.0).unwrap().sum_all().unwrap().backward().unwrap());
                    let of =
                        |which: usize, var: &Tensor| back[which].get(var).map(|gradient| numbers(gradient).unwrap());
                    for var in [&x, &residual] {
                        assert_eq!(of(0, var).is_some(), of(1, var).is_some());
                        assert!(
                            of(0, var).is_none_or(|expected| near(&of(1, var).unwrap(), &expected)),
                            "{rows} {mode:?}"
                        );
                    }
                    for (ours, theirs) in parameters[1].list().iter().zip(parameters[0].list()) {
                        assert!(near(&of(1, &ours.var).unwrap(), &of(0, &theirs.var).unwrap()), "{rows} {}", ours.name);
                    }
                    let [a, b] = [norms[0].running(), norms[1].running()];
                    assert!(near(&b.mean, &a.mean) && near(&b.variance, &a.variance), "{rows} {mode:?}");
                }
            }
            let statistics = RunningStatistics { mean: vec![7.0; 5], variance: vec![2.0; 5] };
            norms[1].set_running(statistics.clone()).unwrap();
            assert_eq!(norms[1].running(), statistics);
            let one = x.narrow(0, 0, 1).unwrap();
            assert!(norms[1].forward_on_device(&one, None, Behind::default(), Mode::Train).is_err());
        }
    }
}
