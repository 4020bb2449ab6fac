//! A network with its optimizer, one step at a time.

use candle_core::{DType, Device, Result, Tensor};
use gnntop_probe::device::Holdings;
use gnntop_probe::{Name, NameKind, NameRef, intern, phase, span};

use super::Mode;
use crate::kernels::KernelFamily;
use crate::models::Parameters;
use crate::models::gcn::{Computation, Gcn, GcnConfig, NodeFeatures, Normalised};
use crate::train::{Adam, AdamSettings, GradScaler, LabelledRows, ScalerSettings, cross_entropy};

static NORMALISE: Name = Name::span("normalise");

/// Settings of how a network learns.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// The network.
    pub model: GcnConfig,
    /// Adam's learning rate.
    pub learning_rate: f64,
    /// L2 penalty.
    pub weight_decay: f64,
    /// Whether the penalty is on the first layer only.
    pub decays_first_layer_only: bool,
}

/// A network that learns.
#[derive(Debug)]
pub struct Trainer {
    model: Gcn,
    parameters: Parameters,
    adam: Adam,
    scaler: Option<GradScaler>,
    recipe: Recipe,
    pass: Computation,
    seed: u64,
    steps: u64,
    layers: Vec<NameRef>,
}

impl Trainer {
    /// A new network with initial parameters from `seed`.
    ///
    /// # Errors
    /// The recipe's sizes are impossible.
    pub fn new(recipe: &Recipe, mode: Mode, family: KernelFamily, seed: u64) -> Result<Self> {
        Self::on(&Device::Cpu, recipe, mode, family, seed)
    }

    /// [`new`](Self::new) on a device.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn on(device: &Device, recipe: &Recipe, mode: Mode, family: KernelFamily, seed: u64) -> Result<Self> {
        let parameters = Parameters::new(seed);
        let model = Gcn::new(&recipe.model, parameters.var_builder(DType::F32, device))?;
        let settings = AdamSettings { weight_decay: recipe.weight_decay, ..AdamSettings::default() };
        let is_spared = |name: &str| recipe.decays_first_layer_only && !name.starts_with("convs.0.");
        let adam = Adam::new(parameters.list(), settings)?.without_decay(is_spared);
        let scaler = (mode.precision() == DType::F16).then(|| GradScaler::new(ScalerSettings::default()));
        let layers = (0..model.layers()).map(|i| intern(NameKind::Span, &format!("layer {i}"))).collect();
        let pass = Computation { family, precision: mode.precision(), dropout_seed: None };
        Ok(Self { model, parameters, adam, scaler, recipe: recipe.clone(), pass, seed, steps: 0, layers })
    }

    /// The network.
    #[must_use]
    pub fn model(&self) -> &Gcn {
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

    /// Steps that were skipped because a gradient overflowed.
    #[must_use]
    pub fn skipped_steps(&self) -> u64 {
        self.scaler.as_ref().map_or(0, GradScaler::skipped)
    }

    /// One step: forward, backward, optimizer, each a phase. `normalise` gives the graph within the forward phase, and
    /// `predicted` sees the scores, `[nodes, classes]`. Returns the loss.
    ///
    /// # Errors
    /// The data do not fit the network.
    pub fn step(
        &mut self,
        x: &NodeFeatures,
        labelled: &LabelledRows,
        normalise: impl FnOnce() -> Result<Normalised>,
        predicted: impl FnOnce(&Tensor) -> Result<()>,
    ) -> Result<f64> {
        let loss = {
            let _forward = span(&phase::FORWARD);
            let graph = {
                let _normalise = span(&NORMALISE);
                normalise()?
            };
            let logits =
                self.model.forward_with(x, &graph, self.pass_of(self.steps), |layer| span(self.layers[layer]))?;
            predicted(&logits)?;
            cross_entropy(&logits, labelled)?
        };
        let gradients = {
            let _backward = span(&phase::BACKWARD);
            match &self.scaler {
                Some(scaler) => scaler.scaled(&loss)?.backward()?,
                None => loss.backward()?,
            }
        };
        let _optimizer = span(&phase::OPTIMIZER);
        self.steps += 1;
        match &mut self.scaler {
            Some(scaler) => scaler.step(&mut self.adam, &gradients, self.recipe.learning_rate).map(|_| ())?,
            None => self.adam.step(&gradients, self.recipe.learning_rate)?,
        }
        loss.to_scalar::<f32>().map(f64::from)
    }

    /// Every step drops different values.
    pub(super) fn pass_of(&self, step: u64) -> Computation {
        Computation {
            dropout_seed: Some(self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(step)),
            ..self.pass
        }
    }

    /// The optimizer's steps as work that does not change, see [`Adam::repeated`].
    pub(super) fn repeated_adam(&self, seeds: u64) -> Result<crate::train::RepeatedAdam> {
        self.adam.repeated(self.recipe.learning_rate, seeds)
    }
}
