//! Memory of compiled code: a function that is compiled for each size of its data takes memory for each, and never gives it back.

use super::growth_time::GrowthTime;
use super::memory_kind::MemoryKind;
use crate::findings::checks::recompilation::compiled_again;
use crate::findings::evidence::StepEvidence;

/// What grows at less than this part of the usual rate while nothing is compiled grows by what is compiled.
const SLOWER: f64 = 0.5;

/// Whether this memory grows by code that is compiled again and again, in which `recompilation` has the cause: it grows while
/// something is compiled, and less, or for no two readings, while nothing is.
pub(super) fn takes_it(evidence: &StepEvidence<'_>, time: &GrowthTime, of: MemoryKind) -> bool {
    let compiled = compiled_again(evidence);
    if of.is_gpu() || compiled.is_empty() || matches!(time, GrowthTime::Run(_)) {
        return false;
    }
    let is_compiling = |from: u64, to: u64| compiled.iter().any(|(_, one)| one.start_ns < to && one.end_ns > from);
    let (mut all, mut others) = (Growth::default(), Growth::default());
    for pair in of.readings(evidence.store, time).windows(2) {
        let ((from, before), (to, after)) = (pair[0], pair[1]);
        all.add(to - from, after - before);
        if !is_compiling(from, to) {
            others.add(to - from, after - before);
        }
    }
    others.rate() < SLOWER * all.rate()
}

/// How much memory grew in some time.
#[derive(Default)]
struct Growth {
    ns: f64,
    bytes: f64,
}

impl Growth {
    fn add(&mut self, ns: u64, bytes: f64) {
        self.ns += ns as f64;
        self.bytes += bytes;
    }

    /// Bytes a nanosecond.
    fn rate(&self) -> f64 {
        self.bytes / self.ns.max(1.0)
    }
}
