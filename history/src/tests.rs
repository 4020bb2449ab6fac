//! Any stream at all, and one whose figures are known.

use gnntop_fixtures::any::any_stream;
use gnntop_fixtures::{TrainingRun, each_item};
use gnntop_wire::past::{Past, Slice, Whole, put_past};
use gnntop_wire::{Item, StreamReader};
use proptest::prelude::*;

use crate::merge;
use crate::{Digest, SECOND_NS, coarsen};

fn digest(stream: &[u8]) -> Digest {
    let mut digest = Digest::new();
    each_item(stream, |item| digest.apply(item));
    digest
}

/// Everything that a digest gives, and all slices in it.
fn all_of(digest: &mut Digest) -> (Vec<Past>, Vec<Slice>, Vec<Slice>) {
    let closed = digest.take_closed();
    let whole = digest.whole(vec![(1, 2)]);
    let slices = |entries: &[Past]| -> Vec<Slice> {
        let slices =
            entries.iter().filter_map(|past| if let Past::Slice(slice) = past { Some(&**slice) } else { None });
        slices.cloned().collect()
    };
    let is_second = |slice: &Slice| slice.to_ns.saturating_sub(slice.from_ns) <= SECOND_NS;
    let (open_seconds, open_minutes): (Vec<Slice>, Vec<Slice>) = slices(&whole).into_iter().partition(is_second);
    let seconds = [slices(&closed.seconds), open_seconds].concat();
    let minutes = [slices(&closed.minutes), open_minutes].concat();
    ([closed.seconds, closed.minutes, whole].concat(), seconds, minutes)
}

fn whole_of(entries: &[Past]) -> &Whole {
    let found = entries.iter().find_map(|past| if let Past::Whole(whole) = past { Some(whole) } else { None });
    found.unwrap()
}

/// A slice of all of them.
fn sum(slices: &[Slice]) -> Slice {
    let mut all = slices[0].clone();
    slices[1..].iter().for_each(|next| merge::add(&mut all, next));
    all
}

/// What adding up must not change.
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
fn seconds_add_up_to_minutes_and_both_to_the_whole() {
    let mut digest = digest(&run());
    let (entries, seconds, minutes) = all_of(&mut digest);
    let whole = whole_of(&entries);
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
        Past::Durations(gnntop_wire::past::Series::Period, durations) => Some(durations),
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
    let (entries, seconds, _) = all_of(&mut digest);
    let slices: Vec<Past> = seconds.iter().map(|slice| Past::Slice(Box::new(slice.clone()))).collect();
    let slow: Vec<Past> = entries.into_iter().filter(|past| matches!(past, Past::Slow(_))).collect();
    assert_eq!(slow.len(), crate::SLOWEST_AN_HOUR);
    let slowest = |entries: &[Past]| {
        entries
            .iter()
            .filter_map(|past| if let Past::Slow(slow) = past { Some(slow.figures.period_ns()) } else { None })
            .max()
    };
    let halved = coarsen([slices, slow.clone()].concat());
    let merged: Vec<Slice> = halved
        .iter()
        .filter_map(|past| if let Past::Slice(slice) = past { Some((**slice).clone()) } else { None })
        .collect();
    assert_eq!(merged.len(), seconds.len().div_ceil(2));
    assert_eq!(figures(&sum(&merged)), figures(&sum(&seconds)));
    assert_eq!(halved.len() - merged.len(), slow.len() / 2);
    assert_eq!(slowest(&halved), slowest(&slow));
}

proptest! {
    #[test]
    fn any_stream_is_taken_and_what_it_comes_to_can_be_read(stream in any_stream(200)) {
        let mut digest = digest(&stream.build().bytes());
        let (entries, _, _) = all_of(&mut digest);
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
        prop_assert_eq!(format!("{:?}", whole_of(&read)), format!("{:?}", whole_of(&entries)));
        coarsen(read);
    }
}
