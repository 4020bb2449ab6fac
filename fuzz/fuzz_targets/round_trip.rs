//! Any events are written and come back the same, and an encoder never makes a block that its reader refuses.

#![no_main]

use arbitrary::Arbitrary;
use gnntop_wire::*;
use libfuzzer_sys::fuzz_target;

type Shape = [Option<u64>; 4];
type Usage = [u64; 4];

/// An event in plain numbers, which the fuzzer can make up.
#[derive(Arbitrary, Debug)]
enum Made {
    Span { name: u32, start_ns: u64, duration_ns: u32, step: u64 },
    Step { times: [u64; 3], epoch: u64, batch: Shape, loss: Option<f64>, usage: Option<Usage>, is_traced: bool },
    Counter { name: u32, t_ns: u64, value: f64 },
    Mark { name: u32, t_ns: u64, value: Option<f64>, took_ns: Option<u64> },
    Open { name: u32, since_ns: u64, t_ns: u64, step: u64 },
    Sample { signal: u16, t_ns: u64, value: i64 },
    Absent { signal: u16, t_ns: u64, reason: u32 },
    Allocation { phase: u32, t_ns: u64, bytes: i64, live_bytes: u64 },
    DeviceSpan { name: u32, times: [u64; 4], error_ns: u64, step: u64 },
    PhaseMemory { phase: u32, t_ns: u64, n: [u64; 6] },
    StackFrame { name: u32, t_ns: u64, depth: u32, is_worker: bool },
    StackSample { path: u32, t_ns: u64, count: u64, is_repeat: bool },
    Rival { name: u32, t_ns: u64, pid: Option<u32>, cores: f64 },
}

impl From<&Made> for Event {
    fn from(made: &Made) -> Self {
        match *made {
            Made::Span { name, start_ns, duration_ns, step } => {
                let end_ns = start_ns.saturating_add(u64::from(duration_ns));
                Self::Span(Span { name: NameId(name), start_ns, end_ns, step: StepId(step) })
            }
            Made::Step { times: [start_ns, end_ns, step], epoch, batch, loss, usage, is_traced } => Self::Step(Step {
                step: StepId(step),
                epoch,
                start_ns: start_ns.min(end_ns),
                end_ns,
                batch: shape(batch),
                loss,
                is_traced,
                usage: usage.map(of_thread),
            }),
            Made::Counter { name, t_ns, value } => Self::Counter(Counter { name: NameId(name), t_ns, value }),
            Made::Mark { name, t_ns, value, took_ns } => Self::Mark(Mark { name: NameId(name), t_ns, value, took_ns }),
            Made::StackFrame { name, t_ns, depth, is_worker } => {
                let thread = if is_worker { StackThread::LoaderWorker } else { StackThread::Training };
                Self::StackFrame(StackFrame { name: NameId(name), t_ns, depth, thread })
            }
            Made::StackSample { path, t_ns, count, is_repeat } => {
                Self::StackSample(StackSample { path: NameId(path), t_ns, count, is_repeat })
            }
            Made::Rival { name, t_ns, pid, cores } => Self::Rival(Rival { name: NameId(name), t_ns, pid, cores }),
            Made::Open { name, since_ns, t_ns, step } => {
                Self::Open(Open { name: NameId(name), since_ns, t_ns, step: StepId(step) })
            }
            Made::Sample { signal, t_ns, value } => {
                Self::Sample(Sample { signal: SignalId(signal.into()), t_ns, value })
            }
            Made::Absent { signal, t_ns, reason } => {
                Self::Absent(Absent { signal: SignalId(signal.into()), t_ns, reason: NameId(reason) })
            }
            Made::Allocation { phase, t_ns, bytes, live_bytes } => {
                Self::Allocation(Allocation { phase: NameId(phase), t_ns, bytes, live_bytes })
            }
            Made::DeviceSpan { name, times: [start_ns, end_ns, issued_start_ns, issued_end_ns], error_ns, step } => {
                Self::DeviceSpan(DeviceSpan {
                    name: NameId(name),
                    start_ns: start_ns.min(end_ns),
                    end_ns,
                    error_ns,
                    issued_start_ns: issued_start_ns.min(issued_end_ns),
                    issued_end_ns,
                    step: StepId(step),
                })
            }
            Made::PhaseMemory { phase, t_ns, n } => Self::PhaseMemory(PhaseMemory {
                phase: NameId(phase),
                t_ns,
                allocated_bytes: n[0],
                allocated_count: n[1],
                freed_bytes: n[2],
                freed_count: n[3],
                live_bytes: n[4],
                peak_bytes: n[5],
            }),
        }
    }
}

fn shape([graphs, nodes, edges, seeds]: Shape) -> BatchShape {
    BatchShape { graphs, nodes, edges, seeds }
}

fn of_thread([minor_faults, major_faults, voluntary_switches, involuntary_switches]: Usage) -> ThreadUsage {
    ThreadUsage { minor_faults, major_faults, voluntary_switches, involuntary_switches }
}

fuzz_target!(|blocks: Vec<(u64, Vec<Made>)>| {
    [BlockEncoder::new, BlockEncoder::packed].into_iter().for_each(|new| comes_back(&blocks, new(TrackId(1))));
});

fn comes_back(blocks: &[(u64, Vec<Made>)], mut encoder: BlockEncoder) {
    let mut stream = Vec::new();
    let mut expected = Vec::new();
    for (dropped, block) in blocks {
        for event in block.iter().map(Event::from) {
            if !encoder.push(&event) {
                encoder.finish(*dropped, &mut stream);
                assert!(encoder.push(&event));
            }
            expected.push(exact(event));
        }
        encoder.finish(*dropped, &mut stream);
    }
    let mut reader = StreamReader::new();
    reader.fill(&stream);
    reader.finish();
    let mut read = Vec::new();
    while let Some(item) = reader.next() {
        let Item::Block(info, mut events) = item else { panic!("not a block") };
        assert_eq!(info.first_seq, read.len() as u64);
        read.extend(events.by_ref().map(exact));
        assert!(events.is_exhausted());
    }
    assert_eq!(read, expected);
}

/// Numbers are compared by their bits, so that NaN is equal to itself.
fn exact(mut event: Event) -> (Event, Option<u64>) {
    let value = match &mut event {
        Event::Step(step) => step.loss.take(),
        Event::Mark(mark) => mark.value.take(),
        Event::Counter(counter) => Some(std::mem::take(&mut counter.value)),
        Event::Rival(rival) => Some(std::mem::take(&mut rival.cores)),
        _ => None,
    };
    (event, value.map(f64::to_bits))
}
