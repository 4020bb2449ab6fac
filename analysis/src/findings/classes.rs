//! Steps by class: warm-up, full batches, partial batches.

use std::ops::Range;

use super::batch_fit;
use super::evidence::StepEvidence;
use crate::store::{StepRow, Store};

/// The class of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// One of the first steps, if these are slower.
    WarmUp,
    /// Its batch is full, or batches are not distinguished.
    Full,
    /// Its batch is smaller than a full one.
    Partial,
}

/// The steps with these ordinals that are kept, each with its class.
pub fn classes(store: &Store, ordinals: Range<u64>) -> Vec<(StepRow<'_>, Class)> {
    let evidence = StepEvidence::new(store, ordinals);
    let early = |row: &StepRow<'_>| match batch_fit::batch_size(row).zip(evidence.shape.full) {
        _ if evidence.warm_up_ratio > 0.0 => Class::WarmUp,
        Some((size, full)) if size < full => Class::Partial,
        _ => Class::Full,
    };
    let later = evidence.shape.is_partial.iter().map(|is| if *is { Class::Partial } else { Class::Full });
    let classes = evidence.warm_up.iter().map(early).chain(later).collect::<Vec<Class>>();
    evidence.warm_up.into_iter().chain(evidence.rows).zip(classes).collect()
}
