//! What a layer drops, in either form.

use candle_core::Result;

use super::GatConfig;
use crate::models::layered::Evaluation;
use gnntop_data::graph::DropMask;

/// The dropouts of a layer of the fused form, where there are some.
#[derive(Debug, Clone, Copy)]
pub(super) struct Masks {
    /// Of the features that it reads. Only of the first layer: of others it is the output's of the layer below.
    pub(super) input: Option<DropMask>,
    pub(super) attention: Option<DropMask>,
    /// Of the result, after ELU.
    pub(super) output: Option<DropMask>,
}

impl Evaluation<'_, GatConfig> {
    /// Probability and seed of the dropout of what layer `layer` reads.
    pub(super) fn drop_features(&self, layer: usize) -> Option<(f64, u64)> {
        let dropout = &self.config.dropout;
        self.pass.dropout(if layer == 0 { dropout.input } else { dropout.hidden }, 2 * layer)
    }

    /// The same of this layer's attention.
    pub(super) fn drop_attention(&self) -> Option<(f64, u64)> {
        self.pass.dropout(self.config.attention_dropout(self.index), 2 * self.index + 1)
    }

    /// All dropouts of this layer in the fused form.
    ///
    /// # Errors
    /// A probability is invalid.
    pub(super) fn masks(&self) -> Result<Masks> {
        let mask = |dropout: Option<(f64, u64)>| dropout.map(|(p, seed)| DropMask::new(p, seed)).transpose();
        Ok(Masks {
            input: mask(if self.index == 0 { self.drop_features(0) } else { None })?,
            attention: mask(self.drop_attention())?,
            output: mask(if self.is_inner { self.drop_features(self.index + 1) } else { None })?,
        })
    }
}
