//! Reads a stream piece by piece, as it comes from a file, a pipe or a session that is still being written.

use crate::block::{self, Allowance, BlockInfo, Events, Scratch};
use crate::event::Definition;
use crate::frame::{Kind, RawFrame, Scan, Scanner};
use crate::meta::{self, Segment};
use crate::past::{self, Past};
use crate::session::{Anchor, End, SessionInfo};

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
    /// What is left of the segments before those that follow.
    Past(Vec<Past>),
    /// The session ended in good order.
    End(End),
    /// A good frame of a kind that this version does not know, or any after [`Item::Newer`].
    Unknown,
    /// Bytes that hold no frame, or one whose content is malformed, were stepped over.
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
    /// Bytes stepped over.
    pub len: u64,
}

/// Cuts a byte stream into [`Item`]s. The items do not depend on the pieces in which the bytes arrive.
///
/// Holds at most two of the longest frames and one chunk of input.
#[derive(Debug, Default)]
pub struct StreamReader {
    buffer: Vec<u8>,
    /// Start of what is not consumed yet, in `buffer`.
    at: usize,
    /// Offset of `buffer[0]` in the stream.
    buffer_offset: u64,
    /// Where the damage began that is being stepped over.
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

    /// A reader whose first byte stands at `offset` of its stream, for reading from the middle.
    pub fn starting_at(offset: u64) -> Self {
        Self { buffer_offset: offset, ..Self::default() }
    }

    /// Hands over the stream's next bytes. Call [`StreamReader::next`] until it gives `None` before the
    /// next `fill`, and fill in chunks (64 to 256 KiB), so that memory stays bounded.
    pub fn fill(&mut self, bytes: &[u8]) {
        // Moving only when less is kept than consumed makes the cost linear for chunks of any size.
        if self.at >= self.buffer.len() - self.at {
            self.buffer.drain(..self.at);
            self.buffer_offset += self.at as u64;
            self.at = 0;
        }
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
    ///
    /// Damage is reported when its end is known: at the next good frame, or at the end of the stream.
    #[allow(clippy::should_implement_trait)] // lends from the reader, which Iterator cannot
    pub fn next(&mut self) -> Option<Item<'_>> {
        let frame = loop {
            let rest = &self.buffer[self.at..];
            match self.scanner.scan(rest) {
                Scan::Frame(frame) if self.hole.is_none() && frame.is_of_chunks() => self.at += frame.encoded_len(),
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
        if self.in_newer_segment && frame.kind != Kind::SEGMENT {
            return Some(Item::Unknown);
        }
        let malformed = Item::Damage(Damage { offset, len: len as u64 });
        let item = decode(frame, &mut self.scratch, &mut self.allowance).unwrap_or(malformed);
        if frame.kind == Kind::SEGMENT {
            self.in_newer_segment = matches!(item, Item::Newer { .. });
        }
        Some(item)
    }
}

/// Decodes one frame; `None` where its payload is malformed.
fn decode<'a>(frame: RawFrame<'a>, scratch: &'a mut Scratch, allowance: &mut Allowance) -> Option<Item<'a>> {
    Some(match frame.kind {
        Kind::SEGMENT => match meta::segment(frame.payload).ok()? {
            Segment::Readable(info) => Item::Segment(info),
            Segment::Newer { major } => Item::Newer { major },
        },
        Kind::DEFINITIONS => Item::Definitions(meta::definitions(frame, allowance).ok()?),
        Kind::ANCHOR => Item::Anchor(meta::anchor(frame.payload).ok()?),
        Kind::END => Item::End(meta::end(frame.payload).ok()?),
        Kind::BLOCK => {
            let (info, events) = block::open(frame, scratch, allowance)?;
            Item::Block(info, events)
        }
        Kind::PAST => Item::Past(past::past(frame, allowance)?),
        _ => Item::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockEncoder, Event, NameId, Span, StepId, TrackId};

    /// As many of the smallest events as a block holds, in as few bytes as they can be packed.
    fn dense_block() -> Vec<u8> {
        let (mut out, mut encoder) = (Vec::new(), BlockEncoder::new(TrackId(1)));
        let span = Span { name: NameId(1), start_ns: 7, end_ns: 7, step: StepId(0) };
        while encoder.push(&Event::Span(span)) {}
        encoder.finish(0, &mut out);
        out
    }

    #[test]
    fn the_work_that_a_byte_causes_is_bounded() {
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
