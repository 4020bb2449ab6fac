//! Limits the work that a byte of input can cause.
//!
//! Compression packs a block of the smallest events into about three hundred bytes: seventy times as many events per byte
//! as any training publishes. So decoding a block spends from an allowance that grows with every byte read, and a block
//! that costs more than is left is rejected. Real programs' blocks, which shrink to a third, never come near it.

/// The initial allowance: the first seven million of the smallest events.
const AT_FIRST: u64 = 48 << 20;
/// Allowance per byte of input. Dense recordings spend about five.
const EARNED_PER_BYTE: u64 = 8;
/// Cost of an event in addition to the bytes that it is decoded from.
const COST_OF_EVENT: u64 = 4;

/// The allowance that is left.
#[derive(Debug)]
pub(crate) struct Allowance {
    left: u64,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { left: AT_FIRST }
    }
}

impl Allowance {
    /// Adds the allowance for bytes of input.
    pub(crate) fn earn(&mut self, bytes: usize) {
        self.left = self.left.saturating_add((bytes as u64).saturating_mul(EARNED_PER_BYTE));
    }

    /// Pays for this many events from a body of this length. `None`, and nothing paid, if that exceeds the allowance.
    pub(crate) fn spend(&mut self, events: u64, body_len: usize) -> Option<()> {
        let cost = events.saturating_mul(COST_OF_EVENT).saturating_add(body_len as u64);
        self.left = self.left.checked_sub(cost)?;
        Some(())
    }
}
