//! A stream as lines for people.
//!
//! The lines of the golden recordings are compared for ever, so each field is written out here by name: a field
//! that a later version adds changes no line of an older recording.

use gnntop_wire::{Anchor, BlockInfo, Definition, DeviceSpan, Event, Item, SessionInfo, Span, Step, StreamReader};

/// Decodes a whole stream.
pub fn list(bytes: &[u8]) -> String {
    let mut reader = StreamReader::new();
    reader.fill(bytes);
    reader.finish();
    let mut lines = Vec::new();
    while let Some(item) = reader.next() {
        add_item(item, &mut lines);
        lines.push(format!("-- {}", reader.offset()));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn add_item(item: Item<'_>, lines: &mut Vec<String>) {
    match item {
        Item::Segment(info) => lines.push(segment(&info)),
        Item::Definitions(all) => lines.extend(all.iter().map(definition)),
        Item::Anchor(at) => lines.push(format!("anchor {}", anchor(&at))),
        Item::Block(info, mut events) => {
            lines.push(block(&info));
            lines.extend(events.by_ref().map(|e| format!("  {}", event(&e))));
            if !events.is_exhausted() {
                lines.push("  malformed from here on".into());
            }
        }
        Item::End(end) => lines.push(format!("end t={} reason={:?}", end.t_ns, end.reason)),
        Item::Unknown => lines.push("unknown".into()),
        Item::Damage(damage) => lines.push(format!("damage offset={} len={}", damage.offset, damage.len)),
        Item::Newer { major } => lines.push(format!("newer major={major}")),
    }
}

fn segment(info: &SessionInfo) -> String {
    let SessionInfo { session_id, name, pid, host, command, publisher, boot_id, start, segment, .. } = info;
    format!(
        "segment {segment} session={session_id:032x} name={name:?} pid={pid} host={host:?} command={command:?} \
         publisher={publisher:?} boot_id={boot_id:?} start {}",
        anchor(start)
    )
}

fn anchor(anchor: &Anchor) -> String {
    format!("monotonic={} wall={} boot={}", anchor.monotonic_ns, anchor.wall_ns, anchor.boot_ns)
}

fn definition(definition: &Definition) -> String {
    match definition {
        Definition::Name { id, kind, text, .. } => format!("name {} kind={kind:?} {text:?}", id.0),
        Definition::Track { id, role, thread_id, text, .. } => {
            format!("track {} role={role:?} thread={thread_id} {text:?}", id.0)
        }
        Definition::Signal { id, unit, kind, name, source, device, .. } => {
            format!("signal {} unit={unit:?} kind={kind:?} {name:?} source={source:?} device={device:?}", id.0)
        }
        Definition::Fact { key, text, .. } => format!("fact {key:?} {text:?}"),
        other => format!("{other:?}"),
    }
}

fn block(info: &BlockInfo) -> String {
    let BlockInfo { track, first_seq, count, dropped, base_ns, .. } = info;
    format!("block track={} first={first_seq} count={count} dropped={dropped} base={base_ns}", track.0)
}

fn event(event: &Event) -> String {
    match event {
        Event::Span(Span { name, start_ns, end_ns, step, .. }) => {
            format!("span {} {start_ns}..{end_ns} step={}", name.0, step.0)
        }
        Event::Step(e) => step(e),
        Event::Counter(e) => format!("counter {} t={} value={}", e.name.0, e.t_ns, number(Some(e.value))),
        Event::Mark(e) => format!("mark {} t={} value={}", e.name.0, e.t_ns, number(e.value)),
        Event::Open(e) => format!("open {} since={} t={} step={}", e.name.0, e.since_ns, e.t_ns, e.step.0),
        Event::Sample(e) => format!("sample {} t={} value={}", e.signal.0, e.t_ns, e.value),
        Event::Absent(e) => format!("absent {} t={} reason={}", e.signal.0, e.t_ns, e.reason.0),
        Event::Allocation(e) => {
            format!("allocation phase={} t={} bytes={} live={}", e.phase.0, e.t_ns, e.bytes, e.live_bytes)
        }
        Event::PhaseMemory(e) => format!(
            "memory phase={} t={} allocated={}/{} freed={}/{} live={} peak={}",
            e.phase.0,
            e.t_ns,
            e.allocated_bytes,
            e.allocated_count,
            e.freed_bytes,
            e.freed_count,
            e.live_bytes,
            e.peak_bytes
        ),
        Event::DeviceSpan(e) => device_span(e),
        other => format!("{other:?}"),
    }
}

fn device_span(e: &DeviceSpan) -> String {
    let DeviceSpan { name, start_ns, end_ns, error_ns, issued_start_ns, issued_end_ns, step, .. } = e;
    format!(
        "device {} {start_ns}..{end_ns} error={error_ns} issued={issued_start_ns}..{issued_end_ns} step={}",
        name.0, step.0
    )
}

fn step(step: &Step) -> String {
    let count = |value: Option<u64>| value.map_or("-".into(), |value| value.to_string());
    let usage = step.usage.map_or("-".into(), |u| {
        format!("{}/{}/{}/{}", u.minor_faults, u.major_faults, u.voluntary_switches, u.involuntary_switches)
    });
    format!(
        "step {} epoch={} {}..{} graphs={} nodes={} edges={} seeds={} loss={} usage={usage}",
        step.step.0,
        step.epoch,
        step.start_ns,
        step.end_ns,
        count(step.batch.graphs),
        count(step.batch.nodes),
        count(step.batch.edges),
        count(step.batch.seeds),
        number(step.loss),
    )
}

/// A number with its bits, which alone tell one NaN from another.
fn number(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value}[{:x}]", value.to_bits()))
}
