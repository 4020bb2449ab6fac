//! Sizes of the study's model.

use candle_core::{Result, bail};

use super::Grid;

/// Features of a node between blocks: red, green and blue at first.
pub const CHANNELS: usize = 3;

/// Sizes of a [`Vig`](super::Vig).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VigConfig {
    /// Height and width of the images.
    pub grid: Grid,
    /// Number of blocks.
    pub blocks: usize,
    /// Width of the graph convolution.
    pub hidden: usize,
    /// Width of the second half of a block.
    pub ffn: usize,
    /// Width of the readout's hidden layer.
    pub head: usize,
    /// Classes.
    pub classes: usize,
}

impl Default for VigConfig {
    /// The study's model: already the right size for two CPU cores, with the smaller default batch.
    fn default() -> Self {
        Self::study()
    }
}

impl VigConfig {
    /// The study's model: 8 blocks of 256 and 512 on 32 x 32 pixels, 1,120,410 parameters.
    #[must_use]
    pub fn study() -> Self {
        Self { grid: Grid { height: 32, width: 32 }, blocks: 8, hidden: 256, ffn: 512, head: 1024, classes: 10 }
    }

    /// Number of trainable values.
    #[must_use]
    pub fn parameters(&self) -> usize {
        let (hidden, ffn) = (self.hidden, self.ffn);
        let graph = (CHANNELS + 1) * hidden + (2 * hidden + 1) * hidden + (hidden + 1) * CHANNELS;
        let feed_forward = (CHANNELS + 1) * ffn + (ffn + 1) * CHANNELS;
        let norms = 2 * (hidden + ffn + 2 * CHANNELS);
        let head = (CHANNELS + 1) * self.head + (self.head + 1) * self.classes;
        self.blocks * (graph + feed_forward + norms) + head
    }

    /// # Errors
    /// A size is 0.
    pub(super) fn check(&self) -> Result<()> {
        let sizes = [self.grid.nodes(), self.blocks, self.hidden, self.ffn, self.head, self.classes];
        if sizes.contains(&0) {
            bail!("vig: image, blocks, widths and classes must be at least 1: {self:?}");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_study_has_its_published_number_of_parameters() {
        assert_eq!(VigConfig::study().parameters(), 1_120_410);
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(VigConfig::study().check().is_ok());
        assert!(VigConfig { blocks: 0, ..VigConfig::study() }.check().is_err());
        assert!(VigConfig { grid: Grid { height: 0, width: 3 }, ..VigConfig::study() }.check().is_err());
    }
}
