//! Blocks: the events of one track over a short time, as rows (live sessions) or as bits (recordings).

mod decode;
mod encode;
mod format;
mod packed;
mod rows;
mod sink;
mod work;

pub use decode::Events;
pub(crate) use decode::{Scratch, open};
pub use encode::BlockEncoder;
pub use format::{BlockInfo, MAX_BLOCK_LEN};
pub use sink::EventSink;
pub(crate) use work::Allowance;
