//! Adam on a GPU: all parameters in one launch.

use std::sync::Arc;

use candle_core::backprop::GradStore;
use candle_core::{Result, Tensor, bail};

use super::adam::{Adam, AdamSettings, Slot};
use crate::cuda::{self, Rates};

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
    pub(super) fn is_on_cuda(&self) -> bool {
        self.slots.first().is_some_and(|slot| slot.parameter.var.device().is_cuda())
    }

    pub(super) fn step_on_device(&self, gradients: &GradStore, rates: Rates) -> Result<()> {
        self.with_slots(gradients, |slots| cuda::update(slots, rates))
    }

    /// The same steps as [`step`](Self::step), from the first one, as work that does not change: the gradients are
    /// copied to one place, and `progress` holds what depends on the step's number. `seeds` is how much the seeds of
    /// masks change per step.
    ///
    /// # Errors
    /// There are no parameters, a step was done already, or the device has too little memory.
    pub fn repeated(&self, learning_rate: f64, seeds: u64) -> Result<RepeatedAdam> {
        let Some(first) = self.slots.first().filter(|_| self.steps == 0) else {
            bail!("adam: steps that repeat begin with the first one, of at least one parameter")
        };
        let AdamSettings { beta1, beta2, .. } = self.settings;
        let advance = cuda::Advance { seeds, beta1, beta2, learning_rate };
        let progress = Arc::new(cuda::Progress::new(advance, first.parameter.var.device())?);
        let values: Vec<Tensor> = self.slots.iter().map(|slot| slot.parameter.var.as_tensor().clone()).collect();
        let gradients: Vec<Tensor> = values.iter().map(Tensor::zeros_like).collect::<Result<_>>()?;
        let slot = |((slot, value), gradient): ((&Slot, _), _)| {
            let (moments, weight_decay) = (slot.moments_on_device()?.clone(), slot.weight_decay as f32);
            Ok(cuda::RepeatedSlot { value, gradient, moments, weight_decay })
        };
        let slots = self.slots.iter().zip(values).zip(gradients).map(slot).collect::<Result<_>>()?;
        let rates = self.rates(learning_rate, 1.0);
        Ok(RepeatedAdam { update: cuda::Repeated::new(slots, rates, Arc::clone(&progress))?, progress })
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

/// Adam's steps as work that does not change.
#[derive(Debug)]
pub struct RepeatedAdam {
    update: cuda::Repeated,
    /// The position in the training.
    progress: Arc<cuda::Progress>,
}

impl RepeatedAdam {
    /// Does `work`, whose masks are those of the step that is done when it runs; `self` must outlive that.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn during<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        self.progress.during(work)
    }

    /// One step.
    ///
    /// # Errors
    /// A parameter has no gradient, or one of another shape.
    pub fn step(&self, gradients: &GradStore) -> Result<()> {
        for slot in self.update.slots() {
            match gradients.get(&slot.value) {
                Some(gradient) => slot.gradient.slice_set(&gradient.contiguous()?, 0, 0)?,
                None => bail!("adam: a parameter of a step that repeats has no gradient"),
            }
        }
        self.update.launch()
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};
    use candle_nn::Init;

    use super::*;
    use crate::learn::AdamSettings;
    use crate::models::Parameters;

    #[test]
    fn all_parameters_at_once_are_the_same_as_one_by_one() {
        if !cuda::emulation::is_possible() {
            return;
        }
        let run = |how: &str| {
            let parameters = Parameters::new(1);
            let vb = parameters.var_builder(DType::F32, &Device::Cpu);
            let init = Init::Uniform { lo: -1.0, up: 1.0 };
            let parameter = |length: usize| vb.get_with_hints(length, &format!("p{length}"), init).unwrap();
            let (used, spared) = (parameter(5000), parameter(70));
            if how != "repeated" {
                // Steps that repeat have a gradient for every parameter; others may skip some.
                parameter(3);
            }
            let settings = AdamSettings { weight_decay: 0.1, ..AdamSettings::default() };
            let mut adam = Adam::new(parameters.list(), settings).unwrap().without_decay(|name| name == "p70");
            let repeated = (how == "repeated").then(|| adam.repeated(0.1, 0).unwrap());
            for _ in 0..3 {
                let loss = (used.sqr().unwrap().sum_all().unwrap() + spared.sum_all().unwrap()).unwrap();
                let gradients = loss.backward().unwrap();
                if let Some(repeated) = &repeated {
                    repeated.step(&gradients).unwrap();
                } else if how == "at once" {
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
        let expected = run("one by one");
        for how in ["at once", "repeated"] {
            let found = run(how);
            assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5), "{how}: {:?}", &found[..9]);
        }
    }
}
