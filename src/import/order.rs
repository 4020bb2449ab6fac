//! The rows of a table in another order, by their contents. Stretches of rows are sorted in memory and written one
//! after the other into a temporary file; reading the rows merges them. That takes n log n time and a bounded memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;

/// Bytes of the rows that are sorted at a time.
const STRETCH_LEN: usize = 32 << 20;
/// Bytes that are read of each stretch at a time.
const READ_LEN: usize = 64 << 10;

/// Takes rows in the order of the file.
pub(super) struct Sorter {
    file: File,
    stretches: Vec<Range<u64>>,
    stretch_len: usize,
    bytes: Vec<u8>,
    /// Key, line, and place among the bytes.
    rows: Vec<(u64, u64, Range<usize>)>,
}

impl Sorter {
    pub(super) fn new() -> io::Result<Self> {
        Self::with_stretch_len(STRETCH_LEN)
    }

    fn with_stretch_len(stretch_len: usize) -> io::Result<Self> {
        let (stretches, bytes, rows) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { file: tempfile::tempfile()?, stretches, stretch_len, bytes, rows })
    }

    /// Adds a row. Those with the same key stay in the order of their lines.
    pub(super) fn add(&mut self, key: u64, line: u64, row: &[u8]) -> io::Result<()> {
        if self.bytes.len() + row.len() > self.stretch_len {
            self.write_stretch()?;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(row);
        self.rows.push((key, line, start..self.bytes.len()));
        Ok(())
    }

    /// The rows in order.
    pub(super) fn finish(mut self) -> io::Result<Order> {
        self.write_stretch()?;
        Ok(Order { file: self.file, stretches: self.stretches })
    }

    /// Sorts what is in memory and appends it to the file.
    fn write_stretch(&mut self) -> io::Result<()> {
        self.rows.sort_unstable_by_key(|(key, line, _)| (*key, *line));
        let start = self.stretches.last().map_or(0, |before| before.end);
        let (mut out, mut end) = (BufWriter::with_capacity(READ_LEN, &self.file), start);
        for (key, line, place) in self.rows.drain(..) {
            let row = &self.bytes[place];
            let head = RowHeader { key, line, len: row.len() as u32 };
            out.write_all(&head.bytes())?;
            out.write_all(row)?;
            end += (HEAD_LEN + row.len()) as u64;
        }
        out.flush()?;
        drop(out);
        self.bytes.clear();
        self.stretches.push(start..end);
        Ok(())
    }
}

/// The header of a row in the file. A row is at most 1 MiB long.
#[derive(Clone, Copy)]
struct RowHeader {
    key: u64,
    line: u64,
    len: u32,
}

const HEAD_LEN: usize = 20;

impl RowHeader {
    fn bytes(self) -> [u8; HEAD_LEN] {
        let mut bytes = [0; HEAD_LEN];
        bytes[..8].copy_from_slice(&self.key.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.line.to_le_bytes());
        bytes[16..].copy_from_slice(&self.len.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; HEAD_LEN]) -> Self {
        let number = |at: usize, len: usize| {
            bytes[at..at + len].iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
        };
        Self { key: number(0, 8), line: number(8, 8), len: number(16, 4) as u32 }
    }
}

/// Rows in order.
pub(super) struct Order {
    file: File,
    stretches: Vec<Range<u64>>,
}

impl Order {
    /// Goes through the rows.
    pub(super) fn rows(&self) -> io::Result<MergedRows<'_>> {
        let stretch = |range: &Range<u64>| Stretch {
            input: BufReader::with_capacity(READ_LEN, FileSlice { file: &self.file, left: range.clone() }),
            row: Vec::new(),
        };
        let mut merged =
            MergedRows { stretches: self.stretches.iter().map(stretch).collect(), next: BinaryHeap::new() };
        (0..merged.stretches.len()).try_for_each(|at| merged.advance(at))?;
        Ok(merged)
    }

    /// Whether two rows have the same key.
    pub(super) fn has_equals(&self) -> io::Result<bool> {
        let (mut rows, mut row, mut last) = (self.rows()?, Vec::new(), None);
        while let Some((key, _)) = rows.next(&mut row)? {
            if last.replace(key) == Some(key) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The stretches, merged.
pub(super) struct MergedRows<'a> {
    stretches: Vec<Stretch<'a>>,
    /// Key and line of the next row of each stretch, and which stretch it is.
    next: BinaryHeap<Reverse<(u64, u64, usize)>>,
}

impl MergedRows<'_> {
    /// Puts the next row into `row` and returns its key and line; `None` after the last.
    pub(super) fn next(&mut self, row: &mut Vec<u8>) -> io::Result<Option<(u64, u64)>> {
        let Some(Reverse((key, line, at))) = self.next.pop() else { return Ok(None) };
        std::mem::swap(row, &mut self.stretches[at].row);
        self.advance(at)?;
        Ok(Some((key, line)))
    }

    fn advance(&mut self, at: usize) -> io::Result<()> {
        if let Some(head) = self.stretches[at].read()? {
            self.next.push(Reverse((head.key, head.line, at)));
        }
        Ok(())
    }
}

/// One sorted stretch of rows.
struct Stretch<'a> {
    input: BufReader<FileSlice<'a>>,
    row: Vec<u8>,
}

impl Stretch<'_> {
    fn read(&mut self) -> io::Result<Option<RowHeader>> {
        if self.input.buffer().is_empty() && self.input.get_ref().left.is_empty() {
            return Ok(None);
        }
        let mut head = [0; HEAD_LEN];
        self.input.read_exact(&mut head)?;
        let head = RowHeader::from_bytes(head);
        self.row.resize(head.len as usize, 0);
        self.input.read_exact(&mut self.row)?;
        Ok(Some(head))
    }
}

/// A part of a file that others read as well.
struct FileSlice<'a> {
    file: &'a File,
    left: Range<u64>,
}

impl Read for FileSlice<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = usize::try_from(self.left.end - self.left.start).map_or(out.len(), |left| left.min(out.len()));
        let mut file = self.file;
        file.seek(SeekFrom::Start(self.left.start))?;
        let read = file.read(&mut out[..len])?;
        self.left.start += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_are_sorted_by_key_then_line(keys in prop::collection::vec(0_u64..50, 0..300), len in 1_usize..200) {
            let mut sorter = Sorter::with_stretch_len(len).unwrap();
            for (line, key) in keys.iter().enumerate() {
                sorter.add(*key, line as u64, format!("{key},{line}\n").as_bytes()).unwrap();
            }
            let order = sorter.finish().unwrap();
            let mut expected: Vec<(u64, u64)> = keys.iter().enumerate().map(|(line, key)| (*key, line as u64)).collect();
            expected.sort_unstable();
            // Twice, as tables are gone through more than once.
            for _ in 0..2 {
                let (mut rows, mut row, mut found) = (order.rows().unwrap(), Vec::new(), Vec::new());
                while let Some((key, line)) = rows.next(&mut row).unwrap() {
                    prop_assert_eq!(String::from_utf8_lossy(&row), format!("{key},{line}\n"));
                    found.push((key, line));
                }
                prop_assert_eq!(&found, &expected);
            }
            let mut distinct = keys.clone();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(order.has_equals().unwrap(), distinct.len() < keys.len());
        }
    }
}
