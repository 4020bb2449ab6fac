//! The standard phases: names of spans that tile a step.

/// The loop waits for its next batch.
pub const DATA_WAIT: &str = "data wait";
/// Neighbours are sampled.
pub const SAMPLE: &str = "sample";
/// Features are gathered for a sampled batch.
pub const GATHER: &str = "gather";
/// The batch is copied to the device.
pub const TRANSFER: &str = "transfer";
/// The model and the loss are computed.
pub const FORWARD: &str = "forward";
/// The gradients are computed.
pub const BACKWARD: &str = "backward";
/// A pipeline stage receives activations or gradients from its neighbour, including the wait for them.
pub const RECEIVE: &str = "receive";
/// A pipeline stage sends activations or gradients to its neighbour.
pub const SEND: &str = "send";
/// The gradients are summed over the ranks, including the wait for the slowest.
pub const ALL_REDUCE: &str = "all-reduce";
/// The parameters are updated.
pub const OPTIMIZER: &str = "optimizer";
/// The model is evaluated on held-out data, between two steps.
pub const VALIDATION: &str = "validation";

/// The standard phases, in the order of a step.
pub const STANDARD: [&str; 8] = [DATA_WAIT, SAMPLE, GATHER, TRANSFER, FORWARD, BACKWARD, ALL_REDUCE, OPTIMIZER];

/// The phases that only pipeline stages have.
pub const PIPELINE: [&str; 2] = [RECEIVE, SEND];
