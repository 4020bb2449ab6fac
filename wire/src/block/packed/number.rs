//! Numbers close to their expected values: previous numbers predict the next one and its likely error, and only the
//! difference is written.

/// Quotients from here on are written another way, announced by this many zeros.
pub(super) const LONG: u32 = 8;
/// Bits of a long number's length in bits.
pub(super) const LENGTH_BITS: u32 = 6;
/// Most low bits of a difference that are written verbatim. With a quotient and another such number, they fit into what a
/// reader sees at a time.
const MAX_LOW_BITS: u32 = 40;
/// The spread before any number was seen.
const UNKNOWN: u64 = u64::MAX;
/// Larger differences count as this, so that no sum overflows.
const MAX_SPREAD: u64 = 1 << 60;

/// The model of a column of numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    /// The expected next number.
    pub(super) expected: i64,
    /// Four times the mean of the last differences, each zigzagged.
    spread: u64,
}

impl Default for Number {
    fn default() -> Self {
        Self { expected: 0, spread: UNKNOWN }
    }
}

impl Number {
    /// Whether no number was seen yet: the first difference is written in full.
    #[inline]
    pub(super) fn is_fresh(&self) -> bool {
        self.spread == UNKNOWN
    }

    /// Low bits of the next difference that are written verbatim, below its quotient: Rice's code, for a geometric
    /// distribution with this mean (R. F. Rice, "Some practical universal noiseless coding techniques", JPL 79-22, 1979).
    #[inline]
    pub(super) fn low_bits(&self) -> u32 {
        (63 - (self.spread >> 2 | 1).leading_zeros()).min(MAX_LOW_BITS)
    }

    /// Updates the model with a difference.
    #[inline]
    pub(super) fn learn(&mut self, difference: i64, zigzagged: u64) {
        self.expected = self.expected.wrapping_add(difference >> 1);
        self.spread = self.spread - (self.spread >> 2) + zigzagged.min(MAX_SPREAD);
    }

    /// Updates the model with the first number and its zigzagged difference from the expected one. Most columns vary by a
    /// fraction of their values.
    pub(super) fn begin(&mut self, value: i64, zigzagged: u64) {
        self.expected = value;
        self.spread = (zigzagged >> 2).min(MAX_SPREAD);
    }

    /// Sets the expected number and requires the next difference to be written in full.
    pub(super) fn restart(&mut self, expected: i64) {
        (self.expected, self.spread) = (expected, UNKNOWN);
    }
}

#[inline]
pub(super) fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

#[inline]
pub(super) fn unzigzag(raw: u64) -> i64 {
    (raw >> 1) as i64 ^ -((raw & 1) as i64)
}
