//! Windows over what is left of dropped segments, beside the steps that were dropped.

use std::ops::RangeInclusive;

use gnntop_fixtures::{MS, START_NS, TrainingRun, each_item};
use gnntop_history::{Digest, SECOND_NS};
use gnntop_wire::past::{PastEntry, put_past};
use gnntop_wire::{Definition, Item, put_definitions, put_segment};

use super::{Recorder, RecorderOptions};
use crate::comparison::{Change, compare};
use crate::ranks::Run;
use crate::store::{StepRow, StepStatistics, Store};
use crate::stream::Sink;

/// 160 seconds whose backward phase takes longer from one hundredth step to the next.
fn run() -> Vec<u8> {
    let spikes = (1..=4000).map(|step| (step, "backward", step / 100 * MS + step * 7919 % 2000 * 1000)).collect();
    TrainingRun { steps: 4000, spikes, ..TrainingRun::default() }.bytes()
}

fn stored(stream: &[u8]) -> Store {
    let mut store = Store::default();
    each_item(stream, |item| store.apply(item));
    store
}

/// The run as a session has it that dropped its first blocks: their past, then the others.
fn late(stream: &[u8], blocks_dropped: usize) -> Vec<u8> {
    let (mut digest, mut kept, mut blocks) = (Digest::new(), Vec::new(), 0);
    let mut rest = Recorder::new(&mut kept, RecorderOptions::default());
    each_item(stream, |item| {
        blocks += usize::from(matches!(item, Item::Block(..)));
        if let Item::Segment(info) = &item {
            rest.apply(Item::Segment(info.clone()));
        }
        if let Item::Definitions(definitions) = &item {
            rest.apply(Item::Definitions(definitions.clone()));
        }
        if blocks <= blocks_dropped { digest.apply(item) } else { rest.apply(item) }
    });
    rest.flush().unwrap();
    let mut bytes = Vec::new();
    put_segment(&mut bytes, digest.info().unwrap());
    let definitions: Vec<Definition> = digest.definitions().cloned().collect();
    put_definitions(&mut bytes, &definitions);
    let (closed, whole) = (digest.take_closed(), digest.past_entries(Vec::new()));
    let is_minute =
        |past: &PastEntry| matches!(past, PastEntry::Slice(slice) if slice.to_ns - slice.from_ns > SECOND_NS);
    let (open, figures): (Vec<PastEntry>, Vec<PastEntry>) =
        whole.into_iter().filter(|past| !is_minute(past)).partition(|past| matches!(past, PastEntry::Slice(_)));
    put_past(&mut bytes, figures.iter().chain(&closed.seconds).chain(&open));
    drop(rest);
    bytes.extend(kept);
    bytes
}

fn record(stream: &[u8], window_ns: RangeInclusive<u64>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut recorder = Recorder::new(&mut out, RecorderOptions { window_ns, ..RecorderOptions::default() });
    each_item(stream, |item| recorder.apply(item));
    recorder.flush().unwrap();
    drop(recorder);
    out
}

/// Nanoseconds on the clock of the fixture, from seconds after its start.
fn at(seconds: u64) -> u64 {
    START_NS + seconds * SECOND_NS
}

/// What a recording of a window must contain: the steps that ended in it.
#[track_caller]
fn assert_same(part: &Store, whole: &Store, window_ns: RangeInclusive<u64>) {
    let rows: Vec<StepRow<'_>> = whole.steps().all().filter(|row| window_ns.contains(&row.end_ns())).collect();
    let expected = StepStatistics::from_rows(rows.iter().copied());
    let found = part.statistics();
    assert_eq!(part.steps().total(), rows.len() as u64);
    assert_eq!((found.steps(), found.batch()), (expected.steps(), expected.batch()));
    for percentile in [0.1, 0.5, 0.9, 0.99] {
        let [found, expected] = [found, &expected].map(|of| of.period().percentile(percentile).unwrap() as f64);
        assert!((found / expected - 1.0).abs() < 0.033, "p{percentile}: {found} of {expected}");
    }
    let worst_ns = |store: &Store| store.steps().known_rows(0..u64::MAX).map(|row| row.period_ns()).max();
    assert_eq!(worst_ns(part), rows.iter().map(StepRow::period_ns).max());
    let (first, last) = (part.steps().known_row(0).unwrap(), part.steps().known_row(rows.len() as u64 - 1).unwrap());
    assert!(first.ordinal() < 30 && first.step().0.abs_diff(rows[0].step().0) < 30, "{first:?}");
    assert!(last.step().0.abs_diff(rows[rows.len() - 1].step().0) < 30, "{last:?}");
    assert!(part.losses().is_complete() && part.session().is_cut());
}

