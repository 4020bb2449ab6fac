//! Any stream at all, and one whose figures are known.

use std::collections::BTreeSet;

use gnntop_fixtures::any::any_stream;
use gnntop_fixtures::{MS, START_NS, StreamBuilder, TrainingRun, each_item};
use gnntop_wire::past::{PastEntry, PastTotals, Slice, put_past};
use gnntop_wire::{Item, StreamReader, TrackRole};
use proptest::prelude::*;

use crate::merge;
use crate::{Closed, Digest, HOUR_NS, SECOND_NS, coarsen};

fn digest(stream: &[u8]) -> Digest {
    let mut digest = Digest::new();
    each_item(stream, |item| digest.apply(item));
    digest
}

/// Everything that a digest gives, and all slices in it.
fn all_entries(digest: &mut Digest) -> (Vec<PastEntry>, Vec<Slice>, Vec<Slice>) {
    let closed = digest.take_closed();
    let whole = digest.past_entries(vec![(1, 2)]);
    let slices = |entries: &[PastEntry]| -> Vec<Slice> {
        let slices =
            entries.iter().filter_map(|past| if let PastEntry::Slice(slice) = past { Some(&**slice) } else { None });
        slices.cloned().collect()
    };
    let is_second = |slice: &Slice| slice.to_ns.saturating_sub(slice.from_ns) <= SECOND_NS;
    let (open_seconds, open_minutes): (Vec<Slice>, Vec<Slice>) = slices(&whole).into_iter().partition(is_second);
    let seconds = [slices(&closed.seconds), open_seconds].concat();
    let minutes = [slices(&closed.minutes), open_minutes].concat();
    ([closed.seconds, closed.minutes, whole].concat(), seconds, minutes)
}

fn find_totals(entries: &[PastEntry]) -> &PastTotals {
    let found = entries.iter().find_map(|past| if let PastEntry::Totals(whole) = past { Some(whole) } else { None });
    found.unwrap()
}

/// A slice of all of them.
fn sum(slices: &[Slice]) -> Slice {
    let mut all = slices[0].clone();
    slices[1..].iter().for_each(|next| merge::add(&mut all, next));
    all
}

/// Figures that adding up must not change.
fn figures(slice: &Slice) -> impl PartialEq + std::fmt::Debug + use<> {
    let exact = |durations: &gnntop_wire::past::Durations| {
        let bins: Vec<_> = durations.bins().collect();
        (durations.count, durations.total_ns, durations.min_ns, durations.max_ns, bins)
    };
    let phases: Vec<_> = slice.phases.iter().map(|(name, durations)| (*name, exact(durations))).collect();
    let counts: Vec<_> =
        slice.signals.iter().map(|(id, readings)| (*id, readings.count, readings.min, readings.max)).collect();
    let steps = (exact(&slice.step), exact(&slice.period), exact(&slice.gap), phases, slice.batch);
    (
        steps,
        counts,
        slice.marks_left_out + slice.marks.len() as u64,
        slice.worst.as_ref().map(|worst| worst.period_ns()),
    )
}

/// 150 seconds in which each tenth second has no step.
fn run() -> Vec<u8> {
    TrainingRun { steps: 4000, ..TrainingRun::default() }.bytes()
}

#[test]
fn seconds_and_minutes_add_up_to_totals() {
    let mut digest = digest(&run());
    let (entries, seconds, minutes) = all_entries(&mut digest);
    let whole = find_totals(&entries);
    assert_eq!((whole.steps, whole.files.as_slice()), (4000, &[(1, 2)][..]));
    assert!(seconds.len() > 100 && minutes.len() >= 2, "{} {}", seconds.len(), minutes.len());
    // The open minute lacks the open seconds.
    let in_minutes = sum(&minutes).period.count;
    assert!(in_minutes > 3800 && in_minutes < 4000);
    let closed = &seconds[..seconds.len() - 3];
    assert_eq!(figures(&sum(&minutes)), figures(&sum(closed)), "some and the next are all");
    let all = sum(&seconds);
    assert_eq!((all.period.count, all.batch), (whole.steps, whole.batch));
    let fine = entries.iter().find_map(|past| match past {
        PastEntry::Durations(gnntop_wire::past::DurationSeries::Period, durations) => Some(durations),
        _ => None,
    });
    let fine = fine.unwrap();
    assert_eq!((fine.count, fine.total_ns, fine.max_ns), (all.period.count, all.period.total_ns, all.period.max_ns));
    for (slice, next) in seconds.iter().zip(&seconds[1..]) {
        assert!(slice.to_ns <= next.from_ns);
        assert_eq!(slice.first_ordinal + slice.period.count, next.first_ordinal);
        let worst = slice.worst.as_ref().unwrap();
        assert!((slice.from_ns..slice.to_ns).contains(&worst.step.end_ns));
        let phases: u64 = worst.phases.iter().map(|(_, ns)| ns).sum();
        assert_eq!(phases + worst.gap_ns, worst.period_ns(), "phases and gap add up");
    }
}

