//! Chunks of a recording: each ends with a summary of everything so far, and says where the previous chunk ends.
//!
//! Summary frames hold their own stream with the bits of its bytes inverted, so that a reader looking for the next good
//! frame after damage finds none in them. Readers of events skip summaries and chunk ends.

use crate::frame::{self, FrameKind, HEADER_LEN, Scan, Scanner};

/// Numbers in a frame that ends a chunk.
const NUMBERS: usize = 8;
/// Bytes of the frame that ends a chunk; always the same.
pub const CHUNK_END_LEN: usize = HEADER_LEN + NUMBERS * 8;
/// Most bytes of a summary in one frame.
const PIECE_LEN: usize = 128 * 1024;

/// The end of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkEnd {
    /// Bytes from the frame that ends the previous chunk to this one; from the start of the recording for the first.
    pub back: u64,
    /// Chunks before this one.
    pub number: u64,
    /// Bytes of frames with the summary of everything so far, without finished slices.
    pub totals_len: u64,
    /// Bytes of the frames after those, with the seconds that ended in this chunk.
    pub seconds_len: u64,
    /// Bytes of the frames after those, with its minutes and the slowest steps of its hours; this frame follows.
    pub minutes_len: u64,
    /// Time of the recording's first event, on the clock of its first session.
    pub first_ns: u64,
    /// Time of the newest event so far, on that clock.
    pub last_ns: u64,
    /// The highest step number so far.
    pub last_step: u64,
}

impl ChunkEnd {
    /// Bytes of the summary frames before it.
    pub fn summaries_len(&self) -> u64 {
        self.totals_len.saturating_add(self.seconds_len).saturating_add(self.minutes_len)
    }

    /// Decodes a chunk end; `None` unless the bytes are one good frame of this kind.
    pub fn parse(bytes: &[u8; CHUNK_END_LEN]) -> Option<Self> {
        let Scan::Frame(frame) = Scanner::default().scan(bytes) else { return None };
        if frame.kind != FrameKind::CHUNK_END || frame.encoded_len() != CHUNK_END_LEN {
            return None;
        }
        let mut numbers = frame.payload.chunks_exact(8).map(|bytes| bytes.try_into().map_or(0, u64::from_le_bytes));
        let mut next = || numbers.next().unwrap_or_default();
        Some(Self {
            back: next(),
            number: next(),
            totals_len: next(),
            seconds_len: next(),
            minutes_len: next(),
            first_ns: next(),
            last_ns: next(),
            last_step: next(),
        })
    }

    /// The last chunk end in these bytes, and where it begins.
    pub fn find_last(bytes: &[u8]) -> Option<(usize, Self)> {
        let last = bytes.len().checked_sub(CHUNK_END_LEN)?;
        // Checksums are computed only for likely candidates, so that no input makes this expensive.
        let looks_so = |at: &usize| {
            let header = bytes[*at..].first_chunk().and_then(frame::peek_kind);
            header == Some((CHUNK_END_LEN, FrameKind::CHUNK_END))
        };
        let end = |at: usize| Some((at, Self::parse(bytes[at..].first_chunk()?)?));
        (0..=last).rev().filter(looks_so).find_map(end)
    }
}

/// Appends the frame that ends a chunk.
pub fn put_chunk_end(out: &mut Vec<u8>, end: &ChunkEnd) {
    let ChunkEnd { back, number, totals_len: whole_len, seconds_len, minutes_len, first_ns, last_ns, last_step } = *end;
    let numbers = [back, number, whole_len, seconds_len, minutes_len, first_ns, last_ns, last_step];
    frame::put(out, FrameKind::CHUNK_END, 0, |out| {
        numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    });
}

/// Appends frames that hold a stream of summaries: segments, definitions, anchors and what is left of the past. Returns
/// their length in bytes.
pub fn put_summary(out: &mut Vec<u8>, stream: &[u8]) -> u64 {
    let before = out.len();
    for piece in stream.chunks(PIECE_LEN) {
        frame::put(out, FrameKind::SUMMARY, 0, |out| out.extend(piece.iter().map(|byte| !byte)));
    }
    (out.len() - before) as u64
}

