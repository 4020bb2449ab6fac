//! One stage's part of a training step.

use std::collections::VecDeque;
use std::time::Instant;

use candle_core::backprop::GradStore;
use candle_core::{Device, Tensor, Var};
use gnntop_probe::{Name, NameKind, NameRef, Reported, counter, intern, phase, span};

use super::exchange::Exchange;
use super::{Pass, PassTimes, Schedule};
use crate::parallel::{Collective, SyncError};
use gnntop_nn::models::Parameter;

static LIVE: Name = Name::reported(Reported::LiveActivations);

/// The part of a model that one stage computes. It need not know where in the pipeline it is.
pub trait StageModel {
    /// The first stage's input for micro-batch `micro_batch`. Called only on that stage.
    ///
    /// # Errors
    /// There is no such micro-batch.
    fn input(&mut self, micro_batch: usize) -> candle_core::Result<Tensor>;

    /// The stage's result: features `[rows, columns]` for the next stage, or on the last one the micro-batch's share of
    /// the batch's loss, such that the shares add up to it.
    ///
    /// # Errors
    /// The input does not fit.
    fn forward(&mut self, micro_batch: usize, input: &Tensor) -> candle_core::Result<Tensor>;

    /// [`forward`](Self::forward) a second time: the same result, and no other effect.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    fn forward_again(&mut self, micro_batch: usize, input: &Tensor) -> candle_core::Result<Tensor>;
}

/// A stage's place in the pipeline, and how it works.
#[derive(Clone, Debug)]
pub struct PipelineSettings {
    /// This stage, from 0.
    pub stage: usize,
    /// Stages of the pipeline.
    pub stages: usize,
    /// The rank of its first stage; the others follow.
    pub first_rank: usize,
    /// In which order it makes its passes.
    pub schedule: Schedule,
    /// Keep only a micro-batch's input, and recompute what the backward pass needs.
    pub recompute: bool,
    /// Columns of the matrices between stages.
    pub columns: usize,
    /// Where it computes.
    pub device: Device,
}

/// The results of a batch.
#[derive(Debug)]
pub struct BatchOutcome {
    /// Gradients of the stage's parameters, summed over the micro-batches.
    pub gradients: GradStore,
    /// The batch's loss, on the last stage.
    pub loss: Option<f64>,
    /// Average time the stage computed per micro-batch, without waiting.
    pub times: PassTimes,
}

/// Drives one stage through one batch after the other.
#[derive(Debug)]
pub struct Pipeline {
    settings: PipelineSettings,
    parameters: Vec<Parameter>,
    exchange: Exchange,
    names: Vec<NameRef>,
    /// Micro-batches whose activations are in memory.
    live: usize,
    /// Computing, in the batch so far.
    spent: PassTimes,
    /// What the coming backward passes need, the oldest first: passes come in the order of the micro-batches.
    kept: VecDeque<SavedPass>,
}

/// What a micro-batch leaves between its two passes.
#[derive(Debug)]
struct SavedPass {
    input: Input,
    /// The result with its graph; `None` if it will be recomputed.
    output: Option<Tensor>,
}

/// The first stage's input needs no gradient; input from another stage does.
#[derive(Debug)]
enum Input {
    Own(Tensor),
    Received(Var),
}

impl Input {
    fn tensor(&self) -> &Tensor {
        match self {
            Self::Own(tensor) => tensor,
            Self::Received(var) => var,
        }
    }
}

impl Pipeline {
    /// For a stage with these parameters.
    #[must_use]
    pub fn new(settings: PipelineSettings, parameters: Vec<Parameter>) -> Self {
        let exchange = Exchange::new(settings.columns, settings.device.clone());
        Self {
            settings,
            parameters,
            exchange,
            names: Vec::new(),
            live: 0,
            spent: PassTimes::default(),
            kept: VecDeque::new(),
        }
    }

    /// Runs one batch of `micro_batches` micro-batches forward and backward. All stages make the same call.
    ///
    /// # Errors
    /// A neighbour is gone, or the model cannot be computed.
    pub fn batch(
        &mut self,
        model: &mut dyn StageModel,
        micro_batches: usize,
        ranks: &dyn Collective,
    ) -> Result<BatchOutcome, SyncError> {
        let PipelineSettings { stage, stages, schedule, .. } = self.settings;
        self.kept.clear();
        self.live = 0;
        self.spent = PassTimes::default();
        for micro_batch in self.names.len()..micro_batches {
            let what = Reported::MicroBatch(u32::try_from(micro_batch).unwrap_or(u32::MAX));
            self.names.push(intern(NameKind::Reported(what), &format!("{}{micro_batch}", what.text())));
        }
        let (mut gradients, mut loss) = (GradStore::default(), None);
        for pass in schedule.order(stage, stages, micro_batches) {
            match pass {
                Pass::Forward(micro_batch) => {
                    if let Some(share) = self.forward(model, micro_batch, ranks)? {
                        *loss.get_or_insert(0.0) += share;
                    }
                }
                Pass::Backward(micro_batch) => self.backward(model, micro_batch, ranks, &mut gradients)?,
            }
        }
        let [forward_s, backward_s] =
            [self.spent.forward_s, self.spent.backward_s].map(|seconds| seconds / micro_batches as f64);
        Ok(BatchOutcome { gradients, loss, times: PassTimes { forward_s, backward_s } })
    }

