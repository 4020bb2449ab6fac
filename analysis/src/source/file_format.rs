//! Identifies a file by its first bytes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use gnntop_wire::{Item, StreamReader};

/// Bytes of a file that are looked at.
const HEAD: usize = 64 * 1024;

/// Whether a file is a recording, or what it is instead.
pub(super) fn identify(path: &Path) -> Result<(), &'static str> {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD as u64).read_to_end(&mut head));
    if read.is_err() {
        return Err("cannot be read");
    }
    let mut reader = StreamReader::new();
    reader.fill(&head);
    if check_format(&mut reader).is_some() { Ok(()) } else { Err(describe_other_format(&head)) }
}

/// Whether the stream so far is a recording: its first good frame, or the newer version that it has.
pub(super) fn check_format(reader: &mut StreamReader) -> Option<Result<(), u64>> {
    while let Some(item) = reader.next() {
        match item {
            Item::Damage(_) => (),
            Item::Newer { major } => return Some(Err(major)),
            _ => return Some(Ok(())),
        }
    }
    None
}

/// Describes a file without a good frame.
pub(super) fn describe_other_format(head: &[u8]) -> &'static str {
    const FRAME: &[u8] = &[0xA7, b'g'];
    const GZIP: &[u8] = &[0x1F, 0x8B];
    let text_end = match std::str::from_utf8(head) {
        Ok(_) => head.len(),
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Err(_) => 0,
    };
    match head {
        [] => "is empty: not a recording",
        _ if head.starts_with(FRAME) => "is truncated or damaged: it has no complete frame",
        _ if head.starts_with(GZIP) => "is compressed with gzip: unpack it first",
        _ if text_end > 0 && !head.contains(&0) => "is a text file: not a recording",
        _ => "is not a recording",
    }
}
