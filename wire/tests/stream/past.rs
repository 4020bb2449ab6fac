//! What is left of the past, written and read.

use gnntop_wire::past::{
    DurationSeries, Durations, FINE_BITS, PastEntry, PastTotals, Readings, Slice, SlowStep, StepFigures, Sum, TrackEnd,
    Unfinished, put_past,
};
use gnntop_wire::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn any_size() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..64).prop_map(|(value, shift)| value >> shift)
}

fn durations(bits: u8) -> impl Strategy<Value = Durations> {
    vec(any_size(), 1..20).prop_map(move |all| {
        let mut durations = Durations::new(bits);
        all.into_iter().for_each(|ns| durations.record(ns));
        if bits < FINE_BITS {
            durations.squares = 0.0; // not written
        }
        durations
    })
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![any::<i32>().prop_map(f64::from), -1e300..1e300]
}

fn exact() -> impl Strategy<Value = Readings> {
    (any_size(), [number(), number(), number(), number(), number()], any_size(), any_size()).prop_map(
        |(count, [min, max, sum, last, increase], last_ns, increase_ns)| Readings {
            count,
            min: min + 0.5,
            max,
            sum,
            last,
            last_ns,
            increase,
            increase_ns,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    (any_size(), any_size(), option::of(number()), vec(option::of(any_size()), 4), option::of(any_size())).prop_map(
        |(end_ns, step, loss, batch, faults)| Step {
            step: StepId(step),
            is_traced: step % 3 == 0,
            epoch: step >> 1,
            start_ns: end_ns / 2,
            end_ns,
            batch: BatchShape { graphs: batch[0], nodes: batch[1], edges: batch[2], seeds: batch[3] },
            loss,
            usage: faults.map(|minor_faults| ThreadUsage { minor_faults, ..ThreadUsage::default() }),
        },
    )
}

fn figures() -> impl Strategy<Value = StepFigures> {
    (any_size(), step(), any_size(), vec((any::<u32>().prop_map(NameId), any_size()), 0..6)).prop_map(
        |(ordinal, step, gap_ns, phases)| {
            let period_start_ns = step.end_ns / 3;
            StepFigures { ordinal, step, period_start_ns, gap_ns, phases }
        },
    )
}

fn slow() -> impl Strategy<Value = SlowStep> {
    (figures(), vec((any::<u32>(), 0..u64::MAX / 2, 0..u64::MAX / 2), 0..9)).prop_map(|(figures, spans)| {
        let span = |(name, start_ns, ns): (u32, u64, u64)| Span {
            name: NameId(name),
            start_ns,
            end_ns: start_ns + ns,
            step: figures.step.step,
        };
        SlowStep { spans: spans.into_iter().map(span).collect(), figures }
    })
}

fn rival(id: u32, t_ns: u64, cores: Option<f64>) -> Rival {
    Rival { name: NameId(id), t_ns, pid: cores.map(|_| id), cores: cores.unwrap_or(0.5) }
}

fn slice() -> impl Strategy<Value = Slice> {
    let times = (any_size(), any_size(), any_size());
    let all = (durations(6), vec((any::<u32>().prop_map(NameId), durations(6)), 0..4), option::of(figures()));
    let readings = vec((any::<u32>(), exact()), 0..4);
    let marks = vec((any::<u32>(), any_size(), option::of(number())), 0..4);
    (times, all, readings, marks).prop_map(|((from_ns, ns, n), (step, phases, worst), readings, marks)| Slice {
        from_ns,
        to_ns: from_ns.saturating_add(ns),
        first_ordinal: n,
        epoch: n >> 3,
        period: step.clone(),
        gap: Durations::default(),
        step,
        phases,
        batch: [Sum { sum: n, period_ns: 1 }, Sum::default(), Sum { sum: 0, period_ns: ns }, Sum::default()],
        median: worst.clone().map(Box::new),
        worst: worst.map(Box::new),
        rivals: marks.iter().map(|(id, t_ns, cores)| rival(*id, *t_ns, *cores)).collect(),
        signals: readings.iter().map(|(id, readings)| (SignalId(*id), *readings)).collect(),
        counters: readings.iter().map(|(id, readings)| (NameId(*id), *readings)).collect(),
        marks: marks
            .into_iter()
            .map(|(id, t_ns, value)| {
                (TrackId(id), Mark { name: NameId(id), t_ns, value, took_ns: value.map(|_| t_ns) })
            })
            .collect(),
        marks_left_out: n,
    })
}

fn totals() -> impl Strategy<Value = PastTotals> {
    let numbers = [any_size(), any_size(), any_size(), any_size(), any_size()];
    let lists = (vec(any_size(), 0..5), vec((any::<u32>(), exact()), 0..4), option::of(slow()));
    (numbers, option::of((number(), number())), lists).prop_map(|([a, b, c, d, e], losses, (some, readings, slow))| {
        PastTotals {
            next_segment: a,
            first_ns: b,
            last_ns: c,
            steps: d,
            batch: [Sum { sum: a, period_ns: e | 1 }; 4],
            usage: slow.as_ref().and_then(|slow| slow.figures.step.usage),
            epochs: (a, b, c),
            losses,
            tracks: some
                .iter()
                .map(|n| TrackEnd { track: TrackId(*n as u32), next_seq: *n, steps: b, ..Default::default() })
                .collect(),
            unfinished: slow.map(|slow| Unfinished {
                track: TrackId(7),
                last_end_ns: d,
                last_step: e,
                phases: slow.spans.iter().map(|span| (span.name, span.start_ns, span.end_ns)).collect(),
            }),
            memory: some
                .iter()
                .map(|n| PhaseMemory { phase: NameId(*n as u32), live_bytes: *n, ..Default::default() })
                .collect(),
            signals: readings.iter().map(|(id, readings)| (SignalId(*id), *readings)).collect(),
            counters: readings.iter().map(|(id, readings)| (NameId(*id), *readings)).collect(),
            files: some.iter().map(|n| (*n, a)).collect(),
        }
    })
}

fn any_past() -> impl Strategy<Value = PastEntry> {
    let name = any::<u32>().prop_map(NameId);
    let series = prop_oneof![
        Just(DurationSeries::Step),
        Just(DurationSeries::Period),
        Just(DurationSeries::Gap),
        name.clone().prop_map(DurationSeries::Phase),
        (name, any_size()).prop_map(|(name, ahead_ns)| DurationSeries::Span { name, ahead_ns }),
    ];
    prop_oneof![
        totals().prop_map(|whole| PastEntry::Totals(Box::new(whole))),
        (series, durations(FINE_BITS)).prop_map(|(series, durations)| PastEntry::Durations(series, durations)),
        slice().prop_map(|slice| PastEntry::Slice(Box::new(slice))),
        slow().prop_map(|slow| PastEntry::Slow(Box::new(slow))),
    ]
}

fn read(bytes: &[u8]) -> Vec<PastEntry> {
    let (mut reader, mut all) = (StreamReader::new(), Vec::new());
    reader.fill(bytes);
    reader.finish();
    while let Some(item) = reader.next() {
        match item {
            Item::Past(some) => all.extend(some),
            other => panic!("{other:?}"),
        }
    }
    all
}

proptest! {
    #[test]
    fn past_entries_round_trip(all in vec(any_past(), 0..40)) {
        let mut bytes = Vec::new();
        put_past(&mut bytes, &all);
        prop_assert_eq!(read(&bytes), all);
    }
}

#[test]
fn short_readings_keep_chart_values() {
    let gauge = |values: &[f64]| {
        let mut readings = Readings::default();
        (0u64..).zip(values).for_each(|(t_ns, value)| readings.add(t_ns, *value));
        readings
    };
    let mut counted = gauge(&[1000.0, 1500.0, 4000.0]);
    counted.add_increase(3000.0, 2);
    let all = [gauge(&[7.0, 7.0]), gauge(&[-100.0, 155.0, 20.0]), counted];
    let signals = (0..).map(SignalId).zip(all).collect();
    let slice = Slice { to_ns: 10, signals, ..Slice::default() };
    let mut bytes = Vec::new();
    put_past(&mut bytes, [&PastEntry::Slice(Box::new(slice))]);
    let [PastEntry::Slice(back)] = &read(&bytes)[..] else { panic!("one slice") };
    for ((_, back), was) in back.signals.iter().zip(all) {
        let exact = |r: &Readings| (r.count, r.min, r.max, r.last_ns, r.increase, r.increase_ns);
        assert_eq!(exact(back), exact(&was));
        let within = (was.max - was.min) / 255.0;
        assert!((back.last - was.last).abs() <= within, "{back:?}");
        // Of a counter that only rose the mean is of no use.
        assert!(was.increase > 0.0 || (back.mean().unwrap() - was.mean().unwrap()).abs() <= within, "{back:?}");
    }
}

#[test]
fn newer_past_entries_are_skipped() {
    use super::by_hand::{PAST, frame, varint};
    let body = [9, 3, 1, 2, 3, 2, 2, 99, 0];
    let bytes = frame(PAST, 0, &[varint(body.len() as u64), body.to_vec()].concat());
    assert_eq!(read(&bytes), []);
}
