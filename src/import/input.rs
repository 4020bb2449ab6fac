//! The text of a file, whatever it is packed in and written as: gzip is unpacked and UTF-16 becomes UTF-8 while it is
//! read, so that no file is held in memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::other_text::{OtherText, SNIFF_LEN};
use super::outcome::ImportError;
use crate::platform::files::is_device;

/// Bytes of text that are read at the most, also of what gzip packs a thousandfold.
pub(super) const MAX_BYTES: u64 = 8 << 30;
/// Bytes that identify a file's format.
const HEAD_LEN: u64 = 4;
/// Bytes that are read at a time.
const CHUNK_LEN: usize = 64 * 1024;

/// A file that begins with these bytes is not text; and what to do about it.
const OTHERS: [(&[u8], &str); 6] = [
    (b"PK\x03\x04", "is a spreadsheet or a zip archive: save it as CSV, or unpack it"),
    (b"PAR1", "is a Parquet file: write it as CSV, with to_csv in pandas"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd: decompress it first"),
    (b"\xfd7zX", "is compressed with xz: decompress it first"),
    (b"BZh", "is compressed with bzip2: decompress it first"),
    (b"\x89HDF", "is an HDF5 file: write it as CSV"),
];

/// How a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Utf16 { is_big_endian: bool },
}

impl Encoding {
    /// By a mark at the beginning, or by the zeros of plain letters in UTF-16.
    fn detect(head: &[u8]) -> Self {
        match head {
            [0xff, 0xfe, ..] | [1..=255, 0, 1..=255, 0] => Self::Utf16 { is_big_endian: false },
            [0xfe, 0xff, ..] | [0, 1..=255, 0, 1..=255] => Self::Utf16 { is_big_endian: true },
            _ => Self::Utf8,
        }
    }
}

/// A file whose text can be read more than once.
pub(super) struct Input {
    path: String,
    file: File,
    is_packed: bool,
    encoding: Encoding,
    /// What it was before it was made a table.
    was: Option<OtherText>,
}

impl Input {
    pub(super) fn open(path: &Path) -> Result<Self, ImportError> {
        let name = path.display().to_string();
        let file = File::open(path).and_then(rewindable);
        let file = file.map_err(|error| ImportError::Io { path: name.clone(), error })?;
        let mut input = Self { path: name, file, is_packed: false, encoding: Encoding::Utf8, was: None };
        input.is_packed = input.head()?.starts_with(b"\x1f\x8b");
        let head = input.head()?;
        if let Some((_, reason)) = OTHERS.iter().find(|(magic, _)| head.starts_with(magic)) {
            return Err(input.useless(*reason));
        }
        input.encoding = Encoding::detect(&head);
        Ok(input)
    }

    /// A file with a table; one that has steps in another form is made into one.
    pub(super) fn open_table(path: &Path) -> Result<Self, ImportError> {
        let mut input = Self::open(path)?;
        let mut head = Vec::new();
        input.text()?.take(SNIFF_LEN).read_to_end(&mut head).map_err(|error| input.failed(error))?;
        let Some(other) = OtherText::recognise(&String::from_utf8_lossy(&head)) else { return Ok(input) };
        let converted = || {
            let mut table = BufWriter::new(tempfile::tempfile()?);
            let written = other.write_table(input.text().map_err(io::Error::other)?, &mut table)?;
            Ok((written, table.into_inner().map_err(io::IntoInnerError::into_error)?))
        };
        let (written, table) = converted().map_err(|error| input.failed(error))?;
        written.map_err(|reason| input.useless(reason))?;
        input = Self { file: table, is_packed: false, encoding: Encoding::Utf8, was: Some(other), ..input };
        Ok(input)
    }

