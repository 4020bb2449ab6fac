//! What everything that passes on, receives or writes a stream agrees on. Sources pass items to a [`Sink`] and know nothing
//! of what is behind it.
//!
//! ```text
//! sink.rs    what receives items
//! clock.rs   the offset between the clocks of two sessions
//! run.rs     what makes sessions one run
//! death.rs   what is added to a session after its program's death
//! ```

mod clock;
mod death;
mod run;
mod sink;

pub use clock::{Alignment, ClockEvidence, align};
pub use death::{DEATH_CAUSE, DEATH_TEXT};
pub use run::{MAX_SESSIONS, RIVAL_NS, follows, may_overlap};
pub use sink::Sink;
