//! A session copied while it grows, into another directory: on a file system that several machines see, or of another
//! machine. The copy is a session like any other, read by the same code; in place of a lock it has a [`Heartbeat`].
//!
//! The reader asks what the copy has and passes on what is missing; nothing is kept in between, so that a copy is continued
//! after any interruption, by whatever carries it.
//!
//! ```text
//! session ─▶ CopyReader ─▶ changes, in an order that keeps the copy whole ─▶ CopyWriter ─▶ copy
//! ```
//!
//! [`Heartbeat`]: crate::Heartbeat

mod change;
mod reader;
mod writer;

pub use change::Change;
pub use reader::CopyReader;
pub use writer::CopyWriter;
