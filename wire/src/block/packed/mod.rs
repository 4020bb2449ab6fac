//! Blocks as bits, for recordings: each event and each of its numbers is predicted from the previous events of the block,
//! and only the difference is written.
//!
//! Live sessions use rows (`block/rows`): their blocks hold a few events each, too few for predictions.

mod bits;
mod coder;
mod layout;
mod number;
mod read;
mod symbols;
mod write;

pub(super) use read::{Unpacker, Unpacking};
pub(super) use write::Packer;
