//! The mark of steps that a deep trace slows down.

/// Text of the mark at the start of each step that a deep trace slows down. Percentiles leave these steps out.
pub const MARK: &str = "deep trace";
