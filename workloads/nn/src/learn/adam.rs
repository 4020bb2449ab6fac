//! Adam with PyTorch's semantics, in one pass over each parameter and without temporaries.

use std::sync::{Mutex, PoisonError};

use candle_core::backprop::GradStore;
use candle_core::{CpuStorage, DType, InplaceOp2, Layout, Result, Tensor, bail};
use rayon::prelude::*;

use crate::cuda::Rates;
use crate::kernels::host_slice;
use crate::models::Parameter;

/// Constants of [`Adam`]; the defaults are PyTorch's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamSettings {
    /// Decay of the running mean of the gradient.
    pub beta1: f64,
    /// Decay of the running mean of its square.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
    /// L2 penalty: this times the parameter is added to the gradient, which is not what AdamW does.
    pub weight_decay: f64,
}

impl Default for AdamSettings {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 }
    }
}

/// The optimizer: both moments of every parameter, in the order of the list it was given.
#[derive(Debug)]
pub struct Adam {
    pub(super) settings: AdamSettings,
    pub(super) steps: i32,
    pub(super) slots: Vec<Slot>,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) parameter: Parameter,
    pub(super) weight_decay: f64,
    moments: Mutex<Moments>,
    /// The same on a GPU, made by the first step there.
    pub(super) on_device: std::sync::OnceLock<[Tensor; 2]>,
}

#[derive(Debug)]
struct Moments {
    mean: Vec<f32>,
    square: Vec<f32>,
}

impl Adam {
    /// For these parameters, with moments 0.
    ///
    /// # Errors
    /// A parameter is not f32.
    pub fn new(parameters: Vec<Parameter>, settings: AdamSettings) -> Result<Self> {
        if let Some(other) = parameters.iter().find(|parameter| parameter.var.dtype() != DType::F32) {
            bail!("adam: parameter {} is {:?}, only f32 is supported", other.name, other.var.dtype());
        }
        let slot = |parameter: Parameter| {
            let on_host = if parameter.var.device().is_cpu() { parameter.var.elem_count() } else { 0 };
            let zeros = vec![0.0; on_host];
            Slot {
                parameter,
                weight_decay: settings.weight_decay,
                moments: Mutex::new(Moments { mean: zeros.clone(), square: zeros }),
                on_device: std::sync::OnceLock::new(),
            }
        };
        Ok(Self { settings, steps: 0, slots: parameters.into_iter().map(slot).collect() })
    }

    /// Exempts the parameters whose name `is_spared` from weight decay.
    #[must_use]
    pub fn without_decay(mut self, is_spared: impl Fn(&str) -> bool) -> Self {
        for slot in self.slots.iter_mut().filter(|slot| is_spared(&slot.parameter.name)) {
            slot.weight_decay = 0.0;
        }
        self
    }

    /// Bytes of the parameters: as much again is a gradient of each, and twice as much the moments, which a GPU has from the
    /// first step on.
    #[must_use]
    pub fn parameter_bytes(&self) -> u64 {
        let values: usize = self.slots.iter().map(|slot| slot.parameter.var.elem_count()).sum();
        (values * DType::F32.size_in_bytes()) as u64
    }

    /// One step. Parameters without a gradient stay as they are; the others are updated in parallel, in place.
    ///
    /// # Errors
    /// A gradient has another shape or number type than its parameter.
    pub fn step(&mut self, gradients: &GradStore, learning_rate: f64) -> Result<()> {
        self.scaled_step(gradients, learning_rate, 1.0)
    }

