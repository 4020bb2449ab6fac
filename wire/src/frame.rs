//! Frames: the checksummed, length-prefixed pieces of a stream, and how to find the next good one after damage.

/// First two bytes of every frame.
const SYNC: [u8; 2] = [0xA7, b'g'];
/// Bytes before a frame's payload.
pub const HEADER_LEN: usize = 12;
/// The CRC covers everything from here on: kind, flags, length and payload.
const CHECKED_FROM: usize = 7;
/// Longest payload that a frame may claim. Anything longer is damage, so that no length read from a file can make a reader
/// reserve more memory than this.
pub const MAX_PAYLOAD_LEN: usize = 1 << 18;

/// What a frame holds. Readers skip kinds they do not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameKind(pub(crate) u8);

impl FrameKind {
    pub(crate) const SEGMENT: Self = Self(1);
    pub(crate) const DEFINITIONS: Self = Self(2);
    pub(crate) const ANCHOR: Self = Self(3);
    pub(crate) const BLOCK: Self = Self(4);
    pub(crate) const END: Self = Self(5);
    pub(crate) const PAST: Self = Self(6);
    pub(crate) const SUMMARY: Self = Self(7);
    pub(crate) const CHUNK_END: Self = Self(8);
}

/// Set in a frame's flags when the body of its payload is compressed with LZ4.
pub(crate) const FLAG_LZ4: u8 = 1;
/// Set in a block's flags when its events are packed as bits.
pub(crate) const FLAG_PACKED: u8 = 2;
/// Set in a packed block's flags when it continues the track's block before it.
pub(crate) const FLAG_CONTINUES: u8 = 4;

/// A frame whose checksum is right. Its payload is not decoded yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawFrame<'a> {
    pub(crate) kind: FrameKind,
    pub(crate) flags: u8,
    /// The checksum, which is right.
    pub(crate) crc: u32,
    pub(crate) payload: &'a [u8],
}

impl RawFrame<'_> {
    /// Length of the whole frame in the stream, in bytes.
    pub(crate) fn encoded_len(&self) -> usize {
        HEADER_LEN + self.payload.len()
    }

    /// Whether only readers of chunks need it.
    pub(crate) fn is_chunk_frame(&self) -> bool {
        matches!(self.kind, FrameKind::SUMMARY | FrameKind::CHUNK_END)
    }
}

/// What some bytes begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scan<'a> {
    /// A good frame.
    Frame(RawFrame<'a>),
    /// The beginning of what may be a frame: more bytes are needed.
    Incomplete,
    /// No frame starts here.
    Damaged,
}

/// Looks for frames, and limits the work that false ones can cause.
///
/// A hostile file may hold a good header every few bytes, each claiming a long payload to be checked. So failed checks
/// spend from an allowance that grows with every byte skipped, and a claim beyond it is rejected unchecked. Files that are
/// merely damaged never come near it. The allowance depends only on the bytes, not on the pieces in which they arrive.
#[derive(Debug)]
pub(crate) struct Scanner {
    allowance: usize,
}

/// Most bytes that failed checks may read at once: several of the longest payloads.
const MAX_ALLOWANCE: usize = 8 * MAX_PAYLOAD_LEN;
/// Bytes of failed checks allowed per byte skipped.
const ALLOWANCE_PER_BYTE: usize = 16;

impl Default for Scanner {
    fn default() -> Self {
        Self { allowance: MAX_ALLOWANCE }
    }
}

impl Scanner {
    /// Looks for a frame at the very front of `bytes`. After [`Scan::Damaged`], continue at [`Scanner::resync`].
    pub(crate) fn scan<'a>(&mut self, bytes: &'a [u8]) -> Scan<'a> {
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER_LEN>() else {
            let known = bytes.len().min(SYNC.len());
            return if bytes[..known] == SYNC[..known] { Scan::Incomplete } else { Scan::Damaged };
        };
        let [s0, s1, check, c0, c1, c2, c3, kind, flags, l0, l1, l2] = *header;
        let len = u32::from_le_bytes([l0, l1, l2, 0]) as usize;
        let good = [s0, s1] == SYNC && check == header_check([kind, flags, l0, l1, l2]) && len <= MAX_PAYLOAD_LEN;
        if !good || len > self.allowance {
            return Scan::Damaged;
        }
        let Some(payload) = rest.get(..len) else {
            return Scan::Incomplete;
        };
        let crc = u32::from_le_bytes([c0, c1, c2, c3]);
        if crc32fast::hash(&bytes[CHECKED_FROM..HEADER_LEN + len]) != crc {
            self.allowance -= len;
            return Scan::Damaged;
        }
        Scan::Frame(RawFrame { kind: FrameKind(kind), flags, crc, payload })
    }

    /// Offset of the next place after the front where a frame may start; `bytes.len()` if there is none.
    pub(crate) fn resync(&mut self, bytes: &[u8]) -> usize {
        let after_front = bytes.iter().skip(1).position(|&byte| byte == SYNC[0]);
        let step = after_front.map_or(bytes.len(), |at| at + 1);
        self.allowance = (self.allowance + step.saturating_mul(ALLOWANCE_PER_BYTE)).min(MAX_ALLOWANCE);
        step
    }
}

