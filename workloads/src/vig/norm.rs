//! Batch normalisation over all nodes (PyTorch's `BatchNorm1d`): its parameters and its running statistics.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::{D, DType, Result, Tensor, bail};
use candle_nn::{Init, VarBuilder};

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
