//! The driver of NVIDIA GPUs, through candle and cudarc: everything that needs CUDA to compile.
//! [`absent`](super::absent) has the same names for builds without.

mod capture;
mod copies;
mod events;
mod launch;
mod observe;
mod open;
mod pool;
mod storage;
mod stream;

pub(crate) use capture::{Captured, capture, rehearse};
pub(crate) use copies::PinnedCopies;
pub(crate) use launch::launch;
pub(crate) use observe::observe;
pub(crate) use open::{allow_tf32, count, open};
#[cfg(any(feature = "nccl", test))]
pub(crate) use pool::let_use;
pub(crate) use storage::{address_of, allocate};
#[cfg(any(feature = "nccl", test))]
pub(crate) use stream::stream_of;