    /// The file's name.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// How the text is packed and encoded, if that is unusual.
    pub(super) fn form(&self) -> Option<&'static str> {
        match (self.is_packed, self.encoding) {
            (false, Encoding::Utf8) => self.was.map(OtherText::describe),
            (true, Encoding::Utf8) => Some("compressed with gzip"),
            (false, Encoding::Utf16 { .. }) => Some("in UTF-16"),
            (true, Encoding::Utf16 { .. }) => Some("in UTF-16, compressed with gzip"),
        }
    }

    /// The text from its beginning.
    pub(super) fn text(&self) -> Result<Box<dyn BufRead>, ImportError> {
        let unpacked = self.unpacked()?;
        let text: Box<dyn BufRead> = match self.encoding {
            Encoding::Utf8 => unpacked,
            Encoding::Utf16 { is_big_endian } => Box::new(BufReader::new(Utf16::new(unpacked, is_big_endian))),
        };
        Ok(Box::new(text.take(MAX_BYTES)))
    }

    /// What to say of a file that holds nothing of use.
    pub(super) fn useless(&self, reason: impl Into<String>) -> ImportError {
        ImportError::Nothing { path: self.path.clone(), reason: reason.into() }
    }

    /// What to say where reading failed.
    pub(super) fn failed(&self, error: io::Error) -> ImportError {
        ImportError::Io { path: self.path.clone(), error }
    }

    /// The file, from its beginning.
    fn reopened(&self) -> Result<File, ImportError> {
        let file = self.file.try_clone().and_then(|mut file| file.rewind().map(|()| file));
        file.map_err(|error| self.failed(error))
    }

    fn unpacked(&self) -> Result<Box<dyn BufRead>, ImportError> {
        let file = BufReader::with_capacity(CHUNK_LEN, self.reopened()?);
        Ok(match self.is_packed {
            true => Box::new(BufReader::with_capacity(CHUNK_LEN, MultiGzDecoder::new(file))),
            false => Box::new(file),
        })
    }

    fn head(&self) -> Result<Vec<u8>, ImportError> {
        let mut head = Vec::new();
        self.unpacked()?.take(HEAD_LEN).read_to_end(&mut head).map_err(|error| self.failed(error))?;
        Ok(head)
    }
}

/// What can be read more than once: what comes from a pipe is laid into a file that is gone with this process.
fn rewindable(mut file: File) -> io::Result<File> {
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    if is_device(kind) {
        return Err(io::Error::other("it is a device, not a file"));
    }
    let mut copy = tempfile::tempfile()?;
    io::copy(&mut (&mut file).take(MAX_BYTES), &mut copy)?;
    Ok(copy)
}

/// Converts UTF-16 to UTF-8. Invalid characters become the replacement character.
struct Utf16<R> {
    input: R,
    is_big_endian: bool,
    /// Bytes that were read and not yet decoded.
    rest: Vec<u8>,
    ready: Vec<u8>,
    /// How much of `ready` was handed out.
    given: usize,
}

impl<R: Read> Utf16<R> {
    fn new(input: R, is_big_endian: bool) -> Self {
        Self { input, is_big_endian, rest: Vec::new(), ready: Vec::new(), given: 0 }
    }

    /// Decodes the next piece; false at the end.
    fn decode(&mut self) -> io::Result<bool> {
        let kept = self.rest.len();
        self.rest.resize(kept + CHUNK_LEN, 0);
        let read = self.input.read(&mut self.rest[kept..])?;
        self.rest.truncate(kept + read);
        let unit = |bytes: &[u8]| {
            let bytes = [bytes[0], bytes[1]];
            if self.is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
        };
        let mut units: Vec<u16> = self.rest.chunks_exact(2).map(unit).collect();
        // The first half of a pair waits for the second.
        if read > 0 && units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit)) {
            units.pop();
        }
        self.rest.drain(..if read > 0 { units.len() * 2 } else { self.rest.len() });
        let text: String = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        (self.ready, self.given) = (text.into_bytes(), 0);
        Ok(read > 0)
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.given == self.ready.len() {
            if !self.decode()? && self.ready.is_empty() {
                return Ok(0);
            }
        }
        let len = out.len().min(self.ready.len() - self.given);
        out[..len].copy_from_slice(&self.ready[self.given..self.given + len]);
        self.given += len;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time.
    struct Drops<'a>(&'a [u8]);

    impl Read for Drops<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let n = out.len().min(1);
            self.0.read(&mut out[..n])
        }
    }

    #[test]
    fn utf_16_is_decoded_across_reads() {
        let text = "\u{feff}step_µs,𝄞\n5,6\n";
        for is_big_endian in [false, true] {
            let bytes: Vec<u8> = text
                .encode_utf16()
                .flat_map(|unit| if is_big_endian { unit.to_be_bytes() } else { unit.to_le_bytes() })
                .collect();
            assert_eq!(Encoding::detect(&bytes), Encoding::Utf16 { is_big_endian });
            let mut read = String::new();
            Utf16::new(Drops(&bytes), is_big_endian).read_to_string(&mut read).unwrap();
            assert_eq!(read, text);
        }
        let mut cut = String::new();
        Utf16::new(Drops(b"a\0b\0\x34\xd8c"), false).read_to_string(&mut cut).unwrap();
        assert!(cut.starts_with("ab"), "{cut:?}");
    }
}
