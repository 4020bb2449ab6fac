//! Writes a golden recording to standard output, of blocks of rows or of packed ones: every kind of frame, of definition
//! and of event, the same bytes each time.
//!
//! `cargo run -p gnntop-wire --example golden rows > recordings/golden/rows.gnntop`

use std::io::{self, Write};

use gnntop_wire::chunk::{ChunkEnd, put_chunk_end, put_summary};
use gnntop_wire::past::{
    DurationSeries, Durations, FINE_BITS, PastEntry, PastTotals, Slice, SlowStep, StepFigures, put_past,
};
use gnntop_wire::{
    Absent, Allocation, Anchor, AnyMetric, BatchShape, BlockEncoder, ClockOffset, Counter, Definition, DeviceMemory,
    DeviceSpan, End, Engine, Event, Fact, Mark, NameId, NameKind, Open, Origin, PhaseMemory, Place, RankKind, Reported,
    Rival, Sample, Sampling, SessionInfo, SignalId, SignalKind, SignalSource, Span, StackFrame, StackSample,
    StackThread, Step, StepId, ThreadUsage, TrackId, TrackRole, Unit, phase, put_anchor, put_compressed_definitions,
    put_end, put_segment,
};

/// `CLOCK_MONOTONIC` at the start, in nanoseconds.
const START_NS: u64 = 3_600_000_000_000;
const SESSION_ID: u128 = 0x5f3a_90c2_0000_0000_0123_4567_89ab_cdef;

const TRAINING: TrackId = TrackId(1);
const LOADER: TrackId = TrackId(2);
const SENSORS: TrackId = TrackId(3);
const STREAM: TrackId = TrackId(5);
const STACKS: TrackId = TrackId(7);
const SAMPLES: TrackId = TrackId(8);

const FORWARD: NameId = NameId(1);
const BACKWARD: NameId = NameId(2);
const LAYER: NameId = NameId(3);
const QUEUE: NameId = NameId(4);
const EPOCH: NameId = NameId(5);
const REASON: NameId = NameId(6);
const COMMAND: NameId = NameId(7);
const INNER_FRAME: NameId = NameId(8);
const OUTER_FRAME: NameId = NameId(9);
const OUTER_PATH: NameId = NameId(10);
const INNER_PATH: NameId = NameId(11);
const TAKEN: NameId = NameId(12);
const PEAK: NameId = NameId(13);
/// Too large an id for a span's tag.
const FAR_LAYER: NameId = NameId(5000);

const CPU_TIME: SignalId = SignalId(1);
const POWER: SignalId = SignalId(2);
/// An id whose last value a block does not keep.
const FAR_SIGNAL: SignalId = SignalId(70_000);

/// Makes the encoder of a track.
type NewBlock = fn(TrackId) -> BlockEncoder;

fn main() -> io::Result<()> {
    let new = match std::env::args().nth(1).as_deref() {
        Some("rows") => BlockEncoder::new,
        Some("packed") => BlockEncoder::packed,
        _ => return Err(io::Error::other("give the kind of block: rows or packed")),
    };
    io::stdout().write_all(&recording(new))
}

fn recording(new: NewBlock) -> Vec<u8> {
    let mut out = Vec::new();
    begin_segment(&mut out, 0);
    put_past(&mut out, &past());
    training_blocks(new, &mut out);
    block(new(LOADER), 0, &loader_events(), &mut out);
    sensors_block(new(SENSORS), &mut out);
    block(new(STREAM), 3, &device_events(), &mut out);
    block(new(STACKS), 0, &stack_events(), &mut out);
    block(new(SAMPLES), 0, &sample_events(), &mut out);
    put_anchor(&mut out, &anchor(1_000_000_000));
    end_chunk(&mut out);
    begin_segment(&mut out, 1);
    put_end(&mut out, &End { t_ns: START_NS + 2_000_000_000, reason: "interrupted".into() });
    out
}

/// A summary of everything so far, which only readers of chunks find.
fn end_chunk(out: &mut Vec<u8>) {
    let (mut slices, back) = (Vec::new(), out.len() as u64);
    put_past(&mut slices, &past());
    let mut whole = Vec::new();
    begin_segment(&mut whole, 0);
    whole.extend_from_slice(&slices);
    let [whole_len, seconds_len, minutes_len] = [whole, slices.clone(), slices].map(|stream| put_summary(out, &stream));
    let (first_ns, last_ns) = (START_NS, START_NS + 1_000_000_000);
    let back = back + whole_len + seconds_len + minutes_len;
    let end =
        ChunkEnd { back, number: 0, totals_len: whole_len, seconds_len, minutes_len, first_ns, last_ns, last_step: 40 };
    put_chunk_end(out, &end);
}

