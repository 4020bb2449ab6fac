//! Blocks as bits, for recordings: each event and each of its numbers is predicted from the previous events of the track,
//! and only the difference is written.
//!
//! A block goes on from what the track's blocks before it have taught, and names the last of them by its checksum. A reader
//! that has not read exactly that block, all of it, cannot read this one either, and says so.
//!
//! Live sessions use rows (`block/rows`): their blocks hold a few events each, too few for predictions.

mod bits;
mod coder;
mod layout;
mod number;
mod read;
mod symbols;
mod write;

pub(super) use read::{Unpackers, Unpacking};
pub(super) use write::Packer;

/// Tracks whose blocks go on from one another: those with lower ids than this. A reader keeps a model of each.
const TRACKS_KEPT: u32 = 16;
/// Most blocks that go on from one that began anew, so that a damaged one costs no more than these.
const MOST_ON_END: u32 = 15;
