//! Variable-length integers: LEB128, and zigzag for signed values.
//!
//! Spans consist of little else, and the lengths of their numbers follow no pattern that a CPU could predict. So the common
//! sizes are written and read eight bytes at a time, without a branch on the length.

/// The bytes are malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Most bytes that one integer takes.
const MAX_LEN: usize = 10;
/// Values below this take at most eight bytes.
const EIGHT_BYTES: u64 = 1 << 56;
/// The bits in each of eight bytes that mean that more bytes follow.
const MORE: u64 = 0x8080_8080_8080_8080;

/// Appends `value` in LEB128, 1 to 10 bytes.
pub(crate) fn put_u64(out: &mut Vec<u8>, value: u64) {
    let mut room = [0; MAX_LEN];
    let mut writer = Writer::new(&mut room);
    writer.u64(value);
    let len = writer.len();
    out.extend_from_slice(&room[..len]);
}

/// Appends a signed value, zigzagged.
pub(crate) fn put_i64(out: &mut Vec<u8>, value: i64) {
    put_u64(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Writes to the front of a slice that the caller knows to be long enough: each integer needs ten bytes of room, however
/// short it turns out to be.
pub(crate) struct Writer<'a> {
    room: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    #[inline]
    pub(crate) fn new(room: &'a mut [u8]) -> Self {
        Self { room, at: 0 }
    }

    /// Bytes written.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.at
    }

    #[inline]
    pub(crate) fn u8(&mut self, byte: u8) {
        self.room[self.at] = byte;
        self.at += 1;
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.room[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// Writes `value` in LEB128.
    #[inline]
    pub(crate) fn u64(&mut self, value: u64) {
        if value >= EIGHT_BYTES {
            return self.u64_long(value);
        }
        let len = (70 - (value | 1).leading_zeros() as usize) / 7;
        let more = MORE & ((1 << (8 * (len - 1))) - 1);
        self.room[self.at..self.at + 8].copy_from_slice(&(spread(value) | more).to_le_bytes());
        self.at += len;
    }

    fn u64_long(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8);
    }

    /// Writes a signed value, zigzagged.
    #[inline]
    pub(crate) fn i64(&mut self, value: i64) {
        self.u64(((value << 1) ^ (value >> 63)) as u64);
    }

    /// Writes the signed difference `to - from`; exact for any pair by wrapping.
    #[inline]
    pub(crate) fn delta(&mut self, from: u64, to: u64) {
        self.i64(to.wrapping_sub(from) as i64);
    }
}

/// Moves each group of seven bits to a byte of its own; `value` is below [`EIGHT_BYTES`].
#[inline]
fn spread(value: u64) -> u64 {
    let x = (value & 0x0000_0000_0fff_ffff) | ((value & 0x00ff_ffff_f000_0000) << 4);
    let x = (x & 0x0000_3fff_0000_3fff) | ((x & 0x0fff_c000_0fff_c000) << 2);
    (x & 0x007f_007f_007f_007f) | ((x & 0x3f80_3f80_3f80_3f80) << 1)
}

/// Undoes [`spread`]; the highest bit of each byte is ignored.
#[inline]
fn gather(bytes: u64) -> u64 {
    let x = (bytes & 0x007f_007f_007f_007f) | ((bytes & 0x7f00_7f00_7f00_7f00) >> 1);
    let x = (x & 0x0000_3fff_0000_3fff) | ((x & 0x3fff_0000_3fff_0000) >> 2);
    (x & 0x0000_0000_0fff_ffff) | ((x & 0x0fff_ffff_0000_0000) >> 4)
}

/// The integer at the front of eight bytes and its length; `None` if it is longer.
#[inline]
fn short(word: u64) -> Option<(u64, usize)> {
    // One bit for each byte that ends an integer.
    let ends = !word & MORE;
    if ends == 0 {
        return None;
    }
    Some((gather(word & up_to_lowest(ends)), len_up_to(ends)))
}

/// The two integers at the front of eight bytes and their total length; `None` if they are longer.
#[inline]
fn short_pair(word: u64) -> Option<((u64, u64), usize)> {
    let ends = !word & MORE;
    let later_ends = ends & ends.wrapping_sub(1);
    if later_ends == 0 {
        return None;
    }
    let first = word & up_to_lowest(ends);
    let second = (word & up_to_lowest(later_ends)) >> (8 * len_up_to(ends));
    Some(((gather(first), gather(second)), len_up_to(later_ends)))
}

/// A mask of the bits up to the lowest one of `ends`, which is not 0.
#[inline]
fn up_to_lowest(ends: u64) -> u64 {
    ends ^ (ends - 1)
}

/// Bytes up to the one with the lowest bit.
#[inline]
fn len_up_to(ends: u64) -> usize {
    ends.trailing_zeros() as usize / 8 + 1
}

/// Undoes [`Writer::i64`]'s zigzag.
#[inline]
pub(crate) fn unzigzag(raw: u64) -> i64 {
    (raw >> 1) as i64 ^ -((raw & 1) as i64)
}

/// Appends a text with its length, truncated to at most `max` bytes at a character boundary.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str, max: usize) {
    let cut = text.floor_char_boundary(max);
    put_u64(out, cut as u64);
    out.extend_from_slice(&text.as_bytes()[..cut]);
}

