//! gnntop's probe behind a C interface, described in `include/gnntop.h`.
//!
//! Python calls it through `ctypes`, so that one file serves every interpreter and needs no Python headers. The header says
//! what each call means; the modules implement it. `abi` has the C functions and lets nothing unwind, and `builtins` makes
//! Python's own functions of those called at every step. `thread` has a thread's open spans and decides where its events
//! go, `early` keeps them until there is a session, and `worker` sends them to the parent process. `session` is the
//! process's one session, with what `gnntop trace` asks of it, and `names` its names. `overdue` knows how long phases
//! usually take, `endings` has the functions that end a process, and `stacks` records where the training thread is when one takes too long. `cuda` times a GPU, and `nccl`
//! has what NCCL reports about the ranks. `warning` keeps what went wrong, and `answers` opens the files in which Python tells of itself.
//!
//! `steps` understands a training loop from the work that is reported of it. `training` has a loop for each thread, `recorded`
//! records what it understands, and `slots` says which threads train; `work_abi` reports for C, and for Python `hooked`, which
//! calls a library's function in between, and `work_builtins`, both through `events`; `listeners` has what Python sets for them.
//! `device_waits` counts how often the thread waits for a device, and knows where. `roots` knows the modules whose calls are forward passes, `batches` reads how large a batch is, `collector` records the
//! pauses of Python's, and `gradients` looks for denormal numbers. `memory` reads memory where reading may fail. `cpython` has the functions of CPython that all these call, and `objects` what an object tells without
//! its class's code.

mod abi;
mod answers;
mod batches;
mod builtins;
mod calls;
mod collector;
mod cpython;
mod cuda;
mod device_waits;
mod early;
mod endings;
mod events;
mod gradients;
mod hooked;
mod listeners;
mod memory;
mod names;
mod nccl;
mod objects;
mod overdue;
mod recorded;
mod roots;
mod session;
mod slots;
mod stacks;
mod steps;
mod thread;
mod training;
mod warning;
mod work_abi;
mod work_builtins;
mod worker;
mod worker_abi;

pub use abi::*;
pub use answers::{gnntop_append, gnntop_open_high};
pub use builtins::gnntop_builtin;
pub use endings::gnntop_ending;
pub use nccl::{ncclProfiler_v3, ncclProfiler_v4, ncclProfiler_v5};
pub use work_abi::*;
pub use worker_abi::*;
