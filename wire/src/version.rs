//! The versions of the stream; the crate's documentation lists what changed.

/// The newest major version that this crate reads: that of recordings, whose blocks are packed.
pub const FORMAT_MAJOR: u16 = 2;
/// Minor version of the recordings written by this crate.
pub const FORMAT_MINOR: u16 = 1;
/// Version of the live sessions written by this crate, whose blocks are rows.
pub(crate) const LIVE_FORMAT: (u16, u16) = (1, 4);
