//! What every source can do: be polled a little at a time, tell its status, obey a transport key.

use std::time::Duration;

use super::status::Status;
use crate::stream::Sink;

/// Something that yields a stream of items.
pub trait Source: Send {
    /// Hands over what has come since the last call, for about `budget` at most, and never waits for more.
    fn poll(&mut self, sink: &mut dyn Sink, budget: Duration) -> Progress;

    /// What is known about the source for the footer and for the notes of a report.
    fn status(&self) -> Status;

    /// Obeys a transport key. Does nothing where [`Status::transport`] is `None`.
    fn control(&mut self, _control: Control) {}
}

/// What a call of [`Source::poll`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether anything was handed over or the status changed.
    pub changed: bool,
    /// Whether more is ready right now, so that the next poll need not wait.
    pub more: bool,
}

/// What a transport key asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control {
    /// Stands still, or goes on.
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
    /// Goes to the end of the first step with this number or a higher one; to the end where there is none.
    SeekStep(u64),
    /// Marks the position as the beginning of a part that is played over and over, then as its end, then forgets both.
    MarkRange,
    /// Starts over at the end, or no longer does.
    ToggleLoop,
}
