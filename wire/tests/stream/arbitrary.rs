//! Arbitrary streams, and streams taken apart again into something that can be compared.

use gnntop_wire::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// One thing put into a stream, or read from it.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Segment(SessionInfo),
    Definitions(Vec<Definition>),
    Anchor(Anchor),
    Block {
        info: BlockInfo,
        events: Vec<Exact>,
        exhausted: bool,
    },
    End(End),
    Unknown,
    /// As it is printed, so that NaN is equal to itself.
    Past(String),
    Newer(u64),
    Damage {
        offset: u64,
        len: u64,
    },
}

/// An event whose number is compared by its bits, so that NaN is equal to itself and 0 is not -0.
#[derive(Clone, Debug, PartialEq)]
pub struct Exact {
    event: Event,
    bits: Option<u64>,
}

impl From<Event> for Exact {
    fn from(mut event: Event) -> Self {
        let bits = match &mut event {
            Event::Step(step) => step.loss.take(),
            Event::Mark(mark) => mark.value.take(),
            Event::Counter(counter) => Some(std::mem::take(&mut counter.value)),
            Event::Rival(rival) => Some(std::mem::take(&mut rival.cores)),
            _ => None,
        };
        Self { event, bits: bits.map(f64::to_bits) }
    }
}

/// What a writer wants to say; [`Written::put`] gives the piece that must come back.
#[derive(Clone, Debug)]
pub enum Written {
    Meta(Piece),
    Block { packed: bool, track: u32, first_seq: u64, dropped: u64, events: Vec<Event> },
}

impl Written {
    /// Appends it to a stream.
    pub fn put(&self, out: &mut Vec<u8>) -> Piece {
        match self {
            Self::Meta(piece) => {
                match piece {
                    Piece::Segment(info) => put_segment(out, info),
                    Piece::Definitions(all) if all.len() % 2 == 0 => put_compressed_definitions(out, all),
                    Piece::Definitions(all) => put_definitions(out, all),
                    Piece::Anchor(anchor) => put_anchor(out, anchor),
                    Piece::End(end) => put_end(out, end),
                    other => panic!("nobody writes {other:?}"),
                }
                piece.clone()
            }
            Self::Block { packed, track, first_seq, dropped, events } => {
                let new = if *packed { BlockEncoder::packed } else { BlockEncoder::new };
                let mut encoder = new(TrackId(*track));
                encoder.continue_from(*first_seq);
                assert!(events.iter().all(|event| encoder.push(event)), "far from full");
                assert_eq!(encoder.next_seq(), first_seq.saturating_add(events.len() as u64));
                encoder.finish(*dropped, out);
                let info = BlockInfo {
                    track: TrackId(*track),
                    first_seq: *first_seq,
                    count: events.len() as u64,
                    dropped: *dropped,
                    base_ns: events[0].t_ns(),
                };
                let events = events.iter().map(|&event| Exact::from(with_ordered_times(event))).collect();
                Piece::Block { info, events, exhausted: true }
            }
        }
    }
}

/// The event as it is decoded: no end is before its start.
fn with_ordered_times(mut event: Event) -> Event {
    match &mut event {
        Event::Span(span) => span.start_ns = span.start_ns.min(span.end_ns),
        Event::Step(step) => step.start_ns = step.start_ns.min(step.end_ns),
        Event::DeviceSpan(span) => {
            span.start_ns = span.start_ns.min(span.end_ns);
            span.issued_start_ns = span.issued_start_ns.min(span.issued_end_ns);
        }
        _ => {}
    }
    event
}

/// Encodes a stream: its bytes, and where each piece begins with what must come back.
pub fn encode(stream: &[Written]) -> (Vec<u8>, Vec<(u64, Piece)>) {
    let mut bytes = Vec::new();
    let pieces = stream.iter().map(|written| (bytes.len() as u64, written.put(&mut bytes))).collect();
    (bytes, pieces)
}

/// Decodes a whole stream: where each piece ends, and the piece.
pub fn decode(bytes: &[u8]) -> Vec<(u64, Piece)> {
    decode_chunks([bytes])
}

