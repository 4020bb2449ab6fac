//! Arrays of NumPy's npz files: a zip archive of npy files, packed or not.
//!
//! candle reads npz files as well, but neither packed ones nor eight-bit integers, and it allocates whatever size a
//! header claims. Here sizes are checked against the bytes in the file before anything is allocated, and contents
//! against their checksums.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::CrcReader;
use flate2::read::DeflateDecoder;
use thiserror::Error;
use zip::{CompressionMethod, ZipArchive};

use super::error::ReadError;
use crate::files;

/// An open npz file.
pub(super) struct Npz {
    path: PathBuf,
    archive: ZipArchive<BufReader<File>>,
}

/// An array of little-endian numbers, row-major.
#[derive(Debug)]
pub(super) struct Array<T> {
    pub(super) values: Vec<T>,
    pub(super) shape: Vec<usize>,
}

/// Makes a `T` of the bytes of one number; `None` where it cannot be represented.
type Convert<T> = fn(&[u8]) -> Option<T>;

/// A type that arrays are converted to.
pub(super) trait Element: Sized {
    /// Describes the arrays that can be converted.
    const ACCEPTED: &str;

    /// The conversion from numbers of a type, named as NumPy does without the byte order (`f4`, `i8`).
    fn conversion(dtype: &str) -> Option<Convert<Self>>;
}

/// The first bytes as an array; numbers of a type are cut to its size before they are converted.
fn bytes<const N: usize>(number: &[u8]) -> Option<[u8; N]> {
    number.first_chunk().copied()
}

impl Element for f32 {
    const ACCEPTED: &str = "floating-point numbers of 4 or 8 bytes";

    fn conversion(dtype: &str) -> Option<Convert<Self>> {
        match dtype {
            "f4" => Some(|number| bytes(number).map(f32::from_le_bytes)),
            "f8" => Some(|number| bytes(number).map(|number| f64::from_le_bytes(number) as f32)),
            _ => None,
        }
    }
}

impl Element for u32 {
    const ACCEPTED: &str = "integers";

    fn conversion(dtype: &str) -> Option<Convert<Self>> {
        match dtype {
            "u1" => Some(|number| number.first().map(|&number| u32::from(number))),
            "i1" => Some(|number| bytes(number).map(i8::from_le_bytes)?.try_into().ok()),
            "u2" => Some(|number| bytes(number).map(u16::from_le_bytes).map(u32::from)),
            "i2" => Some(|number| bytes(number).map(i16::from_le_bytes)?.try_into().ok()),
            "u4" => Some(|number| bytes(number).map(u32::from_le_bytes)),
            "i4" => Some(|number| bytes(number).map(i32::from_le_bytes)?.try_into().ok()),
            "u8" => Some(|number| bytes(number).map(u64::from_le_bytes)?.try_into().ok()),
            "i8" => Some(|number| bytes(number).map(i64::from_le_bytes)?.try_into().ok()),
            _ => None,
        }
    }
}

/// What is wrong with an array.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
struct Problem(String);

impl<S: Into<String>> From<S> for Problem {
    fn from(words: S) -> Self {
        Self(words.into())
    }
}

impl Npz {
    pub(super) fn open(path: &Path) -> Result<Self, ReadError> {
        let archive = ZipArchive::new(files::open(path)?);
        let problem = |error| ReadError::file(path, format!("not a whole npz file (a zip archive): {error}"));
        Ok(Self { path: path.to_owned(), archive: archive.map_err(problem)? })
    }

    /// The array `name`, converted.
    pub(super) fn read<T: Element>(&mut self, name: &str) -> Result<Array<T>, ReadError> {
        let Some(index) = self.archive.index_for_name(&format!("{name}.npy")) else {
            return Err(self.problem(name, format!("not in the file, which has {}", self.names())));
        };
        self.read_entry(index).map_err(|problem| self.problem(name, problem.0))
    }

    pub(super) fn problem(&self, name: &str, problem: impl Into<String>) -> ReadError {
        ReadError::Array { path: self.path.clone(), array: name.to_owned(), problem: problem.into() }
    }

