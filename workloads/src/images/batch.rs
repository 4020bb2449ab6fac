//! Batches of images as node features, in an order that depends on a seed alone.

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;

use super::{CHANNELS, ImageSet, NoSuchImage, PIXELS};

/// Several images as one list of nodes. Assembling again reuses the memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ImageBatch {
    /// Features of every pixel, `[images * 1024, 3]`: red, green and blue from 0 to 1, pixels row by row.
    pub features: Vec<f32>,
    /// Class of each image, `[images]`.
    pub labels: Vec<u32>,
}

impl ImageBatch {
    /// Number of images.
    #[must_use]
    pub fn images(&self) -> usize {
        self.labels.len()
    }

    /// Becomes the images at `indices` of the set, in that order. The last batch of an epoch may be smaller than the
    /// others, and an empty list gives an empty batch.
    ///
    /// # Errors
    /// The set has no such image; the batch is then empty.
    pub fn assemble(&mut self, set: &ImageSet, indices: &[u32]) -> Result<(), NoSuchImage> {
        self.labels.clear();
        let images = set.len();
        if let Some(&index) = indices.iter().find(|&&index| index as usize >= images) {
            self.features.clear();
            return Err(NoSuchImage { index, images });
        }
        self.labels.extend(indices.iter().map(|&index| set.labels[index as usize]));
        self.features.resize(indices.len() * PIXELS * CHANNELS, 0.0);
        for (&index, nodes) in indices.iter().zip(self.features.chunks_exact_mut(PIXELS * CHANNELS)) {
            interleave(set.image(index as usize), nodes);
        }
        Ok(())
    }
}

/// From `[3, 1024]` bytes to `[1024, 3]` numbers from 0 to 1.
fn interleave(image: &[u8], nodes: &mut [f32]) {
    let (red, others) = image.split_at(PIXELS);
    let (green, blue) = others.split_at(PIXELS);
    let colours = red.iter().zip(green).zip(blue);
    for (node, ((&red, &green), &blue)) in nodes.chunks_exact_mut(CHANNELS).zip(colours) {
        for (value, byte) in node.iter_mut().zip([red, green, blue]) {
            *value = f32::from(byte) / 255.0;
        }
    }
}

/// All images in the order of an epoch: shuffled by `seed` and `epoch`. Batches are its chunks.
#[must_use]
pub fn epoch_order(images: usize, seed: u64, epoch: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..images as u32).collect();
    // Multiplying by an odd constant keeps (seed, epoch) and (seed + 1, epoch - 1) apart.
    let seed = seed ^ epoch.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
    order
}