/// Decodes a stream that comes in pieces.
pub fn decode_chunks<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<(u64, Piece)> {
    let mut reader = StreamReader::new();
    let mut pieces = Vec::new();
    for chunk in chunks {
        reader.fill(chunk);
        drain(&mut reader, &mut pieces);
    }
    reader.finish();
    drain(&mut reader, &mut pieces);
    assert_eq!(reader.pending(), 0, "nothing is left over at the end");
    pieces
}

/// Takes in the events of a block.
#[derive(Default)]
struct CollectedEvents(Vec<Exact>);

impl EventSink for CollectedEvents {
    fn span(&mut self, span: &Span) {
        self.0.push(Exact::from(Event::Span(*span)));
    }

    fn other(&mut self, event: &Event) {
        assert!(!matches!(event, Event::Span(_)), "spans come apart");
        self.0.push(Exact::from(*event));
    }
}

fn drain(reader: &mut StreamReader, pieces: &mut Vec<(u64, Piece)>) {
    while let Some(piece) = reader.next().map(piece) {
        pieces.push((reader.offset(), piece));
    }
}

fn piece(item: Item<'_>) -> Piece {
    match item {
        Item::Segment(info) => Piece::Segment(info),
        Item::Definitions(all) => Piece::Definitions(all),
        Item::Anchor(anchor) => Piece::Anchor(anchor),
        Item::Block(info, mut events) => {
            // Both ways of taking them in give the same.
            let mut list = CollectedEvents::default();
            if info.first_seq % 2 == 0 {
                events.decode_into(&mut list);
            } else {
                list.0.extend(events.by_ref().map(Exact::from));
            }
            Piece::Block { info, events: list.0, exhausted: events.is_exhausted() }
        }
        Item::End(end) => Piece::End(end),
        Item::Unknown => Piece::Unknown,
        Item::Past(all) => Piece::Past(format!("{all:?}")),
        Item::Newer { major } => Piece::Newer(major),
        Item::Damage(Damage { offset, len }) => Piece::Damage { offset, len },
    }
}

/// A stream of a few pieces.
pub fn stream() -> impl Strategy<Value = Vec<Written>> {
    let written = prop_oneof![
        1 => session_info().prop_map(|info| Written::Meta(Piece::Segment(info))),
        1 => vec(definition(), 1..8).prop_map(|all| Written::Meta(Piece::Definitions(all))),
        1 => anchor().prop_map(|anchor| Written::Meta(Piece::Anchor(anchor))),
        1 => (number(), text()).prop_map(|(t_ns, reason)| Written::Meta(Piece::End(End { t_ns, reason }))),
        4 => block(),
    ];
    vec(written, 1..8)
}

fn block() -> impl Strategy<Value = Written> {
    // Long blocks are compressed, short ones are not.
    let events = prop_oneof![vec(event(), 1..12), vec(event(), 40..120)];
    (any::<bool>(), id(), number(), number(), events).prop_map(|(packed, track, first_seq, dropped, events)| {
        Written::Block { packed, track, first_seq, dropped, events }
    })
}

/// Numbers of every length, and the extremes.
pub fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        (any::<u64>(), 0u32..64).prop_map(|(value, shift)| value >> shift),
        select(vec![0, 1, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1]),
    ]
}

fn signed() -> impl Strategy<Value = i64> {
    (number(), any::<bool>())
        .prop_map(|(value, negate)| if negate { (value as i64).wrapping_neg() } else { value as i64 })
}

/// Ids on both sides of what fits into a tag and of what a block remembers.
fn id() -> impl Strategy<Value = u32> {
    prop_oneof![0u32..70, 1020u32..1030, any::<u32>(), Just(u32::MAX)]
}

/// Times of a run, now and then backwards, and any others.
fn time() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 3_600_000_000_000u64..3_600_100_000_000, 1 => number()]
}

fn real() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        any::<u32>().prop_map(|bits| f64::from(f32::from_bits(bits))),
        signed().prop_map(|value| value as f64),
        select(vec![0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, f64::MAX]),
        Just(f64::from_bits(0x7ff0_0000_0000_0001)),
    ]
}

