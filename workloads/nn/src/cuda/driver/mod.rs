//! The driver of NVIDIA GPUs, through candle and cudarc: everything that needs CUDA to compile.
//! [`absent`](super::absent) has the same names for builds without.

mod capture;
mod copies;
mod launch;
mod open;
mod pool;
mod storage;
mod stream;

pub use capture::{Captured, capture, rehearse};
pub(crate) use copies::PinnedCopies;
pub(crate) use launch::launch;
pub use open::{allow_tf32, count, one_line, open};
pub(crate) use pool::let_use;
pub use pool::{bind, keep_freed_memory, let_others_use, memory_pool, set_pool_attribute};
pub(crate) use storage::{address_of, allocate};
pub(crate) use stream::stream_of;