/// What is left of an earlier time.
fn past() -> Vec<PastEntry> {
    let mut durations = Durations::new(FINE_BITS);
    [1_000_000, 2_500_000, 40_000_000].into_iter().for_each(|ns| durations.record(ns));
    let step = Step { step: StepId(1), start_ns: START_NS, end_ns: START_NS + 1_000_000, ..Step::default() };
    let phases = vec![(FORWARD, 600_000), (BACKWARD, 300_000)];
    let figures = StepFigures { ordinal: 0, step, period_start_ns: START_NS, gap_ns: 100_000, phases };
    let whole = PastTotals {
        next_segment: 0,
        first_ns: START_NS,
        last_ns: START_NS + 1_000_000,
        steps: 1,
        ..PastTotals::default()
    };
    let mut slice = Slice { from_ns: START_NS, to_ns: START_NS + 1_000_000_000, ..Slice::default() };
    [&mut slice.step, &mut slice.period, &mut slice.gap].into_iter().for_each(|figures| figures.record(1_000_000));
    slice.worst = Some(Box::new(figures.clone()));
    let span = Span { name: LAYER, start_ns: START_NS + 10, end_ns: START_NS + 500_000, step: StepId(1) };
    vec![
        PastEntry::Totals(Box::new(whole)),
        PastEntry::Durations(DurationSeries::Period, durations),
        PastEntry::Slice(Box::new(slice)),
        PastEntry::Slow(Box::new(SlowStep { figures, spans: vec![span] })),
    ]
}

/// The start of every segment, so that it can be read alone.
fn begin_segment(out: &mut Vec<u8>, segment: u64) {
    let info = SessionInfo {
        session_id: SESSION_ID,
        name: "pna".into(),
        pid: 4711,
        host: "elm".into(),
        command: "gnntop train pna".into(),
        publisher: "gnntop-probe 0.1.0".into(),
        origin: Origin::Probe,
        boot_id: "d1f2c3b4-0000-4000-8000-000000000001".into(),
        start: anchor(0),
        segment,
        place: Some(Box::new(place())),
    };
    put_segment(out, &info);
    put_compressed_definitions(out, &definitions());
    put_anchor(out, &anchor(segment * 1_000_000_000));
}

fn place() -> Place {
    Place {
        run: "a run".into(),
        rank: 1,
        ranks: 2,
        stages: 1,
        copy: 1,
        copies: 2,
        engine: Engine::Threads,
        kind: RankKind::Thread,
        device: "GPU 0".into(),
        threads: 4,
        host_ranks: 2,
        host_cores: 8,
        clock: Some(ClockOffset { offset_ns: -1_234, error_ns: 56 }),
        attempt: Some(3),
        ..Place::default()
    }
}

fn anchor(after_ns: u64) -> Anchor {
    Anchor {
        monotonic_ns: START_NS + after_ns,
        wall_ns: 1_700_000_000_000_000_000 + after_ns,
        boot_ns: START_NS + 60_000_000_000 + after_ns,
    }
}

fn definitions() -> Vec<Definition> {
    names_tracks_and_signals().into_iter().chain(facts()).collect()
}

fn names_tracks_and_signals() -> Vec<Definition> {
    let peak = Reported::Memory(DeviceMemory::PeakIn(FORWARD));
    let name = |id, kind, text: &str| Definition::Name { id, kind, text: text.into() };
    let track = |id, role, thread_id, text: &str| Definition::Track { id, role, thread_id, text: text.into() };
    let signal = |id, unit, kind, name: &str, source, device: &str| Definition::Signal {
        id,
        metric: AnyMetric::from_name(name.into(), unit, kind),
        source,
        device: device.into(),
    };
    vec![
        name(FORWARD, NameKind::Phase, phase::FORWARD),
        name(BACKWARD, NameKind::Phase, phase::BACKWARD),
        name(LAYER, NameKind::Span, "layer 1"),
        name(FAR_LAYER, NameKind::Span, "Schicht Ä 前向"),
        name(QUEUE, NameKind::Counter, "queue depth"),
        name(EPOCH, NameKind::Text, "epoch"),
        name(REASON, NameKind::Text, "driver unloaded"),
        name(COMMAND, NameKind::Text, "make"),
        name(INNER_FRAME, NameKind::Text, "read (data.py:4)"),
        name(OUTER_FRAME, NameKind::Text, "main (train.py:9)"),
        name(OUTER_PATH, NameKind::Path(NameId::NONE), "forward"),
        name(INNER_PATH, NameKind::Path(OUTER_PATH), "read (data.py:4)"),
        name(TAKEN, NameKind::Sampling(Sampling::Taken), Sampling::Taken.text()),
        name(PEAK, NameKind::Reported(peak), &format!("{}forward", peak.text())),
        track(TRAINING, TrackRole::Training, 4711, "training"),
        track(LOADER, TrackRole::Loader, 4712, "loader 1"),
        track(SENSORS, TrackRole::Sensors, 4713, "sensors"),
        track(TrackId(4), TrackRole::Other, 0, "other"),
        track(STREAM, TrackRole::Device, 0, "stream of cuda:0"),
        track(TrackId(6), TrackRole::SynchronisedDevice, 0, "stream of cuda:1"),
        track(STACKS, TrackRole::Stacks, 0, "stacks of train"),
        track(SAMPLES, TrackRole::Samples, 0, "stacks of train, sampled"),
        track(TrackId(9), TrackRole::Communicator, 0, "nccl default_pg"),
        track(TrackId(10), TrackRole::Stream, 0, "stream 7"),
        track(TrackId(11), TrackRole::Operators, 0, "operators of train"),
        signal(
            CPU_TIME,
            Unit::Nanoseconds,
            SignalKind::Counter,
            "process.cpu_time",
            SignalSource::Sensor("procfs".into()),
            "",
        ),
        signal(POWER, Unit::Milliwatts, SignalKind::Gauge, "gpu.power", SignalSource::Kernels, "GPU 0"),
        signal(
            FAR_SIGNAL,
            Unit::Bits,
            SignalKind::Gauge,
            "gpu.throttle",
            SignalSource::Column("throttle".into()),
            "GPU 1",
        ),
    ]
}

