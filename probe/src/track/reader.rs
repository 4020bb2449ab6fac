//! A thread's track as the drain thread sees it: from raw events in a ring to a block of the stream.

use std::sync::Arc;

use gnntop_wire::{
    Absent, Allocation, BatchShape, BlockEncoder, Counter, Definition, Event, Fact, Mark, NameId, Open, Rival, Sample,
    SignalId, Span, StackFrame, StackSample, StackThread, Step, StepId, ThreadUsage, TrackRole,
};
use quanta::Clock;
use ringbuf::traits::Consumer as _;

use super::open_span;
use super::peaks::PeakNames;
use super::shared::{Consumer, IS_TRACED, LONG_EPOCH, RING_EVENTS, RawEvent, Tag, TrackShared};
use crate::clock::ClockMap;
use crate::source::Source;

/// A span open for this long is reported while it lasts, and again each time this long passes.
const OPEN_AFTER_NS: u64 = 100_000_000;
const OPEN_AGAIN_NS: u64 = 1_000_000_000;

/// One track's ring, the block filled from it, and the step being assembled.
pub(super) struct RingReader {
    /// Until they are written.
    definitions: Vec<Definition>,
    /// Whether the next step is the first that is written.
    is_late: bool,
    is_slow: bool,
    consumer: Consumer,
    shared: Arc<TrackShared>,
    encoder: BlockEncoder,
    /// The parts of a step that came before the step event, and the low half of the step's number.
    step_parts: (u32, Step),
    peaks: PeakNames,
    /// Start of the open span last reported, in ticks, and when it was reported, in nanoseconds.
    reported_open: (u64, u64),
    closed: bool,
}

impl RingReader {
    /// A reader for a track that the calling thread opens.
    pub(super) fn new(
        definition: Definition,
        encoder: BlockEncoder,
        consumer: Consumer,
        shared: Arc<TrackShared>,
    ) -> Self {
        Self {
            is_slow: matches!(definition, Definition::Track { role: TrackRole::Sensors, .. }),
            definitions: vec![definition],
            is_late: false,
            consumer,
            shared,
            encoder,
            step_parts: Default::default(),
            peaks: PeakNames::default(),
            reported_open: (0, 0),
            closed: false,
        }
    }

    fn push(&mut self, event: &Event, out: &mut Vec<u8>) {
        if self.encoder.is_full() {
            self.finish(out);
        }
        self.encoder.push(event);
    }

    /// Reports a span that has been open for a while, once and then every second.
    fn push_open(&mut self, map: &ClockMap, clock: &Clock, out: &mut Vec<u8>) {
        let Some(open_span::Open { name, since, step }) = self.shared.open.get() else { return };
        let (since_ns, t_ns) = (map.ns(since), map.ns(clock.raw()));
        let is_long = t_ns.saturating_sub(since_ns) >= OPEN_AFTER_NS;
        let is_told = self.reported_open.0 == since && t_ns.saturating_sub(self.reported_open.1) < OPEN_AGAIN_NS;
        if is_long && !is_told {
            self.reported_open = (since, t_ns);
            self.push(&Event::Open(Open { name: NameId(name), since_ns, t_ns, step: StepId(step) }), out);
        }
    }

