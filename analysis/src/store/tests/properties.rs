//! What holds for every stream, however odd: tiling is exact, percentiles are right, memory is bounded, nothing
//! panics.

use gnntop_fixtures::any::any_stream;
use gnntop_fixtures::{StreamBuilder, each_item};
use gnntop_wire::{
    Allocation, AnyMetric, Counter, Event, Item, NameId, NameKind, PhaseMemory, Quantity, SignalId, SignalKind,
    SignalSource, Span, StepId, TrackId, TrackRole, Unit,
};
use proptest::prelude::*;

use crate::energy::{Assumptions, EnergyScope};
use crate::store::*;

fn store(stream: StreamBuilder) -> Store {
    let mut store = Store::new();
    each_item(&stream.bytes(), |item| store.apply(item));
    store
}

pub(super) fn check_rows_tile(store: &Store) -> Result<(), TestCaseError> {
    let mut totals = vec![0u64; store.phases().len()];
    for row in store.steps().all() {
        let parts: Vec<u64> = store.phases().iter().map(|phase| row.phase_ns(phase.slot)).collect();
        let sum = parts.iter().try_fold(0u64, |sum, ns| sum.checked_add(*ns));
        prop_assert_eq!(sum, Some(row.period_ns()));
        prop_assert_eq!(row.period_start_ns().checked_add(row.period_ns()), Some(row.end_ns()));
        if !row.is_traced() {
            totals.iter_mut().zip(parts).for_each(|(total, ns)| *total = total.saturating_add(ns));
        }
    }
    for row in store.device().into_iter().flat_map(|device| device.steps().all()) {
        let mut parts = store.phases().iter().map(|phase| row.phase_ns(phase.slot));
        let sum = parts.try_fold(0u64, |sum: u64, ns| sum.checked_add(ns));
        prop_assert_eq!(sum, Some(row.period_ns()), "the device's time is tiled too");
    }
    for (phase, total) in store.phases().iter().zip(totals) {
        let recorded = store.statistics().phase(phase.slot).map_or(0, Distribution::total_ns);
        prop_assert_eq!(recorded, total, "{}", &phase.text);
    }
    Ok(())
}

/// What charts over time ask, over short and long times.
pub(super) fn query_over_time(store: &Store, width: usize) {
    let book = store.energy(&Assumptions::default());
    for range in [0..2000, 500..700, 0..u64::MAX, std::ops::Range { start: 9, end: 2 }] {
        let columns = TimeColumns::equal(range.clone(), width);
        for signal in store.signals().all() {
            assert_eq!(signal.columns(&columns, store.now_ns()).len(), width);
        }
        store.counters().iter().for_each(|counter| _ = counter.columns(&columns, store.now_ns()));
        store.memory().live_bytes().value_columns(&columns, store.now_ns(), None);
        store.memory().allocated_bytes().for_each(|(_, series)| _ = series.rate_columns(&columns, store.now_ns()));
        for lane in store.tracks().iter().filter_map(Track::lane) {
            let busy = lane.busy(range.clone());
            assert!(busy.idle_share().is_none_or(|share| (0.0..=1.0).contains(&share)), "{busy:?}");
            lane.each_box(range.clone(), |inner, _| assert!(inner.end_ns >= inner.start_ns));
            lane.enclosing_names(range.start);
        }
        for component in &book.components {
            for scope in [EnergyScope::Device, EnergyScope::Job] {
                let figure = book.figure(component, scope, range.clone());
                assert!(figure.is_none_or(|figure| figure.joules >= 0.0 && figure.lo <= figure.hi), "{figure:?}");
                assert!(book.watts(component, scope, range.clone()).is_none_or(|watts| watts >= 0.0));
            }
        }
    }
    store.memory_growth();
}

