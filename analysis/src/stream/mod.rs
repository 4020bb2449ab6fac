//! The ground floor: what everybody agrees on who hands over a stream, takes it in or writes it on. Sources hand items to a
//! [`Sink`] and know nothing of what stands behind it.
//!
//! ```text
//! sink.rs    what takes in items
//! clock.rs   how the clocks of two sessions lie to each other
//! run.rs     what makes sessions one run
//! death.rs   what is added to a session after its program's death
//! ```

mod clock;
mod death;
mod run;
mod sink;

pub use clock::{Alignment, Evidence, align};
pub use death::{DIED, DIED_OF};
pub use run::{MOST_SESSIONS, RIVAL_NS, RankKind, follows, may_overlap};
pub use sink::Sink;
