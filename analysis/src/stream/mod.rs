//! What everything that passes on, receives or writes a stream agrees on. Sources pass items to a [`Sink`] and know nothing
//! of what is behind it.
//!
//! ```text
//! sink.rs    what receives items
//! clock.rs   the offset between the clocks of two sessions
//! run.rs     what makes sessions one run
//! ```

mod clock;
mod run;
mod sink;

pub(crate) use clock::Clocks;
pub use clock::{Alignment, ClockEvidence, align};
pub use run::{MAX_SESSIONS, RIVAL_NS, follows, may_overlap};
pub use sink::Sink;
