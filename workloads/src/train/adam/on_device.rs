//! Adam on a GPU: all parameters in one launch.

use candle_core::backprop::GradStore;
use candle_core::{Result, Tensor, bail};

use super::{Adam, Rates, Slot};
use crate::cuda;

impl Slot {
    /// Both moments, 0 at first.
    fn moments_on_device(&self) -> Result<&[Tensor; 2]> {
        if let Some(moments) = self.on_device.get() {
            return Ok(moments);
        }
        let zeros = || self.parameter.var.zeros_like();
        let made = [zeros()?, zeros()?];
        Ok(self.on_device.get_or_init(|| made))
    }
}

impl Adam {
    #[cfg(feature = "cuda")]
    pub(super) fn is_on_cuda(&self) -> bool {
        self.slots.first().is_some_and(|slot| slot.parameter.var.device().is_cuda())
    }

    pub(super) fn step_on_device(&self, gradients: &GradStore, rates: Rates) -> Result<()> {
        let constants = cuda::Rates {
            beta1: rates.beta1,
            beta2: rates.beta2,
            one_minus_beta1: rates.one_minus_beta1,
            one_minus_beta2: rates.one_minus_beta2,
            epsilon: rates.epsilon,
            gradient_scale: rates.gradient_scale,
            step_size: rates.step_size,
            root_correction: rates.root_correction,
        };
        self.with_slots(gradients, |slots| cuda::update(slots, constants))
    }

    /// Waits for the device.
    pub(super) fn are_finite_on_device(&self, gradients: &GradStore) -> Result<bool> {
        self.with_slots(gradients, cuda::are_finite)
    }

    /// Calls `work` with the parameters that have a gradient.
    fn with_slots<R>(&self, gradients: &GradStore, work: impl FnOnce(&[cuda::Slot<'_>]) -> Result<R>) -> Result<R> {
        let mut found = Vec::with_capacity(self.slots.len());
        for slot in &self.slots {
            let value = slot.parameter.var.as_tensor();
            let Some(gradient) = gradients.get(value) else { continue };
            if gradient.shape() != value.shape() {
                let name = &slot.parameter.name;
                bail!("adam: {name} has shape {:?}, its gradient {:?}", value.shape(), gradient.shape());
            }
            found.push((slot, gradient.contiguous()?));
        }
        let mut slots = Vec::with_capacity(found.len());
        for (slot, gradient) in &found {
            let (value, moments) = (slot.parameter.var.as_tensor(), slot.moments_on_device()?);
            slots.push(cuda::Slot { value, gradient, moments, weight_decay: slot.weight_decay as f32 });
        }
        work(&slots)
    }
}
