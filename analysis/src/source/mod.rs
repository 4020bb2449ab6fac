//! Where the frames come from: a live session, a recording, a replay of one, or sensors read in the viewer.
//!
//! A [`Source`] passes the items of the stream to a [`Sink`](crate::stream::Sink) a little at a time, so that its caller
//! stays responsive. The kind of source shows only in its [`Status`]; no code after this module depends on it.
//!
//! ```text
//! discover ─▶ target (PID, NAME, DIR, file) ─▶ live │ recording │ playback │ hardware │ launched ─▶ Sink (the store, a recorder)
//! ```

pub mod catalog;
mod chunks;
#[cfg(test)]
mod dense_tests;
pub mod exit_record;
mod file_format;
#[cfg(test)]
pub(crate) mod fixture;
mod hardware;
mod holes;
pub mod latest;
mod launched;
mod live;
mod live_run;
mod long_recording;
#[cfg(test)]
mod long_recording_tests;
mod one_rank;
mod outline;
mod owner;
mod past_figures;
mod pipe;
mod pipe_file;
mod platform;
pub mod playback;
mod polling;
pub mod process;
pub mod program_name;
pub mod recording;
pub mod runs;
mod session_past;
mod tally;
pub mod target;
pub mod time_left;

pub use hardware::{Hardware, Launcher};
pub use launched::{Launched, ProgramSession};
pub use live::Live;
pub use live_run::{LiveRun, follow};
pub use long_recording::{Extent, FULL_READ_LIMIT, FullReadLimit};
pub use one_rank::OneRank;
pub use playback::Playback;
pub use polling::{Control, DamageTotal, Progress, Source, SourceState, Status, Transport};
pub use recording::Recording;
