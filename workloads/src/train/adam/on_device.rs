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

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};
    use candle_nn::Init;

    use super::*;
    use crate::train::{AdamSettings, Parameters};

    #[test]
    fn all_parameters_at_once_are_the_same_as_one_by_one() {
        if !cuda::emulation::is_possible() {
            return;
        }
        let run = |at_once: bool| {
            let parameters = Parameters::new(1);
            let vb = parameters.var_builder(DType::F32, &Device::Cpu);
            let init = Init::Uniform { lo: -1.0, up: 1.0 };
            let [used, _, spared] =
                [5000, 3, 70].map(|length| vb.get_with_hints(length, &format!("p{length}"), init).unwrap());
            let settings = AdamSettings { weight_decay: 0.1, ..AdamSettings::default() };
            let mut adam = Adam::new(parameters.list(), settings).unwrap().without_decay(|name| name == "p70");
            for _ in 0..3 {
                let loss = (used.sqr().unwrap().sum_all().unwrap() + spared.sum_all().unwrap()).unwrap();
                let gradients = loss.backward().unwrap();
                if at_once {
                    assert!(adam.are_finite_on_device(&gradients).unwrap());
                    adam.steps += 1;
                    adam.step_on_device(&gradients, adam.rates(0.1, 1.0)).unwrap();
                } else {
                    adam.step(&gradients, 0.1).unwrap();
                }
            }
            let infinite = used.affine(f64::INFINITY, 0.0).unwrap().sum_all().unwrap().backward().unwrap();
            assert!(!adam.are_finite_on_device(&infinite).unwrap());
            let values = parameters.list().into_iter().map(|parameter| parameter.var.to_vec1::<f32>().unwrap());
            values.collect::<Vec<_>>().concat()
        };
        let (found, expected) = (run(true), run(false));
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5), "{:?}", &found[..9]);
    }
}
