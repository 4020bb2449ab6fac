//! Training with a stage on every rank, from its batches to its optimizer.

use std::ops::Range;
use std::sync::Arc;

use candle_core::Device;
use gnntop_probe::device::Holdings;
use gnntop_probe::{BatchShape, Name, Reported, counter, phase, span};

use super::settings::Stages;
use super::training::{TRAINING_ACCURACY, report_test};
use super::{StageSettings, VigStage, costs};
use crate::launch::{Facts, Launch, Rank, RankOptions, RunOptions, Settings, Shard};
use crate::parallel::pipeline::{PartitionError, Pipeline, PipelineSettings, Schedule, balanced_parts};
use crate::parallel::{Collective, GradientSync};
use crate::train::{Observer, Position, StepOutcome, Summary, TrainError, Training, holdings};
use crate::train::{published_loader, wait_for_batch};
use crate::trainers::vig::VigTraining;
use gnntop_data::images::{ImageBatch, ImageBatches, ImageSet};
use gnntop_data::loading::{Loader, LoaderSettings, LoaderShard};
use gnntop_nn::learn::{Accuracy, Adam, AdamSettings};
use gnntop_nn::models::vig::{CHANNELS, Form, Mode, VigConfig};

static MEASURE: Name = Name::span("measure blocks");

/// The model, its data and settings.
pub(crate) struct StagedRun<'a> {
    pub(crate) config: &'a VigConfig,
    pub(crate) form: Form,
    pub(crate) training: &'a VigTraining,
    pub(crate) stages: Stages,
    pub(crate) train: Arc<ImageSet>,
    pub(crate) test: ImageSet,
    pub(crate) workers: usize,
    pub(crate) ranks: &'a RankOptions,
    pub(crate) options: &'a RunOptions,
}

impl<'a> StagedRun<'a> {
    /// Publishes and trains to the end, each stage of each copy on its own rank.
    pub(crate) fn train(&self, observer: &mut dyn Observer) -> Result<Summary, TrainError> {
        let ranks = self.stages.ranks(self.ranks);
        let settings = self.alike();
        let launch =
            Launch { name: "vig", ranks: &ranks, run: self.options, stages: self.stages.count, settings: &settings };
        launch.run(observer, |rank, observer| {
            let mut stage = StageRun::new(self, rank, observer)?;
            let (epochs, place) = (0..self.training.epochs as u64, rank.place());
            self.options.train(&mut stage, epochs, (place.rank, place.ranks), observer)
        })
    }

    /// What must be the same in the data of all ranks.
    fn alike(&self) -> Settings {
        let counts = [("training images", self.train.len()), ("test images", self.test.len())];
        counts.map(|(name, count)| (name.to_owned(), count.to_string())).into()
    }

    /// Copies that `ranks` ranks form.
    fn copies(&self, ranks: usize) -> Result<usize, TrainError> {
        let stages = self.stages.count;
        if ranks.is_multiple_of(stages) {
            return Ok(ranks / stages);
        }
        let message = format!("{ranks} ranks were started, which is not a multiple of {stages} stages");
        Err(candle_core::Error::Msg(message).into())
    }

    /// The blocks of every stage. To balance them, rank 0 measures for all.
    fn parts(
        &self,
        rank: &Rank,
        device: &Device,
        observer: &mut dyn Observer,
    ) -> Result<Vec<Range<usize>>, TrainError> {
        if let Some(parts) = &self.stages.parts {
            return Ok(parts.clone());
        }
        if self.stages.count == 1 {
            return Ok(std::iter::once(0..self.config.blocks).collect());
        }
        let _measure = span(&MEASURE);
        let mut costs = vec![0.0; self.config.blocks];
        if rank.collective().rank() == 0 {
            let measured = costs::measured(self.config, self.form, device)?;
            costs.iter_mut().zip(measured).for_each(|(cost, seconds)| *cost = seconds as f32);
        }
        rank.collective().broadcast(0, &mut costs)?;
        let costs: Vec<f64> = costs.into_iter().map(f64::from).collect();
        let parts = balanced_parts(&costs, self.stages.count).map_err(impossible)?;
        observer.report_line(&describe_parts(&parts, &costs));
        Ok(parts)
    }

