//! Reads a stream piece by piece, from a file, a pipe or a session that is still being written.

use crate::block::{self, Allowance, BlockInfo, Events, Scratch};
use crate::event::Definition;
use crate::frame::{FrameKind, RawFrame, Scan, Scanner};
use crate::meta::{self, Segment};
use crate::past::{self, PastEntry};
use crate::session::{Anchor, End, SessionInfo};

/// The next item of a stream.
#[derive(Debug)]
pub enum Item<'a> {
    /// A segment begins; a session or recording starts with one.
    Segment(SessionInfo),
    /// Definitions of ids.
    Definitions(Vec<Definition>),
    /// The publisher read its clocks.
    Anchor(Anchor),
    /// Events of one track.
    Block(BlockInfo, Events<'a>),
    /// The remains of the segments before the next ones.
    Past(Vec<PastEntry>),
    /// The session ended normally.
    End(End),
    /// A good frame of a kind that this version does not know, or any frame after [`Item::Newer`].
    Unknown,
    /// Bytes without a frame, or with a malformed one, were skipped.
    Damage(Damage),
    /// A segment written in a format this version cannot read; its frames follow as [`Item::Unknown`].
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
    /// Bytes skipped.
    pub len: u64,
}

/// Splits a byte stream into [`Item`]s. The items do not depend on the pieces in which the bytes arrive.
///
/// Holds at most two of the longest frames and one chunk of input.
#[derive(Debug, Default)]
pub struct StreamReader {
    buffer: Vec<u8>,
    /// Index in `buffer` of the first byte not yet consumed.
    at: usize,
    /// Offset of `buffer[0]` in the stream.
    buffer_offset: u64,
    /// Where the damage that is being skipped began.
    hole: Option<u64>,
    /// Inside a segment of a format that this version cannot read.
    in_newer_segment: bool,
    finished: bool,
    scanner: Scanner,
    scratch: Scratch,
    allowance: Allowance,
}

impl StreamReader {
    /// A reader at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// A reader whose first byte is at `offset` of its stream, for reading from the middle.
    pub fn with_offset(offset: u64) -> Self {
        Self { buffer_offset: offset, ..Self::default() }
    }

