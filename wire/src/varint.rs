//! Variable-length integers: LEB128, and zigzag for signed values.

/// The bytes did not hold what they had to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Appends `value` in LEB128, 1 to 10 bytes.
#[inline]
pub(crate) fn put_u64(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the difference `to - from`, zigzagged; exact for any pair by wrapping.
#[inline]
pub(crate) fn put_delta(out: &mut Vec<u8>, from: u64, to: u64) {
    put_i64(out, to.wrapping_sub(from) as i64);
}

/// Appends a signed value, zigzagged.
#[inline]
pub(crate) fn put_i64(out: &mut Vec<u8>, value: i64) {
    put_u64(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Appends a text of at most `max` bytes, cut at a character's edge, with its length.
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
        match *self.bytes {
            [a, ref rest @ ..] if a < 0x80 => {
                self.bytes = rest;
                Ok(u64::from(a))
            }
            [a, b, ref rest @ ..] if b < 0x80 => {
                self.bytes = rest;
                Ok(u64::from(a & 0x7f) | u64::from(b) << 7)
            }
            [a, b, c, ref rest @ ..] if c < 0x80 => {
                self.bytes = rest;
                Ok(u64::from(a & 0x7f) | u64::from(b & 0x7f) << 7 | u64::from(c) << 14)
            }
            _ => self.u64_long(),
        }
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
        let raw = self.u64()?;
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    /// Undoes [`put_delta`].
    #[inline]
    pub(crate) fn after(&mut self, from: u64) -> Result<u64, Malformed> {
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

    proptest! {
        #[test]
        fn numbers_come_back(values in prop::collection::vec(any::<u64>(), 0..40)) {
            let mut out = Vec::new();
            for &v in &values {
                put_u64(&mut out, v);
                put_i64(&mut out, v as i64);
                put_delta(&mut out, 77, v);
            }
            let mut cursor = Cursor::new(&out);
            for &v in &values {
                prop_assert_eq!(cursor.u64(), Ok(v));
                prop_assert_eq!(cursor.i64(), Ok(v as i64));
                prop_assert_eq!(cursor.after(77), Ok(v));
            }
            prop_assert!(cursor.is_empty());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut cursor = Cursor::new(&bytes);
            while !cursor.is_empty() && cursor.u64().is_ok() {}
        }
    }

    #[test]
    fn an_eleventh_byte_is_refused() {
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