#[test]
fn halving_keeps_the_sum_and_the_slowest() {
    let mut digest = digest(&run());
    let (entries, seconds, _) = all_entries(&mut digest);
    let slices: Vec<PastEntry> = seconds.iter().map(|slice| PastEntry::Slice(Box::new(slice.clone()))).collect();
    let slow: Vec<PastEntry> = entries.into_iter().filter(|past| matches!(past, PastEntry::Slow(_))).collect();
    assert_eq!(slow.len(), crate::SLOWEST_AN_HOUR);
    let slowest = |entries: &[PastEntry]| {
        entries
            .iter()
            .filter_map(|past| if let PastEntry::Slow(slow) = past { Some(slow.figures.period_ns()) } else { None })
            .max()
    };
    let halved = coarsen([slices, slow.clone()].concat());
    let merged: Vec<Slice> = halved
        .iter()
        .filter_map(|past| if let PastEntry::Slice(slice) = past { Some((**slice).clone()) } else { None })
        .collect();
    assert_eq!(merged.len(), seconds.len().div_ceil(2));
    assert_eq!(figures(&sum(&merged)), figures(&sum(&seconds)));
    assert_eq!(halved.len() - merged.len(), slow.len() / 2);
    assert_eq!(slowest(&halved), slowest(&slow));
}

#[test]
fn the_slowest_steps_of_the_run_are_kept_with_all_their_spans() {
    let period_ns = |step: u64| (1000 + step * 7919 % 50_000) * MS;
    let mut stream = StreamBuilder::new("slow");
    let main = stream.track(TrackRole::Training, "main");
    let mut t_ns = START_NS;
    for step in 1..=1000 {
        for span in 0..50 {
            stream.span(main, step, "layer", t_ns + span * 10, t_ns + span * 10 + 5);
        }
        stream.step(main, step, t_ns, t_ns + period_ns(step));
        t_ns += period_ns(step);
    }
    assert!(t_ns - START_NS > 4 * HOUR_NS);
    let stream = stream.bytes();
    let mut slowest: Vec<u64> = (1..=1000).collect();
    slowest.sort_by_key(|step| std::cmp::Reverse(period_ns(*step)));
    let in_full = |digest: &Digest| -> BTreeSet<u64> {
        let slow = digest.past_entries(Vec::new()).into_iter().filter_map(|past| match past {
            PastEntry::Slow(slow) if slow.spans.len() == 50 => Some(slow.figures.step.step.0),
            _ => None,
        });
        slow.collect()
    };
    let mut some = Digest::with_slowest(20);
    each_item(&stream, |item| some.apply(item));
    let expected: BTreeSet<u64> = slowest[..20].iter().copied().collect();
    assert_eq!(in_full(&some), expected);
    assert_eq!(in_full(&resumed(Digest::with_slowest(20), &mut some)), expected);
    assert_eq!(in_full(&digest(&stream)).len(), 0, "only where it is asked for");
}

/// Everything in a digest except single events or slices.
fn state_text(digest: &Digest) -> String {
    let is_slice = |past: &PastEntry| matches!(past, PastEntry::Slice(_) | PastEntry::Slow(_));
    format!("{:?}", digest.past_entries(Vec::new()).into_iter().filter(|past| !is_slice(past)).collect::<Vec<_>>())
}

/// A digest resumed from the past of another.
fn resumed(mut next: Digest, from: &mut Digest) -> Digest {
    from.info().into_iter().for_each(|info| next.apply(Item::Segment(info.clone())));
    next.apply(Item::Definitions(from.definitions().cloned().collect()));
    let Closed { seconds, .. } = from.take_closed();
    let is_minute =
        |past: &PastEntry| matches!(past, PastEntry::Slice(slice) if slice.to_ns - slice.from_ns > SECOND_NS);
    let (slices, whole): (Vec<PastEntry>, Vec<PastEntry>) = from
        .past_entries(Vec::new())
        .into_iter()
        .filter(|past| !is_minute(past))
        .partition(|p| matches!(p, PastEntry::Slice(_)));
    [whole, seconds, slices].into_iter().for_each(|entries| next.apply(Item::Past(entries)));
    next
}

/// Compares a stream's digest with that of its first `cut` blocks, from which another goes on with the rest.
fn assert_cut_adds_up(stream: &[u8], cut: usize) {
    let (mut some, mut next, mut at) = (Digest::new(), None, 0);
    each_item(stream, |item| {
        at += usize::from(matches!(item, Item::Block(..)));
        match at <= cut {
            true => some.apply(item),
            false => next.get_or_insert_with(|| resumed(Digest::new(), &mut some)).apply(item),
        }
    });
    let (mut next, mut all) = (next.unwrap(), digest(stream));
    assert_eq!(state_text(&next), state_text(&all), "cut behind block {cut}");
    let (seconds, expected) = (all_entries(&mut next).1, all_entries(&mut all).1);
    let steps = |seconds: &[Slice]| seconds.iter().map(|second| second.period.count).sum::<u64>();
    assert_eq!(steps(&seconds), steps(&expected));
}

