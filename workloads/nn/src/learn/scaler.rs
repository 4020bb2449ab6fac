//! Loss scaling: keeps small gradients of half-precision (f16) layers above the smallest number that f16 holds.
//!
//! The semantics are PyTorch's `GradScaler`: the loss is multiplied by a scale before the backward pass and the
//! gradients are divided by it before the optimizer. A step with a gradient that is not finite is skipped and halves
//! the scale; many good steps in a row double it.

use candle_core::backprop::GradStore;
use candle_core::{Result, Tensor};

use super::Adam;

/// Constants of a [`GradScaler`]; the defaults are PyTorch's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScalerSettings {
    /// The first scale.
    pub initial_scale: f64,
    /// Factor of the scale after enough good steps.
    pub growth: f64,
    /// Factor of the scale after a bad step.
    pub backoff: f64,
    /// Good steps in a row before it grows.
    pub growth_interval: u32,
}

impl Default for ScalerSettings {
    fn default() -> Self {
        Self { initial_scale: 65536.0, growth: 2.0, backoff: 0.5, growth_interval: 2000 }
    }
}

/// Scales losses, and skips the steps that overflow.
#[derive(Debug, Clone)]
pub struct GradScaler {
    settings: ScalerSettings,
    scale: f64,
    good_steps: u32,
    skipped: u64,
}

impl GradScaler {
    /// With the first scale.
    #[must_use]
    pub fn new(settings: ScalerSettings) -> Self {
        Self { settings, scale: settings.initial_scale, good_steps: 0, skipped: 0 }
    }

    /// The current scale.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Steps skipped so far.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The loss to take the gradients of.
    ///
    /// # Errors
    /// The device refuses.
    pub fn scaled(&self, loss: &Tensor) -> Result<Tensor> {
        loss.affine(self.scale, 0.0)
    }

    /// One step of `adam` with gradients of a [`scaled`](Self::scaled) loss. Returns whether it was taken.
    ///
    /// # Errors
    /// As [`Adam::step`].
    pub fn step(&mut self, adam: &mut Adam, gradients: &GradStore, learning_rate: f64) -> Result<bool> {
        if !adam.are_finite(gradients)? {
            self.scale *= self.settings.backoff;
            self.good_steps = 0;
            self.skipped += 1;
            return Ok(false);
        }
        adam.scaled_step(gradients, learning_rate, 1.0 / self.scale)?;
        self.good_steps += 1;
        if self.good_steps == self.settings.growth_interval {
            self.scale *= self.settings.growth;
            self.good_steps = 0;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::AdamSettings;
    use crate::models::Parameters;
    use candle_core::{DType, Device};
    use candle_nn::Init;

    fn weight() -> (Parameters, Adam, Tensor) {
        let parameters = Parameters::new(1);
        let vb = parameters.var_builder(DType::F32, &Device::Cpu);
        let weight = vb.get_with_hints(2, "weight", Init::Const(1.0)).unwrap();
        let adam = Adam::new(parameters.list(), AdamSettings::default()).unwrap();
        (parameters, adam, weight)
    }

    fn values(weight: &Tensor) -> Vec<f32> {
        weight.to_vec1().unwrap()
    }

    #[test]
    fn a_scaled_step_equals_a_plain_one() {
        let (_plain, mut plain_adam, plain) = weight();
        let loss = plain.sqr().unwrap().sum_all().unwrap();
        plain_adam.step(&loss.backward().unwrap(), 0.1).unwrap();
        let (_scaled, mut adam, scaled) = weight();
        let mut scaler = GradScaler::new(ScalerSettings::default());
        let loss = scaler.scaled(&scaled.sqr().unwrap().sum_all().unwrap()).unwrap();
        assert!(scaler.step(&mut adam, &loss.backward().unwrap(), 0.1).unwrap());
        assert_eq!(values(&plain), values(&scaled));
        assert_ne!(values(&plain), [1.0, 1.0]);
    }

    #[test]
    fn an_overflow_is_left_out_and_halves_the_scale_and_good_steps_double_it() {
        let (_parameters, mut adam, weight) = weight();
        let mut scaler = GradScaler::new(ScalerSettings { growth_interval: 2, ..ScalerSettings::default() });
        let infinite = weight.affine(f64::INFINITY, 0.0).unwrap().sum_all().unwrap().backward().unwrap();
        assert!(!scaler.step(&mut adam, &infinite, 0.1).unwrap());
        assert_eq!((values(&weight), scaler.scale(), scaler.skipped()), (vec![1.0, 1.0], 32768.0, 1));
        let fine = weight.sum_all().unwrap().backward().unwrap();
        assert!(scaler.step(&mut adam, &fine, 0.1).unwrap());
        assert_eq!(scaler.scale(), 32768.0);
        assert!(scaler.step(&mut adam, &fine, 0.1).unwrap());
        assert_eq!(scaler.scale(), 65536.0);
    }
}
