//! Blocks as bits, for recordings: what an event is, and each of its numbers, is foretold from the events before it in the
//! block, and only what is different is written.
//!
//! Rows (`block/rows`) are for live sessions: their blocks hold a few events each, from which nothing can be foretold.

mod bits;
mod coder;
mod layout;
mod number;
mod read;
mod symbols;
mod write;

pub(super) use read::{Unpacker, Unpacking};
pub(super) use write::Packer;
