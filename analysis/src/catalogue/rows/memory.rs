//! Memory that the program allocates, and its device's.

use crate::catalogue::context::Catalogue;
use crate::catalogue::measured::{AbsentFigure, FigureResult, FoundValue};
use crate::catalogue::names::find_named;
use crate::catalogue::row::{Names, Row};
use crate::catalogue::statistic::Statistic;
use crate::figures::FigureUnit;
use crate::store::{CounterSeries, DeviceMemory};

pub(in crate::catalogue) const ROWS: &[Row] = &[
    Row {
        subject: "heap",
        about: "memory that the program has allocated and not freed, as its allocator counts it",
        names: Names::None,
        statistics: |_| vec![(Statistic::Peak, FigureUnit::Bytes), (Statistic::Last, FigureUnit::Bytes)],
        get: |context, _, statistic| {
            let memory = context.store.memory();
            let last = || memory.live_bytes().last().and_then(|point| point.value());
            let peak = || memory.peak_bytes().map(|bytes| bytes as f64);
            FoundValue::from_everything(if statistic == Statistic::Peak { peak() } else { last() }, NOT_COUNTED)
        },
    },
    Row {
        subject: "heap.large",
        about: "single allocations and releases at or above the program's threshold",
        names: Names::None,
        statistics: |_| vec![(Statistic::Count, FigureUnit::Count)],
        get: |context, _, _| {
            let memory = context.store.memory();
            let is_counted = memory.allocation_count() > 0 || !memory.phases().is_empty();
            FoundValue::from_everything(is_counted.then_some(memory.allocation_count() as f64), NOT_COUNTED)
        },
    },
    Row {
        subject: "heap.PHASE",
        about: "the heap of the process while any thread was in this phase; `heap.outside_phases`",
        names: Names::Program(heap_phases),
        statistics: |_| vec![(Statistic::Peak, FigureUnit::Bytes)],
        get: |context, name, _| {
            FoundValue::from_everything(Some(phase_memory(context, name)?.peak_bytes as f64), NOT_COUNTED)
        },
    },
    Row {
        subject: "allocated.PHASE",
        about: "bytes that were allocated in this phase, and how often, over all threads",
        names: Names::Program(heap_phases),
        statistics: |_| vec![(Statistic::Total, FigureUnit::Bytes), (Statistic::Count, FigureUnit::Count)],
        get: |context, name, statistic| {
            let phase = phase_memory(context, name)?;
            let value = if statistic == Statistic::Total { phase.allocated_bytes } else { phase.allocated_count };
            FoundValue::from_everything(Some(value as f64), NOT_COUNTED)
        },
    },
    Row {
        subject: "freed.PHASE",
        about: "bytes that were freed in this phase, and how often, over all threads",
        names: Names::Program(heap_phases),
        statistics: |_| vec![(Statistic::Total, FigureUnit::Bytes), (Statistic::Count, FigureUnit::Count)],
        get: |context, name, statistic| {
            let phase = phase_memory(context, name)?;
            let value = if statistic == Statistic::Total { phase.freed_bytes } else { phase.freed_count };
            FoundValue::from_everything(Some(value as f64), NOT_COUNTED)
        },
    },
    Row {
        subject: "device.memory",
        about: "a device's memory in tensors: the most, and when the last measured step ended",
        names: Names::None,
        statistics: |_| vec![(Statistic::Peak, FigureUnit::Bytes), (Statistic::Last, FigureUnit::Bytes)],
        get: |context, _, statistic| {
            let memory = device_memory(context)?;
            counter_figure(if statistic == Statistic::Peak { memory.peak } else { memory.used }, statistic)
        },
    },
    Row {
        subject: "device.reserved",
        about: "what the program has taken from the device, in tensors or not; the share is not in tensors",
        names: Names::None,
        statistics: |_| {
            vec![
                (Statistic::Peak, FigureUnit::Bytes),
                (Statistic::Last, FigureUnit::Bytes),
                (Statistic::Share, FigureUnit::Share),
            ]
        },
        get: |context, _, statistic| {
            let memory = device_memory(context)?;
            match statistic {
                Statistic::Share => FoundValue::from_everything(memory.fragmentation(), NOT_PUBLISHED),
                Statistic::Peak => counter_figure(memory.reserved_peak, statistic),
                _ => counter_figure(memory.reserved, statistic),
            }
        },
    },
    Row {
        subject: "device.free",
        about: "what no program has taken from the device, at the ends of measured steps",
        names: Names::None,
        statistics: |_| vec![(Statistic::Min, FigureUnit::Bytes)],
        get: |context, _, statistic| counter_figure(device_memory(context)?.free, statistic),
    },
    Row {
        subject: "device.capacity",
        about: "the device's memory in all",
        names: Names::None,
        statistics: |_| vec![(Statistic::Last, FigureUnit::Bytes)],
        get: |context, _, statistic| counter_figure(device_memory(context)?.total, statistic),
    },
    Row {
        subject: "device.allocations",
        about: "allocations of a measured step on the device",
        names: Names::None,
        statistics: |_| vec![(Statistic::Mean, FigureUnit::Count)],
        get: |context, _, statistic| counter_figure(device_memory(context)?.allocations, statistic),
    },
    Row {
        subject: "device.memory.PHASE",
        about: "a device's memory in tensors while a phase ran",
        names: Names::Program(device_phases),
        statistics: |_| vec![(Statistic::Mean, FigureUnit::Bytes), (Statistic::Peak, FigureUnit::Bytes)],
        get: |context, name, statistic| {
            let memory = device_memory(context)?;
            counter_figure(find_named(memory.phases, |(of, ..)| of, name).map(|(_, peak, _)| peak), statistic)
        },
    },
    Row {
        subject: "device.reserved.PHASE",
        about: "what was taken from the device while a phase ran",
        names: Names::Program(device_phases),
        statistics: |_| vec![(Statistic::Peak, FigureUnit::Bytes)],
        get: |context, name, statistic| {
            let memory = device_memory(context)?;
            counter_figure(
                find_named(memory.phases, |(of, ..)| of, name).and_then(|(.., reserved)| reserved),
                statistic,
            )
        },
    },
    Row {
        subject: "device.memory_of.KIND",
        about: "a device's memory by what it is for: parameters, gradients, optimizer_state, batch, activations, workspace",
        names: Names::Own("batch", |context| {
            let kinds = context.store.device_memory().map(|memory| memory.kinds).unwrap_or_default();
            kinds.into_iter().map(|(kind, ..)| kind.to_owned()).collect()
        }),
        statistics: |_| vec![(Statistic::Last, FigureUnit::Bytes), (Statistic::Peak, FigureUnit::Bytes)],
        get: |context, name, statistic| {
            let memory = device_memory(context)?;
            counter_figure(find_named(memory.kinds, |(of, ..)| of, name).map(|(.., counter)| counter), statistic)
        },
    },
];

