//! The blocks that one stage of a pipeline computes, and their micro-batches.

use std::ops::Range;

use candle_core::{DType, Device, Result, Tensor, bail};
use gnntop_probe::{NameKind, NameRef, intern, span};

use crate::parallel::pipeline::StageModel;
use gnntop_nn::kernels::Workspaces;
use gnntop_nn::learn::{Accuracy, LabelledRows, cross_entropy};
use gnntop_nn::models::vig::{Block, Form, Mode, Readout, RunningStatistics, Vig, VigConfig};
use gnntop_nn::models::{Parameter, Parameters};

/// What a stage is made of.
#[derive(Debug, Clone, Copy)]
pub struct StageSettings<'a> {
    /// The whole model.
    pub config: &'a VigConfig,
    /// How a block is computed.
    pub form: Form,
    /// Whether statistics are those of the batch.
    pub mode: Mode,
    /// The blocks of every stage; the last one also reads out.
    pub parts: &'a [Range<usize>],
    /// The number of this one among them.
    pub stage: usize,
    /// Where the initial parameters come from: all stages need the same.
    pub seed: u64,
    /// Where to compute.
    pub device: &'a Device,
}

/// Consecutive blocks of a [`Vig`], with its readout on the last stage.
#[derive(Debug)]
pub struct VigStage {
    config: VigConfig,
    form: Form,
    mode: Mode,
    blocks: Vec<Block>,
    readout: Option<Readout>,
    parameters: Vec<Parameter>,
    workspaces: Workspaces,
    names: Vec<NameRef>,
    batch: Batch,
}

/// The current batch.
#[derive(Debug, Default)]
struct Batch {
    pixels: Option<Tensor>,
    labels: Vec<u32>,
    micro_batches: usize,
    accuracy: Accuracy,
}

impl Batch {
    /// The images of a micro-batch.
    fn images(&self, micro_batch: usize) -> Range<usize> {
        let at = |part: usize| self.labels.len() * part / self.micro_batches.max(1);
        at(micro_batch)..at(micro_batch + 1)
    }
}

impl VigStage {
    /// The stage of these blocks, and of the readout where `reads_out`, with the parameters that the whole model has
    /// from `seed`. `mode` is how batch normalisation works while training: by the statistics of each micro-batch, which
    /// move the running ones, or as in evaluation.
    ///
    /// # Errors
    /// The model has no such block, or `config` is impossible.
    pub fn new(StageSettings { config, form, mode, parts, stage, seed, device }: StageSettings<'_>) -> Result<Self> {
        let (blocks, reads_out) = (parts[stage].clone(), stage + 1 == parts.len());
        let parameters = Parameters::new(seed);
        let whole = Vig::new(config, form, parameters.var_builder(DType::F32, device))?;
        let Some(own) = whole.blocks().get(blocks.clone()) else {
            bail!("vig: no blocks {blocks:?}; there are {}", config.blocks);
        };
        let is_own = |name: &str| match name.strip_prefix("blocks.").and_then(|rest| rest.split('.').next()) {
            Some(block) => block.parse().is_ok_and(|block| blocks.contains(&block)),
            None => reads_out,
        };
        Ok(Self {
            config: config.clone(),
            form,
            mode,
            blocks: own.to_vec(),
            readout: reads_out.then(|| whole.readout_part().clone()),
            parameters: parameters.list().into_iter().filter(|parameter| is_own(&parameter.name)).collect(),
            workspaces: Workspaces::default(),
            names: blocks.map(|block| intern(NameKind::Span, &format!("block {block}"))).collect(),
            batch: Batch::default(),
        })
    }

    /// Its blocks, in order.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Its part of the model's parameters, in their order.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Sets the batch of the next passes: images with these classes in `micro_batches` micro-batches, which differ by
    /// at most one image. `pixels`, `[images * height * width, 3]`, need only the first stage.
    pub fn set_batch(&mut self, pixels: Option<Tensor>, labels: &[u32], micro_batches: usize) {
        self.batch = Batch { pixels, labels: labels.to_vec(), micro_batches, accuracy: Accuracy::default() };
    }

    /// Right answers in the batch, on the last stage after its forward passes.
    #[must_use]
    pub fn accuracy(&self) -> Accuracy {
        self.batch.accuracy
    }

    /// Features for the next stage, or on the last one logits `[images, classes]`.
    ///
    /// # Errors
    /// The input is not `[images * height * width, 3]`.
    pub fn evaluate(&self, input: &Tensor) -> Result<Tensor> {
        self.compute(input, Mode::Eval)
    }

    fn compute(&self, input: &Tensor, mode: Mode) -> Result<Tensor> {
        let mut x = input.clone();
        for (block, name) in self.blocks.iter().zip(&self.names) {
            let _block = span(*name);
            x = block.forward(&x, self.config.grid, self.form, mode, &self.workspaces)?;
        }
        self.readout.as_ref().map_or(Ok(x.clone()), |readout| readout.forward(&x))
    }

    /// The micro-batch's share of the mean loss over the batch.
    fn share_of_loss(&self, micro_batch: usize, logits: &Tensor) -> Result<Tensor> {
        let images = self.batch.images(micro_batch);
        let share = images.len() as f64 / self.batch.labels.len() as f64;
        let labels = &self.batch.labels[images];
        cross_entropy(logits, &LabelledRows::new(0..labels.len() as u32, labels)?)? * share
    }

    fn running(&self) -> Vec<RunningStatistics> {
        self.blocks.iter().flat_map(Block::norms).map(|norm| norm.running()).collect()
    }
}

impl StageModel for VigStage {
    fn input(&mut self, micro_batch: usize) -> Result<Tensor> {
        let Some(pixels) = &self.batch.pixels else { bail!("vig: the first stage has no pixels") };
        let (images, nodes) = (self.batch.images(micro_batch), self.config.grid.nodes());
        pixels.narrow(0, images.start * nodes, images.len() * nodes)
    }

    fn forward(&mut self, micro_batch: usize, input: &Tensor) -> Result<Tensor> {
        let result = self.compute(input, self.mode)?;
        if self.readout.is_none() {
            return Ok(result);
        }
        let answers = Accuracy::new(&result.detach(), &self.batch.labels[self.batch.images(micro_batch)])?;
        self.batch.accuracy = self.batch.accuracy.and(answers);
        self.share_of_loss(micro_batch, &result)
    }

    /// The running statistics already include this micro-batch.
    fn forward_again(&mut self, micro_batch: usize, input: &Tensor) -> Result<Tensor> {
        let before = self.running();
        let result = self.compute(input, self.mode)?;
        for (norm, statistics) in self.blocks.iter().flat_map(Block::norms).zip(before) {
            norm.set_running(statistics)?;
        }
        if self.readout.is_some() { self.share_of_loss(micro_batch, &result) } else { Ok(result) }
    }
}
