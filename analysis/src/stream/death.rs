//! The facts that who owned a program adds to its session after its death.

/// Why the program died, in one paragraph.
pub const DIED: &str = "died";
/// The same in a word for programs, such as `out-of-memory`.
pub const DIED_OF: &str = "died of";
