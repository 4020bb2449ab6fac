//! The file of a run of W&B: a header of its own, then LevelDB's log format with blocks of 32 KiB, whose checksums are plain
//! CRC-32.

use std::io::{self, Read};

use flate2::Crc;

/// What such a file begins with: a name and a number.
const HEADER: [u8; 6] = *b":W&B\xe1\xbe";
const HEADER_LEN: usize = 7;
const BLOCK_LEN: usize = 32 * 1024;
const CHUNK_HEADER_LEN: usize = 7;
/// Records that are longer are left out.
pub(super) const MAX_LEN: usize = 64 << 20;

/// What a chunk is of its record.
const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// What reading came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LogEnd {
    /// Whether it is such a file.
    pub(super) is_log: bool,
    /// Blocks of which a part is left out, because its checksum or its order is wrong.
    pub(super) damaged_blocks: u64,
    /// Records that are left out because they are too long.
    pub(super) too_long: u64,
}

/// Calls `each` with every record.
///
/// # Errors
/// If the file cannot be read.
pub(super) fn read(mut file: impl Read, each: impl FnMut(&[u8])) -> io::Result<LogEnd> {
    let (mut records, mut block, mut end) = (Records { each, open: None, too_long: 0 }, Vec::new(), LogEnd::default());
    loop {
        block.clear();
        file.by_ref().take(BLOCK_LEN as u64).read_to_end(&mut block)?;
        if !end.is_log && !block.starts_with(&HEADER) {
            return Ok(end);
        }
        if block.is_empty() {
            // What is open at the end is cut.
            end.damaged_blocks += u64::from(records.open.is_some());
            return Ok(LogEnd { too_long: records.too_long, ..end });
        }
        let skipped = if end.is_log { 0 } else { HEADER_LEN };
        end.is_log = true;
        let is_whole = records.read_block(block.get(skipped..).unwrap_or_default());
        end.damaged_blocks += u64::from(!is_whole);
    }
}

/// A record of which chunks are still to come.
struct OpenRecord {
    bytes: Vec<u8>,
    /// Also of what is not kept because there is too much.
    len: usize,
}

/// Puts records together from their chunks.
struct Records<F> {
    each: F,
    open: Option<OpenRecord>,
    too_long: u64,
}

impl<F: FnMut(&[u8])> Records<F> {
    /// Reads a block's chunks; whether all are whole and in order.
    fn read_block(&mut self, mut block: &[u8]) -> bool {
        let mut is_whole = true;
        while let Some((head, rest)) = block.split_first_chunk::<CHUNK_HEADER_LEN>() {
            let crc = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
            let (len, kind) = (usize::from(u16::from_le_bytes([head[4], head[5]])), head[6]);
            if (crc, len, kind) == (0, 0, 0) {
                return is_whole; // the rest of a block is filled with zeros
            }
            let Some((data, rest)) = rest.split_at_checked(len) else {
                self.open = None;
                return false;
            };
            let mut own = Crc::new();
            own.update(&[kind]);
            own.update(data);
            if own.sum() != crc {
                self.open = None;
                return false;
            }
            is_whole &= self.take_chunk(kind, data);
            block = rest;
        }
        // Less than a chunk's header is left: zeros, unless the file is cut here.
        is_whole && block.iter().all(|byte| *byte == 0)
    }

