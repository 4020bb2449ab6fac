//! The dropouts of a layer of the fused form.

use candle_core::Result;

use gnntop_data::graph::DropMask;

/// Probability and seed of each dropout of a layer, where there is one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dropouts {
    /// Of the features that it reads. Only of the first layer: of others it is the output's of the layer below.
    pub(super) input: Option<(f64, u64)>,
    pub(super) attention: Option<(f64, u64)>,
    /// Of the result, after ELU.
    pub(super) output: Option<(f64, u64)>,
}

/// The masks of these dropouts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Masks {
    pub(super) input: Option<DropMask>,
    pub(super) attention: Option<DropMask>,
    pub(super) output: Option<DropMask>,
}

impl Dropouts {
    /// # Errors
    /// A probability is invalid.
    pub(super) fn masks(self) -> Result<Masks> {
        let mask = |dropout: Option<(f64, u64)>| dropout.map(|(p, seed)| DropMask::new(p, seed)).transpose();
        Ok(Masks { input: mask(self.input)?, attention: mask(self.attention)?, output: mask(self.output)? })
    }
}