const NOT_COUNTED: &str = "the program does not count its allocations";
const NOT_PUBLISHED: &str = "the program does not publish it";

fn heap_phases(context: &Catalogue<'_>) -> Vec<String> {
    context.store.heap_phases().map(str::to_owned).collect()
}

fn phase_memory<'a>(context: &Catalogue<'a>, name: &str) -> Result<&'a gnntop_wire::PhaseMemory, AbsentFigure> {
    let phases = context.store.heap_phases().zip(context.store.memory().phases());
    let phase = find_named(phases, |(text, _)| text, name).map(|(_, phase)| phase);
    phase.ok_or_else(|| AbsentFigure("no memory was counted in such a phase".to_owned()))
}

fn device_memory<'a>(context: &Catalogue<'a>) -> Result<DeviceMemory<'a>, AbsentFigure> {
    context.store.device_memory().ok_or_else(|| AbsentFigure(NOT_PUBLISHED.to_owned()))
}

fn device_phases(context: &Catalogue<'_>) -> Vec<String> {
    let phases = context.store.device_memory().map(|memory| memory.phases).unwrap_or_default();
    phases.into_iter().map(|(name, ..)| name.to_owned()).collect()
}

fn counter_figure(counter: Option<&CounterSeries>, statistic: Statistic) -> FigureResult {
    match counter {
        Some(counter) => FoundValue::from_readings(&counter.series, statistic, 1.0),
        None => AbsentFigure::because(NOT_PUBLISHED),
    }
}
