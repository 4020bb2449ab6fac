//! How much of each step the GPUs of a trace had a kernel running: what `gpu.N.util` is where it is read from a device,
//! here measured from start to end of every kernel.

use std::collections::BTreeMap;

use super::read::{CompleteKind, Trace};
use super::steps::TraceSteps;

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
    for event in trace.events.iter().filter(|event| event.sort == CompleteKind::Kernel) {
        let Some(gpu) = parse_gpu(&trace.tracks[event.track as usize]) else { continue };
        if !busy.contains_key(&gpu) && busy.len() == MAX_GPUS {
            continue;
        }
        let in_step = busy.entry(gpu).or_insert_with(|| vec![0.0; steps.all.len()]);
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
