//! CIFAR-10's binary files: records of one byte for the class and 3,072 for the image.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::set::IMAGE_BYTES;
use super::{CLASSES, ImageData, ImageSet};

/// Bytes of a record: the class, then the image.
const RECORD_BYTES: usize = 1 + IMAGE_BYTES;

/// Most records of a file: a hundred times what the original ones have.
const MOST_RECORDS: usize = 1_000_000;

/// Why no images can be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadImagesError {
    /// A file or directory cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// There are no files of images.
    #[error(
        "no images found in {}; looked for data_batch_1.bin and so on with test_batch.bin, the binary version of CIFAR-10",
        path.display()
    )]
    NotFound {
        /// The directory.
        path: PathBuf,
    },
    /// A file that is not made of whole records.
    #[error("{} has {bytes} bytes; expected 1 to {MOST_RECORDS} records of {RECORD_BYTES} bytes (1 class, 3072 pixel values)", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// A class that CIFAR-10 does not have.
    #[error("{}, record {record} (from 0): the class is {class}; expected 0 to {}", path.display(), CLASSES - 1)]
    Class {
        /// The file.
        path: PathBuf,
        /// Position of the record in the file.
        record: usize,
        /// The class found.
        class: u8,
    },
}

/// Reads the images at `path`: a directory with `data_batch_*.bin` for training and, if present, `test_batch.bin` for
/// testing; or one such file, whose images all train (or, named `test_batch.bin`, all test).
///
/// # Errors
/// See [`ReadImagesError`].
pub fn read(path: &Path) -> Result<ImageData, ReadImagesError> {
    let read_error = |source| ReadImagesError::Read { path: path.to_owned(), source };
    let mut files = Vec::new();
    if std::fs::metadata(path).map_err(read_error)?.is_dir() {
        for entry in std::fs::read_dir(path).map_err(read_error)? {
            let file = entry.map_err(read_error)?.path();
            if is_test(&file) || is_train(&file) {
                files.push(file);
            }
        }
        // So that the order does not depend on the file system.
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    if files.is_empty() {
        return Err(ReadImagesError::NotFound { path: path.to_owned() });
    }
    let mut data = ImageData::default();
    for set in [&mut data.train, &mut data.test] {
        set.origin = path.display().to_string();
    }
    for file in files {
        append(if is_test(&file) { &mut data.test } else { &mut data.train }, &file)?;
    }
    Ok(data)
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn is_test(path: &Path) -> bool {
    file_name(path) == "test_batch.bin"
}

fn is_train(path: &Path) -> bool {
    let name = file_name(path);
    name.starts_with("data_batch") && name.ends_with(".bin")
}

fn append(set: &mut ImageSet, path: &Path) -> Result<(), ReadImagesError> {
    let read_error = |source| ReadImagesError::Read { path: path.to_owned(), source };
    let length = std::fs::metadata(path).map_err(read_error)?.len();
    if length > (MOST_RECORDS * RECORD_BYTES) as u64 {
        return Err(ReadImagesError::Length { path: path.to_owned(), bytes: length });
    }
    let content = std::fs::read(path).map_err(read_error)?;
    if content.is_empty() || content.len() % RECORD_BYTES != 0 {
        return Err(ReadImagesError::Length { path: path.to_owned(), bytes: content.len() as u64 });
    }
    set.pixels.reserve(content.len() / RECORD_BYTES * IMAGE_BYTES);
    for (record, bytes) in content.chunks_exact(RECORD_BYTES).enumerate() {
        if usize::from(bytes[0]) >= CLASSES {
            return Err(ReadImagesError::Class { path: path.to_owned(), record, class: bytes[0] });
        }
        set.labels.push(u32::from(bytes[0]));
        set.pixels.extend_from_slice(&bytes[1..]);
    }
    Ok(())
}
