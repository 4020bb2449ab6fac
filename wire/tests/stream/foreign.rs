//! Streams that this crate's writers do not make: newer ones, broken ones and hostile ones, put together by
//! hand after the layout at the top of the crate.

use super::arbitrary::{Piece, decode};
use super::by_hand::{BLOCK, DEFINITIONS, SEGMENT, block, block_payload, body, frame, text, varint};
use gnntop_wire::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// The events of the only block in a stream, and whether all that it announced were read.
fn events(bytes: &[u8]) -> (Vec<Event>, bool) {
    let mut reader = StreamReader::new();
    reader.fill(bytes);
    let Some(Item::Block(_, mut events)) = reader.next() else { panic!("no block in {bytes:x?}") };
    (events.by_ref().collect(), events.is_exhausted())
}

fn mark(name: u32, t_ns: u64) -> Event {
    Event::Mark(Mark { name: NameId(name), t_ns, ..Mark::default() })
}

/// A mark as encoded in a body, `dt` after the previous event.
fn mark_bytes(name: u64, dt: u64) -> Vec<u8> {
    body(0xC2, &[varint(name), varint(dt << 1), vec![0, 0]].concat())
}

fn is_damage(bytes: &[u8]) -> bool {
    decode(bytes) == [(bytes.len() as u64, Piece::Damage { offset: 0, len: bytes.len() as u64 })]
}

fn segment_payload(major: u64) -> Vec<u8> {
    let texts = [text("name"), text("host"), text("command"), text("publisher"), text("boot")].concat();
    let numbers = [varint(12), varint(3), varint(1), varint(2), varint(3)].concat();
    let (origin, no_place) = (vec![1], vec![0]);
    [b"gnntop".to_vec(), varint(major), varint(9), 7u128.to_le_bytes().to_vec(), numbers, texts, origin, no_place]
        .concat()
}

#[test]
fn rows_layout_matches_documentation() {
    let mut written = Vec::new();
    let mut encoder = BlockEncoder::new(TrackId(300));
    let span = |name, start_ns, end_ns| Event::Span(Span { name: NameId(name), start_ns, end_ns, step: StepId(2) });
    let sample = Event::Sample(Sample { signal: SignalId(5), t_ns: 1_300, value: -3 });
    for event in [span(1, 900, 1_000), span(62, 1_050, 1_250), span(63, 800, 1_300), sample] {
        assert!(encoder.push(&event));
    }
    encoder.finish(9, &mut written);
    let expected = [
        vec![0x81, 4],                             // step 2
        vec![2 << 1 | 1, 0, 100],                  // began before the base time
        [vec![63 << 1, 50], varint(200)].concat(), // after the span before
        [vec![1, 63, 100], varint(500)].concat(),  // around it, name not inline
        vec![0x80, 5, 0, 5],
    ]
    .concat();
    assert_eq!(
        written,
        block(BlockInfo { track: TrackId(300), first_seq: 0, count: 4, dropped: 9, base_ns: 1_000 }, &expected)
    );
}

#[test]
fn unknown_frames_and_flags_are_skipped() {
    let stream =
        [frame(0x77, 0xff, b"from the future"), frame(BLOCK, 0xfc, &block_payload(1, &mark_bytes(4, 5)))].concat();
    let read = decode(&stream);
    assert_eq!(read[0].1, Piece::Unknown);
    assert!(matches!(&read[1].1, Piece::Block { events, exhausted: true, .. } if events.len() == 1));
}

#[test]
fn unknown_events_are_skipped_and_counted() {
    let bytes = [mark_bytes(1, 5), body(0xCB, &[0xff; 40]), body(0xff, &[]), mark_bytes(2, 5), body(0xd0, b"last")];
    let stream = frame(BLOCK, 0, &block_payload(5, &bytes.concat()));
    assert_eq!(events(&stream), (vec![mark(1, 5), mark(2, 10)], true));
}

