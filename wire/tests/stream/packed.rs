//! Blocks of bits, some put together by hand after the layout at the top of the crate.

use super::arbitrary::{Piece, decode, event};
use super::by_hand::{BLOCK, frame, varint};
use gnntop_wire::*;
use proptest::collection::vec;
use proptest::prelude::*;

const PACKED: u8 = 2;

/// A packed block of track 1 that begins at time 1000.
fn block(count: u64, body: &[u8]) -> Vec<u8> {
    frame(BLOCK, PACKED, &[[1, 0, count, 0, 1_000].map(varint).concat(), body.to_vec()].concat())
}

/// Bits put one behind the other, the lowest of each byte first.
#[derive(Default)]
struct Bits(Vec<bool>);

impl Bits {
    fn put(mut self, value: u64, bits: u32) -> Self {
        self.0.extend((0..bits).map(|bit| value >> bit & 1 == 1));
        self
    }

    /// How many bits, less one, and the bits.
    fn any(self, value: u64) -> Self {
        let bits = 64 - (value | 1).leading_zeros();
        self.put(u64::from(bits - 1), 6).put(value, bits)
    }

    /// A symbol that was not there before, of another kind or form than the one before; its id follows.
    fn introduce(self, kind: u64, form: u64) -> Self {
        self.put(0, 3).put(kind, 4).put(form, 7)
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.chunks(8).map(|bits| bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit))).collect()
    }
}

fn encoded(events: &[Event]) -> Vec<u8> {
    let (mut out, mut encoder) = (Vec::new(), BlockEncoder::packed(TrackId(1)));
    assert!(events.iter().all(|event| encoder.push(event)), "far from full");
    encoder.finish(0, &mut out);
    out
}

fn events(bytes: &[u8]) -> (Vec<Event>, bool) {
    let mut reader = StreamReader::new();
    reader.fill(bytes);
    let Some(Item::Block(_, mut events)) = reader.next() else { panic!("no block in {bytes:x?}") };
    (events.by_ref().collect(), events.is_exhausted())
}

fn span(name: u32, start_ns: u64, end_ns: u64, step: u64) -> Event {
    Event::Span(Span { name: NameId(name), start_ns, end_ns, step: StepId(step) })
}

#[test]
fn packed_layout_matches_documentation() {
    let times = [(900, 1_000), (1_100, 1_300), (1_404, 1_600), (1_700, 1_908), (2_009, 2_212)];
    let written = times.map(|(start_ns, end_ns)| span(5, start_ns, end_ns, 1));
    let bits = Bits::default()
        // Of the next step, begun before the base time, at which it ended; 100 before what is expected without others.
        .introduce(0, 1 | 2)
        .any(10)
        .any(0)
        .any(199)
        // Of the same step, after the one before: another form, whose id is one less than expected. 100 after it, for 200.
        .introduce(0, 0)
        .put(2, 2)
        .any(200)
        .any(400)
        // Not the symbol that is expected, which is the first, but one further. 104 is 4 more than 100, by a mean of 12, and
        // 196 is 4 less than 200, by a mean of 25.
        .put(0b10, 2)
        .any(2)
        .put(2, 2)
        .put(0, 3)
        .put(1, 1)
        .put(7, 4)
        // Again one further than expected. 100 is 2 less than 102, by a mean of 11, and 208 is 10 more than 198, by one of 20.
        .put(0b10, 2)
        .put(1, 1)
        .put(1, 1)
        .put(3, 3)
        .put(2, 2)
        .put(4, 4)
        // The expected one, with the expected numbers.
        .put(1, 1)
        .put(1, 1)
        .put(0, 3)
        .put(1, 1)
        .put(0, 4);
    let expected = block(5, &bits.bytes());
    assert_eq!(events(&expected), (written.to_vec(), true));
    assert_eq!(encoded(&written), expected);
}

#[test]
fn unknown_kinds_are_skipped_and_counted() {
    let mark = |name, t_ns| Event::Mark(Mark { name: NameId(name), t_ns, ..Mark::default() });
    let bits = Bits::default()
        .introduce(4, 0)
        .any(14)
        .any(10)
        .introduce(15, 99)
        .any(2)
        .any(4)
        .put(0xffff, 16)
        .introduce(4, 0)
        .put(1, 1)
        .any(10);
    assert_eq!(events(&block(3, &bits.bytes())), (vec![mark(7, 1_005), mark(8, 1_010)], true));
    let endless = Bits::default().introduce(4, 0).any(14).any(10).introduce(15, 0).any(2).any(u64::MAX - 1).put(1, 8);
    assert_eq!(events(&block(3, &endless.bytes())), (vec![mark(7, 1_005)], false));
}

