//! Training of a model that classifies nodes: loss, backward pass and optimizer step as separate calls, so that a loop
//! can time each.

use std::sync::Arc;

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Result, Tensor};
use gnntop_probe::device::Holdings;

use super::{Accuracy, Adam, AdamSettings, LabelledRows, cross_entropy};
use crate::models::{NodeModel, Parameters, Pass};
use gnntop_data::graph::Adjacency;

/// Nodes with their edges, and which of them have a label to learn from.
#[derive(Debug, Clone, Copy)]
pub struct NodeInput<'a> {
    /// Node features, `[nodes, in_features]`.
    pub features: &'a Tensor,
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
        Accuracy::of(&self.logits.narrow(0, 0, labels.len())?, labels)
    }
}

/// A model with its parameters and optimizer.
#[derive(Debug)]
pub struct NodeTrainer<M> {
    model: M,
    parameters: Parameters,
    adam: Adam,
}

impl<M: NodeModel> NodeTrainer<M> {
    /// A new model on the CPU, with initial parameters from `seed`.
    ///
    /// # Errors
    /// `config` is impossible.
    pub fn new(config: &M::Config, adam: AdamSettings, seed: u64) -> Result<Self> {
        Self::on(&Device::Cpu, config, adam, seed)
    }

    /// [`new`](Self::new) on a device.
    ///
    /// # Errors
    /// As [`new`](Self::new), or the device refuses.
    pub fn on(device: &Device, config: &M::Config, adam: AdamSettings, seed: u64) -> Result<Self> {
        let parameters = Parameters::new(seed);
        let model = M::new(config, parameters.var_builder(DType::F32, device))?;
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

    /// The memory of parameters, gradients and optimizer on the device.
    #[must_use]
    pub fn holdings(&self) -> Holdings {
        self.adam.holdings()
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

    /// Gradients of the loss with respect to all parameters.
    ///
    /// # Errors
    /// The outcome does not come from [`forward`](Self::forward).
    pub fn backward(&self, outcome: &NodeOutcome) -> Result<GradStore> {
        outcome.loss.backward()
    }

    /// One step of Adam at this learning rate.
    ///
    /// # Errors
    /// A gradient does not fit its parameter.
    pub fn optimizer_step(&mut self, gradients: &GradStore, learning_rate: f64) -> Result<()> {
        self.adam.step(gradients, learning_rate)
    }
}
