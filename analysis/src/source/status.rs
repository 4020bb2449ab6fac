//! What is known of a source: whether more is to come, what could not be read, where a replay stands.

use gnntop_wire::Damage;

use crate::figures::counted;

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
    /// What its publisher or its keeper says that a person must know, such as that nothing more can be written.
    pub told: Vec<String>,
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
        let mut warnings = self.told.clone();
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
                "the ranks come one after the other through this pipe: replay the file itself to see them in step";
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
    pub(super) fn add(&mut self, other: &Self) {
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