#[test]
fn malformed_bits_end_block_and_keep_earlier_events() {
    let mark = Event::Mark(Mark { name: NameId(7), t_ns: 1_005, ..Mark::default() });
    let first = || Bits::default().introduce(4, 0).any(14).any(10);
    for (what, bits) in [
        ("a symbol that was never there", first().put(0b10, 2).any(99)),
        ("one before the first", first().put(0b10, 2).any(1)),
        ("one at the end of all numbers", first().put(0b10, 2).any(u64::MAX)),
        ("an id beyond u32", first().introduce(0, 0).any(1 << 33)),
        ("a counter of no value", first().introduce(3, 0).any(2).any(10).any(10)),
        ("a reason beyond u32", first().introduce(6, 0).any(2).any(10).any(1 << 40)),
        ("nothing more", first()),
    ] {
        assert_eq!(events(&block(2, &bits.bytes())), (vec![mark], false), "{what}");
    }
}

#[test]
fn packed_block_with_wrong_size_is_damage() {
    let is_damage = |bytes: &[u8]| matches!(decode(bytes)[..], [(_, Piece::Damage { offset: 0, .. })]);
    assert!(!is_damage(&block(400, &[0; 100])));
    assert!(is_damage(&block(401, &[0; 100])));
    assert!(is_damage(&block(u64::MAX, &[0; 100])));
    assert!(is_damage(&block(1, &vec![0; MAX_BLOCK_LEN + 1])));
}

#[test]
fn packed_symbols_round_trip() {
    let many: Vec<Event> =
        (0..3_000).chain(0..3_000).map(|n| span(n, 1_000 + u64::from(n), 2_000 + u64::from(n), 0)).collect();
    assert_eq!(events(&encoded(&many)), (many, true));
}

