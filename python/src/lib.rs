//! gnntop's probe behind a C interface, which `include/gnntop.h` describes.
//!
//! Python calls it through `ctypes`, so that one file serves every interpreter and needs no header of any. What a call
//! means is in the header; here is how it comes about: `abi` takes what C gives and lets nothing unwind, `builtins` makes
//! functions of Python's own of what is called at every step, `thread` holds what a thread has open and decides where its
//! events go, `early` keeps them until there is a session, `worker` sends them to the parent process, `session` is the one
//! session of the process, `names` its names. `overdue` knows how long phases usually take, and `stacks` says where the training
//! thread is when one takes too long. `cuda` times a GPU, and `nccl` has what NCCL tells of the ranks.

mod abi;
mod builtins;
mod cuda;
mod early;
mod names;
mod nccl;
mod overdue;
mod session;
mod silence;
mod stacks;
mod thread;
mod warning;
mod worker;

pub use abi::*;
pub use builtins::gnntop_builtin;
pub use nccl::{ncclProfiler_v3, ncclProfiler_v4, ncclProfiler_v5};
