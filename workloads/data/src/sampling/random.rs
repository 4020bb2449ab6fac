//! Random numbers by position: number `i` of a sequence is available without the ones before it, so that what is drawn
//! for an edge depends neither on the number of threads nor on the order in which they work.

use crate::loading::BatchId;

/// The sequence of wyrand (Wang Yi, 2019): a Weyl sequence, each term folded by one 128-bit product. It passes
/// BigCrush and PractRand, and takes two multiplications a number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Random {
    key: u64,
}

const WEYL: u64 = 0xA076_1D64_78BD_642F;
const FOLD: u64 = 0xE703_7ED1_A0B4_28DB;

impl Random {
    /// The sequence of one hop of one batch.
    pub fn new(seed: u64, batch: BatchId, hop: usize) -> Self {
        let parts = [batch.epoch, batch.index, hop as u64];
        Self { key: parts.iter().fold(scrambled(seed), |key, part| scrambled(key ^ part)) }
    }

    /// The sequence from number `index` on.
    #[inline]
    pub fn from(self, index: u64) -> Stream {
        Stream { term: self.key.wrapping_add(WEYL.wrapping_mul(index)) }
    }
}

/// A sequence from some place on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    term: u64,
}

impl Stream {
    /// The next number, 64 random bits.
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.term = self.term.wrapping_add(WEYL);
        let product = u128::from(self.term) * u128::from(self.term ^ FOLD);
        (product >> 64) as u64 ^ product as u64
    }

    /// The next number as one below `bound`. No number is preferred by more than `bound` in 2^64.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u32
    }
}

/// Every input bit changes half of the output bits: the finaliser of SplitMix64 (Steele, Lea, Flood, 2014).
fn scrambled(value: u64) -> u64 {
    let mut bits = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(seed: u64, epoch: u64, index: u64, hop: usize) -> Random {
        Random::new(seed, BatchId { epoch, index }, hop)
    }

    /// Chi-square of `counts` against equal shares, in standard deviations from its mean.
    fn deviation(counts: &[u64]) -> f64 {
        let total: u64 = counts.iter().sum();
        let share = total as f64 / counts.len() as f64;
        let square: f64 = counts.iter().map(|&count| (count as f64 - share).powi(2) / share).sum();
        let freedom = (counts.len() - 1) as f64;
        (square - freedom) / (2.0 * freedom).sqrt()
    }

    #[test]
    fn numbers_below_a_bound_are_uniform() {
        for bound in [2, 3, 10, 41, 1000, 4096] {
            let mut random = sequence(7, 0, u64::from(bound), 0).from(0);
            let mut counts = vec![0; bound as usize];
            (0..1_000_000).for_each(|_| counts[random.below(bound) as usize] += 1);
            assert!(deviation(&counts).abs() < 4.0, "{bound}: {}", deviation(&counts));
        }
    }

    #[test]
    fn neighbours_in_a_sequence_are_independent() {
        for distance in [1, 2, 10, 100] {
            let random = sequence(1, 2, 3, 1);
            let (mut near, mut far) = (random.from(0), random.from(distance));
            let mut counts = vec![0; 64 * 64];
            (0..1_000_000).for_each(|_| counts[(near.below(64) * 64 + far.below(64)) as usize] += 1);
            assert!(deviation(&counts).abs() < 4.0, "{distance}: {}", deviation(&counts));
        }
    }

    #[test]
    fn sequences_of_neighbouring_batches_and_hops_are_independent() {
        let pairs = [(sequence(1, 0, 0, 0), sequence(1, 0, 1, 0)), (sequence(1, 0, 0, 0), sequence(1, 0, 0, 1))];
        let more = [(sequence(1, 0, 1, 0), sequence(1, 1, 0, 0)), (sequence(1, 0, 0, 0), sequence(2, 0, 0, 0))];
        for (one, other) in pairs.into_iter().chain(more) {
            let (mut one, mut other) = (one.from(0), other.from(0));
            let mut counts = vec![0; 64 * 64];
            (0..1_000_000).for_each(|_| counts[(one.below(64) * 64 + other.below(64)) as usize] += 1);
            assert!(deviation(&counts).abs() < 4.0, "{}", deviation(&counts));
        }
    }

    #[test]
    fn every_bit_is_set_half_of_the_time() {
        let mut random = sequence(3, 0, 0, 2).from(0);
        let mut set = [0u64; 64];
        for _ in 0..100_000 {
            let bits = random.next();
            set.iter_mut().enumerate().for_each(|(bit, count)| *count += bits >> bit & 1);
        }
        // Five standard deviations of a fair coin.
        assert!(set.iter().all(|&count| count.abs_diff(50_000) < 800), "{set:?}");
    }
}
