//! A block: the Grapher, which mixes a node with its neighbours, and the feed-forward part.

use candle_core::{Result, Tensor};
use candle_nn::VarBuilder;

use super::{max_relative, nearest};
use crate::kernels::Workspaces;
use crate::models::vig::block::{Linear, uniform};
use crate::models::vig::norm::Behind;
use crate::models::vig::{BatchNorm, Mode};

/// Groups of channels that the map after the aggregation does not mix.
pub(super) const CHANNEL_GROUPS: usize = 4;

/// How a block chooses neighbours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice {
    /// Nodes of an image.
    pub(super) nodes: usize,
    pub(super) neighbours: usize,
    pub(super) dilation: usize,
}

/// A linear map with its normalisation.
#[derive(Debug, Clone)]
pub(super) struct Mapped {
    linear: Linear,
    norm: BatchNorm,
}

impl Mapped {
    /// Reads `<name>.0`, the map, and `<name>.1`, the normalisation.
    pub(super) fn new(input: usize, output: usize, vb: VarBuilder<'_>) -> Result<Self> {
        Ok(Self { linear: Linear::new(input, output, vb.pp(0))?, norm: BatchNorm::new(output, vb.pp(1))? })
    }

    pub(super) fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        self.forward_behind(x, Behind::default(), mode)
    }

    pub(super) fn forward_behind(&self, x: &Tensor, behind: Behind<'_>, mode: Mode) -> Result<Tensor> {
        self.norm.forward_behind(&self.linear.forward(x)?, behind, mode)
    }
}

/// One block, `[images * nodes, channels]` to the same.
#[derive(Debug, Clone)]
pub(super) struct PatchBlock {
    choice: Choice,
    fc1: Mapped,
    /// `[groups, 2 channels / groups out, 2 channels / groups in]`, and its bias and normalisation.
    graph_weight: Tensor,
    graph_bias: Tensor,
    graph_norm: BatchNorm,
    fc2: Mapped,
    ffn1: Mapped,
    ffn2: Mapped,
}

impl PatchBlock {
    /// Reads `grapher.fc1`, `grapher.graph_conv.nn`, `grapher.fc2`, `ffn.fc1` and `ffn.fc2`.
    pub(super) fn new(channels: usize, choice: Choice, vb: VarBuilder<'_>) -> Result<Self> {
        let (grapher, ffn, share) = (vb.pp("grapher"), vb.pp("ffn"), 2 * channels / CHANNEL_GROUPS);
        let graph = grapher.pp("graph_conv.nn");
        Ok(Self {
            choice,
            fc1: Mapped::new(channels, channels, grapher.pp("fc1"))?,
            graph_weight: graph.get_with_hints((CHANNEL_GROUPS, share, share), "0.weight", uniform(share))?,
            graph_bias: graph.get_with_hints(2 * channels, "0.bias", uniform(share))?,
            graph_norm: BatchNorm::new(2 * channels, graph.pp(1))?,
            fc2: Mapped::new(2 * channels, channels, grapher.pp("fc2"))?,
            ffn1: Mapped::new(channels, 4 * channels, ffn.pp("fc1"))?,
            ffn2: Mapped::new(4 * channels, channels, ffn.pp("fc2"))?,
        })
    }

    pub(super) fn forward(&self, x: &Tensor, mode: Mode, workspaces: &Workspaces) -> Result<Tensor> {
        let Choice { nodes, neighbours, dilation } = self.choice;
        let mapped = self.fc1.forward(x, mode)?;
        let chosen = nearest(&mapped, nodes, neighbours, dilation, workspaces)?;
        let both = Tensor::stack(&[&mapped, &max_relative(&mapped, &chosen)?], 2)?;
        let convolved = self.graph_norm.forward_behind(&self.grouped(&both)?, Behind::GELU, mode)?;
        let x = self.fc2.forward_behind(&convolved, Behind::onto(x), mode)?;
        let hidden = self.ffn1.forward_behind(&x, Behind::GELU, mode)?;
        self.ffn2.forward_behind(&hidden, Behind::onto(&x), mode)
    }

    /// The grouped map of `[rows, channels, 2]`: own value and aggregate of a channel side by side, so that every group
    /// has both.
    fn grouped(&self, both: &Tensor) -> Result<Tensor> {
        let (rows, channels, _) = both.dims3()?;
        let share = 2 * channels / CHANNEL_GROUPS;
        let groups = both.reshape((rows, CHANNEL_GROUPS, share))?.transpose(0, 1)?.contiguous()?;
        let mapped = groups.matmul(&self.graph_weight.transpose(1, 2)?)?;
        mapped.transpose(0, 1)?.contiguous()?.reshape((rows, 2 * channels))?.broadcast_add(&self.graph_bias)
    }
}