    /// [`step`](Self::step) with gradients that are first multiplied by `gradient_scale`.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn scaled_step(&mut self, gradients: &GradStore, learning_rate: f64, gradient_scale: f64) -> Result<()> {
        self.steps = self.steps.saturating_add(1);
        let rates = self.rates(learning_rate, gradient_scale);
        if self.is_on_cuda() {
            return self.step_on_device(gradients, rates);
        }
        self.slots.par_iter().try_for_each(|slot| {
            let parameter = slot.parameter.var.as_tensor();
            match gradients.get(parameter) {
                Some(gradient) => slot.update(parameter, &gradient.contiguous()?, rates),
                None => Ok(()),
            }
        })
    }

    /// Whether every gradient of the parameters is a finite number.
    ///
    /// # Errors
    /// A gradient is not f32 in host memory.
    pub fn are_finite(&self, gradients: &GradStore) -> Result<bool> {
        if self.is_on_cuda() {
            return self.are_finite_on_device(gradients);
        }
        for slot in &self.slots {
            let Some(gradient) = gradients.get(slot.parameter.var.as_tensor()) else { continue };
            let gradient = gradient.contiguous()?;
            let (storage, layout) = gradient.storage_and_layout();
            if !host_slice::<f32>(&storage, layout)?.iter().all(|value| value.is_finite()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn rates(&self, learning_rate: f64, gradient_scale: f64) -> Rates {
        let AdamSettings { beta1, beta2, epsilon, .. } = self.settings;
        Rates {
            beta1: beta1 as f32,
            beta2: beta2 as f32,
            one_minus_beta1: (1.0 - beta1) as f32,
            one_minus_beta2: (1.0 - beta2) as f32,
            epsilon: epsilon as f32,
            gradient_scale: gradient_scale as f32,
            step_size: (learning_rate / (1.0 - beta1.powi(self.steps))) as f32,
            root_correction: (1.0 - beta2.powi(self.steps)).sqrt() as f32,
        }
    }
}

impl Slot {
    fn update(&self, parameter: &Tensor, gradient: &Tensor, rates: Rates) -> Result<()> {
        if parameter.shape() != gradient.shape() {
            let name = &self.parameter.name;
            bail!("adam: {name} has shape {:?}, its gradient {:?}", parameter.shape(), gradient.shape());
        }
        let weight_decay = self.weight_decay as f32;
        parameter.inplace_op2(gradient, &Update { moments: &self.moments, rates, weight_decay })
    }
}

struct Update<'a> {
    moments: &'a Mutex<Moments>,
    rates: Rates,
    weight_decay: f32,
}

impl InplaceOp2 for Update<'_> {
    fn name(&self) -> &'static str {
        "adam"
    }

    fn cpu_fwd(
        &self,
        parameter: &mut CpuStorage,
        parameter_layout: &Layout,
        gradient: &CpuStorage,
        gradient_layout: &Layout,
    ) -> Result<()> {
        let (CpuStorage::F32(parameter), CpuStorage::F32(gradient)) = (parameter, gradient) else {
            bail!("adam: parameter and gradient must be f32");
        };
        let (Some((start, end)), Some((from, to))) =
            (parameter_layout.contiguous_offsets(), gradient_layout.contiguous_offsets())
        else {
            bail!("adam: parameter and gradient must be contiguous");
        };
        let mut moments = self.moments.lock().unwrap_or_else(PoisonError::into_inner);
        update(&mut parameter[start..end], &gradient[from..to], &mut moments, (self.rates, self.weight_decay));
        Ok(())
    }
}

fn update(parameter: &mut [f32], gradient: &[f32], moments: &mut Moments, (rates, weight_decay): (Rates, f32)) {
    let values = parameter.iter_mut().zip(gradient);
    for ((value, &gradient), (mean, square)) in values.zip(moments.mean.iter_mut().zip(&mut moments.square)) {
        let gradient = gradient * rates.gradient_scale + weight_decay * *value;
        *mean = rates.beta1 * *mean + rates.one_minus_beta1 * gradient;
        *square = rates.beta2 * *square + rates.one_minus_beta2 * gradient * gradient;
        *value -= rates.step_size * *mean / (square.sqrt() / rates.root_correction + rates.epsilon);
    }
}
