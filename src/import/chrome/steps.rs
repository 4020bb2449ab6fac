//! The steps of a trace: which annotations they are, which step a time belongs to, and how much of each step the GPUs had a
//! kernel running: what `gpu.N.util` is where it is read from a device, here measured from start to end of every kernel.

use std::collections::BTreeMap;

use gnntop_wire::StepId;

use super::options::{ChromeOptions, StepName};
use super::read::{CompleteKind, Trace};

/// Steps that are kept: 24 MB of memory.
const MAX_STEPS: usize = 1_000_000;

/// Parts of a trace without steps.
const PARTS: u64 = 100;

/// One step, in microseconds of the trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TracedStep {
    pub(super) number: u64,
    pub(super) start_us: f64,
    pub(super) end_us: f64,
}

/// The steps of a trace, by their start.
pub(super) struct TraceSteps {
    /// The thread that has them.
    pub(super) track: Option<u16>,
    pub(super) all: Vec<TracedStep>,
    /// Whether their numbers are one higher than in the file, which counts from 0.
    pub(super) is_shifted: bool,
    /// Steps that found no room.
    pub(super) left_out: u64,
}

impl TraceSteps {
    /// Finds the steps of the thread that has the first one.
    pub(super) fn new(trace: &Trace, said: &ChromeOptions) -> Self {
        let mut found = Self { track: None, all: Vec::new(), is_shifted: false, left_out: 0 };
        let mut named = Vec::new();
        for event in trace.events.iter().filter(|event| event.sort == CompleteKind::Annotation) {
            let Some(name) = said.step(&trace.names[event.name as usize]) else { continue };
            if *found.track.get_or_insert(event.track) != event.track {
                continue;
            }
            if named.len() == MAX_STEPS {
                found.left_out += 1;
                continue;
            }
            named.push((name, event.start_us, event.end_us));
        }
        named.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut last = 0;
        for (name, start_us, end_us) in named {
            last = match name {
                StepName::Number(number) => number,
                StepName::Next => last + 1,
            };
            found.all.push(TracedStep { number: last, start_us, end_us });
        }
        // A step's number is at least 1: 0 is outside every step.
        found.is_shifted = found.all.iter().any(|step| step.number == 0);
        let more = u64::from(found.is_shifted);
        found.all.iter_mut().for_each(|step| step.number = step.number.saturating_add(more));
        found
    }

    /// Equal parts of a trace without steps, for what is measured by them.
    pub(super) fn parts(trace: &Trace) -> Self {
        let start_us = trace.events.iter().map(|event| event.start_us).fold(f64::INFINITY, f64::min);
        let end_us = trace.events.iter().map(|event| event.end_us).fold(start_us, f64::max);
        let edge = |at: u64| start_us + (end_us - start_us) * at as f64 / PARTS as f64;
        let part = |at| TracedStep { number: at + 1, start_us: edge(at), end_us: edge(at + 1) };
        Self { track: None, all: (0..PARTS).map(part).collect(), is_shifted: false, left_out: 0 }
    }

    /// The step that began last at a time.
    pub(super) fn at(&self, us: f64) -> Option<usize> {
        self.all.partition_point(|step| step.start_us <= us).checked_sub(1)
    }

    /// Its number.
    pub(super) fn id_at(&self, us: f64) -> StepId {
        self.at(us).map_or(StepId::NONE, |at| StepId(self.all[at].number))
    }

    /// The step that an event is, if it is one.
    pub(super) fn find(&self, start_us: f64, end_us: f64) -> Option<&TracedStep> {
        let step = &self.all[self.at(start_us)?];
        (step.start_us == start_us && step.end_us == end_us).then_some(step)
    }
}

/// GPUs of one trace.
const MAX_GPUS: usize = 16;

/// The share of each step in which a GPU was busy, from 0 to 1, by GPU.
pub(super) type Busy = BTreeMap<u32, Vec<f64>>;

/// The GPU of a track: torch gives kernels its number as their process.
pub(super) fn parse_gpu(track: &(String, String)) -> Option<u32> {
    track.0.parse().ok()
}

/// Adds up kernels, each instant once however many run in it. A step lasts until the next one begins. Events must come
/// by their start.
pub(super) fn gpu_busy(trace: &Trace, steps: &TraceSteps) -> Busy {
    let mut busy = Busy::new();
    let mut until_us: BTreeMap<u32, f64> = BTreeMap::new();
    for event in trace.events.iter().filter(|event| event.sort.is_of_gpu()) {
        let Some(gpu) = parse_gpu(&trace.tracks[event.track as usize]) else { continue };
        if !busy.contains_key(&gpu) && busy.len() == MAX_GPUS {
            continue;
        }
        let in_step = busy.entry(gpu).or_insert_with(|| vec![0.0; steps.all.len()]);
        if event.sort == CompleteKind::Copy {
            continue; // the GPU computes nothing
        }
        let until_us = until_us.entry(gpu).or_insert(f64::MIN);
        let mut from_us = event.start_us.max(*until_us);
        *until_us = until_us.max(event.end_us);
        let first = steps.at(from_us).unwrap_or(0);
        for (at, busy_us) in in_step.iter_mut().enumerate().skip(first) {
            let (start_us, end_us) = period(steps, at);
            if start_us >= event.end_us {
                break;
            }
            from_us = from_us.max(start_us);
            *busy_us += (event.end_us.min(end_us) - from_us).max(0.0);
        }
    }
    for in_step in busy.values_mut() {
        for (at, busy_us) in in_step.iter_mut().enumerate() {
            let (start_us, end_us) = period(steps, at);
            *busy_us = (*busy_us / (end_us - start_us).max(f64::MIN_POSITIVE)).min(1.0);
        }
    }
    busy
}

/// From a step's start to that of the next; the last one's to its end.
fn period(steps: &TraceSteps, at: usize) -> (f64, f64) {
    let step = &steps.all[at];
    (step.start_us, steps.all.get(at + 1).map_or(step.end_us, |next| next.start_us))
}
