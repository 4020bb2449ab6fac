//! Stacks taken while a phase takes too long, and how a stream encodes them: with marks and names only.
//!
//! ```text
//! track   its text begins with "stacks of "
//! mark    a frame, such as `collate (data.py:81)`, innermost first; its number is the frame's depth, 0 for the innermost
//! ```
//!
//! The frames of one stack follow one another and have the same time.

/// Prefix of the text of a track of stacks, followed by the name of the thread.
pub const TRACK_START: &str = "stacks of ";
/// The outermost frame of a loader worker's stack, which distinguishes it from the training thread's.
pub const LOADER_WORKER: &str = "loader worker";