    fn names(&self) -> String {
        const SHOWN: usize = 10;
        let names = self.archive.file_names().take(SHOWN).filter_map(Result::ok);
        let names: Vec<String> = names.map(|name| name.trim_end_matches(".npy").to_owned()).collect();
        if names.is_empty() { "no arrays".into() } else { names.join(", ") }
    }

    fn read_entry<T: Element>(&mut self, index: usize) -> Result<Array<T>, Problem> {
        let entry = self.archive.by_index_raw(index).map_err(|error| error.to_string())?;
        let (size, checksum) = (entry.size(), entry.crc32());
        check_size(size, entry.compressed_size())?;
        let unpacked: Box<dyn Read> = match entry.compression() {
            CompressionMethod::Stored => Box::new(entry),
            CompressionMethod::DEFLATE => Box::new(DeflateDecoder::new(entry)),
            other => {
                return Err(format!("packed with {other}; save it with numpy.savez or numpy.savez_compressed").into());
            }
        };
        let mut reader = CrcReader::new(unpacked);
        let array = read_npy(&mut reader, size)?;
        if reader.crc().sum() != checksum {
            return Err("the checksum is wrong; the file is damaged".into());
        }
        Ok(array)
    }
}

/// Packed content is at least a thousandth of its unpacked size, so a size is plausible.
fn check_size(size: u64, packed: u64) -> Result<(), Problem> {
    const MOST_PACKED: u64 = 1_032;
    if size > packed.saturating_mul(MOST_PACKED) {
        return Err(format!("{packed} packed bytes cannot hold {size} bytes; the file is damaged").into());
    }
    Ok(())
}

/// One npy file of `size` bytes.
fn read_npy<T: Element>(reader: &mut impl Read, size: u64) -> Result<Array<T>, Problem> {
    let (header, header_bytes) = read_header(reader)?;
    let header = Header::parse(&header)?;
    let Some(convert) = T::conversion(&header.dtype) else {
        return Err(format!("expected {}, found numbers of type {}", T::ACCEPTED, header.dtype).into());
    };
    let Some(item) = header.dtype[1..].parse::<usize>().ok().filter(|item| (1..=8).contains(item)) else {
        return Err(format!("numbers of type {} have no known size", header.dtype).into());
    };
    let count = header.shape.iter().try_fold(1usize, |count, &extent| count.checked_mul(extent));
    let expected = count.and_then(|count| count.checked_mul(item)).map(|bytes| bytes as u64);
    let found = size.saturating_sub(header_bytes);
    if expected != Some(found) {
        return Err(format!("the shape {:?} does not fit the file's {found} bytes", header.shape).into());
    }
    Ok(Array { values: read_numbers(reader, count.unwrap_or(0), item, convert)?, shape: header.shape })
}

fn read_numbers<T>(reader: &mut impl Read, count: usize, item: usize, convert: Convert<T>) -> Result<Vec<T>, Problem> {
    const AT_ONCE: usize = 1 << 14;
    let mut values = Vec::with_capacity(count);
    let mut buffer = vec![0; AT_ONCE.min(count) * item];
    while values.len() < count {
        let part = &mut buffer[..AT_ONCE.min(count - values.len()) * item];
        reader.read_exact(part).map_err(|error| format!("cannot be read to the end: {error}"))?;
        for number in part.chunks_exact(item) {
            let place = values.len();
            values.push(convert(number).ok_or_else(|| format!("number {place} is negative or above {}", u32::MAX))?);
        }
    }
    // The checksum is over all, and the reader of the archive notices a cut only at its end.
    match reader.read(&mut [0]) {
        Ok(0) => Ok(values),
        Ok(_) => Err("has more bytes than its shape needs".into()),
        Err(error) => Err(format!("cannot be read to the end: {error}").into()),
    }
}

