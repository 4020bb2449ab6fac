//! Blocks: the events of one track over a short time, as rows (live sessions) or as bits (recordings).

mod decode;
mod encode;
mod format;
mod packed;
mod rows;
mod work;

pub use decode::Events;
pub(crate) use decode::{Scratch, open};
pub use encode::BlockEncoder;
pub use format::{BlockInfo, EventSink, MAX_BLOCK_LEN};
pub(crate) use work::Allowance;
