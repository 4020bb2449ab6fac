//! What happens to a copy.

/// A change by which a copy follows its session. The name is that of a file in the session's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Bytes that are added to the end of a file, which has this many before; the first ones create it.
    Append {
        /// The file.
        file: &'a str,
        /// Its length before.
        at: u64,
        /// What is added.
        bytes: &'a [u8],
    },
    /// A file that is replaced whole.
    Replace {
        /// The file.
        file: &'a str,
        /// What it contains.
        bytes: &'a [u8],
    },
    /// A file that is no longer there.
    Remove {
        /// The file.
        file: &'a str,
    },
}