/// The stream in these frames; `None` if they are damaged or anything else is among them.
pub fn parse_summary(mut frames: &[u8]) -> Option<Vec<u8>> {
    let mut stream = Vec::with_capacity(frames.len());
    while !frames.is_empty() {
        let Scan::Frame(frame) = Scanner::default().scan(frames) else { return None };
        if frame.kind != FrameKind::SUMMARY {
            return None;
        }
        stream.extend(frame.payload.iter().map(|byte| !byte));
        frames = &frames[frame.encoded_len()..];
    }
    Some(stream)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Item, StreamReader, put_anchor};

    fn end(back: u64) -> ChunkEnd {
        ChunkEnd {
            back,
            number: 7,
            totals_len: 1,
            seconds_len: 2,
            minutes_len: 3,
            first_ns: 4,
            last_ns: u64::MAX,
            last_step: 5,
        }
    }

    fn array(bytes: &[u8]) -> &[u8; CHUNK_END_LEN] {
        bytes.try_into().unwrap()
    }

    #[test]
    fn chunk_end_round_trip_and_damage_is_refused() {
        let mut bytes = Vec::new();
        put_chunk_end(&mut bytes, &end(9));
        assert_eq!(ChunkEnd::parse(array(&bytes)), Some(end(9)));
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(ChunkEnd::parse(array(&bytes)), None, "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn the_last_end_is_found_between_other_frames() {
        let (mut bytes, anchor) = (Vec::new(), crate::Anchor::default());
        assert_eq!(ChunkEnd::find_last(&bytes), None);
        put_chunk_end(&mut bytes, &end(1));
        put_anchor(&mut bytes, &anchor);
        let at = bytes.len();
        put_chunk_end(&mut bytes, &end(2));
        put_anchor(&mut bytes, &anchor);
        assert_eq!(ChunkEnd::find_last(&bytes), Some((at, end(2))));
        bytes[at + 20] ^= 1;
        assert_eq!(ChunkEnd::find_last(&bytes), Some((0, end(1))), "the one before where it is damaged");
    }

    #[test]
    fn stream_reader_skips_chunk_frames_and_damaged_ones() {
        let (mut anchor, mut bytes) = (Vec::new(), Vec::new());
        put_anchor(&mut anchor, &crate::Anchor { monotonic_ns: 3, wall_ns: 4, boot_ns: 5 });
        put_summary(&mut bytes, &anchor.repeat(20_000));
        put_chunk_end(&mut bytes, &end(1));
        assert_eq!(items(&bytes), 0);
        bytes[2] ^= 1;
        assert_eq!(items(&[&bytes[..], &anchor].concat()), 2, "damage and the anchor behind");
    }

    fn items(bytes: &[u8]) -> usize {
        let (mut reader, mut items) = (StreamReader::new(), 0);
        reader.fill(bytes);
        reader.finish();
        while let Some(item) = reader.next() {
            assert!(!matches!(item, Item::Unknown));
            items += 1;
        }
        items
    }

    proptest! {
        #[test]
        fn summary_round_trip_or_none_when_damaged(
            stream in prop::collection::vec(any::<u8>(), 0..400_000),
            hit in any::<prop::sample::Index>(),
        ) {
            let mut bytes = Vec::new();
            let len = put_summary(&mut bytes, &stream);
            prop_assert_eq!(len, bytes.len() as u64);
            prop_assert_eq!(parse_summary(&bytes), Some(stream));
            if !bytes.is_empty() {
                let at = hit.index(bytes.len());
                bytes[at] ^= 0x10;
                prop_assert_eq!(parse_summary(&bytes), None);
            }
        }

        #[test]
        fn find_last_accepts_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..1000)) {
            ChunkEnd::find_last(&bytes);
            parse_summary(&bytes);
        }
    }
}