    /// Adds the stream's next bytes. Call [`StreamReader::next`] until it returns `None` before the next `fill`, and fill
    /// in chunks (64 to 256 KiB), so that memory stays bounded.
    pub fn fill(&mut self, bytes: &[u8]) {
        // Moving only if less is kept than consumed makes the cost linear for chunks of any size.
        if self.at >= self.buffer.len() - self.at {
            self.buffer.drain(..self.at);
            self.buffer_offset += self.at as u64;
            self.at = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Passes over the stream's next bytes, which are zeros, as everything is that was added and not consumed. They are damage.
    pub fn skip(&mut self, zeros: u64) {
        self.hole.get_or_insert(self.buffer_offset + self.at as u64);
        self.buffer_offset += self.buffer.len() as u64 + zeros;
        self.buffer.clear();
        self.at = 0;
    }

    /// Marks the end of the stream: anything incomplete is now damage.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// Offset in the stream up to which everything was read.
    pub fn offset(&self) -> u64 {
        self.buffer_offset + self.at as u64
    }

    /// Bytes added and not consumed: the beginning of an incomplete frame.
    pub fn pending(&self) -> usize {
        self.buffer.len() - self.at
    }

    /// The next item; `None` if more bytes are needed or, after [`StreamReader::finish`], at the end.
    ///
    /// Damage is reported when its end is known: at the next good frame, or at the end of the stream.
    #[allow(clippy::should_implement_trait)] // lends from the reader, which Iterator cannot
    pub fn next(&mut self) -> Option<Item<'_>> {
        let frame = loop {
            let rest = &self.buffer[self.at..];
            match self.scanner.scan(rest) {
                Scan::Frame(frame) if self.hole.is_none() && frame.is_chunk_frame() => self.at += frame.encoded_len(),
                Scan::Frame(frame) => break frame,
                Scan::Incomplete if !self.finished => return None,
                _ if rest.is_empty() => {
                    let (begin, end) = (self.hole.take()?, self.buffer_offset + self.at as u64);
                    return Some(Item::Damage(Damage { offset: begin, len: end - begin }));
                }
                Scan::Incomplete | Scan::Damaged => {
                    self.hole.get_or_insert(self.buffer_offset + self.at as u64);
                    self.at += self.scanner.resync(rest);
                }
            }
        };
        let (offset, len) = (self.buffer_offset + self.at as u64, frame.encoded_len());
        if let Some(begin) = self.hole.take() {
            return Some(Item::Damage(Damage { offset: begin, len: offset - begin }));
        }
        self.at += len;
        self.allowance.earn(len);
        if self.in_newer_segment && frame.kind != FrameKind::SEGMENT {
            return Some(Item::Unknown);
        }
        let malformed = Item::Damage(Damage { offset, len: len as u64 });
        let item = decode(frame, &mut self.scratch, &mut self.allowance).unwrap_or(malformed);
        if frame.kind == FrameKind::SEGMENT {
            self.in_newer_segment = matches!(item, Item::Newer { .. });
        }
        Some(item)
    }
}

/// Decodes one frame; `None` if its payload is malformed.
fn decode<'a>(frame: RawFrame<'a>, scratch: &'a mut Scratch, allowance: &mut Allowance) -> Option<Item<'a>> {
    Some(match frame.kind {
        FrameKind::SEGMENT => match meta::parse_segment(frame.payload).ok()? {
            Segment::Readable(info) => Item::Segment(info),
            Segment::Newer { major } => Item::Newer { major },
        },
        FrameKind::DEFINITIONS => Item::Definitions(meta::parse_definitions(frame, allowance).ok()?),
        FrameKind::ANCHOR => Item::Anchor(meta::parse_anchor(frame.payload).ok()?),
        FrameKind::END => Item::End(meta::parse_end(frame.payload).ok()?),
        FrameKind::BLOCK => {
            let (info, events) = block::open(frame, scratch, allowance)?;
            Item::Block(info, events)
        }
        FrameKind::PAST => Item::Past(past::parse_past(frame, allowance)?),
        _ => Item::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockEncoder, Event, NameId, Span, StepId, TrackId};

    /// A block with as many of the smallest events as possible, in as few bytes as possible.
    fn dense_block() -> Vec<u8> {
        let (mut out, mut encoder) = (Vec::new(), BlockEncoder::new(TrackId(1)));
        let span = Span { name: NameId(1), start_ns: 7, end_ns: 7, step: StepId(0) };
        while encoder.push(&Event::Span(span)) {}
        encoder.finish(0, &mut out);
        out
    }

    #[test]
    fn what_is_skipped_is_damage_of_its_length() {
        let (block, mut reader) = (dense_block(), StreamReader::new());
        let mut found = Vec::new();
        for is_first in [true, false] {
            reader.fill(&block);
            while let Some(item) = reader.next() {
                found.push(match item {
                    Item::Damage(damage) => damage.len,
                    _ => 0,
                });
            }
            if is_first {
                reader.fill(&[0; 100]);
                reader.skip(1 << 40);
            }
        }
        assert_eq!(found, [0, 100 + (1 << 40), 0]);
        assert_eq!(reader.offset(), 2 * block.len() as u64 + 100 + (1 << 40));
    }

    #[test]
    fn decode_work_per_byte_is_bounded() {
        const BLOCKS: usize = 4000;
        let (block, mut reader) = (dense_block(), StreamReader::new());
        let (mut events, mut refused, mut bytes) = (0, 0, 0);
        for _ in 0..BLOCKS {
            reader.fill(&block);
            bytes += block.len();
            while let Some(item) = reader.next() {
                match item {
                    Item::Block(info, _) => events += info.count,
                    Item::Damage(damage) => refused += damage.len,
                    other => panic!("{other:?}"),
                }
            }
        }
        let asked = BLOCKS as u64 * 20_000;
        assert!(block.len() < 1000, "{} bytes", block.len());
        assert!(events > 6_000_000 && events < 8_000_000 + 2 * bytes as u64, "{events} of {asked} events");
        assert!(refused > bytes as u64 / 2, "and the others are said to be refused");
    }
}
