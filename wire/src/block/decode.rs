//! Reads blocks.

use std::iter::FusedIterator;

use super::format::{BlockInfo, EventSink, MAX_BLOCK_LEN};
use super::packed::{Unpackers, Unpacking};
use super::rows::{LastValues, RowsReader};
use super::work::Allowance;
use crate::event::Event;
use crate::frame::{FLAG_LZ4, FLAG_PACKED, RawFrame};
use crate::ids::TrackId;
use crate::varint::{Cursor, Malformed};

/// A packed event takes at least two bits: which one it is, and when.
const MAX_PACKED_A_BYTE: u64 = 4;

/// Memory that decoding reuses for every block: at most [`MAX_BLOCK_LEN`], small tables, and what packed blocks continue from.
#[derive(Debug, Default)]
pub struct Scratch {
    /// As long as the longest body so far.
    body: Vec<u8>,
    values: LastValues,
    unpackers: Unpackers,
}

/// The events of a block, in the order of writing.
#[derive(Debug)]
pub struct Events<'a> {
    left: u64,
    body: DecoderBody<'a>,
}

#[derive(Debug)]
enum DecoderBody<'a> {
    Rows(RowsReader<'a>),
    Packed(Unpacking<'a>),
    /// Malformed from some event on.
    Broken,
}

/// Reads a block's header and opens its body; `None` if the block is malformed or takes more work than allowed.
pub(crate) fn open<'a>(
    frame: RawFrame<'a>,
    scratch: &'a mut Scratch,
    allowance: &mut Allowance,
) -> Option<(BlockInfo, Events<'a>)> {
    let mut cursor = Cursor::new(frame.payload);
    let mut info = header(&mut cursor).ok()?;
    let body = if frame.flags & FLAG_PACKED != 0 {
        let (base_ns, bits) = scratch.unpackers.open(frame, info.track, cursor)?;
        info.base_ns = base_ns;
        if bits.body_len() > MAX_BLOCK_LEN || info.count > MAX_PACKED_A_BYTE * bits.body_len() as u64 {
            return None;
        }
        DecoderBody::Packed(bits)
    } else {
        info.base_ns = cursor.u64().ok()?;
        DecoderBody::Rows(rows(frame.flags, cursor, &info, scratch, allowance)?)
    };
    Some((info, Events { left: info.count, body }))
}

/// The header without the base time.
fn header(cursor: &mut Cursor<'_>) -> Result<BlockInfo, Malformed> {
    Ok(BlockInfo {
        track: TrackId(cursor.u32()?),
        first_seq: cursor.u64()?,
        count: cursor.u64()?,
        dropped: cursor.u64()?,
        base_ns: 0,
    })
}

/// Opens the part of a block of rows after the header.
fn rows<'a>(
    flags: u8,
    mut cursor: Cursor<'a>,
    info: &BlockInfo,
    scratch: &'a mut Scratch,
    allowance: &mut Allowance,
) -> Option<RowsReader<'a>> {
    let raw_len = cursor.u32().ok()? as usize;
    // The shortest event takes two bytes, so a count beyond the length is false.
    if raw_len > MAX_BLOCK_LEN || info.count > raw_len as u64 {
        return None;
    }
    allowance.spend(info.count, raw_len)?;
    let body = if flags & FLAG_LZ4 == 0 {
        cursor.rest()
    } else {
        if scratch.body.len() < raw_len {
            scratch.body.resize(raw_len, 0);
        }
        let room = &mut scratch.body[..raw_len];
        let len = lz4_flex::block::decompress_into(cursor.rest(), room).ok()?;
        &room[..len]
    };
    (body.len() == raw_len).then(|| RowsReader::open(body, info.base_ns, &mut scratch.values))
}

impl Iterator for Events<'_> {
    type Item = Event;

    /// The next event; `None` at the end. If the block passed its checksum but is malformed (only a faulty writer makes
    /// one), `None` also comes from the first malformed byte on: [`Events::is_exhausted`] distinguishes the two.
    #[inline]
    fn next(&mut self) -> Option<Event> {
        while self.left > 0 {
            let event = match &mut self.body {
                DecoderBody::Rows(rows) => rows.event(),
                DecoderBody::Packed(bits) => bits.event(),
                DecoderBody::Broken => return None,
            };
            let Ok(event) = event else {
                self.body = DecoderBody::Broken;
                return None;
            };
            self.left -= 1;
            if event.is_some() {
                return event;
            }
        }
        None
    }
}

impl FusedIterator for Events<'_> {}

impl Drop for Events<'_> {
    /// Reads what was left: a packed block may continue this one.
    fn drop(&mut self) {
        if let DecoderBody::Packed(bits) = &mut self.body {
            bits.close(self.left);
        }
    }
}

impl Events<'_> {
    /// Passes all events that the iterator would return to a sink, in the same order.
    #[inline]
    pub fn decode_into(&mut self, sink: &mut impl EventSink) {
        let handed = match &mut self.body {
            DecoderBody::Rows(rows) => rows.decode_into(&mut self.left, sink),
            DecoderBody::Packed(bits) => bits.decode_into(&mut self.left, sink),
            DecoderBody::Broken => return,
        };
        if handed.is_err() {
            self.body = DecoderBody::Broken;
        }
    }

    /// Whether all events that the header announced were read.
    pub fn is_exhausted(&self) -> bool {
        self.left == 0
    }
}
