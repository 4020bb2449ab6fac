//! A bound on the work that a byte of input can cause.
//!
//! Compression turns some three hundred bytes into a whole block of the smallest events there are, seventy times as many
//! a byte as a training ever publishes. So blocks are paid from an allowance, which grows with every byte read; one that
//! costs more than is left is refused. Recordings of real programs, whose blocks shrink to a third, never come near it.

/// What may be spent before anything was earned: the first seven million of the smallest events.
const AT_FIRST: u64 = 48 << 20;
/// What a byte of input earns. Dense recordings spend about five.
const EARNED_PER_BYTE: u64 = 8;
/// What an event costs beside the bytes that it is decoded from.
const COST_OF_EVENT: u64 = 4;

/// What is left to be spent.
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
    /// Earns for bytes of input.
    pub(crate) fn earn(&mut self, bytes: usize) {
        self.left = self.left.saturating_add((bytes as u64).saturating_mul(EARNED_PER_BYTE));
    }

    /// Pays for so many events out of a body of this length; `None`, and nothing paid, where that is too much.
    pub(crate) fn spend(&mut self, events: u64, body_len: usize) -> Option<()> {
        let cost = events.saturating_mul(COST_OF_EVENT).saturating_add(body_len as u64);
        self.left = self.left.checked_sub(cost)?;
        Some(())
    }
}
