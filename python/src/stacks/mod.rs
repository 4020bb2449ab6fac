//! Where a Python program is when it takes too long: another thread of the process reads the training thread's stack, and
//! those of loader workers that it waits for, without the GIL, without a signal, and without stopping any thread.
//!
//! ```text
//! layout.rs   where CPython keeps what is read, by its version
//! frames.rs   the frames of a thread, with file and line, and their text
//! blocked.rs  the system call that a thread waits in; mounts.rs: the file system of its file
//! watch.rs    the thread that checks whether the current phase is `overdue`, and records
//! gil.rs      whether the thread waits for the interpreter lock, and where its holder is
//! sample.rs   the thread that samples stacks at a fixed rate; paths.rs: each stack written once, then counted
//! running.rs  a stack that is read again and again; workers.rs: those of loader workers that are waited for
//! ```
//!
//! A thread that keeps running while it is read may be seen in an inconsistent state: the chain is then read again, and
//! ends at the first unreadable frame. Before anything is watched, the calling thread's own stack is read and
//! compared with what Python says about it.

mod blocked;
mod frames;
mod gil;
mod layout;
mod mounts;
mod paths;
mod running;
mod sample;
mod watch;
mod workers;

pub(crate) use frames::{Frame, format_frame, is_own};
pub(crate) use watch::{thread_state, watch};
