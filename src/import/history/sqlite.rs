//! Reads tables of an SQLite database, as much as trackers need: whole tables in the order of their rows, with what a journal
//! beside it (`-wal`) has not yet put into it. Written after "Database File Format" (sqlite.org/fileformat2.html). Nothing is
//! locked or written: a database that changes meanwhile may be refused.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::sqlite_columns::column_names;

/// What a database begins with.
pub(super) const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Pages of a tree that lead down to a row, at the most.
const MAX_DEPTH: usize = 40;
/// Bytes of a row that are read.
const MAX_ROW: usize = 64 << 20;

/// What is said of pages that lead to each other.
const ENDLESS: &str = "a tree without end";

const INTERIOR: u8 = 5;
const LEAF: u8 = 13;

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Int(i64),
    Real(f64),
    /// A text, or bytes.
    Bytes(Vec<u8>),
}

impl Cell {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Int(value) => value.to_string(),
            Self::Real(value) => value.to_string(),
            Self::Null => String::new(),
        }
    }

    pub(super) fn float(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Real(value) => Some(*value),
            Self::Null | Self::Bytes(_) => None,
        }
    }

    pub(super) fn int(&self) -> i64 {
        match self {
            Self::Int(value) => *value,
            Self::Real(value) => *value as i64,
            Self::Null | Self::Bytes(_) => 0,
        }
    }
}

/// An open database.
pub(super) struct Database {
    file: File,
    page_len: usize,
    /// Bytes at the end of each page that are not used.
    reserved: usize,
    /// Pages that the journal has in a newer version: where there.
    newer: HashMap<u32, u64>,
    journal: Option<File>,
}

/// Bytes that a tree may still have. One that names pages or rows several times would have no end.
struct BytesLeft(u64);

impl BytesLeft {
    fn spend(&mut self, bytes: usize) -> io::Result<()> {
        self.0 = self.0.checked_sub(bytes as u64).ok_or_else(|| damaged(ENDLESS))?;
        Ok(())
    }
}

fn damaged(what: &str) -> io::Error {
    io::Error::other(format!("the database is damaged or is being written: {what}"))
}

/// Reads all of these bytes from there on.
fn read_at(mut file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(bytes)
}