#[test]
fn device_span_layout_matches_documentation_and_can_be_skipped() {
    // 7 after the time before it, of which it took 3; handed over 2 before it began, for 1; off by 9; in the step after.
    let device = |tag| body(tag, &[varint(4), vec![14], vec![3], vec![3], vec![1], vec![9], vec![2]].concat());
    let stream = |tag| frame(BLOCK, 0, &block_payload(3, &[mark_bytes(1, 5), device(tag), mark_bytes(2, 5)].concat()));
    let span = DeviceSpan {
        name: NameId(4),
        start_ns: 9,
        end_ns: 12,
        error_ns: 9,
        issued_start_ns: 7,
        issued_end_ns: 8,
        step: StepId(1),
    };
    assert_eq!(events(&stream(0xC7)), (vec![mark(1, 5), Event::DeviceSpan(span), mark(2, 10)], true));
    assert_eq!(events(&stream(0xCB)), (vec![mark(1, 5), mark(2, 10)], true), "as a reader that steps over it");
}

#[test]
fn fields_added_at_the_end_are_ignored() {
    let longer = body(0xC2, &[varint(1), varint(10), vec![0, 0], b"more".to_vec()].concat());
    assert_eq!(events(&frame(BLOCK, 0, &block_payload(1, &longer))), (vec![mark(1, 5)], true));

    let name = [varint(6), text("forward"), vec![2], b"more".to_vec()].concat();
    let foreign = [vec![9], varint(3), b"???".to_vec()].concat();
    let definitions = [foreign, vec![1], varint(name.len() as u64), name].concat();
    let expected = Definition::Name { id: NameId(6), kind: NameKind::Phase, text: "forward".into() };
    assert_eq!(decode(&frame(DEFINITIONS, 0, &definitions))[0].1, Piece::Definitions(vec![expected]));

    let segment = [segment_payload(1), b"more".to_vec()].concat();
    let Piece::Segment(info) = &decode(&frame(SEGMENT, 0, &segment))[0].1 else { panic!("a segment") };
    assert_eq!((info.session_id, info.pid, info.segment, info.start.boot_ns), (7, 12, 3, 3));
    assert_eq!((info.name.as_str(), info.boot_id.as_str()), ("name", "boot"));
}

#[test]
fn unknown_codes_have_a_default_meaning() {
    let signal = [varint(1), vec![200, 200], text("a"), text("b"), text(""), vec![0, 0, 100]].concat();
    let stream = frame(DEFINITIONS, 0, &[vec![3], varint(signal.len() as u64), signal].concat());
    let Piece::Definitions(all) = &decode(&stream)[0].1 else { panic!("definitions") };
    let [Definition::Signal { metric, source, .. }] = &all[..] else { panic!("a signal") };
    assert_eq!((metric.unit(), metric.kind()), (Unit::Count, SignalKind::Gauge));
    assert_eq!(*source, SignalSource::Sensor("b".to_owned()));
    let name = [varint(1), text("a"), varint(200 << 8 | 200)].concat();
    let stream = frame(DEFINITIONS, 0, &[vec![1], varint(name.len() as u64), name].concat());
    let expected = Definition::Name { id: NameId(1), kind: NameKind::Text, text: "a".into() };
    assert_eq!(decode(&stream)[0].1, Piece::Definitions(vec![expected]));
}

#[test]
fn signal_quantity_comes_from_code_not_name() {
    let metric = |quantity: u64| {
        let texts = [text("process.rss"), text("a"), text("")].concat();
        let signal = [varint(1), vec![2, 0], texts, varint(quantity), varint(3), varint(0), b"more".to_vec()].concat();
        let stream = frame(DEFINITIONS, 0, &[vec![3], varint(signal.len() as u64), signal].concat());
        let Piece::Definitions(all) = &decode(&stream)[0].1 else { panic!("definitions") };
        let [Definition::Signal { metric, .. }] = &all[..] else { panic!("a signal") };
        metric.clone()
    };
    assert_eq!(metric(Quantity::GpuPower.code()), Quantity::GpuPower.with_instance(3).into());
    let other = AnyMetric::Other { name: "process.rss".to_owned(), unit: Unit::Bytes, kind: SignalKind::Gauge };
    assert_eq!([metric(0), metric(9999)], [other.clone(), other]);
}

