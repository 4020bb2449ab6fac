//! The interface of every source: it can be polled a little at a time, reports its status and handles transport keys.

use std::time::Duration;

use super::status::Status;
use crate::stream::Sink;

/// Something that yields a stream of items.
pub trait Source: Send {
    /// Passes on what has arrived since the last call, for about `budget` at most. Never waits for more.
    fn poll(&mut self, sink: &mut dyn Sink, budget: Duration) -> Progress;

    /// The source's status, for the footer and for the notes of a report.
    fn status(&self) -> Status;

    /// Handles a transport key. Does nothing if [`Status::transport`] is `None`.
    fn control(&mut self, _control: Control) {}
}

/// The result of [`Source::poll`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether anything was passed on or the status changed.
    pub changed: bool,
    /// Whether more is ready now, so that the next poll need not wait.
    pub more: bool,
}

/// The action of a transport key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control {
    /// Pauses or resumes.
    TogglePause,
    /// The next higher speed.
    Faster,
    /// The next lower speed.
    Slower,
    /// Pauses and moves by this many frames of [`FRAME_NS`](super::playback::FRAME_NS), backwards if negative.
    StepFrames(i64),
    /// Goes to a time, in nanoseconds from the start of the recording.
    Seek(u64),
    /// Goes to a share of the recording, from 0 to 1.
    SeekShare(f64),
    /// Goes to the end of the first step with this number or a higher one, or to the end if there is none.
    SeekStep(u64),
    /// Marks the position as the beginning of a part to be repeated, then as its end, then clears both.
    MarkRange,
    /// Turns starting over at the end on or off.
    ToggleLoop,
}
