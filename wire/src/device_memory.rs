//! What the counters of a device's memory say, in bytes except for those that count how often something happened.
//!
//! The publisher reads them at the start and end of phases, in some steps only: reading takes the driver's time.

use crate::ids::NameId;

/// What a counter says about a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeviceMemory {
    /// Held by tensors when a measured step ended.
    Used,
    /// Peak held by tensors since the last measured step, including the steps between.
    Peak,
    /// Taken from the device, whether held by tensors or cached, when a measured step ended.
    Reserved,
    /// Peak taken from the device since the last measured step.
    ReservedPeak,
    /// Not taken by any program.
    Free,
    /// The device's total.
    Total,
    /// Number of allocations in a measured step, if the pool counts them.
    Allocations,
    /// How often the device had no memory left and cached blocks were given back to it, since the program began.
    Retries,
    /// How often that did not help, since the program began.
    OutOfMemory,
    /// Peak held by tensors while this phase ran in a measured step.
    PeakIn(NameId),
    /// Peak reserved while this phase ran.
    ReservedPeakIn(NameId),
    /// Used for this.
    Of(Purpose),
}

/// What memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Purpose {
    /// The trainable tensors.
    Parameters,
    /// Their gradients.
    Gradients,
    /// What the optimizer keeps.
    OptimizerState,
    /// The batch.
    Batch,
    /// What forward keeps for backward.
    Activations,
    /// Everything else.
    Workspace,
}

impl Purpose {
    /// All, in display order.
    pub const ALL: [Self; 6] =
        [Self::Parameters, Self::Gradients, Self::OptimizerState, Self::Batch, Self::Activations, Self::Workspace];

    /// Its name, for people.
    pub fn text(self) -> &'static str {
        match self {
            Self::Parameters => "parameters",
            Self::Gradients => "gradients",
            Self::OptimizerState => "optimizer state",
            Self::Batch => "batch",
            Self::Activations => "activations",
            Self::Workspace => "workspace",
        }
    }

    /// How its figure is derived.
    pub fn derived(self) -> &'static str {
        match self {
            Self::Parameters => "the sizes of all trainable tensors",
            Self::Gradients => "as many bytes as the parameters they belong to, from the end of backward on",
            Self::OptimizerState => "the sizes of Adam's two moments",
            Self::Batch => "in use when forward begins, beyond parameters, gradients and optimizer state",
            Self::Activations => "in use when forward ends, beyond what was when it began",
            Self::Workspace => "the step's peak beyond all of these",
        }
    }
}
