//! Blocks as bits, for recordings: each event and each of its numbers is predicted from the previous events of the track,
//! and only the difference is written.
//!
//! A block continues what the track's blocks before it have taught, and names the last of them by its checksum. A reader
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
