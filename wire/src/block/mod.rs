//! Blocks: the events of one track over a short time, delta-coded and compressed.
//!
//! Spans are nearly all of a stream, so they get the short form (tag with the name inside, two deltas); all
//! other kinds carry their length, so that a reader can step over what it does not know.

mod decode;
mod encode;
mod format;
mod work;

pub use decode::Events;
pub(crate) use decode::{Scratch, open};
pub use encode::BlockEncoder;
pub use format::{BlockInfo, MAX_BLOCK_LEN};
pub(crate) use work::Allowance;
