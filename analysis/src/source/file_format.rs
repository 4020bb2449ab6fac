//! Identifies a file by its first bytes.

use gnntop_wire::{Item, StreamReader};

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
