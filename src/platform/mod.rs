//! What the program asks of the system where systems differ: the one place of this crate that does. Both systems have the same
//! files, with the same functions in them.
//!
//! ```text
//! files.rs      kinds of files, whether two are the same, what an old one leaves to its successor
//! keyboard.rs   the terminal that keys come from
//! process.rs    this process, and one that is started beside it
//! signals.rs    signals, as far as the system has them
//! ```
//!
//! What starts, joins or stops other programs is for Linux alone, and not here (`cli/mod.rs`).

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{files, keyboard, process, signals};
#[cfg(windows)]
pub use windows::{files, keyboard, process, signals};
