//! Batches of images as node features.

use std::sync::Arc;

use candle_core::{Device, Tensor};

use super::{CHANNELS, ImageSet, NoSuchImage, PIXELS};
use crate::loading::{Assemble, BatchId, LoaderObserver, Stage};

/// Several images as one list of nodes. Assembling again reuses the memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ImageBatch {
    /// Features of every pixel, `[images * 1024, 3]`: red, green and blue from 0 to 1, pixels row by row.
    pub features: Vec<f32>,
    /// Class of each image, `[images]`.
    pub labels: Vec<u32>,
}

impl ImageBatch {
    /// The pixels as nodes, `[images * 1024, 3]`, on this device.
    ///
    /// # Errors
    /// The device has no room.
    pub fn pixels(&self, device: &Device) -> candle_core::Result<Tensor> {
        self.as_pixels(&Tensor::from_slice(&self.features, self.features.len(), device)?)
    }

    /// The features of this batch, one list on any device, as nodes.
    ///
    /// # Errors
    /// The list has another length.
    pub fn as_pixels(&self, features: &Tensor) -> candle_core::Result<Tensor> {
        features.reshape((self.features.len() / CHANNELS, CHANNELS))
    }

    /// Number of images.
    #[must_use]
    pub fn images(&self) -> usize {
        self.labels.len()
    }

    /// Takes the images at `indices` of the set, in that order. The last batch of an epoch may be smaller than the
    /// others, and an empty list gives an empty batch.
    ///
    /// # Errors
    /// The set has no such image; the batch is then empty.
    pub fn assemble(&mut self, set: &ImageSet, indices: &[u32]) -> Result<(), NoSuchImage> {
        self.label(set, indices)?;
        self.features.resize(indices.len() * PIXELS * CHANNELS, 0.0);
        for (&index, nodes) in indices.iter().zip(self.features.chunks_exact_mut(PIXELS * CHANNELS)) {
            interleave(set.image(index as usize), nodes);
        }
        Ok(())
    }

    /// Only their classes.
    fn label(&mut self, set: &ImageSet, indices: &[u32]) -> Result<(), NoSuchImage> {
        self.labels.clear();
        let images = set.len();
        if let Some(&index) = indices.iter().find(|&&index| index as usize >= images) {
            self.features.clear();
            return Err(NoSuchImage { index, images });
        }
        self.labels.extend(indices.iter().map(|&index| set.labels[index as usize]));
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

/// Makes batches for a [`crate::loading::Loader`]. Cheap to clone: the images are shared.
#[derive(Debug, Clone)]
pub struct ImageBatches {
    set: Arc<ImageSet>,
    labels_only: bool,
}

impl ImageBatches {
    /// Batches of these images.
    #[must_use]
    pub fn new(set: Arc<ImageSet>) -> Self {
        Self { set, labels_only: false }
    }

    /// The same batches without features, if only the classes are needed.
    #[must_use]
    pub fn labels_only(self) -> Self {
        Self { labels_only: true, ..self }
    }
}

impl Assemble for ImageBatches {
    const ITEMS: &'static str = "images";
    type Batch = ImageBatch;
    type Error = NoSuchImage;

    fn items(&self) -> usize {
        self.set.len()
    }

    fn assemble(
        &mut self,
        members: &[u32],
        _: BatchId,
        out: &mut ImageBatch,
        observer: &dyn LoaderObserver,
    ) -> Result<(), NoSuchImage> {
        let mut done = Ok(());
        observer.stage(Stage::Assemble, &mut || {
            done = if self.labels_only { out.label(&self.set, members) } else { out.assemble(&self.set, members) };
        });
        done
    }
}
