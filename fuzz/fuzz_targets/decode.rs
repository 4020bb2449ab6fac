//! Any bytes are decoded without panic or runaway, in any chunks, to the same items.
//!
//! The first byte chooses the length of the chunks. A fuzzer does not find a CRC-32 by itself, so the bytes
//! are read twice: as they are, and as the payload of a frame with right checksums.

#![no_main]

use gnntop_wire::{Item, StreamReader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let chunk = usize::from(first) + 1;
    check(bytes, chunk);
    if let [kind, flags, payload @ ..] = bytes {
        check(&frame(*kind, *flags, payload), chunk);
    }
});

fn check(bytes: &[u8], chunk: usize) {
    let whole = read(bytes, usize::MAX);
    assert_eq!(read(bytes, chunk), whole, "chunks of {chunk}");
}

/// What the items look like, and where the last one ended.
fn read(bytes: &[u8], chunk: usize) -> (Vec<String>, u64) {
    let mut reader = StreamReader::new();
    let mut seen = Vec::new();
    for piece in bytes.chunks(chunk) {
        reader.fill(piece);
        drain(&mut reader, &mut seen);
    }
    reader.finish();
    drain(&mut reader, &mut seen);
    assert_eq!(reader.pending(), 0);
    assert_eq!(reader.offset(), bytes.len() as u64);
    (seen, reader.offset())
}

fn drain(reader: &mut StreamReader, seen: &mut Vec<String>) {
    while let Some(item) = reader.next() {
        seen.push(match item {
            Item::Block(info, mut events) => {
                let all: Vec<_> = events.by_ref().collect();
                assert!(all.len() as u64 <= info.count);
                format!("{info:?} {all:?} {}", events.is_exhausted())
            }
            other => format!("{other:?}"),
        });
    }
}

/// A frame with right checksums, as the top of the crate describes it.
fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let [l0, l1, l2, _] = (payload.len() as u32).to_le_bytes();
    let checked = [&[kind, flags, l0, l1, l2], payload].concat();
    let check = checked[..5].iter().fold(0x5A_u8, |acc, byte| acc.rotate_left(3) ^ byte);
    let crc = checked.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    });
    [&[0xA7, 0x67, check], &(!crc).to_le_bytes()[..], &checked].concat()
}
