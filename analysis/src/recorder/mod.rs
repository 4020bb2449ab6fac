//! Writes what a source yields to a recording: one session's stream (`session.rs`), or those of all ranks of a run side
//! by side (`run.rs`).

mod beginning;
mod chunks;
mod due;
mod earlier;
mod head;
#[cfg(test)]
mod past_tests;
mod run;
mod session;

pub use run::RunRecorder;
pub use session::{Recorder, RecorderOptions};
