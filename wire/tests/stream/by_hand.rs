//! Frames put together byte by byte, so that the layout is checked by something other than its own writer.

use gnntop_wire::BlockInfo;

pub const SEGMENT: u8 = 1;
pub const DEFINITIONS: u8 = 2;
pub const BLOCK: u8 = 4;
pub const PAST: u8 = 6;

/// A frame with right checksums around any payload.
pub fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let [l0, l1, l2, _] = (payload.len() as u32).to_le_bytes();
    let checked = [&[kind, flags, l0, l1, l2], payload].concat();
    let check = checked[..5].iter().fold(0x5A_u8, |acc, byte| acc.rotate_left(3) ^ byte);
    [&[0xA7, 0x67, check], &crc32fast::hash(&checked).to_le_bytes()[..], &checked].concat()
}

/// An unsigned LEB128 integer.
pub fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

pub fn text(text: &str) -> Vec<u8> {
    [varint(text.len() as u64), text.as_bytes().to_vec()].concat()
}

/// A length-carrying event.
pub fn body(tag: u8, payload: &[u8]) -> Vec<u8> {
    [vec![tag], varint(payload.len() as u64), payload.to_vec()].concat()
}

/// An uncompressed block.
pub fn block(info: BlockInfo, body: &[u8]) -> Vec<u8> {
    let numbers = [u64::from(info.track.0), info.first_seq, info.count, info.dropped, info.base_ns, body.len() as u64];
    frame(BLOCK, 0, &[numbers.map(varint).concat(), body.to_vec()].concat())
}

/// The payload of an uncompressed block of track 1 that begins at time 0.
pub fn block_payload(count: u64, body: &[u8]) -> Vec<u8> {
    let header = [1, 0, count, 0, 0, body.len() as u64];
    [header.map(varint).concat(), body.to_vec()].concat()
}