    /// Takes one input through the pipeline without gradients, each stage computing its part with `compute`: the result
    /// on the last stage, nothing on the others. Only the first stage's input counts.
    ///
    /// # Errors
    /// A neighbour is gone, or the model cannot be computed.
    pub fn infer(
        &mut self,
        input: Option<&Tensor>,
        ranks: &dyn Collective,
        compute: impl FnOnce(&Tensor) -> candle_core::Result<Tensor>,
    ) -> Result<Option<Tensor>, SyncError> {
        let result = match (self.before(), input) {
            (Some(rank), _) => compute(self.exchange.receive(ranks, rank)?.as_tensor())?,
            (None, Some(input)) => compute(input)?,
            (None, None) => return Err(candle_core::Error::Msg("the first stage has no input".to_owned()).into()),
        };
        match self.after() {
            Some(rank) => self.exchange.send(ranks, rank, &result).map(|()| None),
            None => Ok(Some(result)),
        }
    }

    /// The last stage's values, on every stage.
    ///
    /// # Errors
    /// A stage is gone.
    pub fn from_last<const N: usize>(&self, own: [f32; N], ranks: &dyn Collective) -> Result<[f32; N], SyncError> {
        let PipelineSettings { stages, first_rank, .. } = self.settings;
        if self.after().is_none() {
            let _send = (stages > 1).then(|| span(&phase::SEND));
            (first_rank..first_rank + stages - 1).try_for_each(|rank| ranks.send(rank, &own))?;
            return Ok(own);
        }
        let _receive = span(&phase::RECEIVE);
        let mut values = Vec::new();
        ranks.receive(first_rank + stages - 1, &mut values)?;
        let expected = |_| candle_core::Error::Msg(format!("expected {N} values from the last stage")).into();
        values.try_into().map_err(expected)
    }

    /// The rank of the stage before, if there is one.
    fn before(&self) -> Option<usize> {
        let PipelineSettings { stage, first_rank, .. } = self.settings;
        (stage > 0).then(|| first_rank + stage - 1)
    }

    /// The rank of the stage after, if there is one.
    fn after(&self) -> Option<usize> {
        let PipelineSettings { stage, stages, first_rank, .. } = self.settings;
        (stage + 1 < stages).then(|| first_rank + stage + 1)
    }

    /// On the last stage the micro-batch's share of the loss.
    fn forward(
        &mut self,
        model: &mut dyn StageModel,
        micro_batch: usize,
        ranks: &dyn Collective,
    ) -> Result<Option<f64>, SyncError> {
        let input = match self.before() {
            Some(rank) => Input::Received(self.exchange.receive(ranks, rank)?),
            None => Input::Own(model.input(micro_batch)?),
        };
        let output = {
            let _forward = span(&phase::FORWARD);
            let _micro_batch = span(self.names[micro_batch]);
            let begin = Instant::now();
            let output = model.forward(micro_batch, input.tensor())?;
            self.spent.forward_s += begin.elapsed().as_secs_f64();
            output
        };
        let result = match self.after() {
            Some(rank) => {
                self.exchange.send(ranks, rank, &output)?;
                None
            }
            None => Some(f64::from(output.detach().to_scalar::<f32>()?)),
        };
        let output = (!self.settings.recompute).then_some(output);
        if output.is_some() {
            self.set_live(self.live + 1);
        }
        self.kept.push_back(SavedPass { input, output });
        Ok(result)
    }

    fn backward(
        &mut self,
        model: &mut dyn StageModel,
        micro_batch: usize,
        ranks: &dyn Collective,
        sums: &mut GradStore,
    ) -> Result<(), SyncError> {
        let upstream = self.after().map(|rank| self.exchange.receive(ranks, rank)).transpose()?;
        #[expect(clippy::expect_used, reason = "every order has a micro-batch's forward pass before its backward pass")]
        let SavedPass { input, output } = self.kept.pop_front().expect("a forward pass before");
        let of_input = {
            let _backward = span(&phase::BACKWARD);
            let _micro_batch = span(self.names[micro_batch]);
            let begin = Instant::now();
            let output = match output {
                Some(output) => output,
                None => {
                    let output = model.forward_again(micro_batch, input.tensor())?;
                    self.set_live(self.live + 1);
                    output
                }
            };
            let mut gradients = gradients_of(&output, upstream.as_ref())?;
            add(sums, &self.parameters, &mut gradients)?;
            self.spent.backward_s += begin.elapsed().as_secs_f64();
            match &input {
                Input::Own(_) => None,
                Input::Received(var) => Some(gradients.remove(var).map_or_else(|| var.zeros_like(), Ok)?),
            }
        };
        self.set_live(self.live - 1);
        match self.before().zip(of_input) {
            Some((rank, gradient)) => self.exchange.send(ranks, rank, &gradient),
            None => Ok(()),
        }
    }

    fn set_live(&mut self, live: usize) {
        self.live = live;
        counter(&LIVE, live as f64);
    }
}

/// Gradients of what leads to `output`, given that of `output` itself; without it, those of a scalar.
fn gradients_of(output: &Tensor, upstream: Option<&Var>) -> candle_core::Result<GradStore> {
    match upstream {
        // Its gradient by the output is the upstream one.
        Some(upstream) => (output * upstream.as_detached_tensor())?.sum_all()?.backward(),
        None => output.backward(),
    }
}

/// Moves the gradients of the parameters into their sums.
fn add(sums: &mut GradStore, parameters: &[Parameter], gradients: &mut GradStore) -> candle_core::Result<()> {
    for Parameter { var, .. } in parameters {
        if let Some(gradient) = gradients.remove(var) {
            let sum = match sums.remove(var) {
                Some(sum) => (sum + gradient)?,
                None => gradient,
            };
            sums.insert(var, sum.detach());
        }
    }
    Ok(())
}
