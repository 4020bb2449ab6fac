//! Times the work that the training thread submits to a device, by the device's clock, and measures its memory.
//!
//! A GPU lags behind the thread that feeds it, so a span on the host says when work was submitted, not when it was done.
//! Waiting at every span would show that, but would slow the training. Instead the thread puts a *mark* on the device's
//! stream at both ends of a phase, which takes about a microsecond. The drain thread polls later, without waiting, which
//! marks the device has reached.
//!
//! ```text
//! training thread ──record──▶ stream of the device
//!        └─ marks and submission times ─▶ ring ─▶ drain thread: reached? ─▶ device clock ─▶ device spans
//!        ◀──────────────── marks to use again ─ ring ─┘
//! ```
//!
//! All marks are made at the start. If none is free, or the device is lost, spans go untimed and are counted as dropped on
//! the device's track. `DeviceClock` in `clock` describes how the device's clock is mapped to the host's, and with what error.
//!
//! [`Pool`] does the same for memory: it is read at the start and end of each phase, ten times a second at most.

mod attach;
mod clock;
mod memory_watch;
mod observed;
mod pool;
mod recorder;
mod records;
mod resolver;
mod stream;

pub use attach::{Attach, memory, report_holdings};
pub use pool::{Holdings, MemoryReport, Pool, PoolUse};
pub use stream::{ANSWER_LAG_NS, Lost, Stream};
