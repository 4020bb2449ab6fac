//! Decoding never takes more than a fixed amount of memory, whatever the bytes say.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use super::arbitrary::{encode, mutation, number, stream};
use super::by_hand::{BLOCK, DEFINITIONS, PAST, SEGMENT, frame, varint};
use gnntop_wire::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// What decoding may take at most, fed in chunks of [`CHUNK`]: the input that is not consumed yet (two payloads
/// and a chunk, in a buffer that grows by doubling), an unpacked block, and the definitions of one frame.
const BOUND: usize = 6 << 20;
const CHUNK: usize = 256 * 1024;

/// Counts each thread's live bytes and the most there ever were.
struct Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    LIVE.set(LIVE.get() + bytes);
    PEAK.set(PEAK.get().max(LIVE.get()));
}

// SAFETY: every call is handed on to `System` unchanged; counting touches only constant-initialised
// thread-local cells without destructors, so it neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: `pointer` came from `System` through `alloc` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Decodes without keeping anything; gives the most bytes that were live on the way and the items seen.
fn peak_of_decoding(bytes: &[u8]) -> (usize, u64) {
    let before = LIVE.get();
    PEAK.set(before);
    let mut items = 0;
    let mut reader = StreamReader::new();
    for chunk in bytes.chunks(CHUNK) {
        reader.fill(chunk);
        items += drain(&mut reader);
    }
    reader.finish();
    items += drain(&mut reader);
    ((PEAK.get() - before) as usize, items)
}

fn drain(reader: &mut StreamReader) -> u64 {
    let mut items = 0;
    while let Some(item) = reader.next() {
        items += 1;
        if let Item::Block(_, events) = item {
            std::hint::black_box(events.count());
        }
    }
    items
}

fn assert_bounded_memory(what: &str, bytes: &[u8]) -> usize {
    let (peak, items) = peak_of_decoding(bytes);
    assert!(items > 0, "{what}: nothing was read");
    assert!(peak <= BOUND, "{what}: took {peak} bytes");
    peak
}

#[test]
fn allocator_counts_live_bytes() {
    let (peak, _) = peak_of_decoding(&[]);
    assert!(peak < 1024, "{peak} bytes for nothing");
    let before = LIVE.get();
    PEAK.set(before);
    let room = vec![1u8; 3 << 20];
    assert!(LIVE.get() - before >= room.len() as isize);
    drop(room);
    assert_eq!(LIVE.get(), before);
    assert!(PEAK.get() - before >= 3 << 20);
}

#[test]
fn hostile_definitions_use_bounded_memory() {
    // The shortest definition there is: a name without a text.
    let shortest = [1, 3, 1, 0, 0];
    let many = |len: usize| frame(DEFINITIONS, 0, &shortest.repeat(len / shortest.len()));
    let peak = assert_bounded_memory("a full frame", &many(128 * 1024).repeat(10));
    assert!(peak > 128 * 1024, "it was read");
    assert_bounded_memory("a frame beyond the limit", &many(MAX_PAYLOAD_LEN).repeat(10));
    // Bytes that are no UTF-8 grow to three times their length.
    let entry = [varint(1), vec![0], varint(1024), vec![0xff; 1024]].concat();
    let entry = [vec![1], varint(entry.len() as u64), entry].concat();
    let packed = |entries: &[u8], len: usize| {
        frame(DEFINITIONS, 1, &[varint(len as u64), lz4_flex::block::compress(entries)].concat())
    };
    let many = shortest.repeat(128 * 1024 / shortest.len());
    assert_bounded_memory("packed", &packed(&many, many.len()).repeat(2000));
    assert_bounded_memory("packed, beyond the limit", &packed(&vec![0; 64 << 20], 64 << 20).repeat(10));
    assert_bounded_memory("packed, more than announced", &packed(&vec![0; 64 << 20], 1).repeat(10));
    assert_bounded_memory("texts that grow", &frame(DEFINITIONS, 0, &entry.repeat(120)).repeat(10));
}