    /// Batches of a copy's images: with pixels on the first stage, elsewhere with classes only.
    fn loader(
        &self,
        rank: u32,
        (copy, copies): (usize, usize),
        with_pixels: bool,
    ) -> Result<Loader<ImageBatches>, TrainError> {
        let (part, own_order) = match self.ranks.shard {
            Shard::Split => (LoaderShard { number: copy, of: copies }, 0),
            // Copies that share nothing go through everything in their own orders.
            Shard::None => (LoaderShard::WHOLE, copy as u64),
        };
        let settings = LoaderSettings {
            batch_size: self.training.batch_images,
            workers: if with_pixels { self.workers } else { self.workers.min(1) },
            seed: self.options.seed.wrapping_add(own_order),
            part,
            delay: self.options.loader_delay(rank),
            ..LoaderSettings::default()
        };
        let batches = ImageBatches::new(Arc::clone(&self.train));
        Ok(published_loader(if with_pixels { batches } else { batches.labels_only() }, settings)?)
    }
}

/// The stages are checked before ranks are started.
fn impossible(error: PartitionError) -> candle_core::Error {
    candle_core::Error::Msg(error.to_string())
}

fn describe_parts(parts: &[Range<usize>], costs: &[f64]) -> String {
    let all: f64 = costs.iter().sum();
    let part = |(stage, part): (usize, &Range<usize>)| {
        let share = costs[part.clone()].iter().sum::<f64>() / all * 100.0;
        let blocks = if part.len() == 1 { "block" } else { "blocks" };
        format!("stage {stage} {} {blocks} ({share:.0} % of the measured time)", part.len())
    };
    parts.iter().enumerate().map(part).collect::<Vec<_>>().join(", ")
}

/// One rank's training.
struct StageRun<'a> {
    shared: &'a StagedRun<'a>,
    rank: &'a Rank,
    device: Device,
    model: VigStage,
    pipeline: Pipeline,
    facts: Facts,
    adam: Adam,
    loader: Loader<ImageBatches>,
    copies: Option<Copies>,
    is_over: bool,
    /// The next step's gradients are not exchanged: a fault on purpose.
    skips: bool,
}

/// The same stage of all copies.
struct Copies {
    ranks: Box<dyn Collective>,
    gradients: GradientSync,
}

impl<'a> StageRun<'a> {
    fn new(shared: &'a StagedRun<'a>, rank: &'a Rank, observer: &mut dyn Observer) -> Result<Self, TrainError> {
        let StagedRun { stages, options, .. } = shared;
        let copies = shared.copies(rank.collective().ranks())?;
        observer.report_line(&stages.describe(copies));
        let device = rank.open_device()?;
        rank.observe(&device)?;
        let parts = shared.parts(rank, &device, observer)?;
        let number = rank.collective().rank();
        let (copy, stage) = (number / stages.count, number % stages.count);
        let (config, form, mode, seed) = (shared.config, shared.form, Mode::Train, options.seed);
        let settings = StageSettings { config, form, mode, parts: &parts, stage, seed, device: &device };
        let model = VigStage::new(settings)?;
        let settings = PipelineSettings {
            stage,
            stages: stages.count,
            first_rank: copy * stages.count,
            schedule: stages.schedule,
            recompute: stages.recompute,
            columns: CHANNELS,
            device: device.clone(),
        };
        Ok(Self {
            shared,
            rank,
            device,
            facts: facts(shared, model.blocks().len()),
            pipeline: Pipeline::new(settings, model.parameters().to_vec()),
            adam: Adam::new(model.parameters().to_vec(), AdamSettings::default())?,
            loader: shared.loader(rank.place().rank, (copy, copies), stage == 0)?,
            copies: Copies::new(copies, stage, rank, &model)?,
            model,
            is_over: false,
            skips: false,
        })
    }

    fn is_first(&self) -> bool {
        self.rank.place().stage == 0
    }

    /// Sets the next batch; returns its number of micro-batches. A small last batch has fewer.
    fn prepare(&mut self, batch: &ImageBatch) -> Result<usize, TrainError> {
        let _transfer = span(&phase::TRANSFER);
        let micro_batches = self.shared.stages.micro_batches.min(batch.images());
        let pixels = self.is_first().then(|| batch.pixels(&self.device)).transpose()?;
        self.model.set_batch(pixels, &batch.labels, micro_batches);
        Ok(micro_batches)
    }

    /// All ranks learn from the last stage how the step went, and whether to continue.
    fn conclude(&mut self, loss: Option<f64>) -> Result<(f64, Accuracy), TrainError> {
        let Accuracy { right, of } = self.model.accuracy();
        let own = [loss.unwrap_or_default() as f32, right as f32, of as f32];
        let [loss, right, of] = self.pipeline.from_last(own, self.rank.collective())?;
        // The last stage finishes before the first, so this waits for the next batch.
        let _receive = (self.shared.stages.count > 1).then(|| span(&phase::RECEIVE));
        self.is_over = self.rank.agree_to_stop()?;
        Ok((f64::from(loss), Accuracy { right: right as usize, of: of as usize }))
    }

