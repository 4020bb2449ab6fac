//! Blocks as rows of bytes, one for each event: what live sessions are made of.
//!
//! Spans are nearly all of a stream, so they get the short form (tag with the name inside, two deltas); all
//! other kinds carry their length, so that a reader can step over what it does not know.

mod format;
mod read;
mod write;

pub(super) use format::LastValues;
pub(super) use read::Rows;
pub(super) use write::{Context, MAX_EVENT_LEN, put_event};
