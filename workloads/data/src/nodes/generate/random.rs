//! Random numbers that the generators draw.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// An independent stream of random numbers for each purpose (`stream`) and item (`index`) of a seed.
pub(super) fn random_stream(seed: u64, stream: u64, index: u64) -> Xoshiro256PlusPlus {
    let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ stream.wrapping_mul(0xD1B5_4A32_D192_ED03).rotate_left(32);
    Xoshiro256PlusPlus::seed_from_u64(mixed.wrapping_add(index.wrapping_mul(0xBF58_476D_1CE4_E5B9)))
}

/// Fills `values` with `deviation` times samples of the standard normal distribution (Box and Muller's method).
pub(super) fn fill_normal(values: &mut [f32], deviation: f32, random: &mut Xoshiro256PlusPlus) {
    for pair in values.chunks_mut(2) {
        // 1 - u is in (0, 1]: the logarithm is finite.
        let radius = deviation * (-2.0 * (1.0 - random.random::<f32>()).ln()).sqrt();
        let (sine, cosine) = (std::f32::consts::TAU * random.random::<f32>()).sin_cos();
        for (value, part) in pair.iter_mut().zip([cosine, sine]) {
            *value = radius * part;
        }
    }
}