impl Database {
    /// Opens it.
    ///
    /// # Errors
    /// If it cannot be read, or is no such database.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let mut head = [0; 100];
        match read_at(&file, &mut head, 0) {
            // What is shorter than its head is none: it has no page.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => head = [0; 100],
            read => read?,
        }
        let page_len = match u16::from_be_bytes([head[16], head[17]]) {
            1 => 65536,
            len => usize::from(len),
        };
        if !head.starts_with(MAGIC) || !page_len.is_power_of_two() || page_len < 512 {
            return Err(io::Error::other("is no SQLite database"));
        }
        if be32(&head, 56) > 1 {
            return Err(io::Error::other("its texts are UTF-16, which is not read"));
        }
        let mut database =
            Self { file, page_len, reserved: usize::from(head[20]), newer: HashMap::new(), journal: None };
        database.open_journal(path)?;
        Ok(database)
    }

    /// Finds the pages of the journal, up to its last whole transaction.
    fn open_journal(&mut self, path: &Path) -> io::Result<()> {
        let mut name = path.as_os_str().to_owned();
        name.push("-wal");
        let Ok(journal) = File::open(PathBuf::from(name)) else { return Ok(()) };
        let mut head = [0; 32];
        if read_at(&journal, &mut head, 0).is_err() || be32(&head, 8) as usize != self.page_len {
            return Ok(());
        }
        let frame_len = 24 + self.page_len;
        let (mut at, mut open, mut frame) = (32u64, HashMap::new(), vec![0; frame_len]);
        let is_big_endian = be32(&head, 0) & 1 == 1;
        let mut sum = checksum((0, 0), &head[..24], is_big_endian);
        while read_at(&journal, &mut frame, at).is_ok() && frame[8..16] == head[16..24] {
            sum = checksum(checksum(sum, &frame[..8], is_big_endian), &frame[24..], is_big_endian);
            if sum != (be32(&frame, 16), be32(&frame, 20)) {
                break;
            }
            open.insert(be32(&frame, 0), at + 24);
            if be32(&frame, 4) != 0 {
                self.newer.extend(open.drain());
            }
            at += frame_len as u64;
        }
        self.journal = Some(journal);
        Ok(())
    }

    fn page(&self, number: u32, left: &mut BytesLeft) -> io::Result<Vec<u8>> {
        left.spend(self.page_len)?;
        let mut page = vec![0; self.page_len];
        let read = match (self.newer.get(&number), &self.journal) {
            (Some(at), Some(journal)) => read_at(journal, &mut page, *at),
            _ if number == 0 => return Err(damaged("page 0")),
            _ => read_at(&self.file, &mut page, u64::from(number - 1) * self.page_len as u64),
        };
        match read {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(damaged("a page is not there")),
            read => read.map(|()| page),
        }
    }

    /// What a tree has at the most: each page once, with its rows.
    fn bytes_left(&self) -> io::Result<BytesLeft> {
        let newer = (self.newer.len() * self.page_len) as u64;
        Ok(BytesLeft(self.file.metadata()?.len().saturating_add(newer).saturating_mul(2)))
    }

    /// Calls `each` with these columns of all rows of a table. A column that is not there is null.
    ///
    /// # Errors
    /// If the table is not there, or the database cannot be read.
    pub(super) fn rows<const N: usize>(
        &self,
        table: &str,
        columns: [&str; N],
        mut each: impl FnMut([Cell; N]),
    ) -> io::Result<()> {
        let mut found = None;
        self.walk(1, 0, &mut self.bytes_left()?, &mut |row| {
            // type, name, tbl_name, rootpage, sql
            if let [kind, name, _, root, sql] = row
                && (kind.text().as_str(), name.text().as_str()) == ("table", table)
            {
                found = Some((root.int() as u32, sql.text()));
            }
        })?;
        let Some((root, sql)) = found else { return Err(io::Error::other(format!("has no table {table}"))) };
        let all = column_names(&sql);
        let places = columns.map(|column| all.iter().position(|name| name == column));
        self.walk(root, 0, &mut self.bytes_left()?, &mut |row| {
            each(places.map(|at| at.and_then(|at| row.get(at).cloned()).unwrap_or(Cell::Null)))
        })
    }

    /// Calls `each` with the rows below a page of a table's tree.
    fn walk(&self, number: u32, depth: usize, left: &mut BytesLeft, each: &mut dyn FnMut(&[Cell])) -> io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(damaged(ENDLESS));
        }
        let page = self.page(number, left)?;
        let head = if number == 1 { 100 } else { 0 };
        let (kind, cells) = (page[head], usize::from(u16::from_be_bytes([page[head + 3], page[head + 4]])));
        let first = head + if kind == INTERIOR { 12 } else { 8 };
        for cell in 0..cells {
            let pointer = page.get(first + 2 * cell..first + 2 * cell + 2).ok_or_else(|| damaged("a cell"))?;
            let at = usize::from(u16::from_be_bytes([pointer[0], pointer[1]]));
            let cell = page.get(at..).ok_or_else(|| damaged("a cell"))?;
            match kind {
                INTERIOR if cell.len() >= 4 => self.walk(be32(cell, 0), depth + 1, left, each)?,
                LEAF => each(&cells_of(&self.payload(cell, left)?)),
                _ => return Err(damaged("a page of another kind")),
            }
        }
        if kind == INTERIOR { self.walk(be32(&page, head + 8), depth + 1, left, each) } else { Ok(()) }
    }

    /// A row's bytes, of which long ones go on in further pages.
    fn payload(&self, mut cell: &[u8], left: &mut BytesLeft) -> io::Result<Vec<u8>> {
        let len = varint(&mut cell).and_then(|len| usize::try_from(len).ok()).filter(|len| *len <= MAX_ROW);
        let len = len.ok_or_else(|| damaged("a row's length"))?;
        varint(&mut cell); // the row's number
        let usable = self.page_len - self.reserved;
        let (most, least) = (usable - 35, (usable - 12) * 32 / 255 - 23);
        let local = match len {
            len if len <= most => len,
            len => Some(least + (len - least) % (usable - 4)).filter(|local| *local <= most).unwrap_or(least),
        };
        left.spend(local)?;
        let mut payload = cell.get(..local).ok_or_else(|| damaged("a row"))?.to_vec();
        let mut next = if local < len { cell.get(local..local + 4).map_or(0, |next| be32(next, 0)) } else { 0 };
        while payload.len() < len {
            let page = self.page(next, left)?;
            let part = (len - payload.len()).min(usable - 4);
            payload.extend_from_slice(&page[4..4 + part]);
            next = be32(&page, 0);
        }
        Ok(payload)
    }
}

/// Four bytes, which are there, as a number.
fn be32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

/// A journal's checksum, over a multiple of eight bytes.
fn checksum((mut a, mut b): (u32, u32), bytes: &[u8], is_big_endian: bool) -> (u32, u32) {
    let word = |bytes: &[u8]| match bytes.try_into() {
        Ok(bytes) if is_big_endian => u32::from_be_bytes(bytes),
        Ok(bytes) => u32::from_le_bytes(bytes),
        Err(_) => 0,
    };
    for pair in bytes.chunks_exact(8) {
        a = a.wrapping_add(word(&pair[..4])).wrapping_add(b);
        b = b.wrapping_add(word(&pair[4..])).wrapping_add(a);
    }
    (a, b)
}

