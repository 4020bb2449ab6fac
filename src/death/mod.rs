//! Why a program died, in one paragraph.
//!
//! ```text
//! kernel.rs     memory: limits, peaks and out-of-memory kills, read before and after
//! last_state.rs  its CPU time and the limit on it, as the kernel says at the end
//! output.rs     what the program's last lines say: exceptions, launchers, crashes
//! tracebacks.rs Python's tracebacks in it, in each form
//! frames.rs     the lines of a stack, and the program's own among them
//! exception.rs  what a program can die of, and the exception that says so
//! diagnosis.rs  all that is known of the end, as plain data, and the one cause that fits it
//! paragraph.rs  the words
//! ```
//!
//! Nothing here waits for a program or prints: who owned the program gathers the evidence.

mod diagnosis;
mod exception;
mod frames;
mod kernel;
mod last_state;
mod output;
mod paragraph;
mod tracebacks;

pub use diagnosis::{Evidence, LastMoment, MemoryChange, ProcessEnd};
pub use exception::Cause;
pub use kernel::{MemoryFigures, MemoryWatch};
pub use last_state::CpuFigures;
pub use output::OutputEvidence;
pub use paragraph::Death;