#[test]
fn a_window_within_the_past_is_the_steps_of_its_slices() {
    let stream = run();
    let (whole, late) = (stored(&stream), late(&stream, usize::MAX));
    for (from, until) in [(40, 80), (0, 60), (100, 10_000)] {
        let window_ns = at(from)..=at(until) - 1;
        let recorded = record(&late, window_ns.clone());
        assert_same(&stored(&recorded), &whole, window_ns.clone());
        // A window of the recording is one of the run.
        assert_same(&stored(&record(&recorded, window_ns.clone())), &whole, window_ns);
    }
    let all = record(&late, 0..=u64::MAX);
    assert_eq!(stored(&all).steps().total(), 4000);
    assert!(record(&late, at(9000)..=at(9100)).is_empty(), "nothing was published then");
}

#[test]
fn window_starting_in_past_continues_with_events() {
    let stream = run();
    let mut blocks = 0;
    each_item(&stream, |item| blocks += usize::from(matches!(item, Item::Block(..))));
    let late = late(&stream, blocks / 2);
    let (whole, seen) = (stored(&stream), stored(&late));
    let rows_from_ns = seen.steps().all().next().unwrap().end_ns();
    assert!(rows_from_ns > at(20) && seen.steps().total() == 4000, "{rows_from_ns}");
    let window_ns = at(10)..=u64::MAX;
    let part = stored(&record(&late, window_ns.clone()));
    assert_same(&part, &whole, window_ns);
    let newest = |store: &Store| store.steps().last().map(|row| (row.step(), row.period_ns()));
    assert_eq!(newest(&part), newest(&whole));
    // One that ends before the events has none of them.
    let window_ns = at(5)..=at(15) - 1;
    let before = stored(&record(&late, window_ns.clone()));
    assert_same(&before, &whole, window_ns);
    assert!(before.steps().is_empty(), "only slices");
}

#[test]
fn window_of_slices_compares_medians() {
    // From step 2001 on backward takes 6 ms more.
    let spikes = (1..=4000).map(|step| {
        let slower_ns = if step > 2000 { 6 * MS } else { 0 };
        (step, "backward", slower_ns + step * 7919 % 2000 * 1000)
    });
    let spikes = spikes.collect();
    let stream = TrainingRun { steps: 4000, spikes, has_hardware: false, ..TrainingRun::default() }.bytes();
    let mut blocks = 0;
    each_item(&stream, |item| blocks += usize::from(matches!(item, Item::Block(..))));
    let late = late(&stream, blocks * 9 / 10);
    let whole = stored(&stream);
    let slower_ns = whole.steps().row(2000).unwrap().period_start_ns();
    let run_of = |window_ns| {
        let mut run = Run::default();
        each_item(&record(&late, window_ns), |item| run.apply(item));
        run
    };
    let (before, after) = (run_of(0..=slower_ns), run_of(slower_ns + 1..=u64::MAX));
    assert!(before.store().steps().is_empty() && !after.store().steps().is_empty());
    let compared = compare(&[&before], &[&after], &[50.0]);
    let expected = {
        let of = |rows: std::ops::Range<u64>| {
            StepStatistics::from_rows(whole.steps().rows(rows)).period().percentile(0.5).unwrap()
        };
        of(2000..4000) as f64 / of(0..2000) as f64
    };
    let line = compared.lines.iter().find(|line| line.name == "period").unwrap();
    let p50 = line.numbers.iter().find(|number| number.statistic == "p50").unwrap();
    assert_eq!(p50.verdict, Change::Slower, "{compared:?}");
    assert!((1.0 + p50.change - expected).abs() < 0.01, "{} of {expected}", 1.0 + p50.change);
    assert!(compared.population().contains("the median step of each second or minute"), "{}", compared.population());
    assert!(compared.headline().starts_with("B does 0.8"), "{}", compared.headline());
}
