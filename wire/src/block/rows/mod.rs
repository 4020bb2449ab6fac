//! Blocks as rows of bytes, one for each event: the format of live sessions.
//!
//! Nearly all events are spans, so they have the short form (a tag with the name inside, two deltas). All other kinds carry
//! their length, so that a reader can skip unknown ones.

mod format;
mod read;
mod write;

pub(super) use format::LastValues;
pub(super) use read::RowsReader;
pub(super) use write::{Context, MAX_EVENT_LEN, put_event};