pub fn event() -> impl Strategy<Value = Event> {
    let name = || id().prop_map(NameId);
    let signal = || id().prop_map(SignalId);
    let step = || number().prop_map(StepId);
    prop_oneof![
        6 => (name(), time(), time(), step())
            .prop_map(|(name, start_ns, end_ns, step)| Event::Span(Span { name, start_ns, end_ns, step })),
        2 => (name(), time(), 0u64..1 << 24, 1u64..4).prop_map(|(name, start_ns, duration, step)| {
            Event::Span(Span { name, start_ns, end_ns: start_ns.saturating_add(duration), step: StepId(step) })
        }),
        2 => (signal(), time(), signed()).prop_map(|(signal, t_ns, value)| Event::Sample(Sample { signal, t_ns, value })),
        1 => step_record().prop_map(Event::Step),
        1 => (name(), time(), real()).prop_map(|(name, t_ns, value)| Event::Counter(Counter { name, t_ns, value })),
        1 => (name(), time(), option::of(real()), option::of(number()))
            .prop_map(|(name, t_ns, value, took_ns)| Event::Mark(Mark { name, t_ns, value, took_ns })),
        1 => (name(), time(), any::<u32>(), 0u8..2).prop_map(|(name, t_ns, depth, thread)| {
            Event::StackFrame(StackFrame { name, t_ns, depth, thread: StackThread::from_code(thread) })
        }),
        1 => (name(), time(), number(), any::<bool>()).prop_map(|(path, t_ns, count, is_repeat)| {
            Event::StackSample(StackSample { path, t_ns, count, is_repeat })
        }),
        1 => (name(), time(), option::of(any::<u32>()), real())
            .prop_map(|(name, t_ns, pid, cores)| Event::Rival(Rival { name, t_ns, pid, cores })),
        1 => (name(), time(), time(), step())
            .prop_map(|(name, since_ns, t_ns, step)| Event::Open(Open { name, since_ns, t_ns, step })),
        1 => (signal(), time(), name())
            .prop_map(|(signal, t_ns, reason)| Event::Absent(Absent { signal, t_ns, reason })),
        1 => (name(), time(), signed(), number()).prop_map(|(phase, t_ns, bytes, live_bytes)| {
            Event::Allocation(Allocation { phase, t_ns, bytes, live_bytes })
        }),
        1 => (name(), prop::array::uniform4(time()), number(), step()).prop_map(|(name, t, error_ns, step)| {
            let [start_ns, end_ns, issued_start_ns, issued_end_ns] = t;
            Event::DeviceSpan(DeviceSpan { name, start_ns, end_ns, error_ns, issued_start_ns, issued_end_ns, step })
        }),
        1 => (name(), time(), prop::array::uniform6(number())).prop_map(|(phase, t_ns, n)| {
            Event::PhaseMemory(PhaseMemory {
                phase,
                t_ns,
                allocated_bytes: n[0],
                allocated_count: n[1],
                freed_bytes: n[2],
                freed_count: n[3],
                live_bytes: n[4],
                peak_bytes: n[5],
            })
        }),
    ]
}

fn step_record() -> impl Strategy<Value = Step> {
    let batch = prop::array::uniform4(option::of(number()));
    let usage = option::of(prop::array::uniform4(number()));
    (number(), number(), time(), time(), batch, option::of(real()), usage, any::<bool>()).prop_map(
        |(step, epoch, start_ns, end_ns, [graphs, nodes, edges, seeds], loss, usage, is_traced)| Step {
            is_traced,
            step: StepId(step),
            epoch,
            start_ns,
            end_ns,
            batch: BatchShape { graphs, nodes, edges, seeds },
            loss,
            usage: usage.map(|[minor_faults, major_faults, voluntary_switches, involuntary_switches]| ThreadUsage {
                minor_faults,
                major_faults,
                voluntary_switches,
                involuntary_switches,
            }),
        },
    )
}

/// Texts that come back as they are: not too long, nothing harmful in them.
fn text() -> impl Strategy<Value = String> {
    vec(select("aZ0 .-_/äש前🚀".chars().collect::<Vec<_>>()), 0..40).prop_map(|chars| chars.into_iter().collect())
}

fn anchor() -> impl Strategy<Value = Anchor> {
    (number(), number(), number()).prop_map(|(monotonic_ns, wall_ns, boot_ns)| Anchor {
        monotonic_ns,
        wall_ns,
        boot_ns,
    })
}

