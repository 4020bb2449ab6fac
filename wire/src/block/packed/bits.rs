//! Sequences of bits, starting with the lowest bit of each byte.

/// Most bits written or read at a time: as many as a word holds, whichever bit of a byte they begin at.
pub(super) const MAX_BITS: u32 = 56;

/// Appends bits.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    /// Bits that do not fill a word yet, starting with the lowest.
    last: u64,
    /// The number of these bits, less than 64.
    last_bits: u32,
}

impl BitWriter {
    /// Bytes written, including a partial last one.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() + self.last_bits.div_ceil(8) as usize
    }

    /// Discards what was written and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        (self.last, self.last_bits) = (0, 0);
    }

    /// Writes the lowest `count` bits of `value`, at most [`MAX_BITS`]; its other bits must be 0.
    #[inline]
    pub(super) fn put(&mut self, value: u64, count: u32) {
        debug_assert!(count <= MAX_BITS && value >> count == 0, "{value} in {count} bits");
        self.last |= value << self.last_bits;
        let room = 64 - self.last_bits;
        if count < room {
            self.last_bits += count;
        } else {
            self.bytes.extend_from_slice(&self.last.to_le_bytes());
            // All of them fit into an empty word.
            (self.last, self.last_bits) = (value >> room, count - room);
        }
    }

    /// Fills the last byte with zeros and returns all bytes. Nothing may be written after this.
    pub(super) fn finish(&mut self) -> &[u8] {
        let bytes = self.last_bits.div_ceil(8) as usize;
        self.bytes.extend_from_slice(&self.last.to_le_bytes()[..bytes]);
        (self.last, self.last_bits) = (0, 0);
        &self.bytes
    }
}

/// Reads bits in order. After the end it reads zeros; [`BitReader::is_past_end`] reports whether it did.
#[derive(Clone, Copy, Debug)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    /// Bits read.
    at: usize,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The length of what is read, in bytes.
    pub(super) fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// The next bits, starting with the lowest; [`MAX_BITS`] of them are valid.
    #[inline]
    pub(super) fn peek(&self) -> u64 {
        let (byte, bit) = (self.at / 8, self.at % 8);
        let word = match self.bytes.get(byte..).and_then(|rest| rest.first_chunk::<8>()) {
            Some(chunk) => u64::from_le_bytes(*chunk),
            None => self.tail(byte),
        };
        word >> bit
    }

    /// The last bytes, followed by zeros.
    #[cold]
    fn tail(&self, byte: usize) -> u64 {
        let rest = self.bytes.get(byte..).unwrap_or_default();
        rest.iter().take(8).rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
    }

    /// Skips this many bits.
    #[inline]
    pub(super) fn skip(&mut self, count: u32) {
        self.at += count as usize;
    }

    /// Skips this many bytes.
    pub(super) fn skip_bytes(&mut self, count: usize) {
        self.at = self.at.saturating_add(count.saturating_mul(8));
    }

    /// Reads `count` bits, at most [`MAX_BITS`].
    #[inline]
    pub(super) fn take(&mut self, count: u32) -> u64 {
        let value = self.peek() & ((1 << count) - 1);
        self.skip(count);
        value
    }

    /// Whether more was read than there is.
    #[inline]
    pub(super) fn is_past_end(&self) -> bool {
        self.at > self.bytes.len().saturating_mul(8)
    }

    /// Whether only the zeros that fill the last byte are left.
    #[cfg(test)]
    pub(super) fn is_at_end(&self) -> bool {
        self.at.div_ceil(8) == self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bits_round_trip(all in prop::collection::vec((any::<u64>(), 0..=MAX_BITS), 0..200)) {
            let mut writer = BitWriter::default();
            let value = |value: u64, count: u32| value & ((1 << count) - 1);
            all.iter().for_each(|&(bits, count)| writer.put(value(bits, count), count));
            let bytes = writer.finish().to_vec();
            let total: u32 = all.iter().map(|&(_, count)| count).sum();
            prop_assert_eq!(bytes.len(), total.div_ceil(8) as usize);
            let mut reader = BitReader::new(&bytes);
            for &(bits, count) in &all {
                prop_assert_eq!(reader.take(count), value(bits, count));
            }
            prop_assert!(reader.is_at_end() && !reader.is_past_end());
            prop_assert_eq!(reader.take(MAX_BITS), 0, "zeros follow");
            prop_assert!(reader.is_past_end());
        }
    }
}