#[test]
fn hostile_blocks_use_bounded_memory() {
    let block = |count: u64, raw_len: usize, flags: u8, body: &[u8]| {
        let header = [1, 0, count, 0, 0, raw_len as u64].map(varint).concat();
        frame(BLOCK, flags, &[header, body.to_vec()].concat())
    };
    let bomb = lz4_flex::block::compress(&vec![0; MAX_BLOCK_LEN]);
    assert_bounded_memory("a bomb", &block(MAX_BLOCK_LEN as u64 / 3, MAX_BLOCK_LEN, 1, &bomb).repeat(1000));
    let larger_bomb = lz4_flex::block::compress(&vec![0; 64 << 20]);
    assert_bounded_memory("a larger bomb", &block(1, MAX_BLOCK_LEN, 1, &larger_bomb).repeat(10));
    assert_bounded_memory("an honest claim of too much", &block(1, 64 << 20, 1, &larger_bomb));
    assert_bounded_memory("endless events", &block(u64::MAX, 3, 0, &[4, 1, 1]));
    // The last signal that a block remembers, and the first that it does not.
    for signal in [1023, 1024, u64::from(u32::MAX)] {
        let sample = [vec![0x80], varint(signal), vec![0, 2]].concat();
        assert_bounded_memory("one sample of a far signal", &block(1, sample.len(), 0, &sample));
    }
    assert_bounded_memory("the longest frame", &frame(BLOCK, 0, &vec![0; MAX_PAYLOAD_LEN]).repeat(8));
}

#[test]
fn hostile_past_uses_bounded_memory() {
    let past =
        |raw_len: usize, flags: u8, body: &[u8]| frame(PAST, flags, &[varint(raw_len as u64), body.to_vec()].concat());
    let full = |entry: &[u8]| {
        let body = entry.repeat((128 << 10) / entry.len());
        past(body.len(), 0, &body).repeat(10)
    };
    // The shortest slice there is, a list of the shortest phases in one, and of what takes no byte at all.
    let peak = assert_bounded_memory("slices", &full(&[&[3, 16], &[0; 16][..]].concat()));
    assert!(peak > 1 << 20, "they were read: {peak}");
    let phase = [1, 1, 6, 0, 0, 0, 0];
    let phases = [vec![0; 7], varint(10_000), phase.repeat(10_000), vec![0; 8]].concat();
    assert_bounded_memory("phases", &full(&[vec![3], varint(phases.len() as u64), phases].concat()));
    assert_bounded_memory(
        "empty phases",
        &full(&[vec![3], varint(60_008), vec![0; 7], varint(30_000), vec![0; 60_000]].concat()),
    );
    let spans = [vec![0; 12], varint(40_000), vec![0; 120_000]].concat();
    assert_bounded_memory("spans", &full(&[vec![4], varint(spans.len() as u64), spans].concat()));
    assert_bounded_memory(
        "a list that claims too much",
        &full(&[vec![4, 21], vec![0; 12], varint(u64::MAX >> 1)].concat()),
    );
    let bomb = lz4_flex::block::compress(&vec![0; 64 << 20]);
    assert_bounded_memory("a bomb", &past(128 << 10, 1, &bomb).repeat(100));
    assert_bounded_memory("an honest claim of too much", &past(64 << 20, 1, &bomb));
}

#[test]
fn hostile_frames_use_bounded_memory() {
    let header = |len: usize| frame(BLOCK, 0, &vec![0; len])[..12].to_vec();
    assert_bounded_memory("false headers", &header(MAX_PAYLOAD_LEN).repeat(200_000));
    assert_bounded_memory(
        "a header and nothing for a long time",
        &[header(MAX_PAYLOAD_LEN), vec![0; 20 << 20]].concat(),
    );
    assert_bounded_memory("nothing but sync bytes", &[0xA7, 0x67].repeat(4 << 20));
    assert_bounded_memory("no frame at all", &vec![0; 20 << 20]);
    assert_bounded_memory("empty segments", &frame(SEGMENT, 0, b"gnntop").repeat(200_000));
    // The largest claim that the length's three bytes can make.
    let mut claim = header(0);
    claim[9..12].fill(0xff);
    claim[2] = claim[7..12].iter().fold(0x5A_u8, |acc, byte| acc.rotate_left(3) ^ byte);
    assert_bounded_memory("a claim beyond the limit", &claim.repeat(100_000));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn mutated_streams_use_bounded_memory(stream in stream(), blows in vec(mutation(), 0..6)) {
        let (mut bytes, _) = encode(&stream);
        blows.iter().for_each(|blow| if !bytes.is_empty() { blow.apply_to(&mut bytes); });
        let (peak, _) = peak_of_decoding(&bytes);
        prop_assert!(peak <= BOUND, "{} bytes", peak);
    }

    #[test]
    fn any_checksummed_payload_uses_bounded_memory(
        kind in 0u8..8,
        flags in 0u8..2,
        payload in vec(any::<u8>(), 0..300),
        claims in prop::array::uniform6(number()),
    ) {
        let lying = [claims.map(varint).concat(), payload].concat();
        let (peak, _) = peak_of_decoding(&frame(kind, flags, &lying));
        prop_assert!(peak <= BOUND, "{} bytes", peak);
    }
}
