//! Where the frames come from: a live session, a recording, a replay of one, or sensors read in the viewer.
//!
//! A [`Source`] passes the items of the stream to a [`Sink`](crate::stream::Sink) a little at a time, so that its caller
//! stays responsive. The kind of source shows only in its [`Status`]; no code after this module depends on it.
//!
//! ```text
//! discover ─▶ target (PID, NAME, DIR, file) ─▶ live │ recording │ playback │ hardware │ launched ─▶ Sink (the store, a recorder)
//! ```

pub mod afterword;
mod before;
pub mod called;
pub mod catalog;
mod chunks;
mod clocks;
#[cfg(test)]
mod dense_tests;
#[cfg(test)]
pub(crate) mod fixture;
mod hardware;
mod holes;
mod launched;
mod live;
mod live_run;
mod one_rank;
mod outline;
mod past;
mod pipe;
pub mod playback;
mod polling;
pub mod process;
pub mod recording;
pub mod runs;
mod sniffed;
mod spool;
mod status;
mod summed;
#[cfg(test)]
mod summed_tests;
mod tally;
pub mod target;
mod whole_past;
mod whose;

pub use hardware::Hardware;
pub use launched::{Launched, session_of};
pub use live::Live;
pub use live_run::{LiveRun, follow};
pub use one_rank::OneRank;
pub use playback::Playback;
pub use polling::{Control, Progress, Source};
pub use recording::Recording;
pub use status::{DamageTotal, State, Status, Transport};
pub use summed::{Extent, READ_WHOLE, Short};
