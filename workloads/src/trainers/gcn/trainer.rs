//! A network with its optimizer, one step at a time.

use candle_core::{DType, Device, Result, Tensor};
use gnntop_probe::{Name, NameKind, NameRef, intern, phase, span};

use super::Mode;
use gnntop_nn::kernels::KernelFamily;
use gnntop_nn::learn::{AdamSettings, GradScaler, LabelledRows, Learner, RepeatedAdam, ScalerSettings, cross_entropy};
use gnntop_nn::models::gcn::{Computation, Gcn, GcnConfig, NodeFeatures, Normalised};

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
    learner: Learner<Gcn>,
    scaler: Option<GradScaler>,
    recipe: Recipe,
    pass: Computation,
    seed: u64,
    steps: u64,
    layers: Vec<NameRef>,
}

impl Trainer {
    /// A new network on a device, with initial parameters from `seed`.
    ///
    /// # Errors
    /// The recipe's sizes are impossible.
    pub fn new(device: &Device, recipe: &Recipe, mode: Mode, family: KernelFamily, seed: u64) -> Result<Self> {
        let settings = AdamSettings { weight_decay: recipe.weight_decay, ..AdamSettings::default() };
        let mut learner = Learner::build(device, settings, seed, |vb| Gcn::new(&recipe.model, vb))?;
        if recipe.decays_first_layer_only {
            learner.adam = learner.adam.without_decay(|name| !name.starts_with("convs.0."));
        }
        let scaler = (mode.precision() == DType::F16).then(|| GradScaler::new(ScalerSettings::default()));
        let layers = (0..learner.model().layers()).map(|i| intern(NameKind::Span, &format!("layer {i}"))).collect();
        let pass = Computation { family, precision: mode.precision(), dropout_seed: None };
        Ok(Self { learner, scaler, recipe: recipe.clone(), pass, seed, steps: 0, layers })
    }

    /// The network with its parameters and optimizer.
    #[must_use]
    pub fn learner(&self) -> &Learner<Gcn> {
        &self.learner
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
            let logits = self
                .learner
                .model()
                .forward_with(x, &graph, self.pass_of(self.steps), |layer| span(self.layers[layer]))?;
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
            Some(scaler) => scaler.step(&mut self.learner.adam, &gradients, self.recipe.learning_rate).map(|_| ())?,
            None => self.learner.optimizer_step(&gradients, self.recipe.learning_rate)?,
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
    pub(super) fn repeated_adam(&self, seeds: u64) -> Result<RepeatedAdam> {
        self.learner.adam.repeated(self.recipe.learning_rate, seeds)
    }
}
