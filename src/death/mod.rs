//! Why a program died, in one paragraph.
//!
//! ```text
//! kernel.rs     memory: limits, peaks and out-of-memory kills, read before and after
//! output.rs     what the program's last lines say: exceptions, launchers, crashes
//! exception.rs  a Python traceback, and the causes behind its exception
//! place.rs      the line of the program in a stack
//! evidence.rs   all that is known of the end, as plain data
//! cause.rs      what a program can die of; diagnosis.rs: the one cause that fits the evidence
//! paragraph.rs  the words
//! ```
//!
//! Nothing here waits for a program or prints: who owned the program gathers the evidence.

mod cause;
mod diagnosis;
mod evidence;
mod exception;
mod kernel;
mod output;
mod paragraph;
mod place;

pub use cause::Cause;
pub use evidence::{Evidence, LastMoment, MemoryChange, ProcessEnd};
pub use kernel::{MemoryFigures, MemoryWatch};
pub use output::OutputEvidence;
pub use paragraph::Death;
