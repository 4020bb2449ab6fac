//! The phases that readers know, by name. A name is one of these only if it is a phase's
//! ([`NameKind::Phase`](crate::NameKind::Phase)): a program's other spans may be called anything.

/// The loop waits for its next batch.
pub const DATA_WAIT: &str = "data wait";
/// Neighbours are sampled.
pub const SAMPLE: &str = "sample";
/// Features are gathered for a sampled batch.
pub const GATHER: &str = "gather";
/// A batch is put together.
pub const ASSEMBLE: &str = "assemble";
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

/// The phases in which a loop gets its batch.
pub const LOADING: [&str; 4] = [DATA_WAIT, SAMPLE, GATHER, ASSEMBLE];

/// All of them.
pub const KNOWN: [&str; 12] = [
    DATA_WAIT, SAMPLE, GATHER, ASSEMBLE, TRANSFER, FORWARD, BACKWARD, RECEIVE, SEND, ALL_REDUCE, OPTIMIZER, VALIDATION,
];
