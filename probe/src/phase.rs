//! The standard phases: `span(&phase::FORWARD)`.

use crate::names::Name;
use gnntop_wire::phase as text;

/// The loop waits for its next batch.
pub static DATA_WAIT: Name = Name::phase(text::DATA_WAIT);
/// Neighbours are sampled.
pub static SAMPLE: Name = Name::phase(text::SAMPLE);
/// Features are gathered for a sampled batch.
pub static GATHER: Name = Name::phase(text::GATHER);
/// A batch is put together.
pub static ASSEMBLE: Name = Name::phase(text::ASSEMBLE);
/// The batch is copied to the device.
pub static TRANSFER: Name = Name::phase(text::TRANSFER);
/// The model and the loss are computed.
pub static FORWARD: Name = Name::phase(text::FORWARD);
/// The gradients are computed.
pub static BACKWARD: Name = Name::phase(text::BACKWARD);
/// A pipeline stage receives activations or gradients from its neighbour, including the wait for them.
pub static RECEIVE: Name = Name::phase(text::RECEIVE);
/// A pipeline stage sends activations or gradients to its neighbour.
pub static SEND: Name = Name::phase(text::SEND);
/// The gradients are summed over the ranks, including the wait for the slowest.
pub static ALL_REDUCE: Name = Name::phase(text::ALL_REDUCE);
/// The parameters are updated.
pub static OPTIMIZER: Name = Name::phase(text::OPTIMIZER);
/// The model is evaluated on held-out data, between two steps.
pub static VALIDATION: Name = Name::phase(text::VALIDATION);
