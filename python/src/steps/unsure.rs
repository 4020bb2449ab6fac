//! What is known while it is not sure where steps end.

use super::record::{Shape, Ticks};

/// After this much work without a fetch, the program has had its batches before.
const MOST_ON_A_BATCH: u32 = 16;

/// Whether batches are fetched between pieces of work, such as backward passes, so that a fetch ends what was done with the batch
/// before: not if several were fetched in a row, as by `list(loader)`, or one is used again and again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fetches {
    /// Pieces of work since a fetch; `None` before the first fetch.
    since: Option<u32>,
    is_between: bool,
    reuses: bool,
}

impl Fetches {
    /// Whether work ends with the next fetch.
    pub(super) fn is_between(self) -> bool {
        self.is_between
    }

    /// A batch is fetched.
    pub(super) fn fetch(&mut self) {
        self.is_between = !self.reuses && self.since != Some(0);
        self.since = Some(0);
    }

    /// A piece of work.
    pub(super) fn work(&mut self) {
        self.since = self.since.map(|since| since.saturating_add(1));
        self.reuses |= self.is_between && self.since > Some(MOST_ON_A_BATCH);
        self.is_between &= !self.reuses;
    }
}

/// What is known of a loop whose optimizer is not seen.
#[derive(Debug, Default)]
pub(super) struct Lone {
    /// Backward passes since the last step's end, and such ends since gradients were last set to zero.
    pub(super) backwards: u32,
    pub(super) steps: usize,
    /// Whether everything is kept back, since an optimizer may follow.
    pub(super) is_deferred: bool,
    /// Backward passes since then, and the size of the batches whose steps are kept back.
    pub(super) deferred: u32,
    pub(super) batches: Option<Shape>,
    /// Whether the program sets gradients to zero after a backward pass, fetches a batch after each, and calls `backward`.
    pub(super) zeroes: bool,
    pub(super) fetches: Fetches,
    pub(super) has_backward: bool,
    /// When the last backward pass ended, until something else begins: what is between is the update.
    pub(super) updating: Ticks,
    pub(super) says_updates: bool,
}

impl Lone {
    /// Whether gradients are part of a backward pass that follows: they are if the loop calls `backward`.
    pub(super) fn is_part(&self, is_backward: bool) -> bool {
        self.has_backward && !is_backward
    }

    /// What was taken for an update is a forward pass that is not reported, or that and an update.
    pub(super) fn forget_update(&mut self) {
        self.updating = 0;
    }
}

/// What is known of a program that may only run a model.
#[derive(Debug, Default)]
pub(super) struct Inference {
    /// Calls of roots since the last step's end, and calls without gradients so far.
    pub(super) calls: u32,
    pub(super) fetches: Fetches,
    pub(super) evaluations: u32,
    pub(super) steps: u32,
    /// When the last such call ended that is no part of the running step.
    pub(super) evaluated: Ticks,
    pub(super) is_deferred: bool,
    /// Whether its steps are published.
    pub(super) is_published: bool,
    /// Whether there was a backward pass.
    pub(super) trains: bool,
}

/// Steps of optimizers that are parts of a step, if others step that have not: they are kept back until that is known.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) steps: usize,
    /// The size of their batches.
    pub(super) batches: Option<Shape>,
    /// What was known of the order then: see [`StepRule::lessons`](super::rule::StepRule::lessons).
    pub(super) lesson: u64,
}
