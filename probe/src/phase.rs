//! The standard phases, ready to be used: `span(&phase::FORWARD)`.

use crate::names::Name;
use gnntop_wire::phase as text;

/// The loop waits for its next batch.
pub static DATA_WAIT: Name = Name::phase(text::DATA_WAIT);
/// Neighbours are sampled.
pub static SAMPLE: Name = Name::phase(text::SAMPLE);
/// Features are gathered for a sampled batch.
pub static GATHER: Name = Name::phase(text::GATHER);
/// The batch is copied to the device.
pub static TRANSFER: Name = Name::phase(text::TRANSFER);
/// The model and the loss are computed.
pub static FORWARD: Name = Name::phase(text::FORWARD);
/// The gradients are computed.
pub static BACKWARD: Name = Name::phase(text::BACKWARD);
/// A stage of a pipeline gets activations or gradients from its neighbour, the wait for them included.
pub static RECEIVE: Name = Name::phase(text::RECEIVE);
/// A stage of a pipeline hands activations or gradients to its neighbour.
pub static SEND: Name = Name::phase(text::SEND);
/// The gradients are summed over the ranks, the wait for the slowest included.
pub static ALL_REDUCE: Name = Name::phase(text::ALL_REDUCE);
/// The parameters are updated.
pub static OPTIMIZER: Name = Name::phase(text::OPTIMIZER);
/// The model is judged on data that it does not train on, between two steps.
pub static VALIDATION: Name = Name::phase(text::VALIDATION);
