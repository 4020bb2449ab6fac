//! Training of a [`Pna`]: loss, backward pass and optimizer step as separate calls, so that a loop can time each.

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Result, Tensor};
use gnntop_probe::device::Holdings;

use crate::models::Parameters;
use crate::models::pna::{DeviceBatch, Pna, PnaConfig};
use crate::train::{Adam, AdamSettings};

/// Mean and standard deviation of the targets over the training set; the model predicts `(y - mean) / deviation`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TargetScale {
    /// Mean.
    pub mean: f64,
    /// Standard deviation (n - 1 in the denominator, as PyTorch), 1 where it is 0 or unknown.
    pub deviation: f64,
}

impl TargetScale {
    /// From the targets of the training set.
    #[must_use]
    pub fn of(targets: impl IntoIterator<Item = f32>) -> Self {
        let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
        for target in targets {
            // Welford's recurrence: stable in one pass.
            let distance = f64::from(target) - mean;
            count += 1.0;
            mean += distance / count;
            squares += distance * (f64::from(target) - mean);
        }
        let deviation = (squares / (count - 1.0)).sqrt();
        Self { mean, deviation: if deviation > 0.0 { deviation } else { 1.0 } }
    }
}

/// A model with its parameters, target scale and optimizer.
#[derive(Debug)]
pub struct Trainer {
    model: Pna,
    parameters: Parameters,
    adam: Adam,
    scale: TargetScale,
}

impl Trainer {
    /// A new model with initial parameters from `seed`.
    ///
    /// # Errors
    /// A size of `config` is 0.
    pub fn new(config: &PnaConfig, adam: AdamSettings, scale: TargetScale, seed: u64) -> Result<Self> {
        Self::on(&Device::Cpu, config, adam, scale, seed)
    }

    /// [`new`](Self::new) on a device.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn on(device: &Device, config: &PnaConfig, adam: AdamSettings, scale: TargetScale, seed: u64) -> Result<Self> {
        let parameters = Parameters::new(seed);
        let model = Pna::new(config, parameters.var_builder(DType::F32, device))?;
        let adam = Adam::new(parameters.list(), adam)?;
        Ok(Self { model, parameters, adam, scale })
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Pna {
        &self.model
    }

    /// All trainable parameters in a fixed order: where gradients of several ranks would be summed.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The memory of parameters, gradients and optimizer on the device.
    #[must_use]
    pub fn holdings(&self) -> Holdings {
        self.adam.holdings()
    }

    /// How targets are scaled for the loss.
    #[must_use]
    pub fn scale(&self) -> TargetScale {
        self.scale
    }

    /// Mean of `|prediction - (y - mean) / deviation|` over the batch, a scalar.
    ///
    /// # Errors
    /// The batch does not fit the model.
    pub fn forward(&self, batch: &DeviceBatch) -> Result<Tensor> {
        self.forward_with(batch, |_| ())
    }

    /// [`forward`](Self::forward) with a guard held while each layer runs, see [`Pna::forward_with`].
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn forward_with<G>(&self, batch: &DeviceBatch, enter: impl FnMut(usize) -> G) -> Result<Tensor> {
        let prediction = self.model.forward_with(batch, enter)?.flatten_all()?;
        let target = batch.targets().affine(1.0 / self.scale.deviation, -self.scale.mean / self.scale.deviation)?;
        (prediction - target)?.abs()?.mean_all()
    }

    /// Gradients of the loss with respect to all parameters.
    ///
    /// # Errors
    /// The loss does not come from [`forward`](Self::forward).
    pub fn backward(&self, loss: &Tensor) -> Result<GradStore> {
        loss.backward()
    }

    /// One step of Adam at this learning rate.
    ///
    /// # Errors
    /// A gradient does not fit its parameter.
    pub fn optimizer_step(&mut self, gradients: &GradStore, learning_rate: f64) -> Result<()> {
        self.adam.step(gradients, learning_rate)
    }
}