/// SQLite's number of variable length, most significant bits first.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for at in 0..9 {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        if at == 8 {
            return Some(value << 8 | u64::from(*first));
        }
        value = value << 7 | u64::from(first & 0x7f);
        if first & 0x80 == 0 {
            break;
        }
    }
    Some(value)
}

/// The values of a row: their types, then they. Those that are cut are missing.
fn cells_of(payload: &[u8]) -> Vec<Cell> {
    let mut rest = payload;
    let head_len = varint(&mut rest).unwrap_or_default() as usize;
    let Some((head, mut body)) = payload.split_at_checked(head_len) else { return Vec::new() };
    let mut types = head.get(payload.len() - rest.len()..).unwrap_or_default();
    let mut cells = Vec::new();
    while let Some(kind) = varint(&mut types) {
        let len = match kind {
            0 | 8 | 9 => 0,
            1..=4 => kind as usize,
            5 => 6,
            6 | 7 => 8,
            _ => (kind.saturating_sub(12) / 2) as usize,
        };
        let Some((bytes, after)) = body.split_at_checked(len) else { break };
        body = after;
        let int = || {
            let sign = bytes.first().map_or(0, |first| if first & 0x80 == 0 { 0 } else { -1 });
            bytes.iter().fold(sign, |value: i64, byte| value << 8 | i64::from(*byte))
        };
        cells.push(match kind {
            0 | 10 | 11 => Cell::Null,
            8 => Cell::Int(0),
            9 => Cell::Int(1),
            7 => Cell::Real(f64::from_bits(int() as u64)),
            1..=6 => Cell::Int(int()),
            _ => Cell::Bytes(bytes.to_vec()),
        });
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_across_pages_and_in_the_journal_are_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import/histories/own.db");
        let mut rows = Vec::new();
        let database = Database::open(&path).unwrap();
        database.rows("t", ["number", "text", "late", "none"], |row| rows.push(row)).unwrap();
        assert_eq!(rows.len(), 151);
        for (at, [number, text, late, none]) in (1..=150).zip(&rows) {
            assert_eq!(number.float(), Some(f64::from(at) / 2.0));
            assert_eq!(text.text().len(), if at % 20 == 0 { 1000 } else { at as usize % 50 });
            assert_eq!([late, none], [&Cell::Null, &Cell::Null]);
        }
        let [number, text, late, _] = &rows[150];
        assert_eq!((number.float(), text.text().as_str(), late.int()), (Some(-1.5), "in the journal", -7));
        assert!(database.rows("u", [""; 1], |_| ()).unwrap_err().to_string().contains("has no table u"));
    }

    #[test]
    fn what_is_short_is_no_database() {
        for bytes in [&b""[..], MAGIC] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), bytes).unwrap();
            let error = Database::open(file.path()).err().unwrap();
            assert_eq!(error.to_string(), "is no SQLite database");
        }
    }

    /// A database of pages of 512 bytes, each of them made by this from its number.
    fn made(pages: u32, make: impl Fn(u32, &mut [u8])) -> io::Result<()> {
        let mut bytes = vec![0; 512 * pages as usize];
        bytes.chunks_mut(512).zip(1..).for_each(|(page, number)| make(number, page));
        bytes[..16].copy_from_slice(MAGIC);
        bytes[16..18].copy_from_slice(&512_u16.to_be_bytes());
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        Database::open(file.path()).unwrap().rows("t", ["a"], |_| ())
    }

    #[test]
    fn pages_that_name_the_next_twice_have_an_end() {
        let read = made(38, |number, page| {
            let head = if number == 1 { 100 } else { 0 };
            page[head] = if number == 38 { LEAF } else { INTERIOR };
            page[head + 4] = u8::from(number < 38);
            page[head + 8..head + 12].copy_from_slice(&(number + 1).to_be_bytes());
            page[head + 12..head + 14].copy_from_slice(&500_u16.to_be_bytes());
            page[500..504].copy_from_slice(&(number + 1).to_be_bytes());
        });
        assert!(read.unwrap_err().to_string().contains(ENDLESS));
    }

    #[test]
    fn a_row_that_continues_in_the_same_page_has_an_end() {
        let read = made(2, |number, page| {
            if number == 2 {
                return page[..4].copy_from_slice(&2_u32.to_be_bytes());
            }
            (page[100], page[104], page[109]) = (LEAF, 1, 200);
            // 60 MiB, of which 284 bytes are here, and the row's number.
            page[200..205].copy_from_slice(&[0x9e, 0x80, 0x80, 0, 1]);
            page[489..493].copy_from_slice(&2_u32.to_be_bytes());
        });
        assert!(read.unwrap_err().to_string().contains(ENDLESS));
    }
}