#[test]
fn a_newer_segment_is_refused_until_the_next_readable_one() {
    let newer = frame(SEGMENT, 0, &[b"gnntop".to_vec(), varint(3), varint(0), b"who knows".to_vec()].concat());
    let one_block = frame(BLOCK, 0, &block_payload(1, &mark_bytes(1, 1)));
    let stream =
        [newer, one_block.clone(), frame(DEFINITIONS, 0, b"?"), frame(SEGMENT, 0, &segment_payload(1)), one_block]
            .concat();
    let read = decode(&stream);
    let kinds: Vec<&Piece> = read.iter().map(|(_, piece)| piece).collect();
    assert!(
        matches!(kinds[..], [Piece::Newer(3), Piece::Unknown, Piece::Unknown, Piece::Segment(_), Piece::Block { .. }]),
        "{kinds:?}"
    );
}

#[test]
fn malformed_segments_are_damage() {
    assert!(is_damage(&frame(SEGMENT, 0, b"")));
    assert!(is_damage(&frame(SEGMENT, 0, b"gnuplot123456789012345678901234567890")));
    assert!(is_damage(&frame(SEGMENT, 0, &segment_payload(0))));
    let whole = segment_payload(1);
    for cut in 0..whole.len() {
        assert!(is_damage(&frame(SEGMENT, 0, &whole[..cut])), "cut at {cut}");
    }
    let long_text = [&whole[..whole.len() - text("boot").len() - 2], &text(&"x".repeat(MAX_TEXT_LEN + 1))].concat();
    assert!(is_damage(&frame(SEGMENT, 0, &long_text)));
}

#[test]
fn block_with_wrong_size_is_damage() {
    let header = |count: u64, raw_len: u64| {
        [varint(1), varint(0), varint(count), varint(0), varint(0), varint(raw_len)].concat()
    };
    let spans = [2u8 << 1, 1, 1].repeat(1000);
    let raw_len = spans.len() as u64;
    let packed = lz4_flex::block::compress(&spans);
    let with = |count, raw_len, body: &[u8]| [header(count, raw_len), body.to_vec()].concat();
    assert_eq!(events(&frame(BLOCK, 1, &with(1000, raw_len, &packed))).0.len(), 1000, "the honest one is read");
    for (what, flags, payload) in [
        ("longer than announced", 0, with(1000, raw_len - 1, &spans)),
        ("shorter than announced", 0, with(1000, raw_len + 1, &spans)),
        ("unpacks to more", 1, with(1000, raw_len - 1, &packed)),
        ("unpacks to less", 1, with(1000, raw_len + 1, &packed)),
        ("beyond the limit", 1, with(1000, MAX_BLOCK_LEN as u64 + 1, &packed)),
        ("far beyond the limit", 1, with(1000, u64::MAX, &packed)),
        ("more events than bytes", 0, with(raw_len + 1, raw_len, &spans)),
        ("endless events", 0, with(u64::MAX, raw_len, &spans)),
        ("not packed at all", 1, with(1000, raw_len, &spans)),
        ("cut in the middle", 1, with(1000, raw_len, &packed[..packed.len() / 2])),
        ("no body", 1, with(1000, raw_len, &[])),
        ("a track beyond u32", 0, [varint(1 << 32), header(1, 0)].concat()),
        ("half a header", 0, vec![1, 0, 0x80]),
    ] {
        assert!(is_damage(&frame(BLOCK, flags, &payload)), "{what}");
    }
}