/// Reads from the front of a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        let (&first, rest) = self.bytes.split_first().ok_or(Malformed)?;
        self.bytes = rest;
        Ok(first)
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        let first = self.bytes.first_chunk::<8>().and_then(|window| short(u64::from_le_bytes(*window)));
        let Some((value, len)) = first else {
            return self.u64_long();
        };
        self.bytes = &self.bytes[len..];
        Ok(value)
    }

    /// Reads two integers, in one go if both fit into eight bytes, as those of most spans do: the position of the next
    /// event then depends on one load and a few operations.
    #[inline]
    pub(crate) fn u64_pair(&mut self) -> Result<(u64, u64), Malformed> {
        let pair = self.bytes.first_chunk::<8>().and_then(|window| short_pair(u64::from_le_bytes(*window)));
        let Some((values, len)) = pair else {
            return Ok((self.u64()?, self.u64()?));
        };
        self.bytes = &self.bytes[len..];
        Ok(values)
    }

    fn u64_long(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let byte = self.u8()?;
            if shift == 63 && byte > 1 {
                return Err(Malformed);
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.u64()?).map_err(|_| Malformed)
    }

    #[inline]
    pub(crate) fn i64(&mut self) -> Result<i64, Malformed> {
        self.u64().map(unzigzag)
    }

    /// Undoes [`Writer::delta`].
    #[inline]
    pub(crate) fn delta(&mut self, from: u64) -> Result<u64, Malformed> {
        Ok(from.wrapping_add(self.i64()? as u64))
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.bytes.split_first_chunk::<N>().ok_or(Malformed)?;
        self.bytes = rest;
        Ok(*head)
    }

    pub(crate) fn take(&mut self, len: u64) -> Result<&'a [u8], Malformed> {
        let len = usize::try_from(len).map_err(|_| Malformed)?;
        let (head, rest) = self.bytes.split_at_checked(len).ok_or(Malformed)?;
        self.bytes = rest;
        Ok(head)
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers of all lengths; `any::<u64>()` returns long ones only.
    fn any_size() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0u32..64).prop_map(|(value, shift)| value >> shift)
    }

    fn leb128(mut value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
        out
    }

    proptest! {
        #[test]
        fn writer_matches_reference_encoding(value in any_size()) {
            let mut out = Vec::new();
            put_u64(&mut out, value);
            prop_assert_eq!(out, leb128(value));
        }

        #[test]
        fn varint_round_trip(values in prop::collection::vec(any_size(), 0..40)) {
            let mut out = Vec::new();
            for &v in &values {
                put_u64(&mut out, v);
                let mut room = [0; 2 * MAX_LEN];
                let mut writer = Writer::new(&mut room);
                writer.i64(v as i64);
                writer.delta(77, v);
                let len = writer.len();
                out.extend_from_slice(&room[..len]);
            }
            let mut cursor = Cursor::new(&out);
            for &v in &values {
                prop_assert_eq!(cursor.u64(), Ok(v));
                let mut again = cursor;
                prop_assert_eq!(cursor.i64(), Ok(v as i64));
                let zigzagged = ((v << 1) as i64 ^ (v as i64 >> 63)) as u64;
                let next = ((v.wrapping_sub(77) << 1) as i64 ^ (v.wrapping_sub(77) as i64 >> 63)) as u64;
                prop_assert_eq!(again.u64_pair(), Ok((zigzagged, next)));
                prop_assert_eq!(cursor.delta(77), Ok(v));
            }
            prop_assert!(cursor.is_empty());
        }

        #[test]
        fn cursor_accepts_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut cursor = Cursor::new(&bytes);
            while !cursor.is_empty() && cursor.u64().is_ok() {}
        }
    }

    #[test]
    fn varint_round_trip_powers_of_two() {
        for value in (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit]).chain([u64::MAX]) {
            let bytes = leb128(value);
            assert_eq!(Cursor::new(&bytes).u64(), Ok(value), "the slow way");
            let followed = [&bytes[..], &[0xff; 8]].concat();
            assert_eq!(Cursor::new(&followed).u64(), Ok(value), "the fast way");
        }
    }

    #[test]
    fn varint_of_eleven_bytes_is_refused() {
        assert_eq!(Cursor::new(&[0xff; 11]).u64(), Err(Malformed));
        assert_eq!(Cursor::new(&[0x80, 0x80]).u64(), Err(Malformed));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let mut out = Vec::new();
        put_text(&mut out, "aé", 2);
        assert_eq!(out, [1, b'a']);
    }
}
