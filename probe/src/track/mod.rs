//! Tracks: what one thread of the program writes, and the guards that write it.
//!
//! A thread writes to at most one track at a time. The recording path finds it through one thread-local pointer, so that a
//! library deep inside a model can record a span without being passed anything. A guard ends on the thread where it began.
//!
//! ```text
//! span, step, point ──▶ local: this thread's track ──▶ ring ──▶ reader: a block of the stream
//!     └─ observer: what a device adds, where one is attached
//! ```

pub mod after;
mod local;
mod observer;
mod open_span;
mod peaks;
mod point;
mod reader;
mod shared;
mod span;
mod step;

pub use local::{Opener, Track, opener, track};
pub(crate) use local::{attach, current_account, observer};
pub(crate) use observer::{EndedSpan, NO_MARK, Observer};
pub(crate) use peaks::Peak;
pub(crate) use point::{absent, allocation, phase_peak, rival, sample};
pub use point::{counter, mark, set_step, timed_mark};
pub use span::{Span, span};
pub use step::{Step, step};
