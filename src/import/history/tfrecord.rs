//! TensorFlow's record format: a length, the data, and a checksum (CRC-32C, rotated) after each.

use std::io::{self, Read};

/// Records that are longer are skipped: a scalar needs some bytes, and a model's graph may have hundreds of MiB.
const MAX_LEN: u64 = 64 << 20;
const MASK: u32 = 0xa282_ead8;
const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let (mut table, mut byte) = ([0; 256], 0);
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// The checksum of these bytes, as the format has it.
fn masked_crc(bytes: &[u8]) -> u32 {
    let crc = !bytes.iter().fold(!0, |crc: u32, byte| crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)]);
    crc.rotate_right(15).wrapping_add(MASK)
}

/// How a file's records end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordEnd {
    /// With the file.
    Whole,
    /// Within a record: the writer was killed, or still writes.
    Cut,
    /// At this byte the checksum is wrong.
    Damaged(u64),
}

/// Calls `each` with every record.
///
/// # Errors
/// If the file cannot be read.
pub(super) fn read(mut file: impl Read, mut each: impl FnMut(&[u8])) -> io::Result<RecordEnd> {
    let (mut at, mut data) = (0, Vec::new());
    loop {
        let mut head = Vec::with_capacity(12);
        file.by_ref().take(12).read_to_end(&mut head)?;
        let Some((len, crc)) = head.split_at_checked(8).and_then(|(len, crc)| {
            Some((u64::from_le_bytes(len.try_into().ok()?), u32::from_le_bytes(crc.try_into().ok()?)))
        }) else {
            return Ok(if head.is_empty() { RecordEnd::Whole } else { RecordEnd::Cut });
        };
        if masked_crc(&head[..8]) != crc {
            return Ok(RecordEnd::Damaged(at));
        }
        if len > MAX_LEN {
            let rest = len.saturating_add(4);
            if io::copy(&mut file.by_ref().take(rest), &mut io::sink())? < rest {
                return Ok(RecordEnd::Cut);
            }
        } else {
            data.clear();
            file.by_ref().take(len + 4).read_to_end(&mut data)?;
            let Some((record, crc)) = data.split_last_chunk::<4>().filter(|(record, _)| record.len() as u64 == len)
            else {
                return Ok(RecordEnd::Cut);
            };
            if masked_crc(record) != u32::from_le_bytes(*crc) {
                return Ok(RecordEnd::Damaged(at));
            }
            each(record);
        }
        at += len.saturating_add(16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(data: &[u8]) -> Vec<u8> {
        let len = (data.len() as u64).to_le_bytes();
        [&len[..], &masked_crc(&len).to_le_bytes(), data, &masked_crc(data).to_le_bytes()].concat()
    }

    fn read_all(bytes: &[u8]) -> (Vec<Vec<u8>>, RecordEnd) {
        let mut records = Vec::new();
        let end = read(bytes, |record| records.push(record.to_vec())).unwrap();
        (records, end)
    }

    #[test]
    fn checksum_is_that_of_the_format() {
        assert_eq!(masked_crc(b"123456789"), 0xe306_9283_u32.rotate_right(15).wrapping_add(MASK));
    }

    #[test]
    fn a_record_as_long_as_can_be_said_is_cut() {
        let len = u64::MAX.to_le_bytes();
        let bytes = [record(b"one"), len.to_vec(), masked_crc(&len).to_le_bytes().to_vec(), vec![0; 9]].concat();
        assert_eq!(read_all(&bytes), (vec![b"one".to_vec()], RecordEnd::Cut));
    }

    #[test]
    fn records_are_read_up_to_a_cut_or_damaged_one() {
        let bytes = [record(b"one"), record(b"two")].concat();
        assert_eq!(read_all(&bytes), (vec![b"one".to_vec(), b"two".to_vec()], RecordEnd::Whole));
        for len in 20..bytes.len() {
            assert_eq!(read_all(&bytes[..len]), (vec![b"one".to_vec()], RecordEnd::Cut), "{len}");
        }
        for at in 19..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert_eq!(read_all(&damaged), (vec![b"one".to_vec()], RecordEnd::Damaged(19)), "{at}");
        }
    }
}
