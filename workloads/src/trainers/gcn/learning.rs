//! The training loop's part: runs of epochs over the whole graph or over sampled batches, judged as the recipe asks.

use std::time::{Duration, Instant};

use candle_core::{Device, Result, Tensor};
use gnntop_probe::device::Holdings;
use gnntop_probe::{BatchShape, Name, counter, mark, phase, span};

use super::judge::{Best, Judge};
use super::repeated::{Inputs, Repeated};
use super::{Mode, Recipe, Trainer};
use crate::train::wait_for_batch;
use crate::train::{Observer, Position, StepOutcome, TrainError, Training, holdings};
use gnntop_data::graph::Adjacency;
use gnntop_data::loading::Loader;
use gnntop_data::nodes::NodeDataset;
use gnntop_data::sampling::NodeBatches;
use gnntop_nn::kernels::KernelFamily;
use gnntop_nn::learn::{Accuracy, LabelledRows};
use gnntop_nn::models::gcn::{LoopedGraph, NodeFeatures, Normalised};

static RUN: Name = Name::mark("run");
static TRAINING_ACCURACY: Name = Name::counter("acc train");

/// The data of a step.
pub(super) enum Batches {
    /// All nodes at once.
    Whole(Box<WholeGraph>),
    /// Seeds with sampled neighbours.
    Sampled(Box<Loader<NodeBatches>>),
}

/// All nodes, and those with a label to learn from.
pub(super) struct WholeGraph {
    x: NodeFeatures,
    adjacency: Adjacency,
    /// Kept from step to step, or made again in each.
    normalised: Option<Normalised>,
    labelled: LabelledRows,
    seeds: Vec<u32>,
    labels: Vec<u32>,
}

impl Batches {
    pub(super) fn whole(
        dataset: &NodeDataset,
        x: NodeFeatures,
        adjacency: Adjacency,
        normalised: Option<Normalised>,
    ) -> Result<Self> {
        let seeds = dataset.split.train.clone();
        let labels: Vec<u32> = seeds.iter().map(|&node| dataset.labels[node as usize]).collect();
        let labelled = LabelledRows::new(seeds.iter().copied(), &labels)?;
        Ok(Self::Whole(Box::new(WholeGraph { x, adjacency, normalised, labelled, seeds, labels })))
    }

    /// The steps of a new trainer as repeated work: on a GPU, if nothing changes between them.
    fn repeated(&self, trainer: &Trainer, classes: usize, device: &Device) -> Result<Option<Repeated>> {
        let Self::Whole(whole) = self else { return Ok(None) };
        let Some(graph) = whole.normalised.clone().filter(|_| device.is_cuda()) else { return Ok(None) };
        let seeds = Tensor::from_slice(&whole.seeds, whole.seeds.len(), device)?;
        let inputs = Inputs { x: whole.x.clone(), graph, labelled: whole.labelled.clone(), seeds };
        Repeated::new(trainer, inputs, classes).map(Some)
    }
}

impl WholeGraph {
    fn outcome(&self, loss: f64) -> StepOutcome {
        let count = |count: usize| Some(count as u64);
        let (nodes, edges) = (count(self.adjacency.nodes()), count(self.adjacency.edges()));
        StepOutcome { loss, shape: BatchShape { graphs: None, nodes, edges, seeds: count(self.seeds.len()) } }
    }
}

/// What is trained, how long a run of it is, and how it is judged.
pub(super) struct Plan {
    pub(super) recipe: Recipe,
    pub(super) mode: Mode,
    pub(super) family: KernelFamily,
    /// Of the first run; each further run has the next one.
    pub(super) seed: u64,
    pub(super) device: Device,
    /// Epochs from initial parameters to the end of a run.
    pub(super) epochs_per_run: u64,
}

impl Plan {
    /// The network of a run, with initial parameters.
    fn trainer(&self, run: usize) -> Result<Trainer> {
        Trainer::new(&self.device, &self.recipe, self.mode, self.family, self.seed.wrapping_add(run as u64))
    }
}

/// Runs of one mode.
pub(super) struct Learning {
    plan: Plan,
    batches: Batches,
    judge: Judge,
    trainer: Trainer,
    repeated: Option<Repeated>,
    /// How steps are submitted to a GPU, as last reported.
    handed_over: Option<String>,
    best: Best,
    finished: Vec<f64>,
    skipped: u64,
    epoch_begin: Option<Instant>,
    epoch_times: Vec<Duration>,
}

impl Learning {
    pub(super) fn new(plan: Plan, batches: Batches, judge: Judge) -> Result<Self> {
        let trainer = plan.trainer(0)?;
        Ok(Self {
            repeated: batches.repeated(&trainer, plan.recipe.model.classes, &plan.device)?,
            plan,
            batches,
            judge,
            trainer,
            handed_over: None,
            best: Best::default(),
            finished: Vec::new(),
            skipped: 0,
            epoch_begin: None,
            epoch_times: Vec::new(),
        })
    }

    /// Test accuracy of each finished run.
    pub(super) fn test_accuracies(&self) -> &[f64] {
        &self.finished
    }

    /// Steps skipped so far because a gradient overflowed.
    pub(super) fn skipped_steps(&self) -> u64 {
        self.skipped + self.trainer.skipped_steps()
    }

    /// The first epoch and the spread of the others, judging not included.
    pub(super) fn epoch_times(&self) -> String {
        let Some((first, others)) = self.epoch_times.split_first() else { return "no epoch finished".to_owned() };
        let milliseconds = |time: &Duration| time.as_secs_f64() * 1e3;
        let mut sorted: Vec<f64> = others.iter().map(milliseconds).collect();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| sorted.get((sorted.len() as f64 * share) as usize).copied();
        match (at(0.5), at(0.95)) {
            (Some(median), Some(p95)) => {
                format!("epoch {median:.3} ms (p95 {p95:.3}, first {:.3})", milliseconds(first))
            }
            _ => format!("epoch {:.3} ms", milliseconds(first)),
        }
    }

