//! Where the frames come from: a live session, a recording, a replay of one, or sensors read in the viewer.
//!
//! A [`Source`] hands [`Item`]s of the stream to a [`Sink`] a little at a time, so that whoever calls it stays
//! responsive. What is behind it shows only in its [`Status`]; no code after this module asks which it is.
//!
//! ```text
//! discover ─▶ target (PID, NAME, DIR, file) ─▶ live │ recording │ playback │ hardware │ launched ─▶ Sink (the store, a recorder)
//! ```

pub mod catalog;
mod clocks;
pub mod discover;
#[cfg(test)]
pub(crate) mod fixture;
mod hardware;
mod launched;
mod live;
mod live_run;
mod one_rank;
mod outline;
mod pipe;
pub mod playback;
pub mod process;
pub mod recording;
pub mod runs;
mod segments;
mod spool;
pub mod target;
mod whose;

pub use hardware::Hardware;
pub use launched::{Launched, session_of};
pub use live::Live;
pub use live_run::{LiveRun, follow};
pub use one_rank::OneRank;
pub use playback::Playback;
pub use recording::Recording;

use std::time::Duration;

use gnntop_wire::{Damage, Item, SessionInfo, StreamReader};

use crate::ranks::Run;
use crate::store::Store;

/// What takes in the items of a stream.
pub trait Sink {
    /// Takes the next item.
    fn apply(&mut self, item: Item<'_>);

    /// Forgets everything: the items that follow start anew, from the beginning of a stream.
    fn reset(&mut self);

    /// What follows is about this session, whose segment was handed over before. Sources that take turns between sessions
    /// say so; a sink of one session need not care.
    fn turn_to(&mut self, _session_id: u128) {}

    /// So many segments were dropped by the publisher before they could be read.
    fn lose_segments(&mut self, _count: u64) {}

    /// Whether the publisher lives, told by sources that can see it.
    fn see_publisher(&mut self, _alive: bool) {}
}

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

/// Whether more is to come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing has come yet.
    #[default]
    Waiting,
    /// Data comes, or may come.
    Running,
    /// Nothing more will come; the text says why, in words.
    Ended(String),
}

/// What is known about a source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// Whom the source shows: the session's name and process id, or the recording's file.
    pub title: String,
    /// Whether more is to come.
    pub state: State,
    /// Whether the data is made now, so that its newest event is about as old as the last poll.
    pub live: bool,
    /// Segments dropped by the publisher before they could be read.
    pub lost_segments: u64,
    /// What of the stream could not be read.
    pub damage: DamageTotal,
    /// Frames behind damage of which nobody knows whose they are.
    pub left_out: u64,
    /// Ranks that went on beside each other come one after the other: what has gone by on one is over when the next comes.
    pub ranks_in_turn: bool,
    /// The format version of segments that were left out because they are newer than this program.
    pub newer_format: Option<u64>,
    /// How to get more than this source has.
    pub hint: Option<String>,
    /// Position and speed, where the source can be moved in.
    pub transport: Option<Transport>,
}

impl Status {
    /// What a person must know about missing data, one sentence each; empty when all was read.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(first) = self.damage.first {
            let DamageTotal { holes, bytes, .. } = self.damage;
            let places = if holes == 1 { "one place".to_owned() } else { format!("{holes} places") };
            let offset = first.offset;
            warnings.push(format!("damaged in {places}, first at byte {offset}: {bytes} bytes could not be read"));
        }
        if self.left_out > 0 {
            warnings.push(format!("{} pieces behind damage could not be told to belong to a rank", self.left_out));
        }
        if self.ranks_in_turn {
            let words =
                "the ranks come one after the other through this pipe: replay the file itself to see them in step";
            warnings.push(words.to_owned());
        }
        if self.lost_segments > 0 {
            warnings.push(format!("{} segments were dropped before they could be read", self.lost_segments));
        }
        if let Some(major) = self.newer_format {
            warnings.push(format!("parts in the newer format {major} were left out: update gnntop"));
        }
        warnings
    }
}

/// The holes in a stream, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DamageTotal {
    /// How many holes.
    pub holes: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// The first one.
    pub first: Option<Damage>,
}

impl DamageTotal {
    /// Adds the holes of another stream.
    fn add(&mut self, other: &Self) {
        self.holes += other.holes;
        self.bytes += other.bytes;
        self.first = self.first.or(other.first);
    }
}

/// Where a replay stands. Times are nanoseconds from the start of the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transport {
    /// The instant shown.
    pub position_ns: u64,
    /// Length of the recording; `None` for a pipe, whose end is not known.
    pub total_ns: Option<u64>,
    /// Speed; 1 is as recorded.
    pub speed: f64,
    /// Whether the clock stands.
    pub paused: bool,
    /// Whether it starts over at the end.
    pub looping: bool,
    /// The ends of the part that is played over and over; one end while the other is not marked yet.
    pub part: (Option<u64>, Option<u64>),
    /// Whether it is still on its way to the position.
    pub seeking: bool,
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
    /// Pauses and moves by this many frames of [`playback::FRAME_NS`], backwards if negative.
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

/// What every source notes about the items that it passes on.
#[derive(Debug, Default)]
struct Tally {
    session: Option<SessionInfo>,
    damage: DamageTotal,
    newer_format: Option<u64>,
    /// Reason of an end in good order.
    end: Option<String>,
    /// Blocks passed on.
    blocks: u64,
}

impl Tally {
    /// Passes on everything that `reader` can give now.
    fn pump(&mut self, reader: &mut StreamReader, sink: &mut dyn Sink) {
        while let Some(item) = reader.next() {
            self.note(&item);
            sink.apply(item);
        }
    }

    fn note(&mut self, item: &Item<'_>) {
        match item {
            Item::Segment(info) => self.session = Some(info.clone()),
            Item::Damage(hole) => {
                self.damage.holes += 1;
                self.damage.bytes += hole.len;
                self.damage.first.get_or_insert(*hole);
            }
            Item::Newer { major } => self.newer_format = Some(*major),
            Item::End(end) => self.end = Some(end.reason.clone()),
            Item::Block(..) => self.blocks += 1,
            _ => (),
        }
    }

    /// `name (pid 4711)`, or `unknown` before the first segment.
    fn title(&self) -> String {
        self.session.as_ref().map_or_else(|| "unknown".to_owned(), |info| format!("{} (pid {})", info.name, info.pid))
    }
}

impl Sink for Store {
    fn apply(&mut self, item: Item<'_>) {
        Self::apply(self, item);
    }

    fn reset(&mut self) {
        *self = Self::default();
    }

    fn lose_segments(&mut self, count: u64) {
        self.note_lost_segments(count);
    }

    fn see_publisher(&mut self, alive: bool) {
        self.note_publisher(alive);
    }
}

impl Sink for Run {
    fn apply(&mut self, item: Item<'_>) {
        Self::apply(self, item);
    }

    fn reset(&mut self) {
        Self::reset(self);
    }

    fn turn_to(&mut self, session_id: u128) {
        Self::turn_to(self, session_id);
    }

    fn lose_segments(&mut self, count: u64) {
        self.current_mut().note_lost_segments(count);
    }

    fn see_publisher(&mut self, alive: bool) {
        self.current_mut().note_publisher(alive);
    }
}
