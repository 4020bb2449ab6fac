//! Image classification: CIFAR-10 [`read`](read()) from its binary files, images like it [`generate`]d, and batches of
//! them in which every pixel is a node.

mod batch;
mod cifar;
mod generate;
mod set;

pub use batch::{ImageBatch, ImageBatches};
pub use cifar::{ReadImagesError, read};
pub use generate::generate;
pub use set::{CHANNELS, CLASS_NAMES, CLASSES, ImageData, ImageSet, NoSuchImage, PIXELS, SIDE};
