//! How a training is cut: the model into stages, the batches into micro-batches.

use std::ops::Range;

use crate::launch::RankOptions;
use crate::parallel::pipeline::Schedule;

/// A pipeline: its stages, its copies, and how a batch goes through them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stages {
    pub(crate) count: usize,
    /// As asked for: where MPI started the ranks, there are as many as fill them.
    pub(crate) copies: usize,
    pub(crate) micro_batches: usize,
    pub(crate) schedule: Schedule,
    /// Keep no activations but compute them again.
    pub(crate) recompute: bool,
    /// The blocks of each stage; nothing where they are to be balanced.
    pub(crate) parts: Option<Vec<Range<usize>>>,
}

impl Stages {
    /// Ranks that it needs, with the other options of `ranks`.
    pub(crate) fn ranks(&self, ranks: &RankOptions) -> RankOptions {
        RankOptions { ranks: self.count * self.copies, ..ranks.clone() }
    }

    /// The header's words, for so many copies.
    pub(crate) fn describe(&self, copies: usize) -> String {
        let count = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        let order = if self.count == 1 { String::new() } else { format!(" ({})", self.schedule.name()) };
        let recompute = if self.recompute { ", activations recomputed" } else { "" };
        format!(
            "{} of {}, {}{order}{recompute}",
            count(copies, "copy", "copies"),
            count(self.count, "stage", "stages"),
            count(self.micro_batches, "micro-batch", "micro-batches"),
        )
    }
}
