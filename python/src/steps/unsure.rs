//! What is known while it is not sure where steps end.

use super::record::{Shape, Ticks};

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
    /// Whether the program sets gradients to zero after a backward pass, fetches batches, and calls `backward`.
    pub(super) zeroes: bool,
    pub(super) fetches: bool,
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
