//! Frames: the checksummed, length-prefixed pieces that a stream is made of, and how to find the next good
//! one after damage.

/// First two bytes of every frame.
const SYNC: [u8; 2] = [0xA7, b'g'];
/// Bytes before the payload.
pub const HEADER_LEN: usize = 12;
/// Longest payload that a frame may claim; anything above is damage, so that no length read from a file
/// can ask for more memory than this.
pub const MAX_PAYLOAD_LEN: usize = 1 << 20;

/// What a frame holds. Readers skip kinds they do not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(pub(crate) u8);

impl Kind {
    pub(crate) const SEGMENT: Self = Self(1);
    pub(crate) const DEFINITIONS: Self = Self(2);
    pub(crate) const ANCHOR: Self = Self(3);
    pub(crate) const BLOCK: Self = Self(4);
    pub(crate) const END: Self = Self(5);
}

/// Set in a frame's flags when the body of its payload is compressed with LZ4.
pub(crate) const FLAG_LZ4: u8 = 1;

/// A frame whose checksum is right; its payload is not looked into yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawFrame<'a> {
    pub(crate) kind: Kind,
    pub(crate) flags: u8,
    pub(crate) payload: &'a [u8],
}

impl RawFrame<'_> {
    /// Length of the whole frame in the stream, in bytes.
    pub fn encoded_len(&self) -> usize {
        HEADER_LEN + self.payload.len()
    }
}

/// What stands at the front of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan<'a> {
    /// A good frame.
    Frame(RawFrame<'a>),
    /// The beginning of what may be a frame: more bytes are needed to tell.
    Incomplete,
    /// No frame starts here.
    Damaged,
}

/// Looks for a frame at the very front of `bytes`.
pub fn scan(bytes: &[u8]) -> Scan<'_> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_LEN>() else {
        let known = bytes.len().min(SYNC.len());
        return if bytes[..known] == SYNC[..known] { Scan::Incomplete } else { Scan::Damaged };
    };
    let [s0, s1, kind, flags, l0, l1, l2, check, crc @ ..] = *header;
    let len = u32::from_le_bytes([l0, l1, l2, 0]) as usize;
    if [s0, s1] != SYNC || check != header_check(kind, flags, [l0, l1, l2]) || len > MAX_PAYLOAD_LEN {
        return Scan::Damaged;
    }
    let Some(payload) = rest.get(..len) else {
        return Scan::Incomplete;
    };
    if crc32fast::hash(payload) != u32::from_le_bytes(crc) {
        return Scan::Damaged;
    }
    Scan::Frame(RawFrame { kind: Kind(kind), flags, payload })
}

/// Offset, after the front, of the next place where a frame starts or may start; `bytes.len()` if none.
pub fn resync(bytes: &[u8]) -> usize {
    (1..bytes.len()).find(|&at| bytes[at] == SYNC[0] && scan(&bytes[at..]) != Scan::Damaged).unwrap_or(bytes.len())
}

/// A cheap check of the header alone, so that a random sync pattern inside other data is refused without
/// reading a megabyte for its checksum.
fn header_check(kind: u8, flags: u8, len: [u8; 3]) -> u8 {
    let mix = |acc: u8, byte: u8| acc.rotate_left(3) ^ byte;
    [kind, flags, len[0], len[1], len[2]].into_iter().fold(0x5A, mix)
}

/// Appends a frame to `out`; `payload` writes the payload in place.
///
/// Callers keep payloads within [`MAX_PAYLOAD_LEN`] by bounding what they put in.
pub(crate) fn put(out: &mut Vec<u8>, kind: Kind, flags: u8, payload: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_LEN]);
    payload(out);
    let (head, body) = out[start..].split_at_mut(HEADER_LEN);
    debug_assert!(body.len() <= MAX_PAYLOAD_LEN, "payload of {} bytes", body.len());
    let [l0, l1, l2, _] = (body.len() as u32).to_le_bytes();
    let [c0, c1, c2, c3] = crc32fast::hash(body).to_le_bytes();
    let check = header_check(kind.0, flags, [l0, l1, l2]);
    head.copy_from_slice(&[SYNC[0], SYNC[1], kind.0, flags, l0, l1, l2, check, c0, c1, c2, c3]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, Kind::BLOCK, 0, |out| out.extend_from_slice(b"payload"));
        out
    }

    #[test]
    fn a_frame_is_found_again() {
        let bytes = sample();
        let Scan::Frame(frame) = scan(&bytes) else { panic!("no frame") };
        assert_eq!((frame.kind, frame.payload), (Kind::BLOCK, &b"payload"[..]));
        assert_eq!(frame.encoded_len(), bytes.len());
    }

    #[test]
    fn every_cut_is_incomplete() {
        let bytes = sample();
        for cut in 0..bytes.len() {
            assert_eq!(scan(&bytes[..cut]), Scan::Incomplete, "cut at {cut}");
        }
    }

    #[test]
    fn every_flipped_bit_is_damage_or_a_longer_claim() {
        for at in 0..sample().len() * 8 {
            let mut bytes = sample();
            bytes[at / 8] ^= 1 << (at % 8);
            assert!(!matches!(scan(&bytes), Scan::Frame(_)), "bit {at}");
        }
    }

    #[test]
    fn resync_finds_the_next_frame() {
        let mut bytes = b"garbage \xA7g more".to_vec();
        let expected = bytes.len();
        bytes.extend(sample());
        assert_eq!(resync(&bytes), expected);
        assert_eq!(resync(b"nothing here"), 12);
    }
}
