//! Writes rows.

use super::format::{
    HAS_USAGE, INLINE_NAMES, IS_TRACED, LastValues, NUMBER_F32, NUMBER_F64, NUMBER_INTEGER, NUMBER_NONE, SPAN_FROM_END,
    TAG_ABSENT, TAG_ALLOCATION, TAG_CHANGE_STEP, TAG_COUNTER, TAG_DEVICE_SPAN, TAG_MARK, TAG_OPEN, TAG_PHASE_MEMORY,
    TAG_RIVAL, TAG_SAMPLE, TAG_STACK_FRAME, TAG_STACK_SAMPLE, TAG_STEP,
};
use crate::device_span::DeviceSpan;
use crate::event::{Event, PhaseMemory, Sample, Span, Step};
use crate::ids::NameId;
use crate::varint::Writer;

/// Most bytes that one event may take (a full step takes 133), with the slack that [`Writer`] needs.
pub(crate) const MAX_EVENT_LEN: usize = 160;

/// What the previous events predict about the next one.
#[derive(Debug, Default)]
pub(crate) struct Context {
    t_ns: u64,
    step: u64,
    values: LastValues,
}

impl Context {
    /// Begins a block.
    pub(crate) fn start(&mut self, base_ns: u64) {
        self.t_ns = base_ns;
        self.step = 0;
        self.values.clear();
    }
}

/// Appends an event.
#[inline]
pub(crate) fn put_event(out: &mut Writer<'_>, context: &mut Context, event: &Event) {
    match event {
        Event::Span(span) => put_span(out, context, span),
        Event::Sample(sample) => put_sample(out, context, sample),
        other => push_sized(out, context, other),
    }
}

#[inline]
fn put_span(out: &mut Writer<'_>, context: &mut Context, span: &Span) {
    if span.step.0 != context.step {
        out.u8(TAG_CHANGE_STEP);
        out.delta(context.step, span.step.0);
        context.step = span.step.0;
    }
    // A clock that went backwards must not put an end before its start.
    let (start_ns, end_ns) = (span.start_ns.min(span.end_ns), span.end_ns);
    let from_end = start_ns < context.t_ns;
    let inline = if span.name.0 <= INLINE_NAMES { span.name.0 as u8 + 1 } else { 0 };
    out.u8((inline << 1) | if from_end { SPAN_FROM_END } else { 0 });
    if inline == 0 {
        out.u64(u64::from(span.name.0));
    }
    if from_end {
        out.delta(context.t_ns, end_ns);
    } else {
        out.u64(start_ns - context.t_ns);
    }
    out.u64(end_ns - start_ns);
    context.t_ns = end_ns;
}

fn put_sample(out: &mut Writer<'_>, context: &mut Context, sample: &Sample) {
    out.u8(TAG_SAMPLE);
    out.u64(u64::from(sample.signal.0));
    out.delta(context.t_ns, sample.t_ns);
    context.t_ns = sample.t_ns;
    let last = context.values.get(sample.signal);
    out.i64(sample.value.wrapping_sub(last.as_deref().copied().unwrap_or(0)));
    if let Some(last) = last {
        *last = sample.value;
    }
}

fn push_sized(out: &mut Writer<'_>, context: &mut Context, event: &Event) {
    let mut room = [0; MAX_EVENT_LEN];
    let mut payload = Writer::new(&mut room);
    let tag = put_sized(&mut payload, context, event);
    let len = payload.len();
    out.u8(tag);
    out.u64(len as u64);
    out.bytes(&room[..len]);
}

/// Writes the payload of an event that carries its length, and returns its tag.
fn put_sized(out: &mut Writer<'_>, context: &mut Context, event: &Event) -> u8 {
    let before = context.t_ns;
    if let Event::DeviceSpan(span) = event {
        put_device_span(out, context, span);
        return TAG_DEVICE_SPAN;
    }
    context.t_ns = event.t_ns();
    if let Event::Step(step) = event {
        out.delta(before, step.end_ns);
        put_step(out, context, step);
        return TAG_STEP;
    }
    out.u64(u64::from(event_name(event).0));
    out.delta(before, event.t_ns());
    put_fields(out, context, event)
}

/// The name that an event begins with.
fn event_name(event: &Event) -> NameId {
    match event {
        Event::Counter(counter) => counter.name,
        Event::Mark(mark) => mark.name,
        Event::Open(open) => open.name,
        Event::Absent(absent) => absent.reason,
        Event::Allocation(allocation) => allocation.phase,
        Event::PhaseMemory(memory) => memory.phase,
        Event::StackFrame(frame) => frame.name,
        Event::StackSample(sample) => sample.path,
        Event::Rival(rival) => rival.name,
        Event::Span(_) | Event::Sample(_) | Event::Step(_) | Event::DeviceSpan(_) => {
            unreachable!("have their own form")
        }
    }
}