fn facts() -> impl Iterator<Item = Definition> {
    let facts = [
        Fact::Framework("PyTorch 2.9.1".into()),
        Fact::Inferred { phase: phase::FORWARD.into(), how: "from the batch's arrival".into() },
        Fact::Resumed { steps: 400 },
        Fact::NotRecorded { what: "spans nested too deep".into(), amount: "4 or more".into() },
        Fact::Died { cause: "out-of-memory".into(), text: "The kernel killed it.".into() },
        Fact::NoStacks { why: "none: not permitted".into() },
        Fact::Note { key: "marks before this part".into(), text: "gc: 3".into() },
        Fact::Other { key: "framework".into(), text: "its own".into() },
    ];
    facts.into_iter().map(Definition::Fact)
}

/// A block of these events.
fn block(mut encoder: BlockEncoder, dropped: u64, events: &[Event], out: &mut Vec<u8>) {
    events.iter().for_each(|event| assert!(encoder.push(event), "far from full"));
    encoder.finish(dropped, out);
}

/// A block of many steps and, as after a drop, a short one.
fn training_blocks(new: NewBlock, out: &mut Vec<u8>) {
    let mut encoder = new(TRAINING);
    for step in 1..=40 {
        steps_events(step).iter().for_each(|event| assert!(encoder.push(event), "far from full"));
    }
    encoder.finish(0, out);
    let t_ns = START_NS + 500_000_000;
    let others = [
        Event::Open(Open { name: BACKWARD, since_ns: t_ns - 90_000_000, t_ns, step: StepId(41) }),
        Event::Allocation(Allocation { phase: BACKWARD, t_ns, bytes: 1 << 30, live_bytes: 3 << 30 }),
        Event::Allocation(Allocation { phase: NameId::NONE, t_ns: t_ns + 5, bytes: -(1 << 30), live_bytes: 2 << 30 }),
        Event::PhaseMemory(PhaseMemory {
            phase: FORWARD,
            t_ns: t_ns + 10,
            allocated_bytes: 9 << 30,
            allocated_count: 90_000,
            freed_bytes: 8 << 30,
            freed_count: 80_000,
            live_bytes: 2 << 30,
            peak_bytes: 4 << 30,
        }),
        // A clock that went backwards, and the longest possible time.
        Event::Mark(Mark { name: EPOCH, t_ns: 5, value: Some(f64::from_bits(0x7ff8_0000_0000_0123)), took_ns: None }),
        Event::Mark(Mark { name: EPOCH, t_ns: u64::MAX, value: Some(0.1), took_ns: Some(7_000) }),
    ];
    block(encoder, 17, &others, out);
}

/// A step: two layers inside `forward`, one called by an id that does not fit into a tag, then `backward`.
fn steps_events(step: u64) -> Vec<Event> {
    let start_ns = START_NS + step * 10_000_000;
    let span = |name, from: u64, to: u64| {
        Event::Span(Span { name, start_ns: start_ns + from, end_ns: start_ns + to, step: StepId(step) })
    };
    let usage = ThreadUsage { minor_faults: 12, major_faults: 1, voluntary_switches: 3, involuntary_switches: step };
    let whole = Step {
        step: StepId(step),
        epoch: step / 20,
        start_ns,
        end_ns: start_ns + 9_000_000,
        batch: BatchShape { graphs: Some(256), nodes: Some(3600 + step), edges: Some(7800), seeds: None },
        loss: (!step.is_multiple_of(4)).then(|| f64::from(1.0 / step as f32)),
        usage: step.is_multiple_of(2).then_some(usage),
        is_traced: step == 30,
    };
    vec![
        span(LAYER, 1_000, 1_500_000 + step),
        span(FAR_LAYER, 1_500_200 + step, 3_000_000),
        span(FORWARD, 500, 3_000_100),
        span(BACKWARD, 3_000_300, 8_900_000),
        Event::Step(whole),
    ]
}

