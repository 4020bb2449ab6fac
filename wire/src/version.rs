//! The versions of the stream; what each one changed stands at the top of the crate.

/// The newest major version that this crate reads: that of a recording, whose blocks are packed.
pub const FORMAT_MAJOR: u16 = 2;
/// Minor version of the recordings written by this crate.
pub const FORMAT_MINOR: u16 = 1;
/// Version of the live sessions written by this crate, whose blocks are rows.
pub(crate) const LIVE_FORMAT: (u16, u16) = (1, 4);
