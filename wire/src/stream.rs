//! Reads a stream piece by piece, as it comes from a file, a pipe or a session that is still being written.

use crate::block::{self, BlockInfo, Events, Scratch};
use crate::event::{Anchor, Definition, End, SessionInfo};
use crate::frame::{self, HEADER_LEN, Kind, MAX_PAYLOAD_LEN, RawFrame, Scan};
use crate::{FORMAT_MAJOR, meta};

/// What a stream said next.
#[derive(Debug)]
pub enum Item<'a> {
    /// A segment begins; a session or recording starts with one.
    Segment(SessionInfo),
    /// Ids got their meaning.
    Definitions(Vec<Definition>),
    /// The publisher read its clocks.
    Anchor(Anchor),
    /// Events of one track.
    Block(BlockInfo, Events<'a>),
    /// The session ended in good order.
    End(End),
    /// A good frame of a kind that this version does not know.
    Unknown,
    /// Bytes that hold no frame were stepped over.
    Damage(Damage),
    /// A segment written in a format this version cannot read; nothing sensible follows until the next one.
    Newer {
        /// The segment's major format version.
        major: u64,
    },
}

/// A hole in a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Where it begins, in bytes from the start of the stream.
    pub offset: u64,
    /// Bytes stepped over.
    pub len: u64,
}

/// Cuts a byte stream into [`Item`]s. Holds at most one frame and one chunk of input.
#[derive(Debug, Default)]
pub struct StreamReader {
    buffer: Vec<u8>,
    /// Start of what is not consumed yet, in `buffer`.
    at: usize,
    /// Offset of `buffer[0]` in the stream.
    buffer_offset: u64,
    finished: bool,
    scratch: Scratch,
}

impl StreamReader {
    /// A reader at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// A reader whose first byte stands at `offset` of its stream, for reading from the middle.
    pub fn starting_at(offset: u64) -> Self {
        Self { buffer_offset: offset, ..Self::default() }
    }

    /// Hands over the stream's next bytes. Call [`StreamReader::next`] until it gives `None` before the
    /// next `fill`, and fill in chunks (64 KiB to 1 MiB), so that memory stays bounded.
    pub fn fill(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.at);
        self.buffer_offset += self.at as u64;
        self.at = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Says that no more bytes will come: what is incomplete now is damage.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// Offset in the stream up to which everything was read.
    pub fn offset(&self) -> u64 {
        self.buffer_offset + self.at as u64
    }

    /// Bytes handed over and not consumed: the beginning of a frame whose rest has not come.
    pub fn pending(&self) -> usize {
        self.buffer.len() - self.at
    }

    /// The next item, `None` when more bytes are needed or, after [`StreamReader::finish`], at the end.
    #[allow(clippy::should_implement_trait)] // lends from the reader, which Iterator cannot
    pub fn next(&mut self) -> Option<Item<'_>> {
        let bytes = &self.buffer[self.at..];
        let len = match frame::scan(bytes) {
            Scan::Frame(frame) => frame.encoded_len(),
            Scan::Incomplete if !self.finished => return None,
            _ if bytes.is_empty() => return None,
            _ => return self.step_over_damage().map(Item::Damage),
        };
        let (offset, start) = (self.offset(), self.at + HEADER_LEN);
        self.at += len;
        let frame = RawFrame {
            kind: Kind(self.buffer[start - HEADER_LEN + 2]),
            flags: self.buffer[start - HEADER_LEN + 3],
            payload: &self.buffer[start..self.at],
        };
        let malformed = Item::Damage(Damage { offset, len: len as u64 });
        Some(decode(frame, &mut self.scratch).unwrap_or(malformed))
    }

    /// Moves to the next place where a frame may start. `None` when the rest may still become one.
    fn step_over_damage(&mut self) -> Option<Damage> {
        let offset = self.offset();
        let start = self.at;
        loop {
            self.at += frame::resync(&self.buffer[self.at..]);
            let rest = &self.buffer[self.at..];
            let whole = matches!(frame::scan(rest), Scan::Frame(_));
            if whole || rest.is_empty() || !self.finished {
                return Some(Damage { offset, len: (self.at - start) as u64 });
            }
        }
    }
}

/// Decodes one frame; `None` where its payload is malformed.
fn decode<'a>(frame: RawFrame<'a>, scratch: &'a mut Scratch) -> Option<Item<'a>> {
    debug_assert!(frame.payload.len() <= MAX_PAYLOAD_LEN, "scan() bounds it");
    Some(match frame.kind {
        Kind::SEGMENT => match meta::segment(frame.payload).ok()? {
            (_, Some(info)) => Item::Segment(info),
            (major, None) if major > u64::from(FORMAT_MAJOR) => Item::Newer { major },
            _ => return None,
        },
        Kind::DEFINITIONS => Item::Definitions(meta::definitions(frame.payload).ok()?),
        Kind::ANCHOR => Item::Anchor(meta::anchor(frame.payload).ok()?),
        Kind::END => Item::End(meta::end(frame.payload).ok()?),
        Kind::BLOCK => {
            let (info, events) = block::open(frame, scratch)?;
            Item::Block(info, events)
        }
        _ => Item::Unknown,
    })
}
