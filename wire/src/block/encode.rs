//! Writes blocks.

use super::format::MAX_BLOCK_LEN;
use super::packed::Packer;
use super::rows::{self, Context};
use crate::event::Event;
use crate::frame::{self, FLAG_LZ4, FrameKind};
use crate::ids::TrackId;
use crate::varint::{Writer, put_u64};

/// Most bytes that one event may take; keeps `push` from growing a block past its limit.
const MAX_EVENT_LEN: usize = rows::MAX_EVENT_LEN;
/// Below this size, compression costs more than it saves.
const MIN_COMPRESSED: usize = 192;
/// Compression must save at least the body's length divided by this to be worth the reader's work.
const MIN_SAVED_SHARE: usize = 8;

/// Collects events of one track into a block.
pub struct BlockEncoder {
    track: TrackId,
    first_seq: u64,
    count: u64,
    base_ns: u64,
    body: EncoderBody,
}

/// The events collected so far.
enum EncoderBody {
    Rows(Box<RowsEncoder>),
    Packed(Box<Packer>),
}

struct RowsEncoder {
    context: Context,
    /// The events; bytes beyond `len` are room for the next ones.
    bytes: Vec<u8>,
    len: usize,
    compressed: Vec<u8>,
    table: lz4_flex::block::CompressTable,
}

impl BlockEncoder {
    /// An empty block of rows for `track`, for a live session. Its memory grows with the longest block, to at most 150 KiB,
    /// and is reused for later blocks.
    pub fn new(track: TrackId) -> Self {
        let rows = RowsEncoder {
            context: Context::default(),
            bytes: vec![0; 4096],
            len: 0,
            compressed: Vec::new(),
            table: lz4_flex::block::CompressTable::small(),
        };
        Self::with_body(track, EncoderBody::Rows(Box::new(rows)))
    }

    /// An empty packed block for `track`, for a recording. With a second's events or more it takes half the bytes of a
    /// block of rows, for several times the work.
    ///
    /// Blocks continue one another, so all of a stream's blocks must be in it, in order; see
    /// [`BlockEncoder::begin_again`].
    pub fn packed(track: TrackId) -> Self {
        Self::with_body(track, EncoderBody::Packed(Box::default()))
    }

    /// Makes the next block readable without those before it: where a chunk begins, another session's blocks came between,
    /// or blocks were not written. Blocks of rows always are.
    pub fn begin_again(&mut self) {
        debug_assert!(self.is_empty(), "only between blocks");
        if let EncoderBody::Packed(packer) = &mut self.body {
            packer.begin_again();
        }
    }

    fn with_body(track: TrackId, body: EncoderBody) -> Self {
        Self { track, first_seq: 0, count: 0, base_ns: 0, body }
    }

    /// Whether nothing was pushed since the last block was finished.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes collected, before compression.
    pub fn len(&self) -> usize {
        match &self.body {
            _ if self.is_empty() => 0,
            EncoderBody::Rows(rows) => rows.len,
            EncoderBody::Packed(packer) => packer.len(),
        }
    }

    /// Whether the block must be finished before the next push.
    pub fn is_full(&self) -> bool {
        self.len() + MAX_EVENT_LEN > MAX_BLOCK_LEN
    }

    /// Adds an event. Returns `false` and adds nothing if the block is full.
    #[inline]
    pub fn push(&mut self, event: &Event) -> bool {
        if self.count == 0 {
            self.start(event.t_ns());
        }
        match &mut self.body {
            EncoderBody::Rows(rows) => {
                if !rows.push(event) {
                    return false;
                }
            }
            EncoderBody::Packed(packer) => {
                if packer.len() + MAX_EVENT_LEN > MAX_BLOCK_LEN {
                    return false;
                }
                packer.push(event);
            }
        }
        self.count += 1;
        true
    }

    fn start(&mut self, base_ns: u64) {
        self.base_ns = base_ns;
        match &mut self.body {
            EncoderBody::Rows(rows) => rows.start(base_ns),
            EncoderBody::Packed(packer) => packer.start(base_ns),
        }
    }

    /// Appends the block as one frame to `out` and starts the next one. `dropped` is the number of events lost on this
    /// track since the start. Does nothing if no event was pushed.
    pub fn finish(&mut self, dropped: u64, out: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        let header = [u64::from(self.track.0), self.first_seq, self.count, dropped, self.base_ns];
        match &mut self.body {
            EncoderBody::Rows(rows) => rows.finish(header, out),
            EncoderBody::Packed(packer) => packer.finish(header, out),
        }
        self.first_seq = self.next_seq();
        self.count = 0;
    }

    /// Restarts the numbering of events at `first_seq`, for an encoder that continues or copies a track.
    pub fn continue_from(&mut self, first_seq: u64) {
        debug_assert!(self.is_empty(), "only between blocks");
        self.first_seq = first_seq;
    }

    /// The number of the next pushed event on its track.
    pub fn next_seq(&self) -> u64 {
        // A copied recording may claim any number.
        self.first_seq.saturating_add(self.count)
    }
}

impl RowsEncoder {
    fn start(&mut self, base_ns: u64) {
        self.context.start(base_ns);
        self.len = 0;
    }

    #[inline]
    fn push(&mut self, event: &Event) -> bool {
        if self.bytes.len() - self.len < MAX_EVENT_LEN && !self.grow() {
            return false;
        }
        let mut out = Writer::new(&mut self.bytes[self.len..]);
        rows::put_event(&mut out, &mut self.context, event);
        self.len += out.len();
        true
    }

    /// Makes room for an event; `false` if the block is full.
    #[cold]
    fn grow(&mut self) -> bool {
        if self.len + MAX_EVENT_LEN > MAX_BLOCK_LEN {
            return false;
        }
        self.bytes.resize((self.bytes.len() * 2).min(MAX_BLOCK_LEN), 0);
        true
    }

    fn finish(&mut self, header: [u64; 5], out: &mut Vec<u8>) {
        let flags = self.compress();
        frame::put(out, FrameKind::BLOCK, flags, |out| {
            header.into_iter().for_each(|number| put_u64(out, number));
            put_u64(out, self.len as u64);
            out.extend_from_slice(if flags & FLAG_LZ4 != 0 { &self.compressed } else { &self.bytes[..self.len] });
        });
    }

    /// Compresses the body if that makes it notably smaller; returns the frame's flags.
    fn compress(&mut self) -> u8 {
        let body = &self.bytes[..self.len];
        if body.len() < MIN_COMPRESSED {
            return 0;
        }
        self.compressed.resize(lz4_flex::block::get_maximum_output_size(body.len()), 0);
        match lz4_flex::block::compress_into_with_table(body, &mut self.compressed, &mut self.table) {
            Ok(len) if len < body.len() - body.len() / MIN_SAVED_SHARE => {
                self.compressed.truncate(len);
                FLAG_LZ4
            }
            _ => 0,
        }
    }
}