    /// Converts a raw event. Parts of a step are kept until the step itself comes.
    fn event(&mut self, raw: RawEvent, map: &ClockMap) -> Option<Event> {
        let RawEvent { a, b, c, id, tag, present } = raw;
        let name = NameId(id);
        let value = |bits| f64::from_bits(bits);
        Some(match tag {
            Tag::Span => Event::Span(Span { name, start_ns: map.ns(a), end_ns: map.ns(b), step: StepId(c) }),
            Tag::StepBatch | Tag::StepRun | Tag::StepUsage => {
                self.add_step_part(raw);
                return None;
            }
            Tag::Step => Event::Step(self.step(raw, map)),
            Tag::Counter => Event::Counter(Counter { name, t_ns: map.ns(a), value: value(b) }),
            Tag::PhasePeak => {
                Event::Counter(Counter { name: self.peaks.name(id, present)?, t_ns: map.ns(a), value: value(b) })
            }
            Tag::Mark => {
                let value = (present != 0).then(|| value(b));
                Event::Mark(Mark { name, t_ns: map.ns(a), value, took_ns: None })
            }
            Tag::TimedMark => {
                let t_ns = map.ns(b);
                let took_ns = if present != 0 { c } else { t_ns.saturating_sub(map.ns(a)) };
                Event::Mark(Mark { name, t_ns, value: None, took_ns: Some(took_ns) })
            }
            Tag::StackFrame => {
                let thread = StackThread::from_code(present);
                Event::StackFrame(StackFrame { name, t_ns: map.ns(a), depth: b as u32, thread })
            }
            Tag::StackSample => {
                Event::StackSample(StackSample { path: name, t_ns: map.ns(a), count: b, is_repeat: present != 0 })
            }
            Tag::Rival => {
                let pid = (c != 0).then_some(c as u32);
                Event::Rival(Rival { name, t_ns: map.ns(a), pid, cores: value(b) })
            }
            Tag::Allocation => {
                Event::Allocation(Allocation { phase: name, t_ns: map.ns(a), bytes: b as i64, live_bytes: c })
            }
            Tag::Sample => Event::Sample(Sample { signal: SignalId(id), t_ns: a, value: b as i64 }),
            Tag::Absent => Event::Absent(Absent { signal: SignalId(id), t_ns: a, reason: NameId(b as u32) }),
        })
    }

    fn add_step_part(&mut self, raw: RawEvent) {
        if self.step_parts.0 != raw.id {
            self.step_parts = (raw.id, Step::default());
        }
        let step = &mut self.step_parts.1;
        let known = |bit: u8, value: u64| (raw.present >> bit & 1 == 1).then_some(value);
        let halves = |value: u64| (value >> 32, value & u64::from(u32::MAX));
        match raw.tag {
            Tag::StepBatch => {
                let seeds = step.batch.seeds;
                step.batch =
                    BatchShape { graphs: known(0, raw.a), nodes: known(1, raw.b), edges: known(2, raw.c), seeds };
            }
            Tag::StepRun => {
                step.batch.seeds = known(0, raw.a);
                step.loss = known(1, raw.b).map(f64::from_bits);
                step.epoch = raw.c;
            }
            _ => {
                let ((minor_faults, major_faults), (voluntary_switches, involuntary_switches)) =
                    (halves(raw.a), halves(raw.b));
                step.usage = Some(ThreadUsage { minor_faults, major_faults, voluntary_switches, involuntary_switches });
            }
        }
    }

    fn step(&mut self, raw: RawEvent, map: &ClockMap) -> Step {
        let (of, parts) = std::mem::take(&mut self.step_parts);
        // Parts of another step: that step itself was dropped by a full ring.
        let parts = if of == raw.c as u32 { parts } else { Step::default() };
        let epoch = if raw.present & LONG_EPOCH == 0 { u64::from(raw.id) } else { parts.epoch };
        let is_traced = raw.present & IS_TRACED != 0;
        if std::mem::take(&mut self.is_late) && raw.c > 1 {
            let (what, amount) = (Fact::FIRST_STEPS.to_owned(), (raw.c - 1).to_string());
            self.definitions.push(Definition::Fact(Fact::NotRecorded { what, amount }));
        }
        Step { step: StepId(raw.c), epoch, start_ns: map.ns(raw.a), end_ns: map.ns(raw.b), is_traced, ..parts }
    }
}

impl Source for RingReader {
    fn take_definitions(&mut self) -> Vec<Definition> {
        std::mem::take(&mut self.definitions)
    }

    fn is_slow(&self) -> bool {
        self.is_slow
    }

    fn drain(&mut self, map: &ClockMap, clock: &Clock, out: &mut Vec<u8>) {
        // Read before the ring: once set, nothing more comes.
        self.closed = self.shared.is_closed();
        // At most a ring's worth: a thread that writes as fast as this reads must not keep it here.
        for _ in 0..RING_EVENTS {
            let Some(raw) = self.consumer.try_pop() else { break };
            if let Some(event) = self.event(raw, map) {
                self.push(&event, out);
            }
        }
        if !self.closed {
            self.push_open(map, clock, out);
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.encoder.finish(self.shared.dropped(), out);
    }

    fn begin_again(&mut self) {
        self.encoder.begin_again();
    }

    fn begin_late(&mut self) {
        self.is_late = true;
    }

    fn is_over(&self) -> bool {
        self.closed && self.encoder.is_empty()
    }
}