    /// How steps are submitted to a GPU, if known and not the usual kernel by kernel.
    pub(super) fn handed_over(&self) -> Option<&str> {
        self.handed_over.as_deref()
    }

    /// Reports how steps are submitted, once known, and again if it changes.
    fn report_handover(&mut self, observer: &mut dyn Observer) {
        let how = self.repeated.as_ref().and_then(Repeated::handover);
        if let Some(how) = how.filter(|how| self.handed_over.as_ref() != Some(how)) {
            observer.report_line(&format!("{}: {how}", self.plan.mode.name()));
            self.handed_over = Some(how);
        }
    }

    /// Judges the finished run and starts the next.
    fn finish_run(&mut self) -> Result<()> {
        let test = match self.best.take() {
            Some(test) => test,
            None => self.judge.judge(self.trainer.learner().model())?.test,
        };
        self.finished.push(test);
        self.skipped += self.trainer.skipped_steps();
        mark(&RUN, Some(self.finished.len() as f64));
        self.trainer = self.plan.trainer(self.finished.len())?;
        self.repeated = self.batches.repeated(&self.trainer, self.plan.recipe.model.classes, &self.plan.device)?;
        Ok(())
    }
}

impl Training for Learning {
    fn device(&self) -> &Device {
        &self.plan.device
    }

    fn holdings(&self) -> Option<Holdings> {
        Some(holdings(&self.trainer.learner().adam))
    }

    fn batches_per_epoch(&self) -> u64 {
        match &self.batches {
            Batches::Whole(_) => 1,
            Batches::Sampled(loader) => loader.batches_per_epoch(),
        }
    }

    fn step(&mut self, position: Position) -> std::result::Result<StepOutcome, TrainError> {
        if position.index == 0 {
            self.epoch_begin = Some(Instant::now());
        }
        match &mut self.batches {
            Batches::Whole(whole) if let Some(repeated) = &mut self.repeated => {
                let found = repeated.step()?;
                publish_accuracy(&found.scores, &whole.labels)?;
                Ok(whole.outcome(found.loss))
            }
            Batches::Whole(whole) => whole_step(&mut self.trainer, whole, &self.plan.device),
            Batches::Sampled(loader) => sampled_step(&mut self.trainer, loader, &self.plan.device),
        }
    }

    fn end_epoch(&mut self, epoch: u64, observer: &mut dyn Observer) -> std::result::Result<(), TrainError> {
        self.report_handover(observer);
        self.epoch_times.extend(self.epoch_begin.take().map(|begin| begin.elapsed()));
        // The published recipe counts the epoch that is best on the validation nodes; else the last one counts.
        if self.plan.recipe.decays_first_layer_only {
            self.best.update(self.judge.judge(self.trainer.learner().model())?);
        }
        if (epoch + 1).is_multiple_of(self.plan.epochs_per_run) {
            self.finish_run()?;
        }
        Ok(())
    }
}

fn whole_step(
    trainer: &mut Trainer,
    whole: &WholeGraph,
    device: &Device,
) -> std::result::Result<StepOutcome, TrainError> {
    let normalise = || match &whole.normalised {
        Some(kept) => Ok(kept.clone()),
        None => LoopedGraph::new(&whole.adjacency)?.normalised(None, candle_core::DType::F32, device),
    };
    let predicted = |logits: &Tensor| {
        let rows = Tensor::from_slice(&whole.seeds, whole.seeds.len(), device)?;
        publish_accuracy(&logits.detach().index_select(&rows, 0)?, &whole.labels)
    };
    let loss = trainer.step(&whole.x, &whole.labelled, normalise, predicted)?;
    Ok(whole.outcome(loss))
}

fn sampled_step(
    trainer: &mut Trainer,
    loader: &mut Loader<NodeBatches>,
    device: &Device,
) -> std::result::Result<StepOutcome, TrainError> {
    let mut batch = wait_for_batch(loader)?;
    let (host, input, labelled) = {
        let _transfer = span(&phase::TRANSFER);
        let labelled = LabelledRows::new(0..batch.seeds as u32, &batch.labels)?;
        if let Some(features) = batch.sparse_features.take() {
            (None, NodeFeatures::Sparse(features.into()), labelled)
        } else {
            let host = batch.take_features()?;
            (Some(host.clone()), NodeFeatures::Dense(host.to_device(device)?), labelled)
        }
    };
    let normalise = || LoopedGraph::new(batch.adjacency(0))?.normalised(None, candle_core::DType::F32, device);
    let predicted = |logits: &Tensor| publish_accuracy(&logits.detach().narrow(0, 0, batch.seeds)?, &batch.labels);
    let loss = trainer.step(&input, &labelled, normalise, predicted)?;
    let count = |count: usize| Some(count as u64);
    let (nodes, edges, seeds) = (count(batch.nodes.len()), count(batch.edges()), count(batch.seeds));
    if let Some(host) = host {
        drop(input);
        batch.return_features(host)?;
    }
    Ok(StepOutcome { loss, shape: BatchShape { graphs: None, nodes, edges, seeds } })
}

fn publish_accuracy(logits: &Tensor, labels: &[u32]) -> Result<()> {
    counter(&TRAINING_ACCURACY, Accuracy::new(logits, labels)?.share());
    Ok(())
}