/// Writes what follows an event's name and time, and returns its tag.
fn put_fields(out: &mut Writer<'_>, context: &mut Context, event: &Event) -> u8 {
    match event {
        Event::Counter(counter) => {
            put_number(out, Some(counter.value));
            TAG_COUNTER
        }
        Event::Mark(mark) => {
            put_number(out, mark.value);
            put_option(out, mark.took_ns);
            TAG_MARK
        }
        Event::Open(open) => {
            out.delta(open.t_ns, open.since_ns);
            out.u64(open.step.0);
            TAG_OPEN
        }
        Event::Absent(absent) => {
            out.u64(u64::from(absent.signal.0));
            if let Some(last) = context.values.get(absent.signal) {
                *last = 0;
            }
            TAG_ABSENT
        }
        Event::Allocation(allocation) => {
            out.i64(allocation.bytes);
            out.u64(allocation.live_bytes);
            TAG_ALLOCATION
        }
        Event::PhaseMemory(memory) => {
            phase_memory_fields(memory).into_iter().for_each(|value| out.u64(value));
            TAG_PHASE_MEMORY
        }
        Event::StackFrame(frame) => {
            out.u64(u64::from(frame.depth));
            out.u8(frame.thread as u8);
            TAG_STACK_FRAME
        }
        Event::StackSample(sample) => {
            out.u64(sample.count);
            out.u8(u8::from(sample.is_repeat));
            TAG_STACK_SAMPLE
        }
        Event::Rival(rival) => {
            put_number(out, Some(rival.cores));
            put_option(out, rival.pid.map(u64::from));
            TAG_RIVAL
        }
        Event::Span(_) | Event::Sample(_) | Event::Step(_) | Event::DeviceSpan(_) => {
            unreachable!("have their own form")
        }
    }
}

/// Leaves the time and step that later events count from: a stream's device is behind its host.
fn put_device_span(out: &mut Writer<'_>, context: &Context, span: &DeviceSpan) {
    out.u64(u64::from(span.name.0));
    out.delta(context.t_ns, span.end_ns);
    let start_ns = span.start_ns.min(span.end_ns);
    out.u64(span.end_ns - start_ns);
    let issued_start_ns = span.issued_start_ns.min(span.issued_end_ns);
    out.delta(start_ns, issued_start_ns);
    out.u64(span.issued_end_ns - issued_start_ns);
    out.u64(span.error_ns);
    out.delta(context.step, span.step.0);
}

fn phase_memory_fields(m: &PhaseMemory) -> [u64; 6] {
    [m.allocated_bytes, m.allocated_count, m.freed_bytes, m.freed_count, m.live_bytes, m.peak_bytes]
}

fn put_step(out: &mut Writer<'_>, context: &mut Context, step: &Step) {
    out.u64(step.end_ns.saturating_sub(step.start_ns));
    out.delta(context.step, step.step.0);
    context.step = step.step.0;
    out.u64(step.epoch);
    let batch = [step.batch.graphs, step.batch.nodes, step.batch.edges, step.batch.seeds];
    let mut present = 0u8;
    for (bit, value) in batch.iter().enumerate() {
        present |= u8::from(value.is_some()) << bit;
    }
    present |= if step.usage.is_some() { HAS_USAGE } else { 0 };
    present |= if step.is_traced { IS_TRACED } else { 0 };
    out.u8(present);
    batch.into_iter().flatten().for_each(|value| out.u64(value));
    if let Some(u) = step.usage {
        let fields = [u.minor_faults, u.major_faults, u.voluntary_switches, u.involuntary_switches];
        fields.into_iter().for_each(|value| out.u64(value));
    }
    put_number(out, step.loss);
}

fn put_option(out: &mut Writer<'_>, value: Option<u64>) {
    out.u8(u8::from(value.is_some()));
    value.into_iter().for_each(|value| out.u64(value));
}

/// Writes a number in the shortest form that preserves all bits.
fn put_number(out: &mut Writer<'_>, value: Option<f64>) {
    let Some(value) = value else {
        return out.u8(NUMBER_NONE);
    };
    let (integer, single) = (value as i64, value as f32);
    if (integer as f64).to_bits() == value.to_bits() && integer.unsigned_abs() < 1 << 53 {
        out.u8(NUMBER_INTEGER);
        out.i64(integer);
    } else if f64::from(single) == value && single.is_sign_negative() == value.is_sign_negative() {
        out.u8(NUMBER_F32);
        out.bytes(&single.to_le_bytes());
    } else {
        // Also any NaN: its bits would not survive the conversion to f32.
        out.u8(NUMBER_F64);
        out.bytes(&value.to_le_bytes());
    }
}
