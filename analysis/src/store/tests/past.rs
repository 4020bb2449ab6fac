//! What a session says of the time before its oldest segment, be it true or absurd.

use gnntop_fixtures::any::any_stream;
use gnntop_fixtures::{StreamBuilder, TrainingRun, each_item};
use gnntop_history::Digest;
use gnntop_wire::past::{
    DurationSeries, Durations, FINE_BITS, PastEntry, PastTotals, Readings, Slice, SlowStep, StepFigures, TrackEnd,
    Unfinished,
};
use gnntop_wire::{Item, NameId, SignalId, Span, Step, StepId, TrackId};
use proptest::prelude::*;

use super::properties::query_over_time;
use crate::store::*;

/// Small numbers that ids, times and counts may be, and those at the end of the range.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![5 => 0u64..12, 3 => 0u64..5000, 2 => (0u64..3).prop_map(|n| u64::MAX - n), 1 => any::<u64>()]
}

fn figures() -> impl Strategy<Value = StepFigures> {
    ([number(), number(), number(), number(), number()], proptest::collection::vec((0u32..12, number()), 0..4))
        .prop_map(|([ordinal, start_ns, end_ns, period_start_ns, gap_ns], phases)| {
            let (start_ns, period_start_ns) = (start_ns.min(end_ns), period_start_ns.min(end_ns));
            let step = Step { step: StepId(ordinal), start_ns, end_ns, ..Step::default() };
            let phases = phases.into_iter().map(|(name, ns)| (NameId(name), ns)).collect();
            StepFigures { ordinal, step, period_start_ns, gap_ns, phases }
        })
}

fn readings() -> impl Strategy<Value = Readings> {
    (number(), number(), any::<f64>(), any::<f64>()).prop_map(|(count, last_ns, min, max)| Readings {
        count,
        min,
        max,
        sum: max,
        last: min,
        last_ns,
        increase: max,
        increase_ns: last_ns,
    })
}

fn durations() -> impl Strategy<Value = Durations> {
    (proptest::collection::vec(number(), 0..5), number()).prop_map(|(all, count)| {
        let mut durations = Durations::new(FINE_BITS);
        all.into_iter().for_each(|ns| durations.record(ns));
        durations.count = if durations.is_empty() { 0 } else { count };
        durations
    })
}

fn entry() -> impl Strategy<Value = PastEntry> {
    let whole = ([number(), number(), number(), number()], readings()).prop_map(|([a, b, c, d], readings)| {
        let end = TrackEnd { track: TrackId(1), next_seq: a, dropped: b, events: c, spans: d, steps: a, last_ns: b };
        let phases = vec![(NameId(2), a, a.saturating_add(b))];
        PastEntry::Totals(Box::new(PastTotals {
            first_ns: a,
            last_ns: b,
            steps: c,
            epochs: (a, b, d),
            tracks: vec![end],
            unfinished: Some(Unfinished { track: TrackId(1), last_end_ns: d, last_step: c, phases }),
            signals: vec![(SignalId(a as u32 % 8), readings)],
            ..PastTotals::default()
        }))
    });
    let slice = ([number(), number(), number()], durations(), figures(), readings()).prop_map(
        |([from_ns, ns, first_ordinal], period, figures, readings)| {
            PastEntry::Slice(Box::new(Slice {
                from_ns,
                to_ns: from_ns.saturating_add(ns),
                first_ordinal,
                period,
                worst: Some(Box::new(figures.clone())),
                median: Some(Box::new(figures)),
                signals: (0..8).map(|id| (SignalId(id), readings)).collect(),
                counters: vec![(NameId(3), readings)],
                ..Slice::default()
            }))
        },
    );
    let slow = figures().prop_map(|figures| {
        let span = Span { name: NameId(4), start_ns: 9, end_ns: 10, step: StepId(1) };
        PastEntry::Slow(Box::new(SlowStep { figures, spans: vec![span] }))
    });
    let of = prop_oneof![
        Just(DurationSeries::Step),
        Just(DurationSeries::Period),
        (0u32..12).prop_map(|name| DurationSeries::Phase(NameId(name))),
        (0u32..12, number()).prop_map(|(name, ahead_ns)| DurationSeries::Span { name: NameId(name), ahead_ns }),
    ];
    prop_oneof![whole, slice, slow, (of, durations()).prop_map(|(of, durations)| PastEntry::Durations(of, durations))]
}