proptest! {
    #[test]
    fn divided_stores_equal_one_store(stream in any_stream(300)) {
        let bytes = stream.build().bytes();
        let of = |selection: EventSelection| {
            let mut store = Store::with_limits(Limits { selection, ..Limits::default() });
            each_item(&bytes, |item| store.apply(item));
            store
        };
        let (whole, mut rest) = (of(EventSelection::All), of(EventSelection::WithoutSpans));
        prop_assert!(rest.take_spans_from(of(EventSelection::SpansAlone)));
        let told = |store: &Store| {
            let steps = format!("{:?} {:?} {:?}", store.steps(), store.statistics(), store.device());
            let others = format!("{:?} {:?} {:?}", store.counters(), store.marks(), store.losses());
            format!("{:?} {:?} {:?} {steps} {others}", store.spans(), store.tracks(), store.phases())
        };
        prop_assert_eq!(told(&rest), told(&whole));
        let (rest, whole) = (rest.signals().all(), whole.signals().all());
        prop_assert_eq!(format!("{rest:?}"), format!("{whole:?}"));
        if of(EventSelection::All).tracks().iter().any(|track| track.events > 0) {
            prop_assert!(!of(EventSelection::WithoutSpans).take_spans_from(Store::new()), "it has read less");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn phases_and_gap_add_up_to_period(stream in any_stream(400)) {
        let store = store(stream.build());
        check_rows_tile(&store)?;
        let traced = store.steps().all().filter(StepRow::is_traced).count() as u64;
        prop_assert_eq!(store.statistics().steps() + traced, store.steps().total());
    }

    #[test]
    fn queries_work_on_any_store(
        stream in any_stream(100),
        width in 0usize..50,
        quantile in any::<f64>(),
    ) {
        let store = store(stream.build());
        for phase in store.phases() {
            store.percentile(&phase.text, quantile);
        }
        let columns = store.steps().columns(0..u64::MAX, width);
        prop_assert!(columns.len() <= width);
        prop_assert!(!crate::findings::verdict(&store).is_empty());
        store.hardware().machine_cpu();
        store.recent_throughput(1000);
        store.signals().all().iter().for_each(|signal| _ = store.hardware().value(signal));
        store.open_spans().count();
        query_over_time(&store, width);
    }

    #[test]
    fn percentiles_match_sorted_values(
        mut values in proptest::collection::vec(prop_oneof![0u64..3000, 0u64..4_000_000_000_000], 1..500),
        quantile in 0.0f64..=1.0,
    ) {
        let mut distribution = Distribution::new();
        values.iter().for_each(|ns| distribution.record(*ns));
        values.sort_unstable();
        let rank = ((quantile * values.len() as f64).ceil() as usize).clamp(1, values.len());
        let exact = values[rank - 1];
        let found = distribution.percentile(quantile).unwrap();
        if exact < LONGEST_NS {
            prop_assert!(found.abs_diff(exact) <= exact / 1000, "{found} for {exact}");
        } else {
            prop_assert!(found >= LONGEST_NS - LONGEST_NS / 1000);
        }
    }

    #[test]
    fn columns_keep_every_spike(steps in 1u64..300, width in 1usize..40, per_column in 1u64..20, spike in 0u64..300) {
        let mut stream = StreamBuilder::new("columns");
        let track = stream.track(TrackRole::Training, "main");
        let mut t_ns = 100;
        for step in 0..steps {
            let ns = if step == spike { 5000 } else { 10 + step % 3 };
            stream.step(track, step + 1, t_ns, t_ns + ns);
            t_ns += ns;
        }
        let store = store(stream);
        let columns = store.steps().columns(0..u64::MAX, width);
        prop_assert!(columns.len() <= width);
        prop_assert_eq!(columns.iter().map(|column| column.steps).sum::<u64>(), steps);
        let worst = columns.iter().map(|column| column.worst.period_ns()).max();
        prop_assert_eq!(worst, store.statistics().period().max_ns());
        prop_assert!(columns.iter().all(|column| column.median.period_ns() <= column.worst.period_ns()));
        let newest = store.steps().newest_columns(None, per_column, width);
        prop_assert!(newest.len() <= width);
        prop_assert_eq!(newest.last().map(|c| c.first + c.steps), Some(steps));
    }
}

#[test]
fn million_names_use_bounded_memory() {
    let mut store = Store::new();
    for first in (0..1_000_000u32).step_by(10_000) {
        let name =
            |id| gnntop_wire::Definition::Name { id: NameId(id), kind: NameKind::Phase, text: format!("{id:0>300}") };
        store.apply(Item::Definitions((first..first + 10_000).map(name).collect()));
    }
    let mut stream = StreamBuilder::new("names");
    let track = stream.track(TrackRole::Training, "main");
    for id in 0..1_000_000u32 {
        let span = Span { name: NameId(id), start_ns: 10, end_ns: 20, step: StepId::NONE };
        stream.event(track, Event::Span(span));
    }
    stream.step(track, 1, 10, 30);
    each_item(&stream.bytes(), |item| store.apply(item));
    let limits = Limits::default();
    assert!(store.losses().names_not_kept > 900_000);
    assert!(store.spans().len() <= limits.names && store.phases().len() <= MAX_PHASES + 1);
    let with_percentiles = store.spans().iter().filter(|span| span.durations.histogram().is_some()).count();
    assert!(with_percentiles <= limits.span_histograms);
    assert_eq!(store.losses().events_not_kept, 1_000_000 - limits.names as u64);
}

#[test]
fn million_tracks_signals_and_counters_use_bounded_memory() {
    let mut store = Store::new();
    let limits = Limits::default();
    for id in 0..1_000_000u32 {
        let mut out = Vec::new();
        let mut encoder = gnntop_wire::BlockEncoder::new(TrackId(id));
        if id % 100 == 0 {
            encoder.push(&Event::Span(Span { name: NameId(1), start_ns: 1, end_ns: 2, step: StepId::NONE }));
            encoder.push(&Event::Counter(Counter { name: NameId(id), t_ns: 1, value: 1.0 }));
            encoder.push(&Event::PhaseMemory(PhaseMemory { phase: NameId(id), t_ns: 1, ..Default::default() }));
            encoder.finish(0, &mut out);
            each_item(&out, |item| store.apply(item));
        }
        let (id, role, thread_id) = (TrackId(id), TrackRole::Other, 0);
        let track = gnntop_wire::Definition::Track { id, role, thread_id, text: String::new() };
        let metric = AnyMetric::Other { name: format!("s{}", id.0), unit: Unit::Count, kind: SignalKind::Gauge };
        let (source, device) = (SignalSource::Kernels, String::new());
        let signal = gnntop_wire::Definition::Signal { id: SignalId(id.0), metric, source, device };
        store.apply(Item::Definitions(vec![track, signal]));
    }
    assert_eq!(store.tracks().len(), limits.tracks);
    assert_eq!(store.signals().all().len(), limits.signals);
    assert_eq!(store.losses().tracks_not_kept, 1_000_000 - limits.tracks as u64);
    assert_eq!(store.losses().signals_not_kept, 1_000_000 - limits.signals as u64);
    assert!(store.counters().len() <= limits.counters && store.memory().phases().len() <= 256);
    assert!(store.losses().events_not_kept > 0);
}

#[test]
fn series_marks_and_allocations_keep_the_newest() {
    let limits = Limits { series_points: 1000, marks: 10, allocations: 10, ..Limits::default() };
    let mut store = Store::with_limits(limits);
    let mut stream = StreamBuilder::new("long");
    let track = stream.track(TrackRole::Sensors, "sensors");
    let main = stream.track(TrackRole::Training, "main");
    let signal = stream.signal("process.rss", Unit::Bytes, SignalKind::Gauge);
    for n in 0..5000u64 {
        stream.sample(track, signal, n, n as i64);
        stream.mark(main, "m", n);
        let (bytes, live_bytes) = (1, n);
        stream.event(track, Event::Allocation(Allocation { phase: NameId::NONE, t_ns: n, bytes, live_bytes }));
    }
    each_item(&stream.bytes(), |item| store.apply(item));
    let series = &store.signals().find(Quantity::ProcessRss).unwrap().series;
    assert_eq!((series.len(), series.discarded(), series.summary().count), (1000, 4000, 5000));
    assert_eq!((store.marks().iter().len(), store.marks().discarded()), (10, 4990));
    assert_eq!((store.memory().allocations().len(), store.memory().allocation_count()), (10, 5000));
    assert_eq!(store.memory().allocations().last().unwrap().event.live_bytes, 4999);
}
