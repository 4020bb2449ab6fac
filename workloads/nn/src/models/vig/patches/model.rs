//! The whole model: patches, a position for each, blocks, their mean, and a head of two linear maps.

use std::sync::Arc;

use candle_core::{Result, Tensor, bail};
use candle_nn::{Init, VarBuilder};

use super::grapher::{CHANNEL_GROUPS, Choice, Mapped, PatchBlock};
use crate::kernels::Workspaces;
use crate::models::vig::block::Linear;
use crate::models::vig::norm::Behind;
use crate::models::vig::{CHANNELS, Grid, Mode, gelu};

/// Sizes of a [`PatchVig`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchVigConfig {
    /// Height and width of the images, in pixels.
    pub grid: Grid,
    /// Pixels along a side of a patch.
    pub patch: usize,
    /// Features of a node, a multiple of 4.
    pub channels: usize,
    /// Number of blocks.
    pub blocks: usize,
    /// Neighbours of a node in the first and in the last block; between, they grow evenly.
    pub neighbours: [usize; 2],
    /// Width of the head.
    pub head: usize,
    /// Classes.
    pub classes: usize,
}

impl PatchVigConfig {
    /// For images of 32 x 32 pixels: 64 patches of 4 x 4, 4 blocks of 64 channels.
    #[must_use]
    pub fn tiny() -> Self {
        let grid = Grid { height: 32, width: 32 };
        Self { grid, patch: 4, channels: 64, blocks: 4, neighbours: [9, 12], head: 256, classes: 10 }
    }

    /// Nodes of an image.
    #[must_use]
    pub fn nodes(&self) -> usize {
        let patch = self.patch.max(1);
        self.grid.height / patch * (self.grid.width / patch)
    }

    /// Number of trainable values.
    #[must_use]
    pub fn parameters(&self) -> usize {
        let channels = self.channels;
        let mapped = |input: usize, output: usize| (input + 3) * output;
        let graph = (2 * channels / CHANNEL_GROUPS + 3) * 2 * channels;
        let block = mapped(channels, channels) + graph + mapped(2 * channels, channels);
        let block = block + mapped(channels, 4 * channels) + mapped(4 * channels, channels);
        let stem = mapped(CHANNELS * self.patch * self.patch, channels) + mapped(channels, channels);
        let head = (channels + 1) * self.head + (self.head + 1) * self.classes;
        stem + self.nodes() * channels + self.blocks * block + head
    }

    /// The paper's choice: neighbours grow with depth, and from the fifth block on they are taken from further away.
    fn choice(&self, block: usize) -> Choice {
        let [first, last] = self.neighbours;
        let steps = self.blocks.saturating_sub(1).max(1);
        let neighbours = first + last.saturating_sub(first) * block / steps;
        let dilation = (block / 4 + 1).min(self.nodes() / last.max(first).max(1));
        Choice { nodes: self.nodes(), neighbours, dilation: dilation.max(1) }
    }

    fn check(&self) -> Result<()> {
        let sizes = [self.patch, self.nodes(), self.channels, self.blocks, self.head, self.classes];
        if sizes.contains(&0) || !self.channels.is_multiple_of(CHANNEL_GROUPS) {
            bail!("vig: sizes must be at least 1, and channels a multiple of {CHANNEL_GROUPS}: {self:?}");
        }
        if !self.grid.height.is_multiple_of(self.patch) || !self.grid.width.is_multiple_of(self.patch) {
            bail!("vig: patches of {} do not fill {:?}", self.patch, self.grid);
        }
        if self.neighbours.iter().any(|&count| count == 0 || count > self.nodes()) {
            bail!("vig: {:?} neighbours of {} nodes", self.neighbours, self.nodes());
        }
        Ok(())
    }
}

/// A vision graph network on patches.
#[derive(Debug, Clone)]
pub struct PatchVig {
    config: PatchVigConfig,
    stem: [Mapped; 2],
    positions: Tensor,
    blocks: Vec<PatchBlock>,
    head: [Linear; 2],
    workspaces: Arc<Workspaces>,
}

impl PatchVig {
    /// Reads or makes the parameters `stem.0`, `stem.1`, `pos_embed`, `backbone.<block>.*` and `prediction.0`,
    /// `prediction.1`.
    ///
    /// # Errors
    /// The sizes of `config` do not fit each other, or a parameter is missing or has another shape.
    pub fn new(config: &PatchVigConfig, vb: VarBuilder<'_>) -> Result<Self> {
        config.check()?;
        let (channels, stem, head) = (config.channels, vb.pp("stem"), vb.pp("prediction"));
        let block = |index: usize| PatchBlock::new(channels, config.choice(index), vb.pp("backbone").pp(index));
        Ok(Self {
            stem: [
                Mapped::new(CHANNELS * config.patch * config.patch, channels, stem.pp(0))?,
                Mapped::new(channels, channels, stem.pp(1))?,
            ],
            positions: vb.get_with_hints((config.nodes(), channels), "pos_embed", Init::Const(0.0))?,
            blocks: (0..config.blocks).map(block).collect::<Result<_>>()?,
            head: [
                Linear::new(channels, config.head, head.pp(0))?,
                Linear::new(config.head, config.classes, head.pp(1))?,
            ],
            config: config.clone(),
            workspaces: Arc::default(),
        })
    }

    /// Its sizes.
    #[must_use]
    pub fn config(&self) -> &PatchVigConfig {
        &self.config
    }

    /// Logits `[images, classes]` from pixels `[images * height * width, 3]`.
    ///
    /// # Errors
    /// The pixels are not whole images, or have another number type or device than the parameters.
    pub fn forward(&self, pixels: &Tensor, mode: Mode) -> Result<Tensor> {
        self.forward_with(pixels, mode, |_| ())
    }

    /// [`forward`](Self::forward), with a guard held while each block runs, as [`Vig::forward_with`](crate::models::vig::Vig).
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn forward_with<G>(&self, pixels: &Tensor, mode: Mode, mut enter: impl FnMut(usize) -> G) -> Result<Tensor> {
        let images = self.config.grid.images(pixels.dim(0)?)?;
        let embedded = self.stem[0].forward_behind(&self.patches(pixels, images)?, Behind::GELU, mode)?;
        let embedded = self.stem[1].forward(&embedded, mode)?;
        let (nodes, channels) = (self.config.nodes(), self.config.channels);
        let placed = embedded.reshape((images, nodes, channels))?.broadcast_add(&self.positions)?;
        let mut x = placed.reshape((images * nodes, channels))?;
        for (index, block) in self.blocks.iter().enumerate() {
            let _guard = enter(index);
            x = block.forward(&x, mode, &self.workspaces)?;
        }
        let mean = x.reshape((images, nodes, channels))?.mean(1)?;
        self.head[1].forward(&gelu(&self.head[0].forward(&mean)?)?)
    }

    /// Each patch as one row, `[images * nodes, 3 patch patch]`: a convolution that strides over whole patches is then
    /// a linear map.
    fn patches(&self, pixels: &Tensor, images: usize) -> Result<Tensor> {
        let (patch, Grid { height, width }) = (self.config.patch, self.config.grid);
        let shape = &[images, height / patch, patch, width / patch, patch, CHANNELS][..];
        let patches = pixels.reshape(shape)?.permute(&[0, 1, 3, 2, 4, 5][..])?.contiguous()?;
        patches.reshape((images * self.config.nodes(), CHANNELS * patch * patch))
    }
}