#[test]
fn malformed_event_ends_block_and_keeps_earlier_events() {
    for (what, bad) in [
        ("a reserved tag", vec![0x82, 1, 1]),
        ("the last reserved tag", vec![0xBF, 0]),
        ("a span cut short", vec![2 << 1, 0x80]),
        ("a name beyond u32", [vec![0], varint(1 << 32), vec![1, 1]].concat()),
        ("an integer of eleven bytes", [vec![2 << 1], vec![0xff; 11], vec![1]].concat()),
        ("a payload beyond the body", vec![0xC2, 50, 1]),
        ("a payload of nearly endless length", [vec![0xD0], varint(u64::MAX)].concat()),
        ("a payload too short for its fields", body(0xC6, &[1, 2, 3])),
        ("a counter of no value", body(0xC1, &[1, 2, 0])),
        ("a number of unknown form", body(0xC1, &[1, 2, 9])),
        ("half a number", body(0xC1, &[1, 2, 3, 0, 0])),
        ("a change of step and nothing more", vec![0x81, 2]),
    ] {
        let stream = frame(BLOCK, 0, &block_payload(3, &[mark_bytes(1, 5), bad].concat()));
        assert_eq!(events(&stream), (vec![mark(1, 5)], false), "{what}");
        let mut reader = StreamReader::new();
        reader.fill(&stream);
        let Some(Item::Block(_, mut events)) = reader.next() else { panic!("no block") };
        assert_eq!(events.by_ref().count(), 1);
        assert_eq!(events.next(), None, "{what}: and no guess at what may follow");
    }
}

#[test]
fn block_with_wrong_event_count_is_read_up_to_the_smaller() {
    let two = [mark_bytes(1, 5), mark_bytes(2, 5)].concat();
    assert_eq!(events(&frame(BLOCK, 0, &block_payload(1, &two))), (vec![mark(1, 5)], true));
    assert_eq!(events(&frame(BLOCK, 0, &block_payload(3, &two))), (vec![mark(1, 5), mark(2, 10)], false));
}

#[test]
fn span_end_is_never_before_start() {
    let wild = [varint(u64::MAX), varint(u64::MAX)].concat();
    let spans = [vec![2 << 1], wild.clone(), vec![2 << 1 | 1], wild].concat();
    let (events, whole) = events(&frame(BLOCK, 0, &block_payload(2, &spans)));
    assert!(whole);
    for event in events {
        let Event::Span(span) = event else { panic!("only spans") };
        assert!(span.start_ns <= span.end_ns, "{span:?}");
    }
}

#[test]
fn million_false_headers_are_skipped_in_bounded_work() {
    // Each claims the longest payload there may be. Checking them all would read a terabyte.
    let header = &frame(BLOCK, 0, &vec![0; MAX_PAYLOAD_LEN])[..12];
    let mut stream = header.repeat(1_000_000);
    stream.resize(stream.len() + MAX_PAYLOAD_LEN, 0);
    let good = stream.len() as u64;
    stream.extend(frame(0x77, 0, b"found"));
    let expected = [(good, Piece::Damage { offset: 0, len: good }), (stream.len() as u64, Piece::Unknown)];
    assert_eq!(decode(&stream), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_payload_with_a_right_checksum_is_read_or_refused(
        kind in 0u8..10,
        flags in 0u8..4,
        payload in vec(any::<u8>(), 0..300),
    ) {
        let bytes = frame(kind, flags, &payload);
        let read = decode(&bytes);
        // Those of chunks are skipped silently.
        prop_assert_eq!(read.len(), usize::from(!(7..=8).contains(&kind)));
        prop_assert!(read.iter().all(|(end, _)| *end == bytes.len() as u64));
    }

    #[test]
    fn any_block_body_is_read_until_malformed(
        count in 0u64..200,
        // Mostly bytes that mean something: tags, short numbers.
        bytes in vec(prop_oneof![any::<u8>(), 0u8..20, select((0xC0..=0xCB).collect::<Vec<u8>>()), 0x80u8..0x82], 0..300),
    ) {
        let stream = frame(BLOCK, 0, &block_payload(count, &bytes));
        let read = decode(&stream);
        prop_assert_eq!(read.len(), 1);
        if let Piece::Block { events, .. } = &read[0].1 {
            prop_assert!(events.len() as u64 <= count);
        } else {
            prop_assert!(count > bytes.len() as u64, "only a lie about the count is refused");
        }
    }
}