fn blocks(stream: &[u8]) -> usize {
    let mut blocks = 0;
    each_item(stream, |item| blocks += usize::from(matches!(item, Item::Block(..))));
    blocks
}

#[test]
fn resumed_digest_equals_uninterrupted_one() {
    let stream = run();
    let blocks = blocks(&stream);
    for cut in [1, blocks / 3, blocks - 1] {
        assert_cut_adds_up(&stream, cut);
    }
}

#[test]
fn push_events_equals_apply_blocks() {
    let (stream, mut single) = (run(), Digest::new());
    each_item(&stream, |item| match item {
        Item::Block(info, events) => {
            (info.first_seq..).zip(events).for_each(|(seq, event)| single.push(info.track, seq, info.dropped, &event))
        }
        other => single.apply(other),
    });
    let (mut single, mut blocks) = (single, digest(&stream));
    assert_eq!(state_text(&single), state_text(&blocks));
    assert_eq!(format!("{:?}", all_entries(&mut single)), format!("{:?}", all_entries(&mut blocks)));
}

proptest! {
    #[test]
    fn resumed_digest_equals_uninterrupted_one_at_any_cut(
        steps in 20u64..300,
        epoch_steps in 1u64..60,
        gap_ms in 0u64..700,
        spike in (1u64..300, 1u64..5000),
        cut in any::<prop::sample::Index>(),
    ) {
        let spikes = vec![(spike.0, "forward", spike.1 * MS)];
        let stream = TrainingRun { steps, epoch_steps, gap_ns: gap_ms * MS, spikes, ..TrainingRun::default() }.bytes();
        assert_cut_adds_up(&stream, 1 + cut.index(blocks(&stream) - 1));
    }

    #[test]
    fn any_stream_gives_readable_past(stream in any_stream(200)) {
        let stream = stream.build().bytes();
        let mut digest = digest(&stream);
        let (entries, _, _) = all_entries(&mut digest);
        let mut bytes = Vec::new();
        put_past(&mut bytes, &entries);
        let (mut reader, mut read) = (StreamReader::new(), Vec::new());
        reader.fill(&bytes);
        reader.finish();
        while let Some(item) = reader.next() {
            match item {
                Item::Past(some) => read.extend(some),
                other => prop_assert!(false, "{:?}", other),
            }
        }
        prop_assert_eq!(read.len(), entries.len());
        prop_assert_eq!(format!("{:?}", find_totals(&read)), format!("{:?}", find_totals(&entries)));
        let mut next = Digest::new();
        next.apply(Item::Past(read.clone()));
        each_item(&stream, |item| next.apply(item));
        coarsen(read);
    }
}

#[test]
fn traced_steps_are_counted_but_not_in_durations() {
    let mut stream = StreamBuilder::new("test");
    let main = stream.track(TrackRole::Training, "main");
    for number in 1..=100 {
        let (begin_ns, is_traced) = (START_NS + number * 100 * MS, number == 50);
        stream.span(main, number, if is_traced { "traced" } else { "usual" }, begin_ns, begin_ns + MS);
        match is_traced {
            true => stream.traced_step(main, number, begin_ns, begin_ns + 90 * MS),
            false => stream.step(main, number, begin_ns, begin_ns + 10 * MS),
        }
    }
    let mut digest = digest(&stream.bytes());
    let (entries, seconds, _) = all_entries(&mut digest);
    assert_eq!((find_totals(&entries).steps, sum(&seconds).period.count), (100, 100));
    let durations = entries.iter().find_map(|past| match past {
        PastEntry::Durations(gnntop_wire::past::DurationSeries::Step, durations) => Some(durations),
        _ => None,
    });
    let durations = durations.unwrap();
    assert_eq!((durations.count, durations.max_ns), (99, 10 * MS));
    let slow: Vec<_> =
        entries.iter().filter_map(|past| if let PastEntry::Slow(slow) = past { Some(slow) } else { None }).collect();
    assert!(slow.iter().all(|slow| slow.figures.step.step.0 != 50 && slow.spans.len() == 1), "{slow:?}");
}

#[test]
fn thread_that_continues_a_training_adds_to_its_steps() {
    let mut stream = StreamBuilder::new("threads");
    let first = stream.track(TrackRole::Training, "train");
    let other = stream.track(TrackRole::Training, "train 2");
    let next = stream.track(TrackRole::Training, "train");
    for (track, step) in [(first, 1), (first, 2), (other, 3), (next, 3), (next, 4)] {
        stream.phase(track, step, "forward", START_NS + step * MS, START_NS + step * MS + MS / 2);
        stream.step(track, step, START_NS + step * MS, START_NS + (step + 1) * MS);
    }
    let (entries, seconds, _) = all_entries(&mut digest(&stream.bytes()));
    assert_eq!(find_totals(&entries).steps, 4);
    let (_, forward) = &sum(&seconds).phases[0];
    assert_eq!((forward.count, forward.total_ns), (4, 4 * MS / 2), "phases tile the steps of both threads");
}
