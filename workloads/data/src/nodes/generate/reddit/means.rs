//! The mean features of the classes.

use super::super::random::{fill_normal, random_stream};
use super::published::{CLASSES, FEATURES, MEANS};

/// Deviation of the class means, of each of their features; the noise around a mean has deviation 1.
const MEAN_DEVIATION: f32 = 0.12;

/// The mean features of every class, `[classes, features]`.
pub(super) fn class_means(seed: u64) -> Vec<f32> {
    let mut means = vec![0.0; CLASSES * FEATURES];
    fill_normal(&mut means, MEAN_DEVIATION, &mut random_stream(seed, MEANS, 0));
    means
}
