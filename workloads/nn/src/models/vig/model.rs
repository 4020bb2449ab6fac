//! The whole model: blocks, the sum over each image's nodes, and two linear maps with a GELU between them.

use std::sync::Arc;

use candle_core::{Result, Tensor, bail};
use candle_nn::VarBuilder;

use super::block::Linear;
use super::{Block, CHANNELS, Form, Grid, Mode, VigConfig, gelu};
use crate::kernels::Workspaces;

/// Study 3's model.
#[derive(Debug, Clone)]
pub struct Vig {
    config: VigConfig,
    form: Form,
    blocks: Vec<Block>,
    readout: Readout,
    workspaces: Arc<Workspaces>,
}

/// From the features of all nodes to the logits of every image.
#[derive(Debug, Clone)]
pub struct Readout {
    grid: Grid,
    head1: Linear,
    head2: Linear,
}

impl Readout {
    fn new(config: &VigConfig, vb: &VarBuilder<'_>) -> Result<Self> {
        Ok(Self {
            grid: config.grid,
            head1: Linear::new(CHANNELS, config.head, vb.pp("head1"))?,
            head2: Linear::new(config.head, config.classes, vb.pp("head2"))?,
        })
    }

    /// `[nodes, 3]` to `[images, classes]`.
    ///
    /// # Errors
    /// The nodes are not those of whole images.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let images = self.grid.images(x.dim(0)?)?;
        let sums = x.reshape((images, self.grid.nodes(), CHANNELS))?.sum(1)?;
        self.head2.forward(&gelu(&self.head1.forward(&sums)?)?)
    }
}

impl Vig {
    /// Reads or makes the parameters `blocks.<block>.*` (see [`Block::new`]), `head1` and `head2`.
    ///
    /// # Errors
    /// A size of `config` is 0, or a parameter is missing or has another shape.
    pub fn new(config: &VigConfig, form: Form, vb: VarBuilder<'_>) -> Result<Self> {
        config.check()?;
        let block = |index: usize| Block::new(config, vb.pp("blocks").pp(index));
        Ok(Self {
            config: config.clone(),
            form,
            blocks: (0..config.blocks).map(block).collect::<Result<_>>()?,
            readout: Readout::new(config, &vb)?,
            workspaces: Arc::default(),
        })
    }

    /// The blocks, in order.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Its sizes.
    #[must_use]
    pub fn config(&self) -> &VigConfig {
        &self.config
    }

    /// Logits `[images, classes]` from pixels `[images * height * width, 3]`.
    ///
    /// # Errors
    /// The pixels are not whole images, or have another number type or device than the parameters.
    pub fn forward(&self, pixels: &Tensor, mode: Mode) -> Result<Tensor> {
        self.forward_with(pixels, mode, |_| ())
    }

    /// [`forward`](Self::forward), with a guard held while each block runs: `enter` is called with the block's number
    /// before it, and what it returns is dropped after it. A profiler's span fits.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn forward_with<G>(&self, pixels: &Tensor, mode: Mode, mut enter: impl FnMut(usize) -> G) -> Result<Tensor> {
        let mut x = pixels.clone();
        for index in 0..self.blocks.len() {
            let _guard = enter(index);
            x = self.block(index, &x, mode)?;
        }
        self.readout(&x)
    }

    /// Block `index` alone: `[images * height * width, 3]` to the same.
    ///
    /// # Errors
    /// There is no such block, or it refuses `x`.
    pub fn block(&self, index: usize, x: &Tensor, mode: Mode) -> Result<Tensor> {
        match self.blocks.get(index) {
            Some(block) => block.forward(x, self.config.grid, self.form, mode, &self.workspaces),
            None => bail!("vig: no block {index}; there are {}", self.blocks.len()),
        }
    }

    /// Logits `[images, classes]` from the last block's result.
    ///
    /// # Errors
    /// `x` is not `[images * height * width, 3]`.
    pub fn readout(&self, x: &Tensor) -> Result<Tensor> {
        self.readout.forward(x)
    }

    /// What is behind the blocks.
    #[must_use]
    pub fn readout_part(&self) -> &Readout {
        &self.readout
    }
}