#[test]
fn a_full_block_refuses_the_event_and_loses_nothing() {
    let mut encoder = BlockEncoder::packed(TrackId(7));
    let event = |n: u64| span(u32::MAX - n as u32, n << 40, u64::MAX - n, n << 50);
    let fitting = (1..).take_while(|&n| encoder.push(&event(n))).count() as u64;
    assert!(encoder.is_full() && encoder.len() <= MAX_BLOCK_LEN);
    let mut bytes = Vec::new();
    encoder.finish(3, &mut bytes);
    assert!(encoder.is_empty() && !encoder.is_full());
    assert!(encoder.push(&event(fitting + 1)), "the next block takes it");
    encoder.finish(3, &mut bytes);
    let all: Vec<u64> = decode(&bytes)
        .into_iter()
        .map(|(_, piece)| match piece {
            Piece::Block { info, exhausted: true, .. } => info.count,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(all, [fitting, 1]);
}

#[test]
fn repeated_events_are_small_and_round_trip() {
    // Four million of the smallest events, which no compression bound may refuse.
    let (mut out, mut encoder) = (Vec::new(), BlockEncoder::packed(TrackId(1)));
    for n in 0..4_000_000 {
        let event = span(1, 10 * n, 10 * n + 9, 0);
        if !encoder.push(&event) {
            encoder.finish(0, &mut out);
            assert!(encoder.push(&event));
        }
    }
    encoder.finish(0, &mut out);
    assert!(out.len() < 2_000_000, "{} bytes", out.len());
    let mut reader = StreamReader::new();
    let mut read = 0;
    for chunk in out.chunks(1 << 16) {
        reader.fill(chunk);
        while let Some(item) = reader.next() {
            let Item::Block(_, events) = item else { panic!("{item:?}") };
            read += events.count();
        }
    }
    assert_eq!(read, 4_000_000);
}

/// Blocks of one event each on a track, by their number on it, each with its bytes.
fn chain(track: u32, events: &[Event]) -> Vec<Vec<u8>> {
    let mut encoder = BlockEncoder::packed(TrackId(track));
    let block = |event: &Event| {
        let mut out = Vec::new();
        assert!(encoder.push(event), "far from full");
        encoder.finish(0, &mut out);
        out
    };
    events.iter().map(block).collect()
}

/// The first events of blocks, by their track and number; `None` for damage.
fn firsts(blocks: &[&[u8]]) -> Vec<Option<(u32, u64, Event)>> {
    let mut reader = StreamReader::new();
    reader.fill(&blocks.concat());
    reader.finish();
    let mut all = Vec::new();
    while let Some(item) = reader.next() {
        all.push(match item {
            // What is not asked for is read all the same.
            Item::Block(info, mut events) => events.next().map(|event| (info.track.0, info.first_seq, event)),
            _ => None,
        });
    }
    all
}

fn marks(count: u64) -> Vec<Event> {
    let mark = |n: u64| Mark { name: NameId(7), t_ns: 1_000_000 * n, value: Some(n as f64), took_ns: None };
    (1..=count).map(|n| Event::Mark(mark(n))).collect()
}

#[test]
fn blocks_go_on_from_one_another_and_begin_anew_every_16th() {
    let all = marks(40);
    let blocks = chain(1, &all);
    let read = firsts(&blocks.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let expected: Vec<_> = (0..).zip(&all).map(|(seq, event)| Some((1, seq, *event))).collect();
    assert_eq!(read, expected);
    // Tracks of which a reader keeps nothing, and an encoder that is told to.
    let is_alone = |block: &[u8]| firsts(&[block]) != [None];
    assert!(chain(16, &all).iter().all(|block| is_alone(block)));
    assert_eq!(blocks.iter().filter(|block| is_alone(block)).count(), 3);
    let mut encoder = BlockEncoder::packed(TrackId(1));
    for event in &all {
        let mut out = Vec::new();
        encoder.push(event);
        encoder.finish(0, &mut out);
        encoder.begin_again();
        assert!(is_alone(&out));
    }
}

#[test]
fn events_that_nobody_asked_for_teach_as_well() {
    let (mut out, mut encoder) = (Vec::new(), BlockEncoder::packed(TrackId(1)));
    for events in marks(300).chunks(100) {
        events.iter().for_each(|event| _ = encoder.push(event));
        encoder.finish(0, &mut out);
    }
    let read = firsts(&[&out]);
    let expected: Vec<_> = [0, 100, 200].map(|seq| Some((1, seq, marks(300)[seq as usize]))).to_vec();
    assert_eq!(read, expected);
}

proptest! {
    #[test]
    fn a_block_that_is_missing_or_out_of_place_never_makes_another_one_wrong(
        one in vec(event(), 30), two in vec(event(), 30),
        changes in vec((0..3usize, 0..30usize), 0..30),
    ) {
        // Two tracks, and another session's with the same id as the first.
        let chains = [chain(1, &one), chain(2, &two), chain(1, &two)];
        let whole = chains.each_ref().map(|chain| firsts(&chain.iter().map(Vec::as_slice).collect::<Vec<_>>()));
        let mut stream: Vec<&[u8]> = (0..30).flat_map(|at| [&*chains[0][at], &*chains[1][at]]).collect();
        for &(which, at) in &changes {
            let place = (at * 7 + which * 13) % stream.len();
            if which == 0 { _ = stream.remove(place) } else { stream.insert(place, &chains[which][at]) }
        }
        for read in firsts(&stream).into_iter().filter(Option::is_some) {
            let is_known = whole.iter().flatten().any(|known| format!("{known:?}") == format!("{read:?}"));
            prop_assert!(is_known, "{read:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_bits_are_read_until_malformed(count in 0u64..400, body in vec(any::<u8>(), 100..300)) {
        let read = decode(&block(count, &body));
        let [(_, Piece::Block { events, .. })] = &read[..] else { panic!("{read:?}") };
        prop_assert!(events.len() as u64 <= count);
    }

    #[test]
    fn bits_that_were_changed_are_read_or_end_the_block(
        all in vec(event(), 1..40),
        at in 0.0..1.0f64,
        bit in 0u8..8,
    ) {
        let whole = encoded(&all);
        let Some(head) = whole.len().checked_sub(20).filter(|len| *len > 0) else { return Ok(()) };
        let mut payload = whole[12..].to_vec();
        let place = 8 + (at * (head as f64)) as usize % payload.len();
        if let Some(byte) = payload.get_mut(place) {
            *byte ^= 1 << bit;
        }
        let read = decode(&frame(BLOCK, PACKED, &payload));
        prop_assert_eq!(read.len(), 1);
    }
}
