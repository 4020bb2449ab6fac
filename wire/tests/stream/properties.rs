//! Properties of whole streams: what is written comes back, and what is damaged costs only itself.

use super::arbitrary::{Mutation, Piece, decode, decode_chunks, encode, mutation, stream};
use gnntop_wire::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn pieces(all: &[(u64, Piece)]) -> Vec<&Piece> {
    all.iter().map(|(_, piece)| piece).collect()
}

fn damages(all: &[(u64, Piece)]) -> Vec<(u64, u64)> {
    let damage = |piece: &Piece| match *piece {
        Piece::Damage { offset, len } => Some((offset, len)),
        _ => None,
    };
    all.iter().filter_map(|(_, piece)| damage(piece)).collect()
}

/// Cuts `bytes` into chunks of the given lengths, repeated as often as needed.
fn chunks<'a>(mut bytes: &'a [u8], lengths: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut lengths = lengths.iter().cycle();
    std::iter::from_fn(move || {
        let &len = lengths.next()?;
        let (chunk, rest) = bytes.split_at(len.min(bytes.len()));
        bytes = rest;
        (!chunk.is_empty()).then_some(chunk)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn stream_round_trip(stream in stream()) {
        let (bytes, written) = encode(&stream);
        let read = decode(&bytes);
        prop_assert_eq!(pieces(&read), pieces(&written));
        let ends: Vec<u64> = written.iter().skip(1).map(|(begin, _)| *begin).chain([bytes.len() as u64]).collect();
        prop_assert_eq!(read.iter().map(|(end, _)| *end).collect::<Vec<_>>(), ends);
    }

    #[test]
    fn reading_in_chunks_gives_same_items(
        stream in stream(),
        blows in vec(mutation(), 0..4),
        lengths in vec(1usize..700, 1..5),
    ) {
        let (mut bytes, _) = encode(&stream);
        blows.iter().for_each(|blow| if !bytes.is_empty() { blow.apply_to(&mut bytes); });
        let (in_chunks, at_once) = (decode_chunks(chunks(&bytes, &lengths)), decode(&bytes));
        prop_assert_eq!(pieces(&in_chunks), pieces(&at_once));
    }

    #[test]
    fn damage_loses_only_the_damaged_frames(stream in stream(), blow in mutation()) {
        let (mut bytes, written) = encode(&stream);
        let whole_len = bytes.len() as u64;
        let hit = blow.apply_to(&mut bytes);
        let read = decode(&bytes);
        // A piece is untouched when it ends before the blow or begins after it.
        let ends = written.iter().skip(1).map(|(begin, _)| *begin).chain([whole_len]);
        let before = ends.take_while(|&end| end <= hit.start as u64).count();
        let after = written.iter().filter(|(begin, _)| *begin >= hit.end as u64).count();
        let read_pieces = pieces(&read);
        prop_assert!(read.len() >= before + after);
        prop_assert_eq!(&read_pieces[..before], &pieces(&written)[..before], "before the damage");
        prop_assert_eq!(&read_pieces[read.len() - after..], &pieces(&written)[written.len() - after..], "after it");
        let first_hit = written.get(before).map_or(whole_len, |(begin, _)| *begin);
        if let Some(&(offset, _)) = damages(&read).first() {
            prop_assert!(offset >= first_hit, "damage at {offset}, but all is well up to {first_hit}");
        }
    }

    #[test]
    fn flipped_bit_is_reported_at_frame_offset(stream in stream(), at in 0.0..1.0f64, bit in 0u8..8) {
        let (mut bytes, written) = encode(&stream);
        let hit = Mutation::Flip { at, bit }.apply_to(&mut bytes).start as u64;
        let struck = written.iter().rposition(|(begin, _)| *begin <= hit).unwrap();
        let begin = written[struck].0;
        let end = written.get(struck + 1).map_or(bytes.len() as u64, |(begin, _)| *begin);
        let read = decode(&bytes);
        prop_assert_eq!(damages(&read), vec![(begin, end - begin)]);
        prop_assert_eq!(read.len(), written.len());
    }

    #[test]
    fn truncation_is_reported_at_last_whole_frame(stream in stream(), at in 0.0..1.0f64) {
        let (mut bytes, written) = encode(&stream);
        Mutation::Truncate { at }.apply_to(&mut bytes);
        let cut = bytes.len() as u64;
        let begin = written.iter().map(|(begin, _)| *begin).rfind(|&begin| begin <= cut).unwrap();
        let expected = if begin == cut { vec![] } else { vec![(begin, cut - begin)] };
        prop_assert_eq!(damages(&decode(&bytes)), expected);
    }

    #[test]
    fn any_bytes_are_items_or_damage(bytes in vec(prop_oneof![any::<u8>(), Just(0xA7), Just(b'g')], 0..2000)) {
        let read = decode(&bytes);
        let hole = if bytes.is_empty() { vec![] } else { vec![(0, bytes.len() as u64)] };
        prop_assert_eq!(damages(&read), hole);
    }

    #[test]
    fn reading_may_start_at_any_byte(stream in stream(), at in 0.0..1.0f64) {
        let (bytes, written) = encode(&stream);
        let start = (at * bytes.len() as f64) as usize;
        let mut reader = StreamReader::with_offset(start as u64);
        reader.fill(&bytes[start..]);
        reader.finish();
        let mut first_whole = None;
        let is_first = |item: Item<'_>| matches!(item, Item::Damage(Damage { offset, .. }) if offset == start as u64);
        while let Some(is_damage) = reader.next().map(is_first) {
            if is_damage || first_whole.is_none() {
                first_whole = Some(if is_damage { reader.offset() } else { start as u64 });
            }
        }
        let expected = written.iter().map(|(begin, _)| *begin).find(|&begin| begin >= start as u64);
        prop_assert_eq!(first_whole, Some(expected.unwrap_or(bytes.len() as u64)));
    }
}

#[test]
fn a_full_block_refuses_the_event_and_loses_nothing() {
    let mut encoder = BlockEncoder::new(TrackId(7));
    let event = |n: u64| {
        Event::Span(Span { name: NameId(u32::MAX), start_ns: n << 40, end_ns: u64::MAX - n, step: StepId(n << 50) })
    };
    let fitting = (1..).take_while(|&n| encoder.push(&event(n))).count() as u64;
    assert!(encoder.is_full() && encoder.len() <= MAX_BLOCK_LEN);
    let mut bytes = Vec::new();
    encoder.finish(3, &mut bytes);
    assert!(encoder.is_empty() && !encoder.is_full());
    assert!(bytes.len() <= MAX_PAYLOAD_LEN);
    assert!(encoder.push(&event(1)), "the next block takes it");
    encoder.finish(3, &mut bytes);

    let mut reader = StreamReader::new();
    reader.fill(&bytes);
    let Some(Item::Block(info, events)) = reader.next() else { panic!("no block") };
    assert_eq!((info.first_seq, info.count, info.dropped), (0, fitting, 3));
    assert!(events.eq((1..=fitting).map(event)));
    let Some(Item::Block(info, events)) = reader.next() else { panic!("no second block") };
    assert_eq!((info.first_seq, info.count, events.count()), (fitting, 1, 1));
}

#[test]
fn an_empty_block_writes_nothing() {
    let mut bytes = Vec::new();
    BlockEncoder::new(TrackId(1)).finish(0, &mut bytes);
    assert!(bytes.is_empty());
}

#[test]
fn sequence_number_saturates() {
    let mut encoder = BlockEncoder::new(TrackId(1));
    encoder.continue_from(u64::MAX);
    assert!(encoder.push(&Event::Mark(Mark { name: NameId(1), t_ns: 1, ..Mark::default() })));
    assert_eq!(encoder.next_seq(), u64::MAX);
    encoder.finish(0, &mut Vec::new());
    assert_eq!(encoder.next_seq(), u64::MAX);
}

#[test]
fn a_million_names_take_many_frames_of_bounded_length() {
    let names: Vec<Definition> = (0..1_000_000)
        .map(|id| Definition::Name { id: NameId(id), kind: NameKind::Span, text: format!("span {id}") })
        .collect();
    let mut bytes = Vec::new();
    put_definitions(&mut bytes, &names);
    let read = decode(&bytes);
    assert!(read.len() > 100);
    let all = read.into_iter().flat_map(|(_, piece)| match piece {
        Piece::Definitions(all) => all,
        other => panic!("{other:?}"),
    });
    assert!(all.eq(names));
}

#[test]
fn long_and_harmful_texts_are_cut_and_cleaned() {
    let long = "é\u{1b}[2J".repeat(1_000_000);
    let info = SessionInfo { name: long.clone(), host: "\u{202e}evil".into(), ..SessionInfo::default() };
    let name = Definition::Name { id: NameId(1), kind: NameKind::Phase, text: long };
    let mut bytes = Vec::new();
    put_segment(&mut bytes, &info);
    put_definitions(&mut bytes, [&name]);
    assert!(bytes.len() < 2 * MAX_TEXT_LEN + 200);
    let [(_, Piece::Segment(info)), (_, Piece::Definitions(all))] = &decode(&bytes)[..] else {
        panic!("both are read")
    };
    let [Definition::Name { text, .. }] = &all[..] else { panic!("one name") };
    for text in [text, &info.name] {
        assert!(text.starts_with("é\u{fffd}[2J"));
        assert!(text.chars().all(|c| "é\u{fffd}[2J".contains(c)));
    }
    assert_eq!(info.host, "\u{fffd}evil");
}

#[test]
fn a_growing_stream_is_followed_without_waiting_for_its_end() {
    let mut bytes = Vec::new();
    put_anchor(&mut bytes, &Anchor { monotonic_ns: 1, wall_ns: 2, boot_ns: 3 });
    let mut reader = StreamReader::new();
    for &byte in &bytes[..bytes.len() - 1] {
        reader.fill(&[byte]);
        assert!(reader.next().is_none());
    }
    assert_eq!((reader.offset(), reader.pending()), (0, bytes.len() - 1));
    reader.fill(&bytes[bytes.len() - 1..]);
    assert!(matches!(reader.next(), Some(Item::Anchor(Anchor { boot_ns: 3, .. }))));
    assert_eq!((reader.offset(), reader.pending()), (bytes.len() as u64, 0));
}
