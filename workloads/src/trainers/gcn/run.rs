//! Several runs in turn: the requested number for each mode.

use std::time::Instant;

use candle_core::{DType, Device, Tensor};
use gnntop_probe::{Name, mark};

use super::judge::{Judge, mean_and_deviation};
use super::learning::{Batches, Learning, Plan};
use super::{Mode, Recipe};
use crate::inject::ALONE;
use crate::launch::RunOptions;
use crate::train::published_loader;
use crate::train::{Observer, Summary, TrainError, train};
use gnntop_data::graph::Adjacency;
use gnntop_data::graph::SparseMatrix;
use gnntop_data::loading::{Loader, LoaderSettings};
use gnntop_data::nodes::{Features, NodeDataset};
use gnntop_data::sampling::{NodeBatches, SamplerSettings};
use gnntop_nn::kernels::KernelFamily;
use gnntop_nn::models::gcn::{LoopedGraph, NodeFeatures};

static MODE: Name = Name::mark("mode");

/// The model, its data and settings.
pub(crate) struct GcnRun<'a> {
    pub(crate) dataset: &'a NodeDataset,
    pub(crate) recipe: Recipe,
    pub(crate) modes: &'a [Mode],
    /// Runs of each mode, each with different initial parameters.
    pub(crate) runs: usize,
    /// Settings of each run.
    pub(crate) epochs: usize,
    /// Neighbours of the sampled modes.
    pub(crate) sampler: SamplerSettings,
    /// Seed nodes in a sampled batch.
    pub(crate) batch_size: usize,
    /// Loader threads of the sampled modes.
    pub(crate) workers: usize,
    pub(crate) kernels: KernelFamily,
    /// Whether features are multiplied with all their zeros.
    pub(crate) plain: bool,
    pub(crate) options: &'a RunOptions,
}

impl GcnRun<'_> {
    /// Publishes and trains in all modes, one after the other, on this device.
    ///
    /// # Errors
    /// The data do not fit the network, or it cannot be computed.
    pub(crate) fn train(&self, device: &Device, observer: &mut dyn Observer) -> Result<Summary, TrainError> {
        self.options.published("gcn", device, observer, |observer| self.train_modes(device, observer))
    }

    fn train_modes(&self, device: &Device, observer: &mut dyn Observer) -> Result<Summary, TrainError> {
        let mut summary = Summary::default();
        let mut injector = self.options.injector(ALONE, observer)?;
        let epochs = (self.runs * self.epochs) as u64;
        for (number, &mode) in self.modes.iter().enumerate() {
            mark(&MODE, Some(number as f64));
            let mut learning = self.learning(mode, device)?;
            let first = number as u64 * epochs;
            let left = self.options.max_steps() - summary.steps;
            let begin = Instant::now();
            let done = train(&mut learning, &mut injector, first..first + epochs, left, observer)?;
            summary = Summary { steps: summary.steps + done.steps, loss: done.loss.or(summary.loss) };
            observer.report_line(&outcome(mode, &learning, begin));
        }
        Ok(summary)
    }

    fn learning(&self, mode: Mode, device: &Device) -> Result<Learning, TrainError> {
        let Self { dataset, recipe, .. } = self;
        let graph = &dataset.graph;
        let adjacency = Adjacency::new(graph.row_start().to_vec(), graph.sources().to_vec())?;
        let normalised = LoopedGraph::new(&adjacency)?.normalised(None, DType::F32, device)?;
        let x = self.input(&dataset.features, graph.nodes(), device)?;
        let judge = Judge::new(dataset, x.clone(), &normalised, self.kernels)?;
        let batches = match mode {
            Mode::Full => Batches::whole(dataset, x, adjacency, None)?,
            Mode::Compiled => Batches::whole(dataset, x, adjacency, Some(normalised))?,
            _ => Batches::Sampled(self.loader()?.into()),
        };
        let plan = Plan {
            recipe: recipe.clone(),
            mode,
            family: self.kernels,
            seed: self.options.seed,
            device: device.clone(),
            epochs_per_run: self.epochs as u64,
        };
        Ok(Learning::new(plan, batches, judge)?)
    }

    fn input(&self, features: &Features, nodes: usize, device: &Device) -> Result<NodeFeatures, TrainError> {
        let width = features.width();
        Ok(match features {
            Features::Sparse { row_start, column, value, .. } if !self.plain => {
                NodeFeatures::Sparse(SparseMatrix::new(row_start.clone(), column.clone(), value.clone(), width)?.into())
            }
            other => NodeFeatures::Dense(Tensor::from_vec(other.to_dense(), (nodes, width), device)?),
        })
    }

    fn loader(&self) -> Result<Loader<NodeBatches>, TrainError> {
        let batches = NodeBatches::new(self.dataset, &self.dataset.split.train, self.sampler.clone())?;
        let batches = if self.plain { batches } else { batches.without_zeros() };
        let settings = LoaderSettings {
            batch_size: self.batch_size,
            workers: self.workers,
            seed: self.options.seed,
            delay: self.options.loader_delay(ALONE.0),
            ..LoaderSettings::default()
        };
        Ok(published_loader(batches, settings)?)
    }
}

/// A line of the study's table.
fn outcome(mode: Mode, learning: &Learning, begin: Instant) -> String {
    let accuracy = mean_and_deviation(learning.test_accuracies());
    let accuracy = accuracy.map_or_else(|| "no run finished".to_owned(), |shares| format!("test accuracy {shares}"));
    let times = learning.epoch_times();
    let skipped = match learning.skipped_steps() {
        0 => String::new(),
        steps => format!("; {steps} steps skipped because of overflow"),
    };
    let handed_over = learning.handed_over().map_or_else(String::new, |how| format!("; {how}"));
    format!(
        "{}: {times}, {:.1} s in all, {accuracy}{skipped}; {}{handed_over}",
        mode.name(),
        begin.elapsed().as_secs_f64(),
        mode.trade()
    )
}