/// Everything that a screen asks of steps.
fn query_steps(store: &Store) {
    let steps = store.steps();
    for ordinals in [0..u64::MAX, 0..steps.total(), steps.total().saturating_sub(50)..steps.total()] {
        assert!(steps.columns(ordinals.clone(), 20).len() <= 20);
        for row in steps.known_rows(ordinals) {
            let parts = store.phases().iter().map(|phase| row.phase_ns(phase.slot)).sum::<u64>();
            assert_eq!(parts, row.period_ns(), "phases and gap add up");
        }
    }
    steps.newest_columns(None, 1, 20);
    steps.time_columns(StepMeasure::Period, store.now_ns(), 1000, 20);
    steps.ended_by(store.now_ns());
    store.statistics().period().percentile(0.99);
    store.statistics().epochs();
    store.memory_growth();
}

proptest! {
    #[test]
    fn any_past_is_harmless(
        past in proptest::collection::vec(entry(), 0..12),
        stream in any_stream(100),
    ) {
        let mut store = Store::new();
        let bytes = stream.build().bytes();
        // What ids mean comes first, as it does in a session's past.
        each_item(&bytes, |item| if let Item::Definitions(_) | Item::Segment(_) = item { store.apply(item) });
        store.apply(Item::Past(past));
        query_steps(&store);
        each_item(&bytes, |item| store.apply(item));
        query_steps(&store);
        query_over_time(&store, 7);
    }
}

#[test]
fn energy_and_signals_continue_from_past() {
    let run = TrainingRun { steps: 4000, ..TrainingRun::default() }.bytes();
    let (mut digest, mut all) = (Digest::new(), Store::new());
    each_item(&run, |item| digest.apply(item));
    each_item(&run, |item| all.apply(item));
    let mut late = Store::new();
    late.apply(Item::Definitions(digest.definitions().cloned().collect()));
    late.apply(Item::Past(digest.past_entries(Vec::new())));
    late.apply(Item::Past(digest.take_closed().minutes));
    for (past, whole) in late.signals().all().iter().zip(all.signals().all()) {
        assert_eq!(past.series.summary().count, whole.series.summary().count, "{}", past.metric);
        if past.series.summary().count == 0 {
            continue;
        }
        let columns = TimeColumns::equal(all.first_ns().unwrap()..all.now_ns(), 2);
        assert!(past.columns(&columns, late.now_ns()).iter().any(Option::is_some), "{}", past.metric);
    }
    assert!(late.energy(&crate::energy::Assumptions::default()).components.len() > 1);
    assert_eq!(late.steps().total(), 4000);
}

#[test]
fn marks_without_room_in_past_are_counted() {
    let slice = Slice { to_ns: 10, marks_left_out: 7, ..Slice::default() };
    let mut store = Store::new();
    store.apply(Item::Past(vec![PastEntry::Totals(Box::default()), PastEntry::Slice(Box::new(slice))]));
    assert_eq!(store.marks().discarded(), 7);
}

#[test]
fn past_after_steps_is_ignored() {
    let mut stream = StreamBuilder::new("late");
    let track = stream.track(gnntop_wire::TrackRole::Training, "main");
    stream.step(track, 1, 10, 20);
    let mut store = Store::new();
    each_item(&stream.bytes(), |item| store.apply(item));
    store.apply(Item::Past(vec![PastEntry::Totals(Box::new(PastTotals { steps: 99, ..PastTotals::default() }))]));
    assert_eq!((store.steps().total(), store.losses().unknown_frames), (1, 1));
}
