//! Either of the two networks, as the trainer uses it.

use candle_core::{Result, Tensor};
use candle_nn::VarBuilder;

use gnntop_nn::models::vig::patches::{PatchVig, PatchVigConfig};
use gnntop_nn::models::vig::{Form, Mode, Vig, VigConfig};

/// Which network to make, with its sizes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NetworkConfig {
    /// The study's: pixels on a fixed grid.
    Pixels(VigConfig, Form),
    /// The paper's: patches joined to similar ones.
    Patches(PatchVigConfig),
}

impl NetworkConfig {
    pub(crate) fn blocks(&self) -> usize {
        match self {
            Self::Pixels(config, _) => config.blocks,
            Self::Patches(config) => config.blocks,
        }
    }

    pub(crate) fn set_blocks(&mut self, blocks: usize) {
        match self {
            Self::Pixels(config, _) => config.blocks = blocks,
            Self::Patches(config) => config.blocks = blocks,
        }
    }

    pub(crate) fn parameters(&self) -> usize {
        match self {
            Self::Pixels(config, _) => config.parameters(),
            Self::Patches(config) => config.parameters(),
        }
    }

    /// Nodes of an image.
    pub(crate) fn nodes(&self) -> usize {
        match self {
            Self::Pixels(config, _) => config.grid.nodes(),
            Self::Patches(config) => config.nodes(),
        }
    }

    /// Directed edges of an image; of the first block if blocks differ.
    pub(crate) fn edges(&self) -> usize {
        match self {
            Self::Pixels(config, _) => config.grid.edges(),
            Self::Patches(config) => config.nodes() * config.neighbours[0],
        }
    }

    /// Its description, for a header.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Pixels(_, Form::Fused) => "ViG",
            Self::Pixels(_, Form::Plain) => "ViG (plain form)",
            Self::Patches(_) => "ViG on patches",
        }
    }
}

/// A network with its parameters.
#[derive(Debug, Clone)]
pub(super) enum Network {
    Pixels(Vig),
    Patches(PatchVig),
}

impl Network {
    pub(super) fn new(config: &NetworkConfig, vb: VarBuilder<'_>) -> Result<Self> {
        Ok(match config {
            NetworkConfig::Pixels(config, form) => Self::Pixels(Vig::new(config, *form, vb)?),
            NetworkConfig::Patches(config) => Self::Patches(PatchVig::new(config, vb)?),
        })
    }

    /// Logits, with a guard held while each block runs.
    pub(super) fn forward_with<G>(&self, pixels: &Tensor, mode: Mode, enter: impl FnMut(usize) -> G) -> Result<Tensor> {
        match self {
            Self::Pixels(model) => model.forward_with(pixels, mode, enter),
            Self::Patches(model) => model.forward_with(pixels, mode, enter),
        }
    }
}
