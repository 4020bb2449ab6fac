//! The version of the stream; what each one changed stands at the top of the crate.

/// Major version of the stream written by this crate, and the newest it reads.
pub const FORMAT_MAJOR: u16 = 1;
/// Minor version of the stream written by this crate.
pub const FORMAT_MINOR: u16 = 4;