fn session_info() -> impl Strategy<Value = SessionInfo> {
    let texts = prop::array::uniform5(text());
    (any::<u128>(), any::<u32>(), anchor(), number(), texts, 0u8..5, prop::option::of(place())).prop_map(
        |(session_id, pid, start, segment, [name, host, command, publisher, boot_id], origin, place)| SessionInfo {
            origin: Origin::from_code(origin),
            session_id,
            name,
            pid,
            host,
            command,
            publisher,
            boot_id,
            start,
            segment,
            place: place.map(Box::new),
        },
    )
}

fn place() -> impl Strategy<Value = Place> {
    let clock = prop::option::of((any::<i64>(), number()));
    let clock = clock.prop_map(|clock| clock.map(|(offset_ns, error_ns)| ClockOffset { offset_ns, error_ns }));
    let engine = prop_oneof![
        select(vec![Engine::Unknown, Engine::Threads, Engine::Mpi, Engine::Nccl, Engine::Gloo]),
        text().prop_map(Engine::Other),
    ];
    let kind = (engine, select(vec![RankKind::Process, RankKind::Thread]));
    (any::<[u32; 9]>(), prop::array::uniform2(text()), kind, clock, prop::option::of(number())).prop_map(
        |(
            [rank, ranks, stage, stages, copy, copies, threads, host_ranks, host_cores],
            [run, device],
            (engine, kind),
            clock,
            attempt,
        )| {
            Place {
                run,
                rank,
                ranks,
                stage,
                stages,
                copy,
                copies,
                engine,
                kind,
                device,
                threads,
                host_ranks,
                host_cores,
                clock,
                attempt,
            }
        },
    )
}

fn name_kind() -> impl Strategy<Value = NameKind> {
    prop_oneof![
        select(vec![NameKind::Text, NameKind::Span, NameKind::Phase, NameKind::Counter]),
        id().prop_map(|caller| NameKind::Path(NameId(caller))),
        select(Sampling::ALL.to_vec()).prop_map(NameKind::Sampling),
        select(Reported::plain().collect::<Vec<_>>()).prop_map(NameKind::Reported),
        any::<u32>().prop_map(|phase| NameKind::Reported(Reported::Memory(DeviceMemory::PeakIn(NameId(phase))))),
    ]
}

fn definition() -> impl Strategy<Value = Definition> {
    prop_oneof![
        (id(), name_kind(), text()).prop_map(|(id, kind, text)| Definition::Name { id: NameId(id), kind, text }),
        (id(), 0u8..11, number(), text()).prop_map(|(id, role, thread_id, text)| Definition::Track {
            id: TrackId(id),
            role: TrackRole::from_code(role),
            thread_id,
            text
        }),
        (id(), metric(), source(), text()).prop_map(|(id, metric, source, device)| Definition::Signal {
            id: SignalId(id),
            metric,
            source,
            device
        }),
        fact().prop_map(Definition::Fact),
    ]
}

fn fact() -> impl Strategy<Value = Fact> {
    let texts = || (text(), text());
    prop_oneof![
        texts().prop_map(|(key, text)| Fact::Other { key, text }),
        texts().prop_map(|(name, version)| Fact::Framework(Framework { name: FrameworkName::Other(name), version })),
        text().prop_map(|version| Fact::Framework(Framework { name: FrameworkName::Torch, version })),
        text().prop_map(|version| Fact::Framework(Framework { name: FrameworkName::Python, version })),
        texts().prop_map(|(phase, how)| Fact::Inferred { phase, how }),
        number().prop_map(|steps| Fact::Resumed { steps }),
        number().prop_map(Fact::ComputeThreads),
        number().prop_map(Fact::LoaderWorkers),
        number().prop_map(Fact::MeanOfSteps),
        (text(), number())
            .prop_map(|(number_type, dense_embeddings)| Fact::Parameters { number_type, dense_embeddings }),
        (goal_unit(), number(), text()).prop_map(|(unit, number, by)| Fact::Goal { goal: Goal { unit, number }, by }),
        texts().prop_map(|(what, amount)| Fact::NotRecorded { what, amount }),
        texts().prop_map(|(cause, text)| Fact::Died { cause, text }),
        text().prop_map(|why| Fact::NoStacks { why }),
        prop_oneof![Just(Fact::Mode(Mode::Training)), Just(Fact::Mode(Mode::Inference))],
        texts().prop_map(|(key, text)| Fact::Note { key, text }),
    ]
}