    /// Adds a chunk to its record; whether it is in order.
    fn take_chunk(&mut self, kind: u8, data: &[u8]) -> bool {
        match (kind, self.open.take()) {
            (FULL, before) => {
                (self.each)(data);
                before.is_none()
            }
            (FIRST, before) => {
                self.open = Some(OpenRecord { bytes: data.to_vec(), len: data.len() });
                before.is_none()
            }
            (MIDDLE | LAST, Some(mut record)) => {
                record.len += data.len();
                if record.len <= MAX_LEN {
                    record.bytes.extend_from_slice(data);
                }
                match (kind, record.len) {
                    (MIDDLE, _) => self.open = Some(record),
                    (_, ..=MAX_LEN) => (self.each)(&record.bytes),
                    _ => self.too_long += 1,
                }
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(kind: u8, data: &[u8]) -> Vec<u8> {
        let mut crc = Crc::new();
        crc.update(&[kind]);
        crc.update(data);
        [&crc.sum().to_le_bytes()[..], &(data.len() as u16).to_le_bytes(), &[kind], data].concat()
    }

    fn read_all(bytes: &[u8]) -> (Vec<Vec<u8>>, LogEnd) {
        let mut records = Vec::new();
        let end = read(bytes, |record| records.push(record.to_vec())).unwrap();
        (records, end)
    }

    #[test]
    fn records_are_read_across_blocks_and_damage_is_counted() {
        let rest = BLOCK_LEN - HEADER_LEN - 10 - CHUNK_HEADER_LEN;
        let bytes = [
            &HEADER[..],
            &[0],
            &chunk(FULL, b"one"),
            &chunk(FIRST, &vec![7; rest]),
            &chunk(LAST, b"end"),
            &chunk(FULL, b"two"),
        ]
        .concat();
        let (records, end) = read_all(&bytes);
        assert_eq!((records.len(), records[1].len(), records[2].as_slice()), (3, rest + 3, &b"two"[..]));
        assert_eq!(end, LogEnd { is_log: true, ..LogEnd::default() });
        for len in 1..10 {
            let cut = read_all(&bytes[..bytes.len() - len]);
            assert_eq!((cut.0.len(), cut.1.damaged_blocks), (2, 1), "{len}");
        }
        assert!(!read_all(b"something else").1.is_log);
    }

    fn log(chunks: &[Vec<u8>]) -> Vec<u8> {
        [&HEADER[..], &[0], &chunks.concat()].concat()
    }

    #[test]
    fn parts_of_a_record_are_no_record() {
        let [full, first, middle, last] = [FULL, FIRST, MIDDLE, LAST].map(|kind| chunk(kind, &[kind]));
        for (chunks, whole, damaged) in [
            (vec![&first, &middle, &last, &full], vec![vec![FIRST, MIDDLE, LAST], vec![FULL]], 0),
            (vec![&last, &full], vec![vec![FULL]], 1),
            (vec![&middle, &last, &full], vec![vec![FULL]], 1),
            (vec![&first, &full, &last], vec![vec![FULL]], 1),
            (vec![&first, &first, &last], vec![vec![FIRST, LAST]], 1),
            (vec![&full, &first], vec![vec![FULL]], 1),
            (vec![&first, &chunk(9, b"x"), &last], vec![], 1),
        ] {
            let bytes = log(&chunks.into_iter().cloned().collect::<Vec<_>>());
            assert_eq!(read_all(&bytes), (whole, LogEnd { is_log: true, damaged_blocks: damaged, too_long: 0 }));
        }
    }

    #[test]
    fn the_rest_of_a_damaged_record_is_no_record() {
        let rest = BLOCK_LEN - HEADER_LEN - CHUNK_HEADER_LEN;
        let mut bytes = log(&[chunk(FIRST, &vec![7; rest]), chunk(LAST, b"end"), chunk(FULL, b"two")]);
        bytes[1000] ^= 1;
        let (records, end) = read_all(&bytes);
        assert_eq!((records, end.damaged_blocks), (vec![b"two".to_vec()], 2));
    }

    #[test]
    fn a_record_that_is_too_long_is_left_out_and_counted() {
        let middle = chunk(MIDDLE, &vec![0; BLOCK_LEN - CHUNK_HEADER_LEN]);
        let first = chunk(FIRST, &vec![0; BLOCK_LEN - HEADER_LEN - CHUNK_HEADER_LEN]);
        let mut chunks = vec![middle; MAX_LEN / BLOCK_LEN + 2];
        chunks[0] = first;
        chunks.extend([chunk(LAST, b"end"), chunk(FULL, b"two")]);
        let (records, end) = read_all(&log(&chunks));
        assert_eq!((records, end), (vec![b"two".to_vec()], LogEnd { is_log: true, damaged_blocks: 0, too_long: 1 }));
    }
}
