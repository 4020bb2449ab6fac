//! The logits of a softmax.

use crate::kernels::{Stored, Wide};

/// Where the logits of the edges come from.
#[derive(Clone, Copy)]
pub(super) enum Logits<'a, T: Stored> {
    /// `[edges, heads]`
    Given(&'a [T]),
    /// The leaky rectified sum of the scores at both ends, `[sources, heads]` and `[targets, heads]`.
    OfScores { source: &'a [T], target: &'a [T], negative_slope: T::Wide },
}

/// A sum of scores below 0 is flattened.
pub(super) fn leaky<W: Wide>(sum: W, negative_slope: W) -> W {
    if sum > W::default() { sum } else { sum * negative_slope }
}