fn goal_unit() -> impl Strategy<Value = GoalUnit> {
    prop_oneof![Just(GoalUnit::Steps), Just(GoalUnit::Epochs)]
}

fn source() -> impl Strategy<Value = SignalSource> {
    // The name of a column or sensor means nothing by itself.
    let name = || prop_oneof![text(), Just("column a".to_owned()), Just(SignalSource::Kernels.to_string())];
    prop_oneof![
        name().prop_map(SignalSource::Sensor),
        name().prop_map(SignalSource::Column),
        Just(SignalSource::Kernels)
    ]
}

fn metric() -> impl Strategy<Value = AnyMetric> {
    let known =
        (prop::sample::select(Quantity::ALL), any::<u32>()).prop_map(|(quantity, n)| quantity.with_instance(n).into());
    // The name of a metric means nothing by itself.
    let name = prop_oneof![text(), prop::sample::select(Quantity::ALL).prop_map(|q| q.with_instance(0).to_string())];
    let other = (name, 0u8..11, 0u8..2).prop_map(|(name, unit, kind)| AnyMetric::Other {
        name,
        unit: Unit::from_code(unit),
        kind: SignalKind::from_code(kind),
    });
    prop_oneof![known, other]
}

/// A blow to a stream. Positions are shares of its length.
#[derive(Clone, Debug)]
pub enum Mutation {
    Flip {
        at: f64,
        bit: u8,
    },
    Insert {
        at: f64,
        bytes: Vec<u8>,
    },
    /// A piece of the stream itself, which may hold whole frames.
    Repeat {
        at: f64,
        from: f64,
        len: usize,
    },
    Delete {
        at: f64,
        len: usize,
    },
    Overwrite {
        at: f64,
        bytes: Vec<u8>,
    },
    Truncate {
        at: f64,
    },
}

pub fn mutation() -> impl Strategy<Value = Mutation> {
    let at = || 0.0..1.0f64;
    // Sync bytes and headers are what may lead a reader astray.
    let bytes = || prop_oneof![vec(any::<u8>(), 1..60), vec(select(vec![0xA7, b'g', 0, 4, 0xff]), 1..60)];
    prop_oneof![
        (at(), 0u8..8).prop_map(|(at, bit)| Mutation::Flip { at, bit }),
        (at(), bytes()).prop_map(|(at, bytes)| Mutation::Insert { at, bytes }),
        (at(), at(), 1usize..400).prop_map(|(at, from, len)| Mutation::Repeat { at, from, len }),
        (at(), 1usize..400).prop_map(|(at, len)| Mutation::Delete { at, len }),
        (at(), bytes()).prop_map(|(at, bytes)| Mutation::Overwrite { at, bytes }),
        at().prop_map(|at| Mutation::Truncate { at }),
    ]
}

impl Mutation {
    /// Strikes; gives the range of the old bytes that are not there any more as they were.
    pub fn apply_to(&self, stream: &mut Vec<u8>) -> std::ops::Range<usize> {
        let len = stream.len();
        let place = |share: f64| ((share * len as f64) as usize).min(len - 1);
        let (range, new) = match self {
            &Self::Flip { at, bit } => (place(at)..place(at) + 1, vec![stream[place(at)] ^ (1 << bit)]),
            Self::Insert { at, bytes } => (place(*at)..place(*at), bytes.clone()),
            &Self::Repeat { at, from, len: count } => {
                (place(at)..place(at), stream[place(from)..(place(from) + count).min(len)].to_vec())
            }
            &Self::Delete { at, len: count } => (place(at)..(place(at) + count).min(len), Vec::new()),
            Self::Overwrite { at, bytes } => (place(*at)..(place(*at) + bytes.len()).min(len), bytes.clone()),
            &Self::Truncate { at } => (place(at)..len, Vec::new()),
        };
        stream.splice(range.clone(), new);
        range
    }
}