/// The text of the header, and the bytes up to the numbers.
fn read_header(reader: &mut impl Read) -> Result<(String, u64), Problem> {
    const LONGEST_HEADER: usize = 1 << 16;
    let problem = |error: std::io::Error| format!("not an npy file: {error}");
    let mut start = [0; 8];
    reader.read_exact(&mut start).map_err(problem)?;
    let [b'\x93', b'N', b'U', b'M', b'P', b'Y', version, _] = start else {
        return Err("not an npy file: it does not begin with NUMPY".into());
    };
    let mut length = [0; 4];
    let length_bytes = if version == 1 { 2 } else { 4 };
    reader.read_exact(&mut length[..length_bytes]).map_err(problem)?;
    let length = u32::from_le_bytes(length) as usize;
    if !(1..=3).contains(&version) || length > LONGEST_HEADER {
        return Err(format!("not a supported npy file: version {version}, header of {length} bytes").into());
    }
    let mut header = vec![0; length];
    reader.read_exact(&mut header).map_err(problem)?;
    let header = String::from_utf8(header).map_err(|_| "its header is not text".to_owned())?;
    Ok((header, (start.len() + length_bytes + length) as u64))
}

/// The header of an npy file.
#[derive(Debug, PartialEq, Eq)]
struct Header {
    /// Type of the numbers without the byte order.
    dtype: String,
    shape: Vec<usize>,
}

impl Header {
    /// From a Python dictionary such as `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
    fn parse(text: &str) -> Result<Self, Problem> {
        let value = |key: &str| {
            let after = text.split_once(&format!("'{key}':")).map(|(_, after)| after.trim_start());
            after.ok_or_else(|| format!("its header has no {key}: {text:?}"))
        };
        let quoted = value("descr")?.strip_prefix('\'').and_then(|text| text.split_once('\''));
        let (dtype, _) = quoted.ok_or("its type is a structure; expected plain numbers")?;
        let dtype = match dtype.split_at_checked(1) {
            Some(("<" | "|" | "=", dtype)) if dtype.len() > 1 && dtype.is_ascii() => dtype,
            _ => return Err(format!("expected little-endian numbers, found type {dtype}").into()),
        };
        let inside = value("shape")?.strip_prefix('(').and_then(|text| text.split_once(')'));
        let (inside, _) = inside.ok_or_else(|| format!("its header has no shape: {text:?}"))?;
        let extents = inside.split(',').map(str::trim).filter(|extent| !extent.is_empty());
        let shape: Result<Vec<usize>, _> = extents.map(str::parse).collect();
        let shape = shape.map_err(|_| format!("its shape ({inside}) is not made of numbers"))?;
        if shape.len() > 1 && !value("fortran_order")?.starts_with("False") {
            return Err("stored column by column; save it row by row (numpy.ascontiguousarray)".into());
        }
        Ok(Self { dtype: dtype.to_owned(), shape })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_numpy_are_understood() {
        let parse = |text: &str| Header::parse(text).map(|header| (header.dtype, header.shape));
        let plain = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }          \n";
        assert_eq!(parse(plain), Ok(("f4".into(), vec![2, 3])));
        assert_eq!(parse("{'descr': '|i1', 'fortran_order': False, 'shape': (5,), }"), Ok(("i1".into(), vec![5])));
        assert_eq!(parse("{'descr': '<i8', 'fortran_order': True, 'shape': (), }"), Ok(("i8".into(), vec![])));
        let refused = [
            ("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "little-endian"),
            ("{'descr': '', 'fortran_order': False, 'shape': (1,), }", "little-endian"),
            ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "structure"),
            ("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", "column by column"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, x), }", "not made of numbers"),
            ("{'descr': '<f4', 'fortran_order': False, }", "no shape"),
            ("", "no descr"),
        ];
        for (text, part) in refused {
            let problem = parse(text).unwrap_err().0;
            assert!(problem.contains(part), "{text}: {problem}");
        }
    }

    #[test]
    fn integers_are_converted_or_refused() {
        let convert = |dtype: &str, number: &[u8]| u32::conversion(dtype).and_then(|convert| convert(number));
        assert_eq!(convert("u1", &[200]), Some(200));
        assert_eq!(convert("i1", &[200]), None);
        assert_eq!(convert("i2", &[1, 2]), Some(513));
        assert_eq!(convert("i4", &[255; 4]), None);
        assert_eq!(convert("u4", &[255; 4]), Some(u32::MAX));
        assert_eq!(convert("i8", &[3, 0, 0, 0, 0, 0, 0, 0]), Some(3));
        assert_eq!(convert("i8", &[3, 0, 0, 0, 1, 0, 0, 0]), None);
        assert!(u32::conversion("f4").is_none() && f32::conversion("i4").is_none());
    }
}
