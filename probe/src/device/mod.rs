//! A device that the training thread hands its work to: when it did that work, by its own clock, and what memory that took.
//!
//! A GPU runs behind the thread that feeds it, so a span on the host says when work was handed over, not when it was done.
//! Waiting at every span would tell, and would slow the training. Instead the thread puts a *mark* on the device's stream at
//! both ends of a phase, which costs it about a microsecond, and the drain thread asks later, without waiting, which marks
//! the device has reached.
//!
//! ```text
//! training thread ──record──▶ stream of the device
//!        └─ marks and hand-over times ─▶ ring ─▶ drain thread: reached? ─▶ device clock ─▶ device spans
//!        ◀──────────────── marks to use again ─ ring ─┘
//! ```
//!
//! All marks are made at the start. Where none is free, or the device is lost, spans go untimed and are counted as dropped
//! on the device's track. `DeviceClock` in `clock` says how the device's clock is laid over the host's, and how
//! far that may be off.
//!
//! [`Pool`] is the same for memory: read at the edges of phases, ten times a second at most.

mod attach;
mod clock;
mod memory_watch;
mod observed;
mod pool;
mod recorder;
mod records;
mod resolver;
mod stream;

pub use attach::{Attach, holds, memory};
pub use pool::{Holdings, MemoryReport, Pool, PoolUse};
pub use stream::{ANSWER_LAG_NS, Lost, Stream};