/// Reads a frame's header alone: the length of the whole frame in bytes, and whether the frame begins a segment. `None` if
/// no frame begins so. For navigating a long recording; only reading the frame shows whether it is good.
pub fn peek(header: &[u8; HEADER_LEN]) -> Option<(usize, bool)> {
    peek_kind(header).map(|(len, kind)| (len, kind == FrameKind::SEGMENT))
}

/// The length and kind of the frame, likewise.
pub(crate) fn peek_kind(header: &[u8; HEADER_LEN]) -> Option<(usize, FrameKind)> {
    let [s0, s1, check, _, _, _, _, kind, flags, l0, l1, l2] = *header;
    let len = u32::from_le_bytes([l0, l1, l2, 0]) as usize;
    let good = [s0, s1] == SYNC && check == header_check([kind, flags, l0, l1, l2]) && len <= MAX_PAYLOAD_LEN;
    good.then_some((HEADER_LEN + len, FrameKind(kind)))
}

/// A cheap check of the header alone, so that a random sync pattern inside other data is rejected without reading a long
/// payload for its checksum.
fn header_check(kind_flags_len: [u8; 5]) -> u8 {
    kind_flags_len.into_iter().fold(0x5A, |acc: u8, byte| acc.rotate_left(3) ^ byte)
}

/// Appends a frame to `out`; `payload` writes the payload in place. Returns the checksum.
///
/// Callers must keep the payload within [`MAX_PAYLOAD_LEN`].
pub(crate) fn put(out: &mut Vec<u8>, kind: FrameKind, flags: u8, payload: impl FnOnce(&mut Vec<u8>)) -> u32 {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_LEN]);
    payload(out);
    let frame = &mut out[start..];
    let len = frame.len() - HEADER_LEN;
    debug_assert!(len <= MAX_PAYLOAD_LEN, "payload of {len} bytes");
    let [l0, l1, l2, _] = (len as u32).to_le_bytes();
    let checked = [kind.0, flags, l0, l1, l2];
    frame[CHECKED_FROM..HEADER_LEN].copy_from_slice(&checked);
    let crc = crc32fast::hash(&frame[CHECKED_FROM..]);
    let [c0, c1, c2, c3] = crc.to_le_bytes();
    frame[..CHECKED_FROM].copy_from_slice(&[SYNC[0], SYNC[1], header_check(checked), c0, c1, c2, c3]);
    crc
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, FrameKind::BLOCK, 0, |out| out.extend_from_slice(b"payload"));
        out
    }

    fn scan(bytes: &[u8]) -> Scan<'_> {
        Scanner::default().scan(bytes)
    }

    #[test]
    fn scan_finds_frame() {
        let bytes = sample();
        let Scan::Frame(frame) = scan(&bytes) else { panic!("no frame") };
        assert_eq!((frame.kind, frame.payload), (FrameKind::BLOCK, &b"payload"[..]));
        assert_eq!(frame.encoded_len(), bytes.len());
    }

    #[test]
    fn scan_truncated_frame_is_incomplete() {
        let bytes = sample();
        for cut in 0..bytes.len() {
            assert_eq!(scan(&bytes[..cut]), Scan::Incomplete, "cut at {cut}");
        }
    }

    #[test]
    fn scan_flipped_bit_is_damage() {
        for at in 0..sample().len() * 8 {
            let mut bytes = sample();
            bytes[at / 8] ^= 1 << (at % 8);
            assert_eq!(scan(&bytes), Scan::Damaged, "bit {at}");
        }
    }

    #[test]
    fn kind_and_flags_are_covered_by_the_checksum() {
        let mut bytes = sample();
        bytes[7] = FrameKind::END.0;
        bytes[2] = header_check([bytes[7], bytes[8], bytes[9], bytes[10], bytes[11]]);
        assert_eq!(scan(&bytes), Scan::Damaged);
    }

    #[test]
    fn resync_finds_the_next_frame() {
        let mut bytes = b"garbage \xA7g more".to_vec();
        let expected = bytes.len();
        bytes.extend(sample());
        let mut scanner = Scanner::default();
        let first = scanner.resync(&bytes);
        assert_eq!((first, scanner.scan(&bytes[first..])), (8, Scan::Damaged));
        assert_eq!(first + scanner.resync(&bytes[first..]), expected);
        assert_eq!(scanner.resync(b"nothing here"), 12);
    }

    #[test]
    fn scan_false_frames_spend_allowance_and_bytes_restore_it() {
        let mut fake = Vec::new();
        put(&mut fake, FrameKind::BLOCK, 0, |out| out.resize(out.len() + MAX_PAYLOAD_LEN, 7));
        fake[HEADER_LEN] ^= 1;
        let mut scanner = Scanner::default();
        let checks = std::iter::repeat_with(|| (scanner.scan(&fake), scanner.allowance));
        let spent = checks.take_while(|&(_, left)| left > 0).count() + 1;
        assert_eq!(spent, MAX_ALLOWANCE / MAX_PAYLOAD_LEN);
        let fake_tail = &fake[..HEADER_LEN];
        assert_eq!(scanner.scan(fake_tail), Scan::Damaged, "refused before its payload is there");
        scanner.resync(&vec![0; MAX_PAYLOAD_LEN]);
        assert_eq!(scanner.scan(fake_tail), Scan::Incomplete);
    }
}