    /// Share of right answers on the test images, some at a time.
    fn judge(&mut self) -> Result<Accuracy, TrainError> {
        let _validation = span(&phase::VALIDATION);
        let mut batch = ImageBatch::default();
        let mut all = Accuracy::default();
        let indices: Vec<u32> = (0..self.shared.test.len() as u32).collect();
        for part in indices.chunks(self.shared.training.batch_images) {
            batch.assemble(&self.shared.test, part)?;
            let pixels = self.is_first().then(|| batch.pixels(&self.device)).transpose()?;
            let model = &self.model;
            let logits = self.pipeline.infer(pixels.as_ref(), self.rank.collective(), |input| model.evaluate(input))?;
            if let Some(logits) = logits {
                all = all.and(Accuracy::new(&logits.detach(), &batch.labels)?);
            }
        }
        let [right, of] = self.pipeline.from_last([all.right as f32, all.of as f32], self.rank.collective())?;
        Ok(Accuracy { right: right as usize, of: of as usize })
    }
}

impl Copies {
    /// Makes the copies start with equal parameters. Does nothing with one copy.
    fn new(copies: usize, stage: usize, rank: &Rank, model: &VigStage) -> Result<Option<Self>, TrainError> {
        if copies == 1 {
            return Ok(None);
        }
        let ranks = rank.collective().split(stage)?;
        let gradients = GradientSync::new(model.parameters().to_vec());
        gradients.share_parameters(&*ranks)?;
        Ok(Some(Self { ranks, gradients }))
    }
}

/// What a viewer needs to know about a stage.
fn facts(shared: &StagedRun<'_>, blocks: usize) -> Facts {
    let stages = &shared.stages;
    let facts = Facts::default()
        .with(Reported::Blocks, blocks as f64)
        .with(Reported::MicroBatches, stages.micro_batches as f64)
        .with(Reported::TrainingSet, shared.train.len() as f64);
    let schedule = match stages.schedule {
        Schedule::Gpipe => Reported::GPipe,
        Schedule::OneForwardOneBackward => Reported::OneForwardOneBackward,
    };
    if stages.count > 1 { facts.with(schedule, 1.0) } else { facts }
}

impl Training for StageRun<'_> {
    fn device(&self) -> &Device {
        &self.device
    }

    fn holdings(&self) -> Option<Holdings> {
        Some(holdings(&self.adam))
    }

    fn batches_per_epoch(&self) -> u64 {
        self.loader.batches_per_epoch()
    }

    fn step(&mut self, _position: Position) -> Result<StepOutcome, TrainError> {
        self.facts.publish();
        let batch = wait_for_batch(&mut self.loader)?;
        let micro_batches = self.prepare(&batch)?;
        let mut outcome = self.pipeline.batch(&mut self.model, micro_batches, self.rank.collective())?;
        let skips = std::mem::take(&mut self.skips);
        if let Some(copies) = self.copies.as_mut().filter(|_| !skips) {
            copies.gradients.all_reduce(&mut outcome.gradients, &*copies.ranks)?;
        }
        {
            let _optimizer = span(&phase::OPTIMIZER);
            self.adam.step(&outcome.gradients, self.shared.training.learning_rate)?;
        }
        let (loss, accuracy) = self.conclude(outcome.loss)?;
        counter(&TRAINING_ACCURACY, accuracy.share());
        let (images, grid) = (batch.images(), self.shared.config.grid);
        let count = |count: usize| Some(count as u64);
        let (nodes, edges) = (count(images * grid.nodes()), count(images * grid.edges()));
        Ok(StepOutcome { loss, shape: BatchShape { graphs: count(images), nodes, edges, seeds: None } })
    }

    fn skip_all_reduce(&mut self) {
        self.skips = true;
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    /// One copy is enough to judge: they have the same parameters. No rank continues or ends before it is done.
    fn end_epoch(&mut self, epoch: u64, observer: &mut dyn Observer) -> Result<(), TrainError> {
        let is_judged = !self.shared.test.is_empty() && self.rank.place().copy == 0;
        let accuracy = is_judged.then(|| self.judge()).transpose()?;
        self.rank.collective().barrier()?;
        let Some(accuracy) = accuracy.map(|accuracy| accuracy.share()) else { return Ok(()) };
        report_test(accuracy, epoch + 1 == self.shared.training.epochs as u64, observer);
        Ok(())
    }
}
