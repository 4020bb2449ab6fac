//! Images of one size with their classes.

use thiserror::Error;

/// Pixels along each side of an image.
pub const SIDE: usize = 32;

/// Pixels of an image.
pub const PIXELS: usize = SIDE * SIDE;

/// Colour channels: red, green, blue.
pub const CHANNELS: usize = 3;

/// Number of classes.
pub const CLASSES: usize = 10;

/// Bytes of an image.
pub(super) const IMAGE_BYTES: usize = CHANNELS * PIXELS;

/// Names of CIFAR-10's classes, in the order of their numbers.
pub const CLASS_NAMES: [&str; CLASSES] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

/// Images of 32 x 32 pixels with their classes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImageSet {
    /// Where they come from, as a header shows it.
    pub origin: String,
    /// `[images, 3, 32, 32]`: all red values of an image row by row, then the green, then the blue ones, as in CIFAR.
    pub pixels: Vec<u8>,
    /// Class of each image, below [`CLASSES`], `[images]`.
    pub labels: Vec<u32>,
}

impl ImageSet {
    /// Number of images.
    #[must_use]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is no image.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The values of an image, `[3, 32, 32]`.
    ///
    /// # Panics
    /// If there is no such image.
    #[must_use]
    pub fn image(&self, index: usize) -> &[u8] {
        &self.pixels[index * IMAGE_BYTES..][..IMAGE_BYTES]
    }
}

/// The training and test images.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImageData {
    /// Images to train on.
    pub train: ImageSet,
    /// Test images; may be empty.
    pub test: ImageSet,
}

/// A batch names an image that the set does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("there is no image {index}; the set has {images} (numbered from 0)")]
pub struct NoSuchImage {
    /// The image asked for.
    pub index: u32,
    /// Images of the set.
    pub images: usize,
}
