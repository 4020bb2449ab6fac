//! Dropout without a stored mask: whether a value is dropped follows from a seed and its position alone, so that a GPU
//! drops the same positions as the processor.

use std::ops::Range;

use candle_core::{Result, WithDType, bail};

/// Which positions are dropped, and the factor of the others.
#[derive(Debug, Clone, Copy)]
pub struct DropMask {
    /// A position stays if its random number is at least this.
    threshold: u64,
    factor: f64,
    seed: u64,
}

impl DropMask {
    /// A dropout of this probability, whose mask follows from `seed`.
    ///
    /// # Errors
    /// `p` is not in `0..=1`.
    pub fn new(p: f64, seed: u64) -> Result<Self> {
        if !(0.0..=1.0).contains(&p) {
            bail!("the dropout probability must be in 0..=1, not {p}");
        }
        let factor = if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) };
        Ok(Self { threshold: (p * 2f64.powi(32)).round() as u64, factor, seed })
    }

    /// The generator for the `2^32` positions from `high * 2^32` on.
    #[inline(always)]
    pub fn stream(&self, high: u64) -> MaskStream {
        let first = mix64(self.seed ^ mix64(high));
        let second = mix64(first.wrapping_add(0x9e37_79b9_7f4a_7c15));
        // A probability of 1 has a threshold of 2^32, which its factor of 0 makes unnecessary.
        let threshold = self.threshold.min(u64::from(u32::MAX)) as u32;
        MaskStream { keys: [first as u32, second as u32], threshold }
    }

    /// What stays is multiplied by this.
    #[must_use]
    pub fn factor(&self) -> f64 {
        self.factor
    }

    /// What a GPU needs besides the factor. A probability of 1 has a threshold of 2^32, which its factor of 0 makes
    /// unnecessary.
    pub fn seed_and_threshold(&self) -> (u64, u32) {
        (self.seed, self.threshold.min(u64::from(u32::MAX)) as u32)
    }

    /// Drops values in place, the first of which has position `first`. To be inlined where vectors are at hand.
    #[inline(always)]
    pub fn apply<T: WithDType>(&self, first: u64, values: &mut [T]) {
        let factor = T::from_f64(self.factor);
        self.streams(first, values.len(), |stream, position, range| {
            for (index, value) in values[range].iter_mut().enumerate() {
                let kept = *value * factor;
                *value = if stream.stays(position.wrapping_add(index as u32)) { kept } else { T::zero() };
            }
        });
    }

    /// The same from one slice into another of its length.
    #[inline(always)]
    pub fn copy<T: WithDType>(&self, first: u64, from: &[T], to: &mut [T]) {
        let factor = T::from_f64(self.factor);
        self.streams(first, to.len(), |stream, position, range| {
            for (index, (to, &from)) in to[range.clone()].iter_mut().zip(&from[range]).enumerate() {
                let kept = from * factor;
                *to = if stream.stays(position.wrapping_add(index as u32)) { kept } else { T::zero() };
            }
        });
    }

    /// The parts of `count` positions from `first` on that have one generator: it, the first position, and the part.
    #[inline(always)]
    fn streams(&self, first: u64, count: usize, mut part: impl FnMut(MaskStream, u32, Range<usize>)) {
        let mut done = 0;
        while done < count {
            let position = first + done as u64;
            let until_next = (1u64 << 32) - (position & 0xffff_ffff);
            let end = count.min(done.saturating_add(usize::try_from(until_next).unwrap_or(usize::MAX)));
            part(self.stream(position >> 32), position as u32, done..end);
            done = end;
        }
    }
}

/// Random numbers by position.
#[derive(Debug, Clone, Copy)]
pub struct MaskStream {
    keys: [u32; 2],
    threshold: u32,
}

impl MaskStream {
    /// Whether the position stays. The hash is `triple32` (C. Wellons, "Prospecting for hash functions") with a key
    /// at its start and one in its middle; it vectorises.
    #[inline(always)]
    pub fn stays(self, position: u32) -> bool {
        let mut hash = position.wrapping_add(self.keys[0]);
        hash = (hash ^ (hash >> 17)).wrapping_mul(0xed5a_d4bb);
        hash = ((hash ^ (hash >> 11)) ^ self.keys[1]).wrapping_mul(0xac4c_1b51);
        hash = (hash ^ (hash >> 15)).wrapping_mul(0x3184_8bab);
        hash ^ (hash >> 14) >= self.threshold
    }
}

/// The finaliser of SplitMix64.
fn mix64(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
