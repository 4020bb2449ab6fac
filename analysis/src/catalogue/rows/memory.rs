//! Memory that the program allocates, and its device's.

use crate::catalogue::context::Context;
use crate::catalogue::measured::{Absent, Found, Outcome};
use crate::catalogue::row::{Names, Row, is_called};
use crate::catalogue::statistic::Statistic;
use crate::figures::Unit;
use crate::store::{CounterSeries, DeviceMemory};

pub(in crate::catalogue) const ROWS: &[Row] = &[
    Row {
        subject: "heap",
        about: "memory that the program has allocated and not freed, as its allocator counts it",
        names: Names::None,
        statistics: |_| vec![(Statistic::Peak, Unit::Bytes), (Statistic::Last, Unit::Bytes)],
        get: |context, _, statistic| {
            let memory = context.store.memory();
            let last = || memory.live_bytes().last().and_then(|point| point.value());
            let peak = || memory.peak_bytes().map(|bytes| bytes as f64);
            Found::in_all(if statistic == Statistic::Peak { peak() } else { last() }, NOT_COUNTED)
        },
    },
    Row {
        subject: "heap.large",
        about: "single allocations and releases at or above the program's threshold",
        names: Names::None,
        statistics: |_| vec![(Statistic::Count, Unit::Count)],
        get: |context, _, _| {
            let count = context.store.memory().allocation_count();
            Found::in_all((!context.store.memory().phases().is_empty()).then_some(count as f64), NOT_COUNTED)
        },
    },
    Row {
        subject: "heap.PHASE",
        about: "the heap of the process while any thread was in this phase; `heap.outside_phases`",
        names: Names::Program(heap_phases),
        statistics: |_| vec![(Statistic::Peak, Unit::Bytes)],
        get: |context, name, _| Found::in_all(Some(in_phase(context, name)?.peak_bytes as f64), NOT_COUNTED),
    },
    Row {
        subject: "allocated.PHASE",
        about: "bytes that were allocated in this phase, and how often, over all threads",
        names: Names::Program(heap_phases),
        statistics: |_| vec![(Statistic::Total, Unit::Bytes), (Statistic::Count, Unit::Count)],
        get: |context, name, statistic| {
            let phase = in_phase(context, name)?;
            let value = if statistic == Statistic::Total { phase.allocated_bytes } else { phase.allocated_count };
            Found::in_all(Some(value as f64), NOT_COUNTED)
        },
    },
    Row {
        subject: "freed.PHASE",
        about: "bytes that were freed in this phase, and how often, over all threads",
        names: Names::Program(heap_phases),
        statistics: |_| vec![(Statistic::Total, Unit::Bytes), (Statistic::Count, Unit::Count)],
        get: |context, name, statistic| {
            let phase = in_phase(context, name)?;
            let value = if statistic == Statistic::Total { phase.freed_bytes } else { phase.freed_count };
            Found::in_all(Some(value as f64), NOT_COUNTED)
        },
    },
    Row {
        subject: "device.memory",
        about: "a device's memory in tensors: the most, and when the last measured step ended",
        names: Names::None,
        statistics: |_| vec![(Statistic::Peak, Unit::Bytes), (Statistic::Last, Unit::Bytes)],
        get: |context, _, statistic| {
            let memory = on_device(context)?;
            of_counter(if statistic == Statistic::Peak { memory.peak } else { memory.used }, statistic)
        },
    },
    Row {
        subject: "device.reserved",
        about: "what the program has taken from the device, in tensors or not; the share is not in tensors",
        names: Names::None,
        statistics: |_| {
            vec![(Statistic::Peak, Unit::Bytes), (Statistic::Last, Unit::Bytes), (Statistic::Share, Unit::Share)]
        },
        get: |context, _, statistic| {
            let memory = on_device(context)?;
            match statistic {
                Statistic::Share => Found::in_all(memory.fragmentation(), NOT_PUBLISHED),
                Statistic::Peak => of_counter(memory.reserved_peak, statistic),
                _ => of_counter(memory.reserved, statistic),
            }
        },
    },
    Row {
        subject: "device.free",
        about: "what no program has taken from the device, at the ends of measured steps",
        names: Names::None,
        statistics: |_| vec![(Statistic::Min, Unit::Bytes)],
        get: |context, _, statistic| of_counter(on_device(context)?.free, statistic),
    },
    Row {
        subject: "device.capacity",
        about: "the device's memory in all",
        names: Names::None,
        statistics: |_| vec![(Statistic::Last, Unit::Bytes)],
        get: |context, _, statistic| of_counter(on_device(context)?.total, statistic),
    },
    Row {
        subject: "device.allocations",
        about: "allocations of a measured step on the device",
        names: Names::None,
        statistics: |_| vec![(Statistic::Mean, Unit::Count)],
        get: |context, _, statistic| of_counter(on_device(context)?.allocations, statistic),
    },
    Row {
        subject: "device.memory.PHASE",
        about: "a device's memory in tensors while a phase ran",
        names: Names::Program(device_phases),
        statistics: |_| vec![(Statistic::Mean, Unit::Bytes), (Statistic::Peak, Unit::Bytes)],
        get: |context, name, statistic| {
            let memory = on_device(context)?;
            of_counter(memory.phases.iter().find(|(of, ..)| is_called(of, name)).map(|(_, peak, _)| *peak), statistic)
        },
    },
    Row {
        subject: "device.reserved.PHASE",
        about: "what was taken from the device while a phase ran",
        names: Names::Program(device_phases),
        statistics: |_| vec![(Statistic::Peak, Unit::Bytes)],
        get: |context, name, statistic| {
            let memory = on_device(context)?;
            of_counter(memory.phases.iter().find(|(of, ..)| is_called(of, name)).and_then(|(.., of)| *of), statistic)
        },
    },
    Row {
        subject: "device.memory_of.KIND",
        about: "a device's memory by what it is for: parameters, gradients, optimizer_state, batch, activations, workspace",
        names: Names::Own("batch", |context| {
            let kinds = context.store.device_memory().map(|memory| memory.kinds).unwrap_or_default();
            kinds.into_iter().map(|(kind, ..)| kind.to_owned()).collect()
        }),
        statistics: |_| vec![(Statistic::Last, Unit::Bytes), (Statistic::Peak, Unit::Bytes)],
        get: |context, name, statistic| {
            let memory = on_device(context)?;
            of_counter(memory.kinds.iter().find(|(of, ..)| is_called(of, name)).map(|(.., of)| *of), statistic)
        },
    },
];

