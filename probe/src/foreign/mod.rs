//! Tracks of other processes: workers that this one starts, such as those that load data.
//!
//! The parent makes a ring in shared memory before the worker starts, and its session drains it like a thread's. The worker attaches
//! by the ring's address, whichever way it was started, and records there without knowing of a session.
//!
//! ```text
//! worker ──span, counter, mark──▶ ring in shared memory ─▶ the parent's drain thread ─▶ a track of the parent's session
//! ```
//!
//! Ticks mean the same in all processes of a machine. Names go by text, once a ring. What a worker wrote is not trusted:
//! it can make a track wrong, and nothing else.

mod memory;
mod ring;
mod tracks;
mod writer;

pub use ring::{Ring, RingError};
pub(crate) use tracks::Waiting;
pub use writer::{RingName, Writer};
