//! Tracks of other processes: workers that this process starts, such as data loader workers.
//!
//! The parent makes a ring in shared memory before the worker starts, and its session drains the ring like a thread's. The
//! worker attaches by the ring's address, however it was started, and records there without knowing of a session.
//!
//! ```text
//! worker ──span, counter, mark──▶ ring in shared memory ─▶ the parent's drain thread ─▶ a track of the parent's session
//! ```
//!
//! Ticks mean the same in all processes of a machine. Each name's text is written to the ring once. What a worker writes is
//! not trusted: it can make its track wrong, and nothing else.

mod memory;
mod ring;
mod tracks;
mod writer;

pub use ring::{Ring, RingError};
pub(crate) use tracks::WaitingRings;
pub use writer::{RingName, Writer};
