//! Graphs made up from a seed, with the statistics of the data sets the studies use: they stand in where no data set
//! is at hand, and nothing is downloaded. A seed gives the same data on every machine of one kind and for every number
//! of threads.

mod cora;
mod reddit;

pub use cora::{cora_like, cora_like_ceiling};
pub use reddit::{Ceiling, GenerateError, reddit_like, reddit_like_ceiling};

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// An independent stream of random numbers for each purpose (`stream`) and item (`index`) of a seed.
fn random_stream(seed: u64, stream: u64, index: u64) -> Xoshiro256PlusPlus {
    let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ stream.wrapping_mul(0xD1B5_4A32_D192_ED03).rotate_left(32);
    Xoshiro256PlusPlus::seed_from_u64(mixed.wrapping_add(index.wrapping_mul(0xBF58_476D_1CE4_E5B9)))
}

/// Fills `values` with `deviation` times samples of the standard normal distribution (Box and Muller's method).
fn fill_normal(values: &mut [f32], deviation: f32, random: &mut Xoshiro256PlusPlus) {
    for pair in values.chunks_mut(2) {
        // 1 - u lies in (0, 1]: the logarithm is finite.
        let radius = deviation * (-2.0 * (1.0 - random.random::<f32>()).ln()).sqrt();
        let (sine, cosine) = (std::f32::consts::TAU * random.random::<f32>()).sin_cos();
        for (value, part) in pair.iter_mut().zip([cosine, sine]) {
            *value = radius * part;
        }
    }
}
