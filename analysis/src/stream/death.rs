//! Facts that a program's keeper adds to its session after the program's death.

/// Why the program died, in one paragraph.
pub const DEATH_TEXT: &str = "died";
/// The cause as a keyword for programs, such as `out-of-memory`.
pub const DEATH_CAUSE: &str = "died of";
