//! Writes what a source yields to a recording: one session's stream (`session.rs`), or those of all ranks of a run side
//! by side (`run.rs`).

mod chunk_limit;
mod chunks;
mod first_steps;
mod options;
#[cfg(test)]
mod past_tests;
mod run;
mod segment_head;
mod session;
mod skipped_marks;

pub use options::RecorderOptions;
pub use run::RunRecorder;
pub use session::Recorder;
