//! The interface of every source: it can be polled a little at a time, reports its status (whether more will come, what could
//! not be read, the position of a replay), and handles transport keys.

use std::time::Duration;

use gnntop_wire::Damage;

use crate::figures::counted;
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

/// Whether more will come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SourceState {
    /// Nothing has come yet.
    #[default]
    Waiting,
    /// Data is arriving, or may arrive.
    Running,
    /// Nothing more will come; the text says why.
    Ended(String),
}

/// The status of a source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// What the source shows: the session's name and process id, or the recording's file.
    pub title: String,
    /// Whether more will come.
    pub state: SourceState,
    /// Whether the data is produced now, so that its newest event is about as old as the last poll.
    pub live: bool,
    /// Messages of its publisher or keeper that people must see, such as that nothing more can be written.
    pub messages: Vec<String>,
    /// Segments dropped by the publisher before they could be read.
    pub lost_segments: u64,
    /// Parts of the stream that could not be read.
    pub damage: DamageTotal,
    /// Frames after damage whose session is unknown.
    pub left_out: u64,
    /// Whether ranks that ran at the same time come one after another: one has ended when the next begins.
    pub ranks_in_turn: bool,
    /// The format version of segments left out because they are newer than this program.
    pub newer_format: Option<u64>,
    /// How to get more than this source has.
    pub hint: Option<String>,
    /// Position and speed, if the source has them.
    pub transport: Option<Transport>,
}

impl Status {
    /// What people must know about missing data, one sentence each; empty if everything was read.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.messages.clone();
        if let Some(first) = self.damage.first {
            let DamageTotal { holes, bytes, .. } = self.damage;
            let places = if holes == 1 { "one place".to_owned() } else { format!("{holes} places") };
            let offset = first.offset;
            warnings.push(format!("damaged in {places}, first at byte {offset}: {bytes} bytes could not be read"));
        }
        if self.left_out > 0 {
            warnings.push(format!("{} pieces after damage could not be assigned to a rank", self.left_out));
        }
        if self.ranks_in_turn {
            let words =
                "the ranks come through this pipe one after another: replay the file itself to see them together";
            warnings.push(words.to_owned());
        }
        if self.lost_segments > 0 {
            let segments = counted(self.lost_segments, "segment was", "segments were");
            warnings.push(format!("{segments} dropped unread"));
        }
        if let Some(major) = self.newer_format {
            warnings.push(format!("parts in the newer format {major} were left out: update gnntop"));
        }
        warnings
    }
}

/// Total of the holes in a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DamageTotal {
    /// Number of holes.
    pub holes: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// The first one.
    pub first: Option<Damage>,
}

impl DamageTotal {
    /// Adds the holes of another stream.
    pub(super) fn add(&mut self, other: &Self) {
        self.holes += other.holes;
        self.bytes += other.bytes;
        self.first = self.first.or(other.first);
    }
}

/// The position of a replay. Times are nanoseconds from the start of the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transport {
    /// The instant shown.
    pub position_ns: u64,
    /// Length of the recording; `None` for a pipe, whose end is unknown.
    pub total_ns: Option<u64>,
    /// Speed; 1 is as recorded.
    pub speed: f64,
    /// Whether it is paused.
    pub paused: bool,
    /// Whether it starts over at the end.
    pub looping: bool,
    /// The ends of the part to be repeated; only one while the other is not marked yet.
    pub repeated: (Option<u64>, Option<u64>),
    /// Whether it has not reached the position yet.
    pub seeking: bool,
    /// The step that it was last sent to, if the recording has none that high, and the highest that it has.
    pub missed_step: Option<(u64, u64)>,
}