const NOT_COUNTED: &str = "the program does not count its allocations";
const NOT_PUBLISHED: &str = "the program does not publish it";
const OUTSIDE: &str = "outside phases";

fn phase_name<'a>(context: &Context<'a>, name: gnntop_wire::NameId) -> &'a str {
    if name == gnntop_wire::NameId::NONE { OUTSIDE } else { context.store.name(name) }
}

fn heap_phases(context: &Context<'_>) -> Vec<String> {
    context.store.memory().phases().iter().map(|phase| phase_name(context, phase.phase).to_owned()).collect()
}

fn in_phase<'a>(context: &Context<'a>, name: &str) -> Result<&'a gnntop_wire::PhaseMemory, Absent> {
    let mut phases = context.store.memory().phases().iter();
    let phase = phases.find(|phase| is_called(phase_name(context, phase.phase), name));
    phase.ok_or_else(|| Absent("no memory was counted in such a phase".to_owned()))
}

fn on_device<'a>(context: &Context<'a>) -> Result<DeviceMemory<'a>, Absent> {
    context.store.device_memory().ok_or_else(|| Absent(NOT_PUBLISHED.to_owned()))
}

fn device_phases(context: &Context<'_>) -> Vec<String> {
    let phases = context.store.device_memory().map(|memory| memory.phases).unwrap_or_default();
    phases.into_iter().map(|(name, ..)| name.to_owned()).collect()
}

fn of_counter(counter: Option<&CounterSeries>, statistic: Statistic) -> Outcome {
    match counter {
        Some(counter) => Found::of_readings(&counter.series, statistic, 1.0),
        None => Absent::because(NOT_PUBLISHED),
    }
}