fn loader_events() -> [Event; 6] {
    let t_ns = START_NS + 1_000_000;
    [
        Event::Span(Span { name: LAYER, start_ns: t_ns - 400_000, end_ns: t_ns, step: StepId::NONE }),
        Event::Counter(Counter { name: QUEUE, t_ns, value: 4.0 }),
        Event::Counter(Counter { name: QUEUE, t_ns: t_ns + 1, value: -0.5 }),
        Event::Counter(Counter { name: QUEUE, t_ns: t_ns + 2, value: f64::NEG_INFINITY }),
        Event::Mark(Mark { name: EPOCH, t_ns: t_ns + 3, ..Mark::default() }),
        Event::Mark(Mark { name: EPOCH, t_ns: t_ns + 4, value: Some(2.0), took_ns: None }),
    ]
}

/// What a device reports of two steps, with a mark between.
fn device_events() -> [Event; 6] {
    let t_ns = |n: u64| START_NS + n * 1_000_000;
    let span = |name, step, from: u64, to: u64| {
        let (issued_start_ns, issued_end_ns) = (t_ns(from) - 40_000, t_ns(from) - 9_000);
        let (start_ns, end_ns, step) = (t_ns(from), t_ns(to), StepId(step));
        Event::DeviceSpan(DeviceSpan { name, start_ns, end_ns, error_ns: 7_500, issued_start_ns, issued_end_ns, step })
    };
    [
        span(FORWARD, 1, 11, 13),
        span(BACKWARD, 1, 13, 18),
        span(NameId::NONE, 1, 10, 19),
        Event::Mark(Mark { name: REASON, t_ns: t_ns(19), ..Mark::default() }),
        span(FAR_LAYER, 2, 20, 21),
        // A clock that went backwards.
        span(NameId::NONE, 2, 3, 4),
    ]
}

/// A stack of the training thread and one of a worker.
fn stack_events() -> [Event; 3] {
    let t_ns = START_NS + 700_000_000;
    let frame = |name, t_ns, depth, thread| Event::StackFrame(StackFrame { name, t_ns, depth, thread });
    [
        frame(INNER_FRAME, t_ns, 0, StackThread::Training),
        frame(OUTER_FRAME, t_ns, 1, StackThread::Training),
        frame(INNER_FRAME, t_ns + 100_000, 0, StackThread::LoaderWorker),
    ]
}

/// Samples of a path, repeated once, and what is known about the sampling.
fn sample_events() -> [Event; 4] {
    let t_ns = START_NS + 710_000_000;
    let sample = |path, after_ns, count, is_repeat| {
        Event::StackSample(StackSample { path, t_ns: t_ns + after_ns, count, is_repeat })
    };
    [
        sample(INNER_PATH, 0, 1, false),
        sample(INNER_PATH, 10_000_000, 2, false),
        sample(TAKEN, 10_000_100, 2, false),
        sample(INNER_PATH, 20_000_000, 2, true),
    ]
}

fn sensors_block(mut encoder: BlockEncoder, out: &mut Vec<u8>) {
    encoder.continue_from(1000);
    let t_ns = |n: u64| START_NS + n * 100_000_000;
    let events = [
        Event::Sample(Sample { signal: CPU_TIME, t_ns: t_ns(1), value: 1_000_000_000 }),
        Event::Sample(Sample { signal: POWER, t_ns: t_ns(1) + 900, value: 312_000 }),
        Event::Sample(Sample { signal: FAR_SIGNAL, t_ns: t_ns(1) + 900, value: -1 }),
        Event::Sample(Sample { signal: CPU_TIME, t_ns: t_ns(2), value: 1_180_000_000 }),
        Event::Absent(Absent { signal: POWER, t_ns: t_ns(2) + 800, reason: REASON }),
        Event::Absent(Absent { signal: FAR_SIGNAL, t_ns: t_ns(2) + 800, reason: REASON }),
        Event::Sample(Sample { signal: POWER, t_ns: t_ns(3), value: 298_000 }),
        Event::Sample(Sample { signal: FAR_SIGNAL, t_ns: t_ns(3), value: i64::MIN }),
        Event::Rival(Rival { name: COMMAND, t_ns: t_ns(3), pid: Some(4321), cores: 1.5 }),
        Event::Rival(Rival { name: COMMAND, t_ns: t_ns(4), pid: None, cores: 3.0 }),
    ];
    block(encoder, 2, &events, out);
}
