//! A model with what trains it: forward pass, backward pass and optimizer step are separate calls, so that a loop can
//! time each.

use std::sync::Arc;

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Result, Tensor};
use candle_nn::VarBuilder;

use super::{Accuracy, Adam, AdamSettings, LabelledRows, cross_entropy};
use crate::models::{FeatureRows, NodeModel, Parameters, Pass};
use gnntop_data::graph::Adjacency;

/// Nodes with their edges, and which of them have a label to learn from.
#[derive(Debug, Clone, Copy)]
pub struct NodeInput<'a> {
    /// Node features, `[nodes, in_features]`.
    pub features: FeatureRows<'a>,
    /// The edges, as [`NodeModel::forward_with`] takes them.
    pub layers: &'a [Arc<Adjacency>],
    /// The rows of the last layer's result that have a label. In a sample they are the first ones:
    /// `LabelledRows::new(0..seeds, labels)`.
    pub labelled: &'a LabelledRows,
}

/// The result of a forward pass.
#[derive(Debug, Clone)]
pub struct NodeOutcome {
    /// Mean cross-entropy of the labelled rows, a scalar.
    pub loss: Tensor,
    /// One row for each target of the last layer, `[targets, classes]`.
    pub logits: Tensor,
}

impl NodeOutcome {
    /// How many of the first `labels.len()` rows, those of a sample's seeds, have their label as the largest logit.
    ///
    /// # Errors
    /// There are fewer rows than labels.
    pub fn accuracy(&self, labels: &[u32]) -> Result<Accuracy> {
        Accuracy::new(&self.logits.narrow(0, 0, labels.len())?, labels)
    }
}

/// A model with its parameters and optimizer.
#[derive(Debug)]
pub struct Learner<M> {
    model: M,
    parameters: Parameters,
    /// What moves the parameters.
    pub adam: Adam,
}

impl<M> Learner<M> {
    /// What `build` makes of new parameters on a device, with initial values from `seed`.
    ///
    /// # Errors
    /// Those of `build`, or the device refuses.
    pub fn build(
        device: &Device,
        adam: AdamSettings,
        seed: u64,
        build: impl FnOnce(VarBuilder<'static>) -> Result<M>,
    ) -> Result<Self> {
        let parameters = Parameters::new(seed);
        let model = build(parameters.var_builder(DType::F32, device))?;
        let adam = Adam::new(parameters.list(), adam)?;
        Ok(Self { model, parameters, adam })
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &M {
        &self.model
    }

    /// All trainable parameters in a fixed order: where gradients of several ranks would be summed.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// One step of Adam at this learning rate.
    ///
    /// # Errors
    /// A gradient does not fit its parameter.
    pub fn optimizer_step(&mut self, gradients: &GradStore, learning_rate: f64) -> Result<()> {
        self.adam.step(gradients, learning_rate)
    }
}

impl<M: NodeModel> Learner<M> {
    /// A new model on a device, with initial parameters from `seed`.
    ///
    /// # Errors
    /// `config` is impossible, or the device refuses.
    pub fn new(device: &Device, config: &M::Config, adam: AdamSettings, seed: u64) -> Result<Self> {
        Self::build(device, adam, seed, |vb| M::new(config, vb))
    }

    /// Logits and loss.
    ///
    /// # Errors
    /// The input does not fit the model, or a labelled row or class does not exist.
    pub fn forward(&self, input: &NodeInput<'_>, pass: Pass) -> Result<NodeOutcome> {
        self.forward_with(input, pass, |_| ())
    }

    /// [`forward`](Self::forward) with a guard held while each layer runs, see [`NodeModel::forward_with`].
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn forward_with<G>(
        &self,
        input: &NodeInput<'_>,
        pass: Pass,
        enter: impl FnMut(usize) -> G,
    ) -> Result<NodeOutcome> {
        let logits = self.model.forward_with(input.features, input.layers, pass, enter)?;
        let loss = cross_entropy(&logits, input.labelled)?;
        Ok(NodeOutcome { loss, logits })
    }
}
